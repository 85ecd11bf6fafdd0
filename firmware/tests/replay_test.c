/* The replay window: a table worked out by hand, and a slow oracle that remembers every number. */
#include "packets.h"
#include "replay.h"

static const struct {
    uint64_t top, seen;
    bool esn;
    uint32_t low;
    bool fresh;
    uint64_t number;
} cases[] = {
    { 0, 0, false, 0, false, 0 },                    /* zero is never sent */
    { 0, 0, false, 1, true, 1 },                     /* the first */
    { 1, 1, false, 1, false, 1 },                    /* again */
    { 100, 1, false, 37, true, 37 },                 /* the left edge */
    { 100, 1, false, 36, false, 36 },                /* one left of it */
    { 100, 1 | 1ull << 63, false, 37, false, 37 },   /* seen at the edge */
    { 100, 1, false, UINT32_MAX, true, UINT32_MAX }, /* far ahead */
    { 100, 1, true, 101, true, 101 },
    { 100, 1, true, 36, true, 0x100000024 },           /* extended: left of the window is the next subspace */
    { 0x100000010, 1, true, 0x11, true, 0x100000011 }, /* the window spans two subspaces */
    { 0x100000010, 1, true, 0xFFFFFFFF, true, 0xFFFFFFFF },
    { 0x100000010, 1, true, 0xFFFFFFD1, true, 0xFFFFFFD1 }, /* its left edge */
    { 0x100000010, 1, true, 0xFFFFFFD0, true, 0x1FFFFFFD0 },
    { 0x10, 1, true, 0xFFFFFFFF, true, 0xFFFFFFFF }, /* there is no subspace before the first */
};

static void test_table(void)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct replay replay = { .top = cases[i].top, .seen = cases[i].seen, .esn = cases[i].esn };
        uint64_t number;
        bool fresh = replay_check(&replay, cases[i].low, &number);
        check("replay window, table", fresh == cases[i].fresh && number == cases[i].number);
    }
}

/* Every number up to 20,000 in a random walk, with jumps; every other one is authentic. */
static void test_oracle(bool esn, uint64_t base)
{
    static bool seen[20000];
    struct replay replay = { .top = base, .esn = esn };
    uint64_t top = 0;
    bool same = true;
    memset(seen, 0, sizeof seen);
    for (unsigned turn = 0; turn < 60000; turn++) {
        uint64_t low_end = top > 90 ? top - 90 : 0, number;
        uint64_t offset = low_end + draw() % (draw() % 50 == 0 ? 300 : 100);
        if (offset >= COUNT(seen))
            break;
        uint64_t sent = base + offset;
        bool expected = sent != 0 && !seen[offset] && offset + REPLAY_WINDOW > top && (offset != 0 || base == 0);
        if (base != 0 && offset == 0)
            continue; /* the state before the first packet: not a number that the oracle knows of */
        bool fresh = replay_check(&replay, (uint32_t)sent, &number);
        same =
            same && (fresh == expected || (esn && offset + REPLAY_WINDOW <= top)) && (!fresh || number == sent || esn);
        if (fresh && number == sent && draw() % 2 == 0) {
            replay_update(&replay, number);
            seen[offset] = true;
            top = offset > top ? offset : top;
        }
    }
    check("replay window, oracle", same);
}

void test_replay(void)
{
    test_table();
    test_oracle(false, 0);
    test_oracle(true, 0);
    test_oracle(true, 0xFFFFFF00);
    test_oracle(true, 0x7FFFFFFFFF0);
}
