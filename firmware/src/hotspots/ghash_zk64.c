/* HOTSPOT GHASH, with Zbkc's carry-less multiplication of RV64. */
#include "ghash.h"
#include "zk64.h"

void ghash_key_init(struct ghash_key *key, const uint32_t h[4])
{
    memcpy(key->table[0], h, sizeof key->table[0]);
}

static inline uint64_t high_first(const uint32_t words[2])
{
    return (uint64_t)words[0] << 32 | words[1];
}

static inline uint64_t load_be64(const uint8_t *at)
{
    return __builtin_bswap64(load_word(at) | (uint64_t)load_word(at + 4) << 32);
}

/* Bits and reduction as in ghash_zk.c. */
#define FOLD(i)                                             \
    p[(i) + 2] ^= p[i] ^ p[i] >> 1 ^ p[i] >> 2 ^ p[i] >> 7; \
    p[(i) + 1] ^= p[i] << 63 ^ p[i] << 62 ^ p[i] << 57;

void ghash_blocks(const struct ghash_key *key, uint32_t y[4], const uint8_t *data, size_t blocks)
{
    const uint64_t h1 = high_first(key->table[0]), h0 = high_first(key->table[0] + 2);
    uint64_t x1 = high_first(y), x0 = high_first(y + 2);
    for (; blocks != 0; blocks--, data += 16) {
        uint64_t p[4];
        x1 ^= load_be64(data);
        x0 ^= load_be64(data + 8);
        p[0] = clmul(x0, h0);
        p[1] = clmulh(x0, h0) ^ clmul(x1, h0) ^ clmul(x0, h1);
        p[2] = clmulh(x1, h0) ^ clmulh(x0, h1) ^ clmul(x1, h1);
        p[3] = clmulh(x1, h1);
        p[3] = p[3] << 1 | p[2] >> 63;
        p[2] = p[2] << 1 | p[1] >> 63;
        p[1] = p[1] << 1 | p[0] >> 63;
        p[0] <<= 1;
        FOLD(0) FOLD(1)
        x1 = p[3];
        x0 = p[2];
    }
    y[0] = (uint32_t)(x1 >> 32);
    y[1] = (uint32_t)x1;
    y[2] = (uint32_t)(x0 >> 32);
    y[3] = (uint32_t)x0;
}
