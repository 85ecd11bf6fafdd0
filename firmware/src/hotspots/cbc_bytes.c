/* HOTSPOT CBC, byte by byte: AES in CBC mode (NIST SP 800-38A 6.2; RFC 3602) as the portable libraries of [E]'s years
 * had it. They XORed and copied blocks by bytes, and a cipher took its state out of bytes and put it back into bytes,
 * for packets stood on any address. */
#include "aes.h"

static inline uint32_t column(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline void put_column(uint8_t *at, uint32_t word)
{
    at[0] = (uint8_t)word;
    at[1] = (uint8_t)(word >> 8);
    at[2] = (uint8_t)(word >> 16);
    at[3] = (uint8_t)(word >> 24);
}

static inline void state_in(uint32_t state[4], const uint8_t *in)
{
    state[0] = column(in);
    state[1] = column(in + 4);
    state[2] = column(in + 8);
    state[3] = column(in + 12);
}

static inline void state_out(uint8_t *out, const uint32_t state[4])
{
    put_column(out, state[0]);
    put_column(out + 4, state[1]);
    put_column(out + 8, state[2]);
    put_column(out + 12, state[3]);
}

static PROFILED void aes_encrypt_bytes(const struct aes_key *key, const uint8_t *in, uint8_t *out)
{
    uint32_t state[4];
    state_in(state, in);
    aes_encrypt(key, state);
    state_out(out, state);
}

static PROFILED void aes_decrypt_bytes(const struct aes_key *inverse, const uint8_t *in, uint8_t *out)
{
    uint32_t state[4];
    state_in(state, in);
    aes_decrypt(inverse, state);
    state_out(out, state);
}

PROFILED void aes_cbc_encrypt(const struct aes_key *key, const uint8_t iv[16], uint8_t *data, size_t len)
{
    uint8_t chain[AES_BLOCK], block[AES_BLOCK];
    for (unsigned i = 0; i < AES_BLOCK; i++)
        chain[i] = iv[i];
    for (; len >= AES_BLOCK; data += AES_BLOCK, len -= AES_BLOCK) {
        for (unsigned i = 0; i < AES_BLOCK; i++)
            block[i] = (uint8_t)(data[i] ^ chain[i]);
        aes_encrypt_bytes(key, block, chain);
        for (unsigned i = 0; i < AES_BLOCK; i++)
            data[i] = chain[i];
    }
}

PROFILED void aes_cbc_decrypt(const struct aes_key *inverse, const uint8_t iv[16], uint8_t *data, size_t len)
{
    uint8_t chain[AES_BLOCK], block[AES_BLOCK];
    for (unsigned i = 0; i < AES_BLOCK; i++)
        chain[i] = iv[i];
    for (; len >= AES_BLOCK; data += AES_BLOCK, len -= AES_BLOCK) {
        for (unsigned i = 0; i < AES_BLOCK; i++)
            block[i] = data[i];
        aes_decrypt_bytes(inverse, block, data);
        for (unsigned i = 0; i < AES_BLOCK; i++)
            data[i] ^= chain[i];
        for (unsigned i = 0; i < AES_BLOCK; i++)
            chain[i] = block[i];
    }
}
