#include "hmac.h"

static void pad_state(uint32_t state[HASH_WORDS_MAX], const struct hash_kind *kind, const uint8_t *bytes, size_t len,
                      uint8_t pad)
{
    _Alignas(4) uint8_t block[HASH_BLOCK];
    for (size_t i = 0; i < HASH_BLOCK; i++)
        block[i] = i < len ? bytes[i] ^ pad : pad;
    memcpy(state, kind->start, sizeof kind->start);
    kind->blocks(state, block, 1);
}

void hmac_key_init(struct hmac_key *key, const struct hash_kind *kind, const uint8_t *bytes, size_t len)
{
    uint8_t digest[HASH_DIGEST_MAX];
    if (len > HASH_BLOCK) {
        struct hash hash;
        hash_start(&hash, kind);
        hash_update(&hash, bytes, len);
        hash_finish(&hash, digest);
        bytes = digest;
        len = 4U * kind->words;
    }
    key->kind = kind;
    pad_state(key->inner, kind, bytes, len, 0x36);
    pad_state(key->outer, kind, bytes, len, 0x5C);
}

/* A hash that has taken in one pad. */
static void resume(struct hash *hash, const struct hash_kind *kind, const uint32_t state[HASH_WORDS_MAX])
{
    hash->kind = kind;
    hash->len = HASH_BLOCK;
    memcpy(hash->state, state, sizeof hash->state);
}

PROFILED void hmac(const struct hmac_key *key, const uint8_t *data, size_t len, const uint8_t *tail, size_t tail_len,
                   uint8_t tag[HASH_DIGEST_MAX])
{
    struct hash hash;
    resume(&hash, key->kind, key->inner);
    hash_update(&hash, data, len);
    hash_update(&hash, tail, tail_len);
    hash_finish(&hash, tag);
    resume(&hash, key->kind, key->outer);
    hash_update(&hash, tag, 4U * key->kind->words);
    hash_finish(&hash, tag);
}
