/* AES (FIPS 197). No version is claimed to be constant-time: tables leave traces in a data cache, and that is what is
 * studied here. */
#ifndef AES_H
#define AES_H

#include "bytes.h"

enum { AES_BLOCK = 16, AES_ROUNDS_MAX = 14 };

/* Round keys as little-endian words: column i of round r is round[4 * r + i]. RV64 loads two at once. */
struct aes_key {
    _Alignas(uintptr_t) uint32_t round[4 * (AES_ROUNDS_MAX + 1)];
    unsigned rounds;
};

/* Expands a key of 16, 24 or 32 bytes for enciphering (FIPS 197 5.2). */
void aes_key_expand(struct aes_key *key, const uint8_t *bytes, size_t len);

/* Turns an expanded key into that of the equivalent inverse cipher (FIPS 197 5.3.5). */
void aes_key_invert(struct aes_key *inverse, const struct aes_key *key);

/* HOTSPOT: one block, as four little-endian words, in place. `aes_decrypt` wants an inverted key. */
void aes_encrypt(const struct aes_key *key, uint32_t block[4]);
void aes_decrypt(const struct aes_key *inverse, uint32_t block[4]);

extern const uint8_t aes_sbox[256];

/* The modes work in place on data at a 4-byte boundary; those of CBC take whole blocks. HOTSPOT: CBC. */
void aes_cbc_encrypt(const struct aes_key *key, const uint8_t iv[16], uint8_t *data, size_t len);
void aes_cbc_decrypt(const struct aes_key *inverse, const uint8_t iv[16], uint8_t *data, size_t len);

/* XORs the key stream that begins with `counter`, whose last four bytes count big-endian (RFC 3686 2.1). */
void aes_ctr(const struct aes_key *key, const uint8_t counter[16], uint8_t *data, size_t len);

#endif
