#include "packet.h"

bool packet_load(struct packet *packet, const uint8_t *bytes, size_t len)
{
    if (len > PACKET_MAX)
        return false;
    packet->data = packet->buffer + PACKET_HEADROOM;
    packet->len = len;
    memcpy(packet->data, bytes, len);
    return true;
}
