/* HOTSPOT GHASH, with Zbkc's carry-less multiplication. */
#include "ghash.h"
#include "zk.h"

void ghash_key_init(struct ghash_key *key, const uint32_t h[4])
{
    memcpy(key->table[0], h, sizeof key->table[0]);
}

/* p, 256 bits, p[0] the lowest: the carry-less product of a and b, whose word 0 is the highest. */
static inline void multiply(uint32_t p[8], const uint32_t a[4], const uint32_t b[4])
{
    for (unsigned i = 0; i < 8; i++)
        p[i] = 0;
    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < 4; j++) {
            p[i + j] ^= clmul(a[3 - i], b[3 - j]);
            p[i + j + 1] ^= clmulh(a[3 - i], b[3 - j]);
        }
}

/* The bits of a block stand the wrong way round (x^0 is the highest), which makes a product one place too low; and the
 * lower half is what lies above x^127: it comes back at x^128 = x^7 + x^2 + x + 1. */
static inline void reduce(uint32_t y[4], uint32_t p[8])
{
    for (unsigned i = 7; i > 0; i--)
        p[i] = p[i] << 1 | p[i - 1] >> 31;
    p[0] <<= 1;
    for (unsigned i = 0; i < 4; i++) {
        p[i + 4] ^= p[i] ^ p[i] >> 1 ^ p[i] >> 2 ^ p[i] >> 7;
        p[i + 3] ^= p[i] << 31 ^ p[i] << 30 ^ p[i] << 25;
    }
    for (unsigned i = 0; i < 4; i++)
        y[i] = p[7 - i];
}

void ghash_blocks(const struct ghash_key *key, uint32_t y[4], const uint8_t *data, size_t blocks)
{
    for (; blocks != 0; blocks--, data += 16) {
        uint32_t p[8];
        for (unsigned i = 0; i < 4; i++)
            y[i] ^= swap32(load_word(data + 4 * i));
        multiply(p, y, key->table[0]);
        reduce(y, p);
    }
}
