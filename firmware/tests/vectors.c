#include "check.h"

unsigned checks_failed, checks_made;

void check(const char *what, bool ok)
{
    checks_made++;
    if (ok)
        return;
    checks_failed++;
    print("FAIL ");
    print(what);
    print("\n");
}

size_t unhex(uint8_t *bytes, size_t room, const char *hex)
{
    size_t len = 0;
    for (; hex[0] != 0 && hex[1] != 0; hex += 2, len++) {
        unsigned value = 0;
        for (unsigned i = 0; i < 2; i++)
            value = value << 4 | (unsigned)(hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);
        if (len == room) {
            check("a vector longer than its buffer", false);
            return len;
        }
        bytes[len] = (uint8_t)value;
    }
    return len;
}

void check_hex(const char *what, const uint8_t *found, size_t len, const char *expected)
{
    static const char digits[] = "0123456789abcdef";
    bool ok = strlen(expected) == 2 * len;
    for (size_t i = 0; ok && i < len; i++)
        ok = expected[2 * i] == digits[found[i] >> 4] && expected[2 * i + 1] == digits[found[i] & 15];
    check(what, ok);
}

/* Marsaglia's xorshift32. */
uint32_t draw(void)
{
    static uint32_t state = 2463534242;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

int run_vectors(void)
{
    test_aes();
    test_hash();
    test_gcm();
    test_checksum();
    return (int)checks_failed;
}
