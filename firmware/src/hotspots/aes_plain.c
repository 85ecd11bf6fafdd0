/* HOTSPOT AES, plain: SubBytes, ShiftRows and MixColumns of a column as four table look-ups (the Rijndael
 * proposal 5.2.1; [E] C.2). AES_TABLES=4 is four tables of 1 KB each way, 1 is one and rotations.
 * The tables make the time depend on key and data through the data cache. */
#include "aes.h"
#include "aes_boxes.h"

#ifndef AES_TABLES
#define AES_TABLES 4
#endif

/* Products in GF(2^8) by constants, worked out by the compiler. */
#define X2(s) ((s) << 1 ^ ((s) >> 7) * 0x11B)
#define X4(s) X2(X2(s))
#define X8(s) X2(X4(s))
#define BYTES(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

#define MIX_0(s) BYTES(X2(s), s, s, X2(s) ^ s)
#define MIX_1(s) BYTES(X2(s) ^ s, X2(s), s, s)
#define MIX_2(s) BYTES(s, X2(s) ^ s, X2(s), s)
#define MIX_3(s) BYTES(s, s, X2(s) ^ s, X2(s))

#define X9(s) (X8(s) ^ s)
#define X11(s) (X8(s) ^ X2(s) ^ s)
#define X13(s) (X8(s) ^ X4(s) ^ s)
#define X14(s) (X8(s) ^ X4(s) ^ X2(s))
#define UNMIX_0(s) BYTES(X14(s), X9(s), X13(s), X11(s))
#define UNMIX_1(s) BYTES(X11(s), X14(s), X9(s), X13(s))
#define UNMIX_2(s) BYTES(X13(s), X11(s), X14(s), X9(s))
#define UNMIX_3(s) BYTES(X9(s), X13(s), X11(s), X14(s))

#define BYTE(x) x
static const uint8_t inverse_sbox[256] = { AES_INVERSE_SBOX(BYTE) };
static const uint32_t mix[AES_TABLES][256] = {
    { AES_SBOX(MIX_0) },
#if AES_TABLES == 4
    { AES_SBOX(MIX_1) },
    { AES_SBOX(MIX_2) },
    { AES_SBOX(MIX_3) },
#endif
};
static const uint32_t unmix[AES_TABLES][256] = {
    { AES_INVERSE_SBOX(UNMIX_0) },
#if AES_TABLES == 4
    { AES_INVERSE_SBOX(UNMIX_1) },
    { AES_INVERSE_SBOX(UNMIX_2) },
    { AES_INVERSE_SBOX(UNMIX_3) },
#endif
};

/* A column from the bytes of four columns, row by row. */
static inline uint32_t look_up(const uint32_t table[AES_TABLES][256], uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
#if AES_TABLES == 4
    return table[0][a & 255] ^ table[1][b >> 8 & 255] ^ table[2][c >> 16 & 255] ^ table[3][d >> 24];
#else
    return table[0][a & 255] ^ rotate_left(table[0][b >> 8 & 255], 8) ^ rotate_left(table[0][c >> 16 & 255], 16) ^
           rotate_left(table[0][d >> 24], 24);
#endif
}

/* The last round has no MixColumns. */
static inline uint32_t substitute(const uint8_t box[256], uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return BYTES(box[a & 255], box[b >> 8 & 255], box[c >> 16 & 255], box[d >> 24]);
}

void aes_encrypt(const struct aes_key *key, uint32_t block[4])
{
    const uint32_t *k = key->round, *last = k + 4 * key->rounds;
    uint32_t s0 = block[0] ^ k[0], s1 = block[1] ^ k[1], s2 = block[2] ^ k[2], s3 = block[3] ^ k[3];
    for (k += 4; k != last; k += 4) {
        uint32_t t0 = look_up(mix, s0, s1, s2, s3) ^ k[0];
        uint32_t t1 = look_up(mix, s1, s2, s3, s0) ^ k[1];
        uint32_t t2 = look_up(mix, s2, s3, s0, s1) ^ k[2];
        s3 = look_up(mix, s3, s0, s1, s2) ^ k[3];
        s0 = t0;
        s1 = t1;
        s2 = t2;
    }
    block[0] = substitute(aes_sbox, s0, s1, s2, s3) ^ k[0];
    block[1] = substitute(aes_sbox, s1, s2, s3, s0) ^ k[1];
    block[2] = substitute(aes_sbox, s2, s3, s0, s1) ^ k[2];
    block[3] = substitute(aes_sbox, s3, s0, s1, s2) ^ k[3];
}

void aes_decrypt(const struct aes_key *inverse, uint32_t block[4])
{
    const uint32_t *k = inverse->round, *last = k + 4 * inverse->rounds;
    uint32_t s0 = block[0] ^ k[0], s1 = block[1] ^ k[1], s2 = block[2] ^ k[2], s3 = block[3] ^ k[3];
    for (k += 4; k != last; k += 4) {
        uint32_t t0 = look_up(unmix, s0, s3, s2, s1) ^ k[0];
        uint32_t t1 = look_up(unmix, s1, s0, s3, s2) ^ k[1];
        uint32_t t2 = look_up(unmix, s2, s1, s0, s3) ^ k[2];
        s3 = look_up(unmix, s3, s2, s1, s0) ^ k[3];
        s0 = t0;
        s1 = t1;
        s2 = t2;
    }
    block[0] = substitute(inverse_sbox, s0, s3, s2, s1) ^ k[0];
    block[1] = substitute(inverse_sbox, s1, s0, s3, s2) ^ k[1];
    block[2] = substitute(inverse_sbox, s2, s1, s0, s3) ^ k[2];
    block[3] = substitute(inverse_sbox, s3, s2, s1, s0) ^ k[3];
}
