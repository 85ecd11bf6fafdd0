/* All tests on this machine: the vectors, and what wants more memory and longer than a small core has. */
#include <stdio.h>

#include "check.h"
#include "packets.h"

void print(const char *text)
{
    fputs(text, stderr);
}

int main(void)
{
    run_vectors();
    test_replay();
    test_packets();
    test_malformed();
    printf("%u checks, %u failed\n", checks_made, checks_failed);
    return checks_failed != 0;
}
