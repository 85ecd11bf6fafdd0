/* The Internet checksum (RFC 1071). */
#ifndef CHECKSUM_H
#define CHECKSUM_H

#include "bytes.h"

/* HOTSPOT: the one's complement sum of `sum`, at most 16 bits, and the 16-bit words of `data`, folded to 16 bits.
 *
 * Words are taken as the machine has them, for the sum does not depend on byte order (RFC 1071 2 (B)).
 * `data` stands on a 4-byte boundary; only the last piece of what is summed may have an odd length. */
uint32_t checksum_add(uint32_t sum, const uint8_t *data, size_t len);

static inline uint32_t checksum_fold(uint32_t sum)
{
    sum = (sum & 0xFFFF) + (sum >> 16);
    return (sum & 0xFFFF) + (sum >> 16);
}

/* Puts the checksum into its field, which was zero when it was summed. */
static inline void checksum_store(uint8_t *at, uint32_t sum)
{
    uint16_t word = (uint16_t)~sum;
    memcpy(at, &word, sizeof word);
}

#endif
