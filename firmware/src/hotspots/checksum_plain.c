/* HOTSPOT checksum, plain: RFC 1071 4.1 as it stands, one 16-bit word at a time. */
#include "checksum.h"

PROFILED uint32_t checksum_add(uint32_t sum, const uint8_t *data, size_t len)
{
    for (; len >= 2; data += 2, len -= 2) {
        uint16_t word;
        memcpy(&word, __builtin_assume_aligned(data, 2), sizeof word);
        sum += word; /* 65535 bytes: below 2^31 */
    }
    if (len != 0) {
        const uint8_t last[2] = { data[0], 0 };
        uint16_t word;
        memcpy(&word, last, sizeof word);
        sum += word;
    }
    return checksum_fold(sum);
}
