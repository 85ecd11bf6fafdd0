/* The published vectors as a program of the core: which hotspots are right is found where they run. */
#include "check.h"
#include "core.h"

void print(const char *text)
{
    core_print(text);
}

int program(void)
{
    int failed = run_vectors();
    core_print(failed == 0 ? "vectors: pass\n" : "vectors: FAIL\n");
    return failed;
}
