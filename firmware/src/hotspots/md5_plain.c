/* HOTSPOT MD5, plain: all 64 steps written out, as RFC 1321 does. */
#include "hash.h"
#include "md5_steps.h"

#define F(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define G(x, y, z) F(z, x, y)
#define H(x, y, z) ((x) ^ (y) ^ (z))
#define I(x, y, z) ((y) ^ ((x) | ~(z)))

#define ONE(f, a, b, c, d, shift, word, constant)                \
    a += f(b, c, d) + load_word(data + 4 * (word)) + (constant); \
    a = b + rotate_left(a, shift);

/* Shifts by round and by step within four (RFC 1321 3.4). */
/* clang-format off */
enum {
    SHIFT_F0 = 7, SHIFT_F1 = 12, SHIFT_F2 = 17, SHIFT_F3 = 22,
    SHIFT_G0 = 5, SHIFT_G1 = 9, SHIFT_G2 = 14, SHIFT_G3 = 20,
    SHIFT_H0 = 4, SHIFT_H1 = 11, SHIFT_H2 = 16, SHIFT_H3 = 23,
    SHIFT_I0 = 6, SHIFT_I1 = 10, SHIFT_I2 = 15, SHIFT_I3 = 21,
};
/* clang-format on */

#define QUAD(f, step, w0, t0, w1, t1, w2, t2, w3, t3) \
    ONE(f, a, b, c, d, SHIFT_##f##0, w0, t0##u)       \
    ONE(f, d, a, b, c, SHIFT_##f##1, w1, t1##u)       \
    ONE(f, c, d, a, b, SHIFT_##f##2, w2, t2##u)       \
    ONE(f, b, c, d, a, SHIFT_##f##3, w3, t3##u)

/* A function of its own: in a loop the compiler would put all 64 constants on the stack first. */
PROFILED static void md5_block(uint32_t state[4], const uint8_t *data)
{
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    MD5_STEPS
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void md5_blocks(uint32_t state[4], const uint8_t *data, size_t blocks)
{
    for (; blocks != 0; blocks--, data += HASH_BLOCK)
        md5_block(state, data);
}
