/* Under AddressSanitizer, a fence around a packet: its buffer is one array, and what is read out of bounds within it
 * would not be seen. What arrives has no business outside of itself; what leaves may grow in front, and by
 * PACKET_TAILROOM. */
#ifndef FENCE_H
#define FENCE_H

#include "packet.h"

#if defined(__SANITIZE_ADDRESS__)
#define FENCED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FENCED 1
#endif
#endif

#ifdef FENCED
#include <sanitizer/asan_interface.h>

static inline void fence(const struct packet *packet, bool inbound)
{
    const uint8_t *end = packet->buffer + sizeof packet->buffer;
    const uint8_t *last = packet->data + packet->len + (inbound ? 0 : PACKET_TAILROOM);
    ASAN_POISON_MEMORY_REGION(last, (size_t)(end - last));
    if (inbound)
        ASAN_POISON_MEMORY_REGION(packet->buffer, PACKET_HEADROOM);
}

static inline void unfence(const struct packet *packet)
{
    ASAN_UNPOISON_MEMORY_REGION(packet->buffer, sizeof packet->buffer);
}

#else

static inline void fence(const struct packet *packet, bool inbound)
{
    (void)packet;
    (void)inbound;
}

static inline void unfence(const struct packet *packet)
{
    (void)packet;
}

#endif
#endif
