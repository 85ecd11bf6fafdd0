/* HOTSPOT SHA-256, plain (FIPS 180-4 4.1.2). */
#include "bytes.h"

static inline uint32_t big_sigma0(uint32_t x)
{
    return rotate_right(x, 2) ^ rotate_right(x, 13) ^ rotate_right(x, 22);
}

static inline uint32_t big_sigma1(uint32_t x)
{
    return rotate_right(x, 6) ^ rotate_right(x, 11) ^ rotate_right(x, 25);
}

static inline uint32_t small_sigma0(uint32_t x)
{
    return rotate_right(x, 7) ^ rotate_right(x, 18) ^ x >> 3;
}

static inline uint32_t small_sigma1(uint32_t x)
{
    return rotate_right(x, 17) ^ rotate_right(x, 19) ^ x >> 10;
}

#include "sha256_rounds.h"
