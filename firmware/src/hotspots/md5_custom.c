/* HOTSPOT MD5, with [E]'s MD5_ITERATION: a, b, c, d stay in custom registers and turn by themselves, a step is one
 * instruction that is given the message word and the constant. */
#include "custom.h"
#include "hash.h"
#include "md5_steps.h"

#define QUAD(f, step, w0, t0, w1, t1, w2, t2, w3, t3)      \
    md5_iteration(step, load_word(data + 4 * w0), t0);     \
    md5_iteration(step + 1, load_word(data + 4 * w1), t1); \
    md5_iteration(step + 2, load_word(data + 4 * w2), t2); \
    md5_iteration(step + 3, load_word(data + 4 * w3), t3);

/* A function of its own: in a loop the compiler would put all 64 constants on the stack first. */
PROFILED static void md5_block(uint32_t state[4], const uint8_t *data)
{
    uint32_t a, b, c, d;
    md5_put(0, state[0]);
    md5_put(1, state[1]);
    md5_put(2, state[2]);
    md5_put(3, state[3]);
    MD5_STEPS
    md5_get(0, a);
    md5_get(1, b);
    md5_get(2, c);
    md5_get(3, d);
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
