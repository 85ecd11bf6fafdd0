/* Copying and filling by words, where both ends stand on them: the library's, built for size, go byte by byte.
 * COPY_BYTES=1 does as they do. */
#include "bytes.h"

#ifndef COPY_BYTES
#define COPY_BYTES 0
#endif

typedef uint32_t __attribute__((may_alias)) word;

static bool aligned(const void *a, const void *b)
{
    return !COPY_BYTES && (((uintptr_t)a | (uintptr_t)b) & 3) == 0;
}

void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    if (aligned(t, f)) {
        for (; len >= 16; t += 16, f += 16, len -= 16) {
            word *tw = (word *)(void *)t;
            const word *fw = (const word *)(const void *)f;
            word a = fw[0], b = fw[1], c = fw[2], d = fw[3];
            tw[0] = a;
            tw[1] = b;
            tw[2] = c;
            tw[3] = d;
        }
        for (; len >= 4; t += 4, f += 4, len -= 4)
            *(word *)(void *)t = *(const word *)(const void *)f;
    }
    for (; len != 0; len--)
        *t++ = *f++;
    return to;
}

/* Forward it is the same copy; backward only when the ends overlap so. */
void *memmove(void *to, const void *from, size_t len)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    if ((uintptr_t)t - (uintptr_t)f >= len)
        return memcpy(to, from, len);
    t += len;
    f += len;
    if (aligned(t, f))
        for (; len >= 4; len -= 4) {
            t -= 4;
            f -= 4;
            *(word *)(void *)t = *(const word *)(const void *)f;
        }
    for (; len != 0; len--)
        *--t = *--f;
    return to;
}

void *memset(void *to, int value, size_t len)
{
    uint8_t *t = to;
    word filled = (uint8_t)value * 0x01010101u;
    for (; len != 0 && (COPY_BYTES || ((uintptr_t)t & 3) != 0); len--)
        *t++ = (uint8_t)value;
    for (; len >= 4; t += 4, len -= 4)
        *(word *)(void *)t = filled;
    for (; len != 0; len--)
        *t++ = (uint8_t)value;
    return to;
}

int memcmp(const void *a, const void *b, size_t len)
{
    const uint8_t *x = a, *y = b;
    if (aligned(x, y))
        for (; len >= 4 && *(const word *)(const void *)x == *(const word *)(const void *)y; len -= 4) {
            x += 4;
            y += 4;
        }
    for (; len != 0; len--, x++, y++)
        if (*x != *y)
            return *x - *y;
    return 0;
}
