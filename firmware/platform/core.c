#include "core.h"

#define EXIT_REGISTER ((volatile uint32_t *)0x10000000)
#define PRINT_REGISTER ((volatile uint8_t *)0x10000004)

enum { LINUX_READ = 63, LINUX_WRITE = 64, LINUX_EXIT = 93 };

static bool hosted;

static long linux_call(long number, long a, const void *b, size_t c)
{
    register long a0 __asm__("a0") = a;
    register const void *a1 __asm__("a1") = b;
    register size_t a2 __asm__("a2") = c;
    register long a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
    return a0;
}

void core_print(const char *text)
{
    size_t len = strlen(text);
    if (hosted) {
        linux_call(LINUX_WRITE, 2, text, len);
        return;
    }
    for (size_t i = 0; i < len; i++)
        *PRINT_REGISTER = (uint8_t)text[i];
}

size_t core_read_input(void)
{
    size_t len = 0;
    if (!hosted)
        return IMAGE_ROOM;
    for (;;) {
        long got = linux_call(LINUX_READ, 0, __input + len, IMAGE_ROOM - len);
        if (got <= 0)
            return len;
        len += (size_t)got;
    }
}

void core_write_output(size_t len)
{
    for (size_t done = 0; hosted && done < len;) {
        long put = linux_call(LINUX_WRITE, 1, __output + done, len - done);
        if (put <= 0)
            return;
        done += (size_t)put;
    }
}

/* Called at reset with the stack pointer that was found. */
void core_main(uint32_t stack);
void core_main(uint32_t stack)
{
    hosted = stack != 0;
    int code = program();
    if (!hosted)
        *EXIT_REGISTER = (uint32_t)code; /* the simulator ends here */
    linux_call(LINUX_EXIT, code, NULL, 0);
}
