/* IPv4 (RFC 791) and IPv6 (RFC 8200) headers as far as IPsec looks at them. */
#ifndef IP_H
#define IP_H

#include "drop.h"
#include "packet.h"

enum {
    IP_HOP_BY_HOP = 0,
    IP_IPV4 = 4,
    IP_TCP = 6,
    IP_UDP = 17,
    IP_IPV6 = 41,
    IP_ROUTING = 43,
    IP_FRAGMENT = 44,
    IP_ESP = 50,
    IP_AH = 51,
    IP_NO_NEXT = 59,
    IP_DESTINATION = 60,
};

enum { IPV4_HEADER = 20, IPV6_HEADER = 40, ADDRESS_MAX = 16 };

/* What a walk over the headers of a packet has found. Offsets are from the begin of the packet. */
struct ip_view {
    uint8_t version;     /* 4 or 6 */
    uint8_t protocol;    /* of what stands behind the headers that routers look at */
    uint8_t address_len; /* 4 or 16 */
    bool fragment;       /* a part of a packet */
    bool first;          /* ... with what stands behind the headers, or the whole */
    const uint8_t *source;
    const uint8_t *destination;
    size_t named_at;   /* the byte that holds `protocol` */
    size_t payload_at; /* where IPsec stands, or goes in transport mode */
    size_t upper_at;   /* where the transport protocol begins; 0 if a fragment lacks it */
    uint8_t upper_protocol;
};

/* Walks over the headers. The packet is cut to the length that IP says. False if it is malformed. */
bool ip_parse(struct packet *packet, struct ip_view *view);

/* Writes the packet's length into its header. */
void ip_set_length(struct packet *packet);

/* Writes length and IPv4 header checksum: the last thing that is done to a packet. */
void ip_finish(struct packet *packet);

/* Whether the IPv4 header checksum is right (RFC 1122 3.2.1.2); IPv6 has none. */
bool ip_checksum_ok(const struct packet *packet);

/* DSCP and ECN. Setting them keeps an IPv4 header checksum as right or wrong as it was (RFC 1624). */
uint8_t ip_traffic_class(const uint8_t *header);
void ip_set_traffic_class(uint8_t *header, uint8_t value);

#endif
