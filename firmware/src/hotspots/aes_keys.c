/* HOTSPOT AES, with [E]'s ENC_ROUND(S, r, i, j, k, l) and DEC_ROUND as the paper defines them: the state and the round
 * key r are custom registers. Instructions of their own bring both in, a round reads neither from memory. */
#include "aes.h"
#include "custom.h"

static inline void load_state(const uint32_t block[4], const uint32_t key[4])
{
    aes_put(0, block[0] ^ key[0]);
    aes_put(1, block[1] ^ key[1]);
    aes_put(2, block[2] ^ key[2]);
    aes_put(3, block[3] ^ key[3]);
}

static inline void store_state(uint32_t block[4])
{
    aes_get(0, block[0]);
    aes_get(1, block[1]);
    aes_get(2, block[2]);
    aes_get(3, block[3]);
}

static inline void load_key(const uint32_t key[4])
{
    aes_key_put(0, key[0]);
    aes_key_put(1, key[1]);
    aes_key_put(2, key[2]);
    aes_key_put(3, key[3]);
}

void aes_encrypt(const struct aes_key *key, uint32_t block[4])
{
    const uint32_t *k = key->round, *last = k + 4 * key->rounds;
    load_state(block, k);
    for (k += 4; k != last; k += 4) {
        load_key(k);
        aes_keyed_round(0);
    }
    load_key(k);
    aes_keyed_round(1);
    store_state(block);
}

void aes_decrypt(const struct aes_key *inverse, uint32_t block[4])
{
    const uint32_t *k = inverse->round, *last = k + 4 * inverse->rounds;
    load_state(block, k);
    for (k += 4; k != last; k += 4) {
        load_key(k);
        aes_keyed_round(2);
    }
    load_key(k);
    aes_keyed_round(3);
    store_state(block);
}
