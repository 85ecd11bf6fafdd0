/* IPsec for one packet at a time: what a driver calls. */
#ifndef IPSEC_H
#define IPSEC_H

#include "packet.h"
#include "sa.h"

/* Forgets SAs and policies. As an end host, this core sees to TCP and UDP checksums too. */
void ipsec_reset(bool end_host);

/* A packet that leaves: protects it as its policy says. */
enum drop ipsec_output(struct packet *packet);

/* A packet that arrives: takes off and checks what protects it, or says why it may not pass. */
enum drop ipsec_input(struct packet *packet);

/* ESP and AH. Sealing: `packet` has its headers up to `at`, room for the ESP or AH header there, and the payload
 * behind; the packet grows at its end. Opening: `at` is where the ESP or AH header stands; what follows it is made
 * plain in place, and `next` and `payload_at`, `packet->len` say what it is. */
size_t esp_header_len(const struct sa *sa);
size_t ah_header_len(const struct sa *sa, unsigned ip_version);
enum drop esp_seal(struct sa *sa, struct packet *packet, size_t at, uint8_t next);
enum drop ah_seal(struct sa *sa, struct packet *packet, size_t at, uint8_t next);
enum drop esp_open(struct sa *sa, struct packet *packet, size_t at, uint8_t *next, size_t *payload_at);
enum drop ah_open(struct sa *sa, struct packet *packet, size_t at, uint8_t *next, size_t *payload_at);

/* Headers: makes room for `room` bytes of ESP or AH header, with an outer IP header in tunnel mode. `*at` is where the
 * room is, `*next` what it will be followed by. */
enum drop headers_build(const struct sa *sa, struct packet *packet, const struct ip_view *view, size_t room, size_t *at,
                        uint8_t *next);

/* Takes off the headers up to `payload_at`; in transport mode the IP header is moved there. */
enum drop headers_strip(const struct sa *sa, struct packet *packet, const struct ip_view *outer, uint8_t next,
                        size_t payload_at);

/* TCP and UDP checksums of a whole packet (RFC 9293 3.1, RFC 768, RFC 8200 8.1). */
void transport_checksum_fill(struct packet *packet, const struct ip_view *view);
bool transport_checksum_ok(const struct packet *packet, const struct ip_view *view);

#endif
