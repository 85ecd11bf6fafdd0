/* HOTSPOT checksum, with [E]'s ADD64 and FOLD64: four 16-bit words an instruction. */
#include "checksum.h"
#include "custom.h"

PROFILED uint32_t checksum_add(uint32_t sum, const uint8_t *data, size_t len)
{
    add64(sum, 0);
    for (; len >= 8; data += 8, len -= 8)
        add64(load_word(data), load_word(data + 4));
    if (len >= 4) {
        add64(load_word(data), 0);
        data += 4;
        len -= 4;
    }
    uint32_t last = 0;
    for (size_t i = 0; i < len; i++)
        last |= (uint32_t)data[i] << 8 * i;
    add64(last, 0);
    return fold64();
}
