#include "replay.h"

/* RFC 4303 A2.2: the high half that puts the number closest to the window. */
static uint64_t extend(const struct replay *replay, uint32_t low)
{
    uint32_t top_low = (uint32_t)replay->top, top_high = (uint32_t)(replay->top >> 32);
    uint32_t bottom = top_low - (REPLAY_WINDOW - 1);
    uint32_t high = top_high;
    if (top_low >= REPLAY_WINDOW - 1)
        high += low < bottom; /* case A: the window is within one subspace */
    else if (top_high != 0)
        high -= low >= bottom; /* case B: it spans two */
    return (uint64_t)high << 32 | low;
}

PROFILED bool replay_check(const struct replay *replay, uint32_t low, uint64_t *number)
{
    *number = replay->esn ? extend(replay, low) : low;
    if (replay->off)
        return true;
    if (*number == 0) /* the first number sent is 1 (RFC 4303 2.2) */
        return false;
    if (*number > replay->top)
        return true;
    uint64_t age = replay->top - *number;
    return age < REPLAY_WINDOW && !(replay->seen >> age & 1);
}

PROFILED void replay_update(struct replay *replay, uint64_t number)
{
    if (number > replay->top) {
        uint64_t steps = number - replay->top;
        replay->seen = steps < REPLAY_WINDOW ? replay->seen << steps | 1 : 1;
        replay->top = number;
    } else if (replay->top - number < REPLAY_WINDOW) {
        replay->seen |= (uint64_t)1 << (replay->top - number);
    }
}
