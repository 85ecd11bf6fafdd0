/* AES in counter mode (NIST SP 800-38A 6.5; RFC 3686), also the cipher of GCM. */
#include "aes.h"

PROFILED void aes_ctr(const struct aes_key *key, const uint8_t counter[16], uint8_t *data, size_t len)
{
    uint32_t nonce[3], block[4];
    uint32_t count = load_be32(counter + 12);
    for (unsigned i = 0; i < 3; i++)
        nonce[i] = load_word(counter + 4 * i);
    for (; len != 0; count++) {
        for (unsigned i = 0; i < 3; i++)
            block[i] = nonce[i];
        block[3] = swap32(count);
        aes_encrypt(key, block);
        if (len < AES_BLOCK) {
            for (size_t i = 0; i < len; i++)
                data[i] ^= (uint8_t)(block[i / 4] >> 8 * (i % 4));
            return;
        }
        for (unsigned i = 0; i < 4; i++)
            store_word(data + 4 * i, load_word(data + 4 * i) ^ block[i]);
        data += AES_BLOCK;
        len -= AES_BLOCK;
    }
}
