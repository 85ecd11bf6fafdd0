/* HOTSPOT checksum, wide: 32-bit words with the carry put back (RFC 1071 2 (C)): what a core without new instructions
 * can do better than the plain version. */
#include "checksum.h"

PROFILED uint32_t checksum_add(uint32_t sum, const uint8_t *data, size_t len)
{
    for (; len >= 4; data += 4, len -= 4) {
        uint32_t word;
        memcpy(&word, __builtin_assume_aligned(data, 4), sizeof word);
        sum += word;
        sum += sum < word;
    }
    if (len != 0) {
        uint8_t last[4] = { 0 };
        uint32_t word;
        for (size_t i = 0; i < len; i++)
            last[i] = data[i];
        memcpy(&word, last, sizeof word);
        sum += word;
        sum += sum < word;
    }
    return checksum_fold(sum);
}
