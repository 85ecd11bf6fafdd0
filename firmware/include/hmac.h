/* HMAC (RFC 2104) with the states behind both pads kept, so that a packet pays for its own bytes only. */
#ifndef HMAC_H
#define HMAC_H

#include "hash.h"

struct hmac_key {
    const struct hash_kind *kind;
    uint32_t inner[HASH_WORDS_MAX], outer[HASH_WORDS_MAX];
};

void hmac_key_init(struct hmac_key *key, const struct hash_kind *kind, const uint8_t *bytes, size_t len);

/* The whole tag over `data` and what follows it, `tail` (the half of a sequence number that is not sent). */
void hmac(const struct hmac_key *key, const uint8_t *data, size_t len, const uint8_t *tail, size_t tail_len,
          uint8_t tag[HASH_DIGEST_MAX]);

#endif
