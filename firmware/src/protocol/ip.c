#include "ip.h"

#include "checksum.h"

enum { MORE_FRAGMENTS = 0x2000, OFFSET = 0x1FFF };

/* RFC 791 3.1 */
static bool parse_ipv4(struct packet *packet, struct ip_view *view)
{
    const uint8_t *header = packet->data;
    if (packet->len < IPV4_HEADER)
        return false;
    size_t header_len = 4U * (header[0] & 15);
    size_t len = load_be16(header + 2);
    if (header_len < IPV4_HEADER || len < header_len || len > packet->len)
        return false;
    uint16_t fragment = load_be16(header + 6);
    packet->len = len;
    view->version = 4;
    view->address_len = 4;
    view->source = header + 12;
    view->destination = header + 16;
    view->fragment = (fragment & (MORE_FRAGMENTS | OFFSET)) != 0;
    view->first = (fragment & OFFSET) == 0;
    view->named_at = 9;
    view->protocol = view->upper_protocol = header[9];
    view->payload_at = header_len;
    view->upper_at = view->first ? header_len : 0;
    return true;
}

/* Follows the extension headers (RFC 8200 4). IPsec goes behind those that are for routers: hop-by-hop options,
 * routing, and destination options in front of routing (RFC 4303 3.1.1); when it is received it may be behind others.
 */
static bool walk_extensions(const struct packet *packet, struct ip_view *view)
{
    size_t at = IPV6_HEADER, named_at = 6;
    for (;;) {
        uint8_t protocol = packet->data[named_at];
        bool chained = protocol == IP_HOP_BY_HOP || protocol == IP_ROUTING || protocol == IP_DESTINATION ||
                       protocol == IP_FRAGMENT;
        if (!chained || !view->first) {
            view->upper_protocol = protocol;
            view->upper_at = view->first ? at : 0;
            if (protocol == IP_ESP || protocol == IP_AH) {
                view->payload_at = at;
                view->named_at = named_at;
            }
            return true;
        }
        if (at + 8 > packet->len)
            return false;
        const uint8_t *header = packet->data + at;
        size_t len = protocol == IP_FRAGMENT ? 8 : 8 + 8U * header[1];
        if (at + len > packet->len)
            return false;
        if (protocol == IP_FRAGMENT) {
            view->fragment = true;
            view->first = load_be16(header + 2) >> 3 == 0;
        }
        named_at = at;
        at += len;
        if ((protocol == IP_HOP_BY_HOP || protocol == IP_ROUTING) && !view->fragment) {
            view->payload_at = at;
            view->named_at = named_at;
        }
    }
}

/* RFC 8200 3 */
static bool parse_ipv6(struct packet *packet, struct ip_view *view)
{
    const uint8_t *header = packet->data;
    if (packet->len < IPV6_HEADER)
        return false;
    size_t len = IPV6_HEADER + (size_t)load_be16(header + 4);
    if (len > packet->len)
        return false;
    packet->len = len;
    view->version = 6;
    view->address_len = 16;
    view->source = header + 8;
    view->destination = header + 24;
    view->fragment = false;
    view->first = true;
    view->named_at = 6;
    view->payload_at = IPV6_HEADER;
    if (!walk_extensions(packet, view))
        return false;
    view->protocol = header[view->named_at];
    return true;
}

PROFILED bool ip_parse(struct packet *packet, struct ip_view *view)
{
    if (packet->len == 0)
        return false;
    switch (packet->data[0] >> 4) {
    case 4:
        return parse_ipv4(packet, view);
    case 6:
        return parse_ipv6(packet, view);
    default:
        return false;
    }
}

void ip_set_length(struct packet *packet)
{
    uint8_t *header = packet->data;
    if (header[0] >> 4 == 4)
        store_be16(header + 2, (uint16_t)packet->len);
    else
        store_be16(header + 4, (uint16_t)(packet->len - IPV6_HEADER));
}

PROFILED void ip_finish(struct packet *packet)
{
    uint8_t *header = packet->data;
    ip_set_length(packet);
    if (header[0] >> 4 != 4)
        return;
    store_be16(header + 10, 0);
    checksum_store(header + 10, checksum_add(0, header, 4U * (header[0] & 15)));
}

PROFILED bool ip_checksum_ok(const struct packet *packet)
{
    const uint8_t *header = packet->data;
    return header[0] >> 4 != 4 || checksum_add(0, header, 4U * (header[0] & 15)) == 0xFFFF;
}

uint8_t ip_traffic_class(const uint8_t *header)
{
    return header[0] >> 4 == 4 ? header[1] : (uint8_t)(load_be16(header) >> 4);
}

void ip_set_traffic_class(uint8_t *header, uint8_t value)
{
    uint16_t old = load_be16(header);
    if (header[0] >> 4 == 4) {
        uint16_t new = (uint16_t)((old & 0xFF00) | value);
        uint32_t sum = (uint32_t)(~load_be16(header + 10) & 0xFFFF) + (~old & 0xFFFFu) + new; /* RFC 1624 3 */
        store_be16(header, new);
        store_be16(header + 10, (uint16_t)~checksum_fold(sum));
    } else {
        store_be16(header, (uint16_t)((old & 0xF00F) | value << 4));
    }
}
