/* HOTSPOT AES, with Zkne and Zknd of RV64: each instruction does half of a round, but for the key. */
#include "aes.h"
#include "zk64.h"

typedef uint64_t __attribute__((may_alias)) pair;

static inline uint64_t columns(const uint32_t *block)
{
    return block[0] | (uint64_t)block[1] << 32;
}

static inline void split(uint32_t *block, uint64_t columns)
{
    block[0] = (uint32_t)columns;
    block[1] = (uint32_t)(columns >> 32);
}

void aes_encrypt(const struct aes_key *key, uint32_t block[4])
{
    const pair *k = (const pair *)(const void *)key->round, *last = k + 2 * key->rounds;
    uint64_t s0 = columns(block) ^ k[0], s1 = columns(block + 2) ^ k[1], t;
    for (k += 2; k != last; k += 2) {
        t = aes64esm(s0, s1) ^ k[0];
        s1 = aes64esm(s1, s0) ^ k[1];
        s0 = t;
    }
    split(block, aes64es(s0, s1) ^ k[0]);
    split(block + 2, aes64es(s1, s0) ^ k[1]);
}

void aes_decrypt(const struct aes_key *inverse, uint32_t block[4])
{
    const pair *k = (const pair *)(const void *)inverse->round, *last = k + 2 * inverse->rounds;
    uint64_t s0 = columns(block) ^ k[0], s1 = columns(block + 2) ^ k[1], t;
    for (k += 2; k != last; k += 2) {
        t = aes64dsm(s0, s1) ^ k[0];
        s1 = aes64dsm(s1, s0) ^ k[1];
        s0 = t;
    }
    split(block, aes64ds(s0, s1) ^ k[0]);
    split(block + 2, aes64ds(s1, s0) ^ k[1]);
}
