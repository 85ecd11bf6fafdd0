/* Header building and stripping: an outer IP header in tunnel mode (RFC 4301 5.1.2.1), room in front of the payload in
 * transport mode. */
#include "ipsec.h"

enum { TTL = 64, DONT_FRAGMENT = 0x4000 };

static uint16_t next_id; /* RFC 6864 4.1 wants it unique only where packets may be cut */

static void outer_ipv4(const struct sa *sa, uint8_t *outer, const uint8_t *inner)
{
    bool keep_whole = inner[0] >> 4 == 4 && (load_be16(inner + 6) & DONT_FRAGMENT) != 0;
    outer[0] = 0x45;
    outer[1] = ip_traffic_class(inner); /* ECN: RFC 6040 4.1, normal mode */
    store_be16(outer + 4, next_id++);
    store_be16(outer + 6, keep_whole ? DONT_FRAGMENT : 0);
    outer[8] = TTL;
    outer[9] = sa->protocol;
    store_be16(outer + 10, 0);
    memcpy(outer + 12, sa->source, 4);
    memcpy(outer + 16, sa->destination, 4);
}

static void outer_ipv6(const struct sa *sa, uint8_t *outer, const uint8_t *inner)
{
    store_be32(outer, 6u << 28 | (uint32_t)ip_traffic_class(inner) << 20);
    outer[6] = sa->protocol;
    outer[7] = TTL;
    memcpy(outer + 8, sa->source, 16);
    memcpy(outer + 24, sa->destination, 16);
}

static void build_tunnel(const struct sa *sa, struct packet *packet, size_t room, size_t *at, uint8_t *next)
{
    const uint8_t *inner = packet->data;
    size_t outer_len = sa->address_len == 4 ? IPV4_HEADER : IPV6_HEADER;
    packet->data -= outer_len + room;
    packet->len += outer_len + room;
    if (sa->address_len == 4)
        outer_ipv4(sa, packet->data, inner);
    else
        outer_ipv6(sa, packet->data, inner);
    *at = outer_len;
    *next = inner[0] >> 4 == 4 ? IP_IPV4 : IP_IPV6;
}

static void build_transport(const struct sa *sa, struct packet *packet, const struct ip_view *view, size_t room,
                            size_t *at, uint8_t *next)
{
    memmove(packet->data - room, packet->data, view->payload_at);
    packet->data -= room;
    packet->len += room;
    packet->data[view->named_at] = sa->protocol;
    *at = view->payload_at;
    *next = view->protocol;
}

PROFILED enum drop headers_build(const struct sa *sa, struct packet *packet, const struct ip_view *view, size_t room,
                                 size_t *at, uint8_t *next)
{
    if (sa->mode == MODE_TUNNEL)
        build_tunnel(sa, packet, room, at, next);
    else if (view->fragment) /* RFC 4303 3.3.4, RFC 4302 3.3.4 */
        return DROP_OUT_FRAGMENT;
    else
        build_transport(sa, packet, view, room, at, next);
    return packet->len > PACKET_MAX ? DROP_OUT_TOO_BIG : DROP_PASSED;
}

PROFILED enum drop headers_strip(const struct sa *sa, struct packet *packet, const struct ip_view *outer, uint8_t next,
                                 size_t payload_at)
{
    if (next == IP_NO_NEXT) /* RFC 4303 2.6 */
        return DROP_IN_DUMMY;
    if (sa->mode == MODE_TUNNEL) {
        uint8_t version = next == IP_IPV4 ? 4 : next == IP_IPV6 ? 6 : 0;
        packet->data += payload_at;
        packet->len -= payload_at;
        return packet->len != 0 && packet->data[0] >> 4 == version ? DROP_PASSED : DROP_IN_STATE_MODE_ERROR;
    }
    size_t taken = payload_at - outer->payload_at;
    memmove(packet->data + taken, packet->data, outer->payload_at);
    packet->data += taken;
    packet->len -= taken;
    packet->data[outer->named_at] = next;
    ip_finish(packet);
    return DROP_PASSED;
}
