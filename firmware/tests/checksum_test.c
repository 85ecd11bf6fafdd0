/* The Internet checksum against RFC 1071's example and a slow oracle. */
#include "check.h"
#include "checksum.h"

/* RFC 1071 1 to the letter: big-endian 16-bit words, the carry put back at once. */
static uint16_t slow_sum(uint16_t sum, const uint8_t *data, size_t len)
{
    uint32_t total = sum;
    for (size_t i = 0; i < len; i += 2) {
        total += (uint32_t)data[i] << 8 | (i + 1 < len ? data[i + 1] : 0);
        total = (total & 0xFFFF) + (total >> 16);
    }
    return (uint16_t)total;
}

/* Words come as the machine has them. */
static uint16_t as_sent(uint32_t sum)
{
    uint8_t field[2];
    checksum_store(field, ~sum);
    return load_be16(field);
}

static void test_random(void)
{
    _Alignas(4) uint8_t data[260];
    bool same = true;
    for (unsigned turn = 0; turn < 600; turn++) {
        for (size_t i = 0; i < sizeof data; i++)
            data[i] = turn % 3 == 0 ? 0xFF : (uint8_t)draw();
        size_t len = draw() % (sizeof data + 1), cut = draw() % (len + 1) / 4 * 4;
        uint16_t expected = slow_sum(0, data, len);
        same = same && as_sent(checksum_add(0, data, len)) == expected;
        /* 0xFFFF and 0 are the same number in one's complement, but a sum of pieces must not confuse them either. */
        same = same && as_sent(checksum_add(checksum_add(0, data, cut), data + cut, len - cut)) == expected;
    }
    check("checksum of random data", same);
}

/* The longest packet with the largest words must not overflow. */
static void test_long(void)
{
    static _Alignas(4) uint8_t data[65532];
    memset(data, 0xFF, sizeof data);
    check("checksum of 65532 times 255", checksum_add(0xFFFF, data, sizeof data) == 0xFFFF);
}

void test_checksum(void)
{
    _Alignas(4) uint8_t example[8], header[20];
    unhex(example, sizeof example, "0001f203f4f5f6f7");
    check("RFC 1071 3", as_sent(checksum_add(0, example, sizeof example)) == 0xDDF2);
    /* The packet of RFC 3602, case 5. */
    unhex(header, sizeof header, "4500005408f200004001f9fec0a87b03c0a87b64");
    check("a right header sums up to -0", checksum_add(0, header, sizeof header) == 0xFFFF);
    test_random();
    test_long();
}
