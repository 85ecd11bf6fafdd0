/* GHASH (NIST SP 800-38D 6.4), the authentication of AES-GCM. */
#ifndef GHASH_H
#define GHASH_H

#include "bytes.h"

/* What a version prepares for a key: multiples of H, or H alone in the first entry. */
struct ghash_key {
    uint32_t table[16][4];
};

void ghash_key_init(struct ghash_key *key, const uint32_t h[4]);

/* HOTSPOT: takes in `blocks` blocks of 16 bytes. `y` and `h` are four words, big-endian: y[0] is the first
 * four bytes of the block. */
void ghash_blocks(const struct ghash_key *key, uint32_t y[4], const uint8_t *data, size_t blocks);

#endif
