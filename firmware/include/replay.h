/* The window of received sequence numbers (RFC 4303 3.4.3; extended numbers: appendix A). */
#ifndef REPLAY_H
#define REPLAY_H

#include "bytes.h"

enum { REPLAY_WINDOW = 64 };

struct replay {
    uint64_t top;  /* highest number that was authentic */
    uint64_t seen; /* bit n: top - n was received */
    bool esn;
    bool off; /* any number is accepted */
};

/* The whole number of a packet of which 32 bits were sent, and whether it may be new. */
bool replay_check(const struct replay *replay, uint32_t low, uint64_t *number);

/* Notes a number whose packet was authentic. */
void replay_update(struct replay *replay, uint64_t number);

#endif
