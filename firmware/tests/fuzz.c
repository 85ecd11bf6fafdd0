/* libFuzzer: the first byte chooses suite and mode, the rest is a packet, that arrives and that leaves. So that damage
 * behind the ICV is reached too, half of the inputs are sealed by the SA before they arrive. */
#include <stdio.h>

#include "fence.h"
#include "packets.h"

void print(const char *text)
{
    fputs(text, stderr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct packet packet;
    static uint8_t copy[PACKET_MAX + 1];
    if (len < 2)
        return 0;
    struct image_sa record = sa_record(&suites[data[0] % suite_count], DIRECTION_OUT,
                                       data[1] & 1 ? MODE_TUNNEL : MODE_TRANSPORT, data[1] & 2 ? 4 : 6, 0x1001);
    install(&record);
    packet_load(&packet, data + 2, len - 2);
    fence(&packet, false);
    ipsec_output(&packet);
    unfence(&packet);
    if (data[1] & 4)
        packet_load(&packet, data + 2, len - 2);
    else
        packet_load(&packet, memcpy(copy, packet.data, packet.len), packet.len);
    record.direction = DIRECTION_IN;
    install(&record);
    fence(&packet, true);
    ipsec_input(&packet);
    unfence(&packet);
    return 0;
}
