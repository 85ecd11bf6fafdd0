/* AES-GCM (NIST SP 800-38D 7). */
#include "gcm.h"

void gcm_key_init(struct gcm_key *key, const uint8_t *bytes, size_t len)
{
    uint32_t h[4] = { 0, 0, 0, 0 };
    aes_key_expand(&key->aes, bytes, len);
    aes_encrypt(&key->aes, h);
    for (unsigned i = 0; i < 4; i++)
        h[i] = swap32(h[i]);
    ghash_key_init(&key->ghash, h);
}

/* Takes in `len` bytes, filled up with zeroes to whole blocks. */
static void absorb(const struct ghash_key *key, uint32_t y[4], const uint8_t *data, size_t len)
{
    size_t whole = len / AES_BLOCK;
    if (whole != 0)
        ghash_blocks(key, y, data, whole);
    if (len % AES_BLOCK != 0) {
        _Alignas(4) uint8_t last[AES_BLOCK] = { 0 };
        memcpy(last, data + whole * AES_BLOCK, len % AES_BLOCK);
        ghash_blocks(key, y, last, 1);
    }
}

static void count_from(uint8_t counter[16], const uint8_t nonce[12], uint32_t count)
{
    memcpy(counter, nonce, 12);
    store_be32(counter + 12, count);
}

PROFILED static void gcm_tag(const struct gcm_key *key, const uint8_t nonce[12], const uint8_t *aad, size_t aad_len,
                             const uint8_t *sealed, size_t len, uint8_t tag[16])
{
    uint32_t y[4] = { 0, 0, 0, 0 };
    _Alignas(4) uint8_t lengths[AES_BLOCK], counter[AES_BLOCK];
    store_be64(lengths, (uint64_t)aad_len * 8);
    store_be64(lengths + 8, (uint64_t)len * 8);
    absorb(&key->ghash, y, aad, aad_len);
    absorb(&key->ghash, y, sealed, len);
    ghash_blocks(&key->ghash, y, lengths, 1);
    for (unsigned i = 0; i < 4; i++)
        store_be32(tag + 4 * i, y[i]);
    count_from(counter, nonce, 1);
    aes_ctr(&key->aes, counter, tag, AES_BLOCK);
}

void gcm_seal(const struct gcm_key *key, const uint8_t nonce[12], const uint8_t *aad, size_t aad_len, uint8_t *data,
              size_t len, uint8_t tag[16])
{
    _Alignas(4) uint8_t counter[AES_BLOCK];
    count_from(counter, nonce, 2);
    aes_ctr(&key->aes, counter, data, len);
    gcm_tag(key, nonce, aad, aad_len, data, len, tag);
}

bool gcm_open(const struct gcm_key *key, const uint8_t nonce[12], const uint8_t *aad, size_t aad_len, uint8_t *data,
              size_t len, const uint8_t *tag, size_t tag_len)
{
    _Alignas(4) uint8_t expected[16], counter[AES_BLOCK];
    gcm_tag(key, nonce, aad, aad_len, data, len, expected);
    if (!same_bytes(expected, tag, tag_len))
        return false;
    count_from(counter, nonce, 2);
    aes_ctr(&key->aes, counter, data, len);
    return true;
}
