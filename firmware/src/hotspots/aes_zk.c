/* HOTSPOT AES, with Zkne and Zknd: each instruction does SubBytes and MixColumns of one byte and adds it to a column.
 * No tables, so the time does not depend on key or data. */
#include "aes.h"
#include "zk.h"

#define COLUMN(f, key, a, b, c, d) f(f(f(f(key, a, 0), b, 1), c, 2), d, 3)

void aes_encrypt(const struct aes_key *key, uint32_t block[4])
{
    const uint32_t *k = key->round, *last = k + 4 * key->rounds;
    uint32_t s0 = block[0] ^ k[0], s1 = block[1] ^ k[1], s2 = block[2] ^ k[2], s3 = block[3] ^ k[3];
    for (k += 4; k != last; k += 4) {
        uint32_t t0 = COLUMN(aes32esmi, k[0], s0, s1, s2, s3);
        uint32_t t1 = COLUMN(aes32esmi, k[1], s1, s2, s3, s0);
        uint32_t t2 = COLUMN(aes32esmi, k[2], s2, s3, s0, s1);
        s3 = COLUMN(aes32esmi, k[3], s3, s0, s1, s2);
        s0 = t0;
        s1 = t1;
        s2 = t2;
    }
    block[0] = COLUMN(aes32esi, k[0], s0, s1, s2, s3);
    block[1] = COLUMN(aes32esi, k[1], s1, s2, s3, s0);
    block[2] = COLUMN(aes32esi, k[2], s2, s3, s0, s1);
    block[3] = COLUMN(aes32esi, k[3], s3, s0, s1, s2);
}

void aes_decrypt(const struct aes_key *inverse, uint32_t block[4])
{
    const uint32_t *k = inverse->round, *last = k + 4 * inverse->rounds;
    uint32_t s0 = block[0] ^ k[0], s1 = block[1] ^ k[1], s2 = block[2] ^ k[2], s3 = block[3] ^ k[3];
    for (k += 4; k != last; k += 4) {
        uint32_t t0 = COLUMN(aes32dsmi, k[0], s0, s3, s2, s1);
        uint32_t t1 = COLUMN(aes32dsmi, k[1], s1, s0, s3, s2);
        uint32_t t2 = COLUMN(aes32dsmi, k[2], s2, s1, s0, s3);
        s3 = COLUMN(aes32dsmi, k[3], s3, s2, s1, s0);
        s0 = t0;
        s1 = t1;
        s2 = t2;
    }
    block[0] = COLUMN(aes32dsi, k[0], s0, s3, s2, s1);
    block[1] = COLUMN(aes32dsi, k[1], s1, s0, s3, s2);
    block[2] = COLUMN(aes32dsi, k[2], s2, s1, s0, s3);
    block[3] = COLUMN(aes32dsi, k[3], s3, s2, s1, s0);
}
