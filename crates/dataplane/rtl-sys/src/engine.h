// The cores of hardware/ behind one interface in C.
#ifndef FOREBAY_RTL_ENGINE_H
#define FOREBAY_RTL_ENGINE_H

#include <cstddef>
#include <cstdint>

extern "C" {
struct forebay_rtl;

// AEAD core number `kind`, or ESP engine number `kind`, behind a reset; null if there is none.
forebay_rtl *forebay_rtl_aead(unsigned kind);
forebay_rtl *forebay_rtl_esp(unsigned kind);
void forebay_rtl_close(forebay_rtl *core);
// Records the next packet as a waveform. 0 if that is not possible.
int forebay_rtl_record(forebay_rtl *core, const char *path);
// From now on neither side of a stream is ready in so many of a hundred cycles, drawn from the seed: for tests.
void forebay_rtl_stall(forebay_rtl *core, unsigned percent, uint32_t seed);
// From now on nobody takes what the core gives: for tests.
void forebay_rtl_stick(forebay_rtl *core);

// For AEAD cores only. Replaces the key, whose words have their first byte most significant. Cycles, or -1 if the core does not
// become ready.
int64_t forebay_rtl_aead_key(forebay_rtl *core, const uint32_t *words, unsigned count);
// Clears the key.
void forebay_rtl_aead_clear(forebay_rtl *core);
// Does a packet: `out` gets as many bytes as `text` has, `tag` 16. Cycles from the command to the last beat, or -1 if the stream
// sticks.
int64_t forebay_rtl_aead_packet(forebay_rtl *core, const uint8_t *iv, int decrypt, const uint8_t *aad, size_t aad_len,
                                const uint8_t *text, size_t text_len, uint8_t *out, uint8_t *tag);

// For ESP engines only. Writes the 32 words of a key slot; the cycles that took.
int64_t forebay_rtl_esp_slot(forebay_rtl *core, unsigned slot, const uint32_t *words);
// Clears all slots. Cycles, or -1 if the engine does not become ready.
int64_t forebay_rtl_esp_clear(forebay_rtl *core);
// Does a descriptor and its packet, `in_len` words; the answer's words go to `out`, which has room for so many, their number to
// `out_len`. Cycles from the first word to the status, or -1 if the stream sticks or the room is too small.
int64_t forebay_rtl_esp_packet(forebay_rtl *core, const uint32_t *in, size_t in_len, uint32_t *out, size_t room,
                               size_t *out_len);
}

#endif
