/* AES in CBC mode (NIST SP 800-38A 6.2; RFC 3602). */
#include "aes.h"

PROFILED void aes_cbc_encrypt(const struct aes_key *key, const uint8_t iv[16], uint8_t *data, size_t len)
{
    uint32_t block[4];
    for (unsigned i = 0; i < 4; i++)
        block[i] = load_word(iv + 4 * i);
    for (; len >= AES_BLOCK; data += AES_BLOCK, len -= AES_BLOCK) {
        for (unsigned i = 0; i < 4; i++)
            block[i] ^= load_word(data + 4 * i);
        aes_encrypt(key, block);
        for (unsigned i = 0; i < 4; i++)
            store_word(data + 4 * i, block[i]);
    }
}

PROFILED void aes_cbc_decrypt(const struct aes_key *inverse, const uint8_t iv[16], uint8_t *data, size_t len)
{
    uint32_t previous[4], block[4];
    for (unsigned i = 0; i < 4; i++)
        previous[i] = load_word(iv + 4 * i);
    for (; len >= AES_BLOCK; data += AES_BLOCK, len -= AES_BLOCK) {
        for (unsigned i = 0; i < 4; i++)
            block[i] = load_word(data + 4 * i);
        aes_decrypt(inverse, block);
        for (unsigned i = 0; i < 4; i++) {
            uint32_t sealed = load_word(data + 4 * i);
            store_word(data + 4 * i, block[i] ^ previous[i]);
            previous[i] = sealed;
        }
    }
}
