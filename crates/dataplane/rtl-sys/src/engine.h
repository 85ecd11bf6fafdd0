// The cores of hardware/ behind one interface in C.
#ifndef FOREBAY_RTL_ENGINE_H
#define FOREBAY_RTL_ENGINE_H

#include <cstddef>
#include <cstdint>

extern "C" {
struct forebay_rtl;

// Engine number `kind`, reset; null if there is none.
forebay_rtl *forebay_rtl_open(unsigned kind);
void forebay_rtl_close(forebay_rtl *engine);
// Replaces the key, whose words have their first byte most significant. Cycles, or -1 if the engine does not become ready.
int64_t forebay_rtl_key(forebay_rtl *engine, const uint32_t *words, unsigned count);
// Clears the key.
void forebay_rtl_clear(forebay_rtl *engine);
// Does a packet: `out` gets as many bytes as `text` has, `tag` 16. Cycles from the command to the last beat, or -1 if the stream
// sticks.
int64_t forebay_rtl_packet(forebay_rtl *engine, const uint8_t *iv, int decrypt, const uint8_t *aad, size_t aad_len,
                           const uint8_t *text, size_t text_len, uint8_t *out, uint8_t *tag);
// Records the next packet as a waveform. 0 if that is not possible.
int forebay_rtl_record(forebay_rtl *engine, const char *path);
// From now on neither side of a stream is ready in so many of a hundred cycles, drawn from the seed: for tests.
void forebay_rtl_stall(forebay_rtl *engine, unsigned percent, uint32_t seed);
// From now on nobody takes what the engine gives: for tests.
void forebay_rtl_stick(forebay_rtl *engine);
}

#endif
