/* HOTSPOT GHASH, with Zbkc's carry-less multiplication. */
#include "ghash.h"
#include "zk.h"

void ghash_key_init(struct ghash_key *key, const uint32_t h[4])
{
    memcpy(key->table[0], h, sizeof key->table[0]);
}

/* p, 256 bits, p[0] the lowest: the carry-less product of a and b, whose word 0 is the highest. Written out, so that
 * all of it stays in registers. */
#define TERM(i, j)                                 \
    p[(i) + (j)] ^= clmul(a[3 - (i)], b[3 - (j)]); \
    p[(i) + (j) + 1] ^= clmulh(a[3 - (i)], b[3 - (j)]);
#define ROW(i) TERM(i, 0) TERM(i, 1) TERM(i, 2) TERM(i, 3)

static inline void multiply(uint32_t p[8], const uint32_t a[4], const uint32_t b[4])
{
    ROW(0)
    ROW(1)
    ROW(2)
    ROW(3)
}

/* The bits of a block stand the wrong way round (x^0 is the highest), which makes a product one place too low; and the
 * lower half is what lies above x^127: it comes back at x^128 = x^7 + x^2 + x + 1. */
#define SHIFT(i) p[i] = p[i] << 1 | p[(i)-1] >> 31;
#define FOLD(i)                                             \
    p[(i) + 4] ^= p[i] ^ p[i] >> 1 ^ p[i] >> 2 ^ p[i] >> 7; \
    p[(i) + 3] ^= p[i] << 31 ^ p[i] << 30 ^ p[i] << 25;

static inline void reduce(uint32_t p[8])
{
    SHIFT(7) SHIFT(6) SHIFT(5) SHIFT(4) SHIFT(3) SHIFT(2) SHIFT(1) p[0] <<= 1;
    FOLD(0) FOLD(1) FOLD(2) FOLD(3)
}

void ghash_blocks(const struct ghash_key *key, uint32_t y[4], const uint8_t *data, size_t blocks)
{
    const uint32_t h[4] = { key->table[0][0], key->table[0][1], key->table[0][2], key->table[0][3] };
    uint32_t x[4] = { y[0], y[1], y[2], y[3] };
    for (; blocks != 0; blocks--, data += 16) {
        uint32_t p[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
        x[0] ^= swap32(load_word(data));
        x[1] ^= swap32(load_word(data + 4));
        x[2] ^= swap32(load_word(data + 8));
        x[3] ^= swap32(load_word(data + 12));
        multiply(p, x, h);
        reduce(p);
        x[0] = p[7];
        x[1] = p[6];
        x[2] = p[5];
        x[3] = p[4];
    }
    y[0] = x[0];
    y[1] = x[1];
    y[2] = x[2];
    y[3] = x[3];
}
