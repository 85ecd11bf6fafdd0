/* AES-GCM (NIST SP 800-38D) with nonces of 96 bits, as ESP wants it (RFC 4106). */
#ifndef GCM_H
#define GCM_H

#include "aes.h"
#include "ghash.h"

struct gcm_key {
    struct aes_key aes;
    struct ghash_key ghash;
};

void gcm_key_init(struct gcm_key *key, const uint8_t *bytes, size_t len);

/* Seals `data` in place and writes the tag. `aad` is at most 16 bytes; all at 4-byte boundaries. */
void gcm_seal(const struct gcm_key *key, const uint8_t nonce[12], const uint8_t *aad, size_t aad_len, uint8_t *data,
              size_t len, uint8_t tag[16]);

/* Checks the first `tag_len` bytes of the tag and, if they are right, opens `data` in place. */
bool gcm_open(const struct gcm_key *key, const uint8_t nonce[12], const uint8_t *aad, size_t aad_len, uint8_t *data,
              size_t len, const uint8_t *tag, size_t tag_len);

#endif
