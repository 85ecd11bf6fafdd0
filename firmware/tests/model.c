/* The instructions that this machine lacks, in C, written from their definitions and in another way than the code
 * that uses them: the custom ones (README.md), Zkne, Zknd, Zknh and Zbkc (RISC-V scalar cryptography 1.0.1). */
#include "aes_boxes.h"
#include "custom.h"
#include "zk.h"

#define BYTE(x) x
static const uint8_t sbox[256] = { AES_SBOX(BYTE) };
static const uint8_t inverse_sbox[256] = { AES_INVERSE_SBOX(BYTE) };

/* ---- checksum */

static uint64_t acc;

void add64(uint32_t a, uint32_t b)
{
    acc += (a & 0xFFFF) + (a >> 16) + (uint64_t)(b & 0xFFFF) + (b >> 16);
}

uint32_t fold64(void)
{
    while (acc >> 16 != 0)
        acc = (acc & 0xFFFF) + (acc >> 16);
    uint32_t sum = (uint32_t)acc;
    acc = 0;
    return sum;
}

/* ---- AES by FIPS 197, byte by byte */

static uint8_t product(uint8_t a, uint8_t b)
{
    unsigned sum = 0, x = a;
    for (; b != 0; b >>= 1) {
        sum ^= b & 1 ? x : 0;
        x = x << 1 ^ (x & 0x80 ? 0x11B : 0);
    }
    return (uint8_t)sum;
}

static uint8_t state[4][4]; /* [row][column] */

void model_aes_put(unsigned column, uint32_t word)
{
    for (unsigned row = 0; row < 4; row++)
        state[row][column] = (uint8_t)(word >> 8 * row);
}

uint32_t model_aes_get(unsigned column)
{
    uint32_t word = 0;
    for (unsigned row = 0; row < 4; row++)
        word |= (uint32_t)state[row][column] << 8 * row;
    return word;
}

void model_aes_round(unsigned kind, const uint32_t key[4])
{
    static const uint8_t mix[2][4] = { { 2, 3, 1, 1 }, { 14, 11, 13, 9 } };
    bool decrypt = kind >= 2, last = kind % 2 == 1;
    uint8_t moved[4][4];
    for (unsigned row = 0; row < 4; row++)
        for (unsigned column = 0; column < 4; column++) {
            unsigned from = (decrypt ? column - row : column + row) % 4;
            moved[row][column] = (decrypt ? inverse_sbox : sbox)[state[row][from]];
        }
    for (unsigned row = 0; row < 4; row++)
        for (unsigned column = 0; column < 4; column++) {
            uint8_t sum = last ? moved[row][column] : 0;
            for (unsigned i = 0; !last && i < 4; i++)
                sum ^= product(mix[decrypt][i], moved[(row + i) % 4][column]);
            state[row][column] = (uint8_t)(sum ^ key[column] >> 8 * row);
        }
}

static uint32_t round_key[4];

void model_aes_key_put(unsigned i, uint32_t word)
{
    round_key[i] = word;
}

void model_aes_keyed_round(unsigned kind)
{
    model_aes_round(kind, round_key);
}

static uint32_t aes32(uint32_t a, uint32_t b, int row, const uint8_t box[256], const uint8_t factors[4])
{
    uint8_t byte = box[b >> 8 * row & 255];
    uint32_t column = 0;
    for (unsigned i = 0; i < 4; i++)
        column |= (uint32_t)product(byte, factors[i]) << 8 * i;
    return a ^ rotate_left(column, 8 * (unsigned)row);
}

uint32_t aes32esmi(uint32_t a, uint32_t b, int row)
{
    return aes32(a, b, row, sbox, (const uint8_t[]) { 2, 1, 1, 3 });
}

uint32_t aes32esi(uint32_t a, uint32_t b, int row)
{
    return aes32(a, b, row, sbox, (const uint8_t[]) { 1, 0, 0, 0 });
}

uint32_t aes32dsmi(uint32_t a, uint32_t b, int row)
{
    return aes32(a, b, row, inverse_sbox, (const uint8_t[]) { 14, 9, 13, 11 });
}

uint32_t aes32dsi(uint32_t a, uint32_t b, int row)
{
    return aes32(a, b, row, inverse_sbox, (const uint8_t[]) { 1, 0, 0, 0 });
}

/* ---- MD5 by RFC 1321 3.4 */

static uint32_t md5[4];

void model_md5_put(unsigned i, uint32_t word)
{
    md5[i] = word;
}

uint32_t model_md5_get(unsigned i)
{
    return md5[i];
}

void md5_iteration(unsigned step, uint32_t x, uint32_t t)
{
    static const uint8_t shifts[4][4] = { { 7, 12, 17, 22 }, { 5, 9, 14, 20 }, { 4, 11, 16, 23 }, { 6, 10, 15, 21 } };
    uint32_t a = md5[0], b = md5[1], c = md5[2], d = md5[3];
    const uint32_t f[4] = { (b & c) | (~b & d), (b & d) | (c & ~d), b ^ c ^ d, c ^ (b | ~d) };
    md5[0] = d;
    md5[1] = b + rotate_left(a + f[step / 16] + x + t, shifts[step / 16][step % 4]);
    md5[2] = b;
    md5[3] = c;
}

/* ---- SHA-256 by FIPS 180-4 4.1.2 */

static uint32_t three(uint32_t x, unsigned i, unsigned j, unsigned k, bool shift)
{
    return rotate_right(x, i) ^ rotate_right(x, j) ^ (shift ? x >> k : rotate_right(x, k));
}

uint32_t sha256sum0(uint32_t x)
{
    return three(x, 2, 13, 22, false);
}

uint32_t sha256sum1(uint32_t x)
{
    return three(x, 6, 11, 25, false);
}

uint32_t sha256sig0(uint32_t x)
{
    return three(x, 7, 18, 3, true);
}

uint32_t sha256sig1(uint32_t x)
{
    return three(x, 17, 19, 10, true);
}

/* ---- carry-less multiplication */

static uint64_t carryless(uint32_t a, uint32_t b)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < 32; i++)
        sum ^= b >> i & 1 ? (uint64_t)a << i : 0;
    return sum;
}

uint32_t clmul(uint32_t a, uint32_t b)
{
    return (uint32_t)carryless(a, b);
}

uint32_t clmulh(uint32_t a, uint32_t b)
{
    return (uint32_t)(carryless(a, b) >> 32);
}
