/* MD5 (RFC 1321), SHA-1 and SHA-256 (FIPS 180-4): one frame around three ways to take in a block. */
#ifndef HASH_H
#define HASH_H

#include "bytes.h"

enum { HASH_BLOCK = 64, HASH_WORDS_MAX = 8, HASH_DIGEST_MAX = 32 };

struct hash_kind {
    void (*blocks)(uint32_t *state, const uint8_t *data, size_t blocks);
    uint32_t start[HASH_WORDS_MAX];
    uint8_t words; /* of the digest */
    bool big_endian;
};

extern const struct hash_kind hash_md5, hash_sha1, hash_sha256;

/* HOTSPOTS: take in blocks of 64 bytes, which stand on a 4-byte boundary. */
void md5_blocks(uint32_t state[4], const uint8_t *data, size_t blocks);
void sha1_blocks(uint32_t state[5], const uint8_t *data, size_t blocks);
void sha256_blocks(uint32_t state[8], const uint8_t *data, size_t blocks);

struct hash {
    const struct hash_kind *kind;
    uint32_t state[HASH_WORDS_MAX];
    uint64_t len; /* bytes taken in */
    _Alignas(4) uint8_t rest[HASH_BLOCK];
};

void hash_start(struct hash *hash, const struct hash_kind *kind);
void hash_update(struct hash *hash, const uint8_t *data, size_t len);
void hash_finish(struct hash *hash, uint8_t digest[HASH_DIGEST_MAX]);

#endif
