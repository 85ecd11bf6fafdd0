/* What MD5, SHA-1 and SHA-256 share: blocks of 64 bytes, a one bit, zeroes and the length at the end
 * (RFC 1321 3.1, FIPS 180-4 5.1.1). */
#include "hash.h"

const struct hash_kind hash_md5 = {
    .blocks = md5_blocks,
    .start = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 },
    .words = 4,
    .big_endian = false,
};

const struct hash_kind hash_sha1 = {
    .blocks = sha1_blocks,
    .start = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 },
    .words = 5,
    .big_endian = true,
};

const struct hash_kind hash_sha256 = {
    .blocks = sha256_blocks,
    .start = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 },
    .words = 8,
    .big_endian = true,
};

void hash_start(struct hash *hash, const struct hash_kind *kind)
{
    hash->kind = kind;
    hash->len = 0;
    memcpy(hash->state, kind->start, sizeof hash->state);
}

PROFILED void hash_update(struct hash *hash, const uint8_t *data, size_t len)
{
    size_t held = hash->len % HASH_BLOCK;
    hash->len += len;
    while (len != 0) {
        size_t taken = len < HASH_BLOCK - held ? len : HASH_BLOCK - held;
        if (taken == HASH_BLOCK && (uintptr_t)data % 4 == 0) {
            taken = len - len % HASH_BLOCK;
            hash->kind->blocks(hash->state, data, taken / HASH_BLOCK);
        } else {
            memcpy(hash->rest + held, data, taken);
            held += taken;
            if (held == HASH_BLOCK) {
                hash->kind->blocks(hash->state, hash->rest, 1);
                held = 0;
            }
        }
        data += taken;
        len -= taken;
    }
}

PROFILED void hash_finish(struct hash *hash, uint8_t digest[HASH_DIGEST_MAX])
{
    size_t held = hash->len % HASH_BLOCK;
    uint64_t bits = hash->len * 8;
    hash->rest[held++] = 0x80;
    if (held > HASH_BLOCK - 8) {
        memset(hash->rest + held, 0, HASH_BLOCK - held);
        hash->kind->blocks(hash->state, hash->rest, 1);
        held = 0;
    }
    memset(hash->rest + held, 0, HASH_BLOCK - 8 - held);
    uint32_t low = (uint32_t)bits, high = (uint32_t)(bits >> 32);
    store_be32(hash->rest + HASH_BLOCK - 8, hash->kind->big_endian ? high : swap32(low));
    store_be32(hash->rest + HASH_BLOCK - 4, hash->kind->big_endian ? low : swap32(high));
    hash->kind->blocks(hash->state, hash->rest, 1);
    for (unsigned i = 0; i < hash->kind->words; i++)
        store_be32(digest + 4 * i, hash->kind->big_endian ? hash->state[i] : swap32(hash->state[i]));
}
