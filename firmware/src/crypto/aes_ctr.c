/* AES in counter mode (NIST SP 800-38A 6.5; RFC 3686), also the cipher of GCM. */
#include "aes.h"

PROFILED void aes_ctr(const struct aes_key *key, const uint8_t counter[16], uint8_t *data, size_t len)
{
    uint32_t start[4], block[4], text[4];
    load_block(start, counter);
    for (uint32_t count = swap32(start[3]); len != 0; count++) {
        block[0] = start[0];
        block[1] = start[1];
        block[2] = start[2];
        block[3] = swap32(count);
        aes_encrypt(key, block);
        if (len < AES_BLOCK) {
            for (size_t i = 0; i < len; i++)
                data[i] ^= (uint8_t)(block[i / 4] >> 8 * (i % 4));
            return;
        }
        load_block(text, data);
        add_block(text, block);
        store_block(data, text);
        data += AES_BLOCK;
        len -= AES_BLOCK;
    }
}
