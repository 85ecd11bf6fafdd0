/* Key expansion (FIPS 197 5.2, 5.3.5), the same for all versions of the rounds. It is done once an SA, so it is
 * small rather than fast. */
#include "aes.h"
#include "aes_boxes.h"

/* Whether decryption wants the keys of the inverse cipher (FIPS 197 5.3) instead: in reverse order, as they are. */
#ifndef AES_STRAIGHT
#define AES_STRAIGHT 0
#endif

#define BYTE(x) x
const uint8_t aes_sbox[256] = { AES_SBOX(BYTE) };

static uint32_t substitute(uint32_t word)
{
    return (uint32_t)aes_sbox[word & 255] | (uint32_t)aes_sbox[word >> 8 & 255] << 8 |
           (uint32_t)aes_sbox[word >> 16 & 255] << 16 | (uint32_t)aes_sbox[word >> 24] << 24;
}

/* Four products with x in GF(2^8) at once. */
static uint32_t times_x(uint32_t bytes)
{
    return (bytes & 0x7F7F7F7F) << 1 ^ (bytes >> 7 & 0x01010101) * 0x1B;
}

PROFILED void aes_key_expand(struct aes_key *key, const uint8_t *bytes, size_t len)
{
    unsigned words = (unsigned)(len / 4);
    uint32_t *w = key->round;
    uint32_t constant = 1;
    key->rounds = words + 6;
    for (unsigned i = 0; i < words; i++, bytes += 4)
        w[i] = swap32(load_be32(bytes));
    for (unsigned i = words, place = 0; i < 4 * (key->rounds + 1); i++) {
        uint32_t last = w[i - 1];
        if (place == 0) {
            last = substitute(rotate_right(last, 8)) ^ constant;
            constant = times_x(constant);
        } else if (words == 8 && place == 4) {
            last = substitute(last);
        }
        w[i] = w[i - words] ^ last;
        place = place + 1 == words ? 0 : place + 1;
    }
}

static uint32_t inverse_mix_column(uint32_t a)
{
    uint32_t a2 = times_x(a), a4 = times_x(a2), a8 = times_x(a4);
    uint32_t a9 = a8 ^ a;
    return (a8 ^ a4 ^ a2) ^ rotate_right(a9 ^ a2, 8) ^ rotate_right(a9 ^ a4, 16) ^ rotate_right(a9, 24);
}

PROFILED void aes_key_invert(struct aes_key *inverse, const struct aes_key *key)
{
    unsigned last = 4 * key->rounds;
    inverse->rounds = key->rounds;
    for (unsigned i = 0; i < 4; i++) {
        inverse->round[i] = key->round[last + i];
        inverse->round[last + i] = key->round[i];
    }
    for (unsigned at = 4; at < last; at += 4)
        for (unsigned i = 0; i < 4; i++)
            inverse->round[at + i] =
                AES_STRAIGHT ? key->round[last - at + i] : inverse_mix_column(key->round[last - at + i]);
}
