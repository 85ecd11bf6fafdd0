/* HOTSPOT SHA-1 (FIPS 180-4 6.1.2). RISC-V has no instruction for it but the rotations of Zbb. */
#include "hash.h"

#define CHOOSE(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define PARITY(x, y, z) ((x) ^ (y) ^ (z))
#define MAJORITY(x, y, z) (((x) & (y)) | ((z) & ((x) | (y))))

static inline void schedule(uint32_t w[80], const uint8_t *data)
{
    for (unsigned t = 0; t < 16; t++)
        w[t] = swap32(load_word(data + 4 * t));
    for (unsigned t = 16; t < 80; t++)
        w[t] = rotate_left(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
}

#define ROUND(f, constant, a, b, c, d, e, t)                 \
    e += rotate_left(a, 5) + f(b, c, d) + (constant) + w[t]; \
    b = rotate_left(b, 30);

/* Twenty rounds with one function and constant; after five the names are where they were. */
#define TWENTY(f, constant, first)                         \
    for (unsigned t = (first); t < (first) + 20; t += 5) { \
        ROUND(f, constant, a, b, c, d, e, t)               \
        ROUND(f, constant, e, a, b, c, d, t + 1)           \
        ROUND(f, constant, d, e, a, b, c, t + 2)           \
        ROUND(f, constant, c, d, e, a, b, t + 3)           \
        ROUND(f, constant, b, c, d, e, a, t + 4)           \
    }

void sha1_blocks(uint32_t state[5], const uint8_t *data, size_t blocks)
{
    for (; blocks != 0; blocks--, data += HASH_BLOCK) {
        uint32_t w[80];
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
        schedule(w, data);
        TWENTY(CHOOSE, 0x5a827999, 0)
        TWENTY(PARITY, 0x6ed9eba1, 20)
        TWENTY(MAJORITY, 0x8f1bbcdc, 40)
        TWENTY(PARITY, 0xca62c1d6, 60)
        state[0] += a;
        state[1] += b;
        state[2] += c;
        state[3] += d;
        state[4] += e;
    }
}
