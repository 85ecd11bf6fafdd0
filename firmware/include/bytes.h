/* Loads and stores of numbers in packets and blocks.
 *
 * The core may not do misaligned accesses, so numbers of unknown alignment are put together byte by byte;
 * the `word` functions are for data that stands on a 4-byte boundary, as all headers and payloads here do. */
#ifndef BYTES_H
#define BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A function that stays one in the profile, however small it is. */
#define PROFILED __attribute__((noinline))

/* On the core, data that needs no zeroing at start, which would only cost cycles. */
#ifdef __riscv
#define NOINIT __attribute__((section(".noinit")))
#else
#define NOINIT
#endif

static inline uint16_t load_be16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t load_be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline void store_be16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static inline void store_be32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

static inline void store_be64(uint8_t *at, uint64_t value)
{
    store_be32(at, (uint32_t)(value >> 32));
    store_be32(at + 4, (uint32_t)value);
}

/* In shifts, which a compiler knows for what they are; its own function is a call where there is no instruction. */
static inline uint32_t swap32(uint32_t value)
{
    return value << 24 | (value & 0xFF00) << 8 | (value >> 8 & 0xFF00) | value >> 24;
}

/* A little-endian word on a 4-byte boundary: one load on the core. */
static inline uint32_t load_word(const uint8_t *at)
{
    uint32_t word;
    memcpy(&word, __builtin_assume_aligned(at, 4), sizeof word);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : swap32(word);
}

static inline void store_word(uint8_t *at, uint32_t word)
{
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        word = swap32(word);
    memcpy(__builtin_assume_aligned(at, 4), &word, sizeof word);
}

/* Four words at once: a cipher's block. */
static inline void load_block(uint32_t block[4], const uint8_t *at)
{
    block[0] = load_word(at);
    block[1] = load_word(at + 4);
    block[2] = load_word(at + 8);
    block[3] = load_word(at + 12);
}

static inline void store_block(uint8_t *at, const uint32_t block[4])
{
    store_word(at, block[0]);
    store_word(at + 4, block[1]);
    store_word(at + 8, block[2]);
    store_word(at + 12, block[3]);
}

static inline void add_block(uint32_t block[4], const uint32_t other[4])
{
    block[0] ^= other[0];
    block[1] ^= other[1];
    block[2] ^= other[2];
    block[3] ^= other[3];
}

static inline uint32_t rotate_left(uint32_t value, unsigned by)
{
    return value << (by & 31) | value >> (-by & 31);
}

static inline uint32_t rotate_right(uint32_t value, unsigned by)
{
    return value >> (by & 31) | value << (-by & 31);
}

/* Whether two byte strings are the same, in a time that does not tell where they differ. */
static inline bool same_bytes(const uint8_t *a, const uint8_t *b, size_t len)
{
    uint8_t difference = 0;
    for (size_t i = 0; i < len; i++)
        difference |= (uint8_t)(a[i] ^ b[i]);
    return difference == 0;
}

#endif
