/* HOTSPOT CBC, by words: AES in CBC mode (NIST SP 800-38A 6.2; RFC 3602); what stands on 4-byte boundaries is moved
 * and XORed a word at a time. */
#include "aes.h"

PROFILED void aes_cbc_encrypt(const struct aes_key *key, const uint8_t iv[16], uint8_t *data, size_t len)
{
    uint32_t block[4], plain[4];
    load_block(block, iv);
    for (; len >= AES_BLOCK; data += AES_BLOCK, len -= AES_BLOCK) {
        load_block(plain, data);
        add_block(block, plain);
        aes_encrypt(key, block);
        store_block(data, block);
    }
}

PROFILED void aes_cbc_decrypt(const struct aes_key *inverse, const uint8_t iv[16], uint8_t *data, size_t len)
{
    uint32_t previous[4], block[4];
    load_block(previous, iv);
    for (; len >= AES_BLOCK; data += AES_BLOCK, len -= AES_BLOCK) {
        load_block(block, data);
        aes_decrypt(inverse, block);
        add_block(block, previous);
        load_block(previous, data);
        store_block(data, block);
    }
}
