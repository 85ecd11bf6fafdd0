/* HOTSPOT GHASH, plain: a table of the 16 multiples of H by four bits, 256 bytes a key (Shoup's method; McGrew and
 * Viega, "The Galois/Counter Mode of Operation", 4.1). The first bit of a block is the coefficient of x^0, so
 * multiplying by x is a shift to the right. */
#include "ghash.h"

/* What comes back when four bits are shifted out, in the top 16 bits (x^128 = x^7 + x^2 + x + 1). */
static const uint16_t reduction[16] = {
    0x0000, 0x1c20, 0x3840, 0x2460, 0x7080, 0x6ca0, 0x48c0, 0x54e0,
    0xe100, 0xfd20, 0xd940, 0xc560, 0x9180, 0x8da0, 0xa9c0, 0xb5e0,
};

static void shift_right(uint32_t to[4], const uint32_t z[4], unsigned by)
{
    for (unsigned i = 3; i > 0; i--)
        to[i] = z[i] >> by | z[i - 1] << (32 - by);
    to[0] = z[0] >> by;
}

static void add(uint32_t to[4], const uint32_t a[4], const uint32_t b[4])
{
    for (unsigned i = 0; i < 4; i++)
        to[i] = a[i] ^ b[i];
}

void ghash_key_init(struct ghash_key *key, const uint32_t h[4])
{
    memset(key->table[0], 0, sizeof key->table[0]);
    memcpy(key->table[8], h, sizeof key->table[8]);
    for (unsigned i = 4; i != 0; i /= 2) {
        uint32_t out = key->table[2 * i][3] & 1;
        shift_right(key->table[i], key->table[2 * i], 1);
        key->table[i][0] ^= out ? 0xE1000000 : 0;
    }
    for (unsigned high = 2; high < 16; high *= 2)
        for (unsigned low = 1; low < high; low++)
            add(key->table[high + low], key->table[high], key->table[low]);
}

/* z = z * x^4 + h * nibble */
static inline void step(uint32_t z[4], const uint32_t table[16][4], uint32_t nibble)
{
    uint32_t back = (uint32_t)reduction[z[3] & 15] << 16;
    const uint32_t *multiple = table[nibble];
    z[3] = (z[3] >> 4 | z[2] << 28) ^ multiple[3];
    z[2] = (z[2] >> 4 | z[1] << 28) ^ multiple[2];
    z[1] = (z[1] >> 4 | z[0] << 28) ^ multiple[1];
    z[0] = z[0] >> 4 ^ multiple[0] ^ back;
}

void ghash_blocks(const struct ghash_key *key, uint32_t y[4], const uint8_t *data, size_t blocks)
{
    for (; blocks != 0; blocks--, data += 16) {
        uint32_t z[4] = { 0, 0, 0, 0 };
        for (unsigned i = 4; i-- > 0;) {
            uint32_t word = y[i] ^ swap32(load_word(data + 4 * i));
            for (unsigned n = 0; n < 8; n++, word >>= 4)
                step(z, key->table, word & 15);
        }
        for (unsigned i = 0; i < 4; i++)
            y[i] = z[i];
    }
}
