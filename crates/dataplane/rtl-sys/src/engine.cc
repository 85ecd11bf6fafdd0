// The cores that are compiled in.
#include "engine.h"

#include "aead.h"
#include "esp.h"

#include "VAesGcm.h"
#include "VChaChaPoly.h"
#include "VEsp3DesSha1.h"
#include "VEspCbcSha256.h"
#include "VEspChaCha.h"
#include "VEspCtrSha1.h"
#include "VEspGcm.h"
#ifdef FOREBAY_PIPELINED
#include "VAesGcmPipelined.h"
#endif

extern "C" {
forebay_rtl *forebay_rtl_aead(unsigned kind) {
    switch (kind) {
    case 0: return new Aead<VAesGcm>();
    case 1: return new Aead<VChaChaPoly>();
#ifdef FOREBAY_PIPELINED
    case 2: return new Aead<VAesGcmPipelined>();
#endif
    default: return nullptr;
    }
}

forebay_rtl *forebay_rtl_esp(unsigned kind) {
    switch (kind) {
    case 0: return new Esp<VEspCtrSha1>();
    case 1: return new Esp<VEspCbcSha256>();
    case 2: return new Esp<VEsp3DesSha1>();
    case 3: return new Esp<VEspGcm>();
    case 4: return new Esp<VEspChaCha>();
    default: return nullptr;
    }
}

void forebay_rtl_close(forebay_rtl *core) { delete core; }

int forebay_rtl_record(forebay_rtl *core, const char *path) {
    if (VM_TRACE_FST) core->record = path;
    return VM_TRACE_FST;
}

void forebay_rtl_stall(forebay_rtl *core, unsigned percent, uint32_t seed) {
    core->stall_percent = percent;
    core->random.seed(seed);
}

void forebay_rtl_stick(forebay_rtl *core) { core->stuck = true; }

int64_t forebay_rtl_aead_key(forebay_rtl *core, const uint32_t *words, unsigned count) {
    return static_cast<AeadBase *>(core)->key(words, count);
}

void forebay_rtl_aead_clear(forebay_rtl *core) { static_cast<AeadBase *>(core)->clear(); }

int64_t forebay_rtl_aead_packet(forebay_rtl *core, const uint8_t *iv, int decrypt, const uint8_t *aad, size_t aad_len,
                                const uint8_t *text, size_t text_len, uint8_t *out, uint8_t *tag) {
    return static_cast<AeadBase *>(core)->packet(iv, decrypt != 0, aad, aad_len, text, text_len, out, tag);
}

int64_t forebay_rtl_esp_slot(forebay_rtl *core, unsigned slot, const uint32_t *words) {
    return static_cast<EspBase *>(core)->slot(slot, words);
}

int64_t forebay_rtl_esp_clear(forebay_rtl *core) { return static_cast<EspBase *>(core)->clear(); }

int64_t forebay_rtl_esp_packet(forebay_rtl *core, const uint32_t *in, size_t in_len, uint32_t *out, size_t room,
                               size_t *out_len) {
    return static_cast<EspBase *>(core)->packet(in, in_len, out, room, out_len);
}
}
