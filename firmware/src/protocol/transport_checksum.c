/* The checksums of what IP carries, which an end host without help from its card has to see to. */
#include "checksum.h"
#include "ipsec.h"

enum { ICMP = 1, ICMPV6 = 58 };

/* Where the checksum field is in what begins at `upper_at`; 0 if there is none, or not all of it is here. */
static size_t field(const struct packet *packet, const struct ip_view *view)
{
    size_t at;
    if (view->fragment || view->upper_at == 0)
        return 0;
    switch (view->upper_protocol) {
    case IP_TCP:
        at = 16;
        break;
    case IP_UDP:
        at = 6;
        break;
    case ICMP:
    case ICMPV6:
        at = 2;
        break;
    default:
        return 0;
    }
    return packet->len >= view->upper_at + at + 2 ? view->upper_at + at : 0;
}

PROFILED static uint32_t transport_sum(const struct packet *packet, const struct ip_view *view)
{
    uint32_t sum = 0;
    size_t len = packet->len - view->upper_at;
    if (view->upper_protocol != ICMP) {
        _Alignas(4) uint8_t pseudo[8] = { 0 };
        store_be32(pseudo, (uint32_t)len);
        pseudo[7] = view->upper_protocol;
        sum = checksum_add(0, view->source, 2U * view->address_len);
        sum = checksum_add(sum, pseudo, sizeof pseudo);
    }
    return checksum_add(sum, packet->data + view->upper_at, len);
}

void transport_checksum_fill(struct packet *packet, const struct ip_view *view)
{
    size_t at = field(packet, view);
    if (at == 0)
        return;
    store_be16(packet->data + at, 0);
    uint32_t sum = transport_sum(packet, view);
    /* UDP sends zero as its complement, for zero means none (RFC 768). */
    checksum_store(packet->data + at, sum == 0xFFFF && view->upper_protocol == IP_UDP ? 0 : sum);
}

bool transport_checksum_ok(const struct packet *packet, const struct ip_view *view)
{
    size_t at = field(packet, view);
    if (at == 0)
        return true;
    if (view->upper_protocol == IP_UDP && view->version == 4 && load_be16(packet->data + at) == 0)
        return true;
    return transport_sum(packet, view) == 0xFFFF;
}
