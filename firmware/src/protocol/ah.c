/* AH (RFC 4302).
 *
 *   next header (1) | length in words less 2 (1) | reserved (2) | SPI (4) | sequence number (4) | ICV, padded
 *
 * The ICV is over the whole packet, with itself and the fields that routers may change as zeroes. They are zeroed in
 * place and put back. */
#include "ipsec.h"

enum { AH_FIXED = 12, HEADERS_MAX = 256 };

size_t ah_header_len(const struct sa *sa, unsigned ip_version)
{
    size_t unit = ip_version == 4 ? 4 : 8; /* RFC 4302 3.3.3.2.1 */
    return (AH_FIXED + sa->icv_len + unit - 1) / unit * unit;
}

/* Options that routers may not change (RFC 4302 A1). */
static bool ipv4_option_fixed(uint8_t kind)
{
    return kind == 130 || kind == 133 || kind == 134 || kind == 148 || kind == 149;
}

/* RFC 4302 3.3.3.1.1. Source routes that are not at their end are refused: they are no longer in use. */
static bool mask_ipv4(uint8_t *header, size_t len, bool sending)
{
    header[1] = 0;
    memset(header + 6, 0, 3);
    memset(header + 10, 0, 2);
    for (size_t at = IPV4_HEADER; at < len;) {
        uint8_t kind = header[at];
        if (kind == 0)
            return true;
        if (kind == 1) {
            at++;
            continue;
        }
        if (at + 2 > len || header[at + 1] < 2 || at + header[at + 1] > len)
            return false;
        size_t option_len = header[at + 1];
        bool source_route = kind == 131 || kind == 137;
        if (source_route && sending && (option_len < 3 || header[at + 2] <= option_len))
            return false;
        if (!ipv4_option_fixed(kind))
            memset(header + at, 0, option_len);
        at += option_len;
    }
    return true;
}

/* Options say themselves whether their data may change on the way (RFC 8200 4.2). */
static bool mask_ipv6_options(uint8_t *options, size_t len)
{
    for (size_t at = 0; at < len;) {
        if (options[at] == 0) {
            at++;
            continue;
        }
        if (at + 2 > len || at + 2 + options[at + 1] > len)
            return false;
        if (options[at] & 0x20)
            memset(options + at + 2, 0, options[at + 1]);
        at += 2U + options[at + 1];
    }
    return true;
}

/* RFC 4302 3.3.3.1.2. ip_parse has walked over the same headers. */
static bool mask_ipv6(uint8_t *header, size_t len)
{
    uint8_t protocol = header[6];
    store_be32(header, 6u << 28);
    header[7] = 0;
    for (size_t at = IPV6_HEADER; at < len;) {
        size_t extension_len = 8 + 8U * header[at + 1];
        if (protocol == IP_ROUTING) {
            if (header[at + 3] != 0) /* segments left: where it will end is not for us to say */
                return false;
        } else if (!mask_ipv6_options(header + at + 2, extension_len - 2)) {
            return false;
        }
        protocol = header[at];
        at += extension_len;
    }
    return true;
}

/* The ICV of a packet with AH at `at`, `ah_len` bytes; the packet is left with an ICV of zeroes. */
PROFILED static bool ah_icv(const struct sa *sa, struct packet *packet, size_t at, size_t ah_len, uint64_t sequence,
                            bool sending, uint8_t icv[HASH_DIGEST_MAX])
{
    uint8_t saved[HEADERS_MAX], high[4];
    if (at > sizeof saved)
        return false;
    memcpy(saved, packet->data, at);
    memset(packet->data + at + AH_FIXED, 0, sa->icv_len);
    if (sending) /* a receiver takes the padding behind the ICV as it came */
        memset(packet->data + at + AH_FIXED, 0, ah_len - AH_FIXED);
    bool known = packet->data[0] >> 4 == 4 ? mask_ipv4(packet->data, at, sending) : mask_ipv6(packet->data, at);
    if (known) {
        store_be32(high, (uint32_t)(sequence >> 32));
        hmac(&sa->hmac, packet->data, packet->len, high, sa->esn ? sizeof high : 0, icv);
    }
    memcpy(packet->data, saved, at);
    return known;
}

enum drop ah_seal(struct sa *sa, struct packet *packet, size_t at, uint8_t next)
{
    uint8_t *ah = packet->data + at, icv[HASH_DIGEST_MAX];
    size_t ah_len = ah_header_len(sa, packet->data[0] >> 4);
    uint64_t sequence;
    if (!sa_next_sequence(sa, &sequence))
        return DROP_OUT_STATE_SEQ_ERROR;
    ip_set_length(packet);
    ah[0] = next;
    ah[1] = (uint8_t)(ah_len / 4 - 2);
    store_be16(ah + 2, 0);
    store_be32(ah + 4, sa->spi);
    store_be32(ah + 8, (uint32_t)sequence);
    if (!ah_icv(sa, packet, at, ah_len, sequence, true, icv))
        return DROP_OUT_HDR_ERROR;
    memcpy(ah + AH_FIXED, icv, sa->icv_len);
    return DROP_PASSED;
}

enum drop ah_open(struct sa *sa, struct packet *packet, size_t at, uint8_t *next, size_t *payload_at)
{
    uint8_t *ah = packet->data + at, expected[HASH_DIGEST_MAX], sent[HASH_DIGEST_MAX];
    size_t ah_len = ah_header_len(sa, packet->data[0] >> 4);
    uint64_t sequence;
    if (packet->len < at + ah_len || ah[1] != ah_len / 4 - 2)
        return DROP_IN_HDR_ERROR;
    if (!replay_check(&sa->replay, load_be32(ah + 8), &sequence))
        return DROP_IN_STATE_SEQ_ERROR;
    memcpy(sent, ah + AH_FIXED, sa->icv_len);
    if (!ah_icv(sa, packet, at, ah_len, sequence, false, expected))
        return DROP_IN_HDR_ERROR;
    if (!same_bytes(expected, sent, sa->icv_len))
        return DROP_IN_STATE_PROTO_ERROR;
    replay_update(&sa->replay, sequence);
    *next = ah[0];
    *payload_at = at + ah_len;
    return DROP_PASSED;
}
