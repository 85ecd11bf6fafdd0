/* A packet in a buffer with room in front, for headers, and behind, for padding and ICV. */
#ifndef PACKET_H
#define PACKET_H

#include "bytes.h"

enum {
    /* IPv6, AH with 16 bytes of ICV; ESP with 16 of IV is less. A multiple of 4. */
    PACKET_HEADROOM = 128,
    PACKET_MAX = 65535,
    /* Padding to a block, trailer, ICV: 15 + 2 + 16. */
    PACKET_TAILROOM = 64,
};

struct packet {
    uint8_t *data; /* first byte of the IP header, on a 4-byte boundary */
    size_t len;
    _Alignas(4) uint8_t buffer[PACKET_HEADROOM + PACKET_MAX + 1 + PACKET_TAILROOM];
};

/* Puts a copy of `bytes` into the packet. False if they are too many. */
bool packet_load(struct packet *packet, const uint8_t *bytes, size_t len);

#endif
