/* The frame of SHA-256 (FIPS 180-4 6.2.2) around the four functions of three rotations each, which the file that
 * includes this one has defined: big_sigma0, big_sigma1, small_sigma0, small_sigma1. */
#include "hash.h"

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

#define CHOOSE(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define MAJORITY(x, y, z) (((x) & (y)) | ((z) & ((x) | (y))))

/* One round; the caller turns the names instead of moving the values. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                    \
    h += big_sigma1(e) + CHOOSE(e, f, g) + constants[t + (i)] + w[t + (i)]; \
    d += h;                                                                 \
    h += big_sigma0(a) + MAJORITY(a, b, c);

static inline void schedule(uint32_t w[64], const uint8_t *data)
{
    for (unsigned t = 0; t < 16; t++)
        w[t] = swap32(load_word(data + 4 * t));
    for (unsigned t = 16; t < 64; t++)
        w[t] = small_sigma1(w[t - 2]) + w[t - 7] + small_sigma0(w[t - 15]) + w[t - 16];
}

void sha256_blocks(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    for (; blocks != 0; blocks--, data += HASH_BLOCK) {
        uint32_t w[64];
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
        uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
        schedule(w, data);
        for (unsigned t = 0; t < 64; t += 8) {
            ROUND(a, b, c, d, e, f, g, h, 0)
            ROUND(h, a, b, c, d, e, f, g, 1)
            ROUND(g, h, a, b, c, d, e, f, 2)
            ROUND(f, g, h, a, b, c, d, e, 3)
            ROUND(e, f, g, h, a, b, c, d, 4)
            ROUND(d, e, f, g, h, a, b, c, 5)
            ROUND(c, d, e, f, g, h, a, b, 6)
            ROUND(b, c, d, e, f, g, h, a, 7)
        }
        state[0] += a;
        state[1] += b;
        state[2] += c;
        state[3] += d;
        state[4] += e;
        state[5] += f;
        state[6] += g;
        state[7] += h;
    }
}
