/* A packet's way out and in (RFC 4301 5). */
#include "ipsec.h"
#include "spd.h"

enum { NOT_ECT = 0, ECT_1 = 1, ECT_0 = 2, CE = 3 };

static bool end_host;

void ipsec_reset(bool as_end_host)
{
    end_host = as_end_host;
    sad_clear();
    spd_clear();
}

static enum drop protect(struct sa *sa, struct packet *packet, const struct ip_view *view)
{
    unsigned outer_version = sa->mode == MODE_TRANSPORT ? view->version : sa->address_len == 4 ? 4 : 6;
    bool esp = sa->protocol == IP_ESP;
    size_t at, room = esp ? esp_header_len(sa) : ah_header_len(sa, outer_version);
    uint8_t next;
    enum drop drop = headers_build(sa, packet, view, room, &at, &next);
    if (drop != DROP_PASSED)
        return drop;
    drop = esp ? esp_seal(sa, packet, at, next) : ah_seal(sa, packet, at, next);
    if (drop == DROP_PASSED)
        ip_finish(packet);
    return drop;
}

PROFILED enum drop ipsec_output(struct packet *packet)
{
    struct ip_view view;
    struct sa *sa;
    if (!ip_parse(packet, &view))
        return DROP_OUT_HDR_ERROR;
    if (end_host) {
        transport_checksum_fill(packet, &view);
        ip_finish(packet);
    }
    switch (spd_lookup(DIRECTION_OUT, packet, &view, &sa)) {
    case POLICY_PROTECT:
        return protect(sa, packet, &view);
    case POLICY_BYPASS:
        return DROP_PASSED;
    case POLICY_DISCARD:
        return DROP_OUT_POL_BLOCK;
    default:
        return DROP_OUT_NO_POLS;
    }
}

/* What congestion outside the tunnel says inside (RFC 6040 4.2). */
static enum drop carry_ecn(uint8_t outer_class, uint8_t *inner)
{
    uint8_t class = ip_traffic_class(inner);
    uint8_t outer_ecn = outer_class & 3, inner_ecn = class & 3;
    if (outer_ecn == CE && inner_ecn == NOT_ECT)
        return DROP_IN_ECN;
    if (inner_ecn != CE && (outer_ecn == CE || (outer_ecn == ECT_1 && inner_ecn == ECT_0)))
        ip_set_traffic_class(inner, (uint8_t)((class & 0xFC) | outer_ecn));
    return DROP_PASSED;
}

/* `view` is of the outer packet, and then of what was in it. */
static enum drop unprotect(struct packet *packet, struct ip_view *view)
{
    bool esp = view->protocol == IP_ESP;
    size_t at = view->payload_at, payload_at;
    uint8_t next, outer_class = ip_traffic_class(packet->data);
    if (view->fragment)
        return DROP_IN_FRAGMENT;
    if (packet->len < at + 12)
        return DROP_IN_HDR_ERROR;
    struct sa *sa =
        sad_lookup(load_be32(packet->data + at + (esp ? 0 : 4)), view->protocol, view->destination, view->address_len);
    if (sa == NULL)
        return DROP_IN_NO_STATES;
    enum drop drop = esp ? esp_open(sa, packet, at, &next, &payload_at) : ah_open(sa, packet, at, &next, &payload_at);
    if (drop == DROP_PASSED)
        drop = headers_strip(sa, packet, view, next, payload_at);
    if (drop != DROP_PASSED)
        return drop;
    if (!ip_parse(packet, view))
        return DROP_IN_STATE_MODE_ERROR;
    if (!spd_allows(sa, packet, view))
        return DROP_IN_STATE_MISMATCH;
    return sa->mode == MODE_TUNNEL ? carry_ecn(outer_class, packet->data) : DROP_PASSED;
}

/* A packet that arrived as it is: only where a policy lets it (RFC 4301 5.2, step 3b). */
static enum drop unprotected(const struct packet *packet, const struct ip_view *view)
{
    struct sa *sa;
    switch (spd_lookup(DIRECTION_IN, packet, view, &sa)) {
    case POLICY_BYPASS:
        return DROP_PASSED;
    case POLICY_PROTECT:
    case POLICY_DISCARD:
        return DROP_IN_POL_BLOCK;
    default:
        return DROP_IN_NO_POLS;
    }
}

PROFILED enum drop ipsec_input(struct packet *packet)
{
    struct ip_view view;
    if (!ip_parse(packet, &view) || !ip_checksum_ok(packet))
        return DROP_IN_HDR_ERROR;
    bool is_ipsec = view.protocol == IP_ESP || view.protocol == IP_AH;
    enum drop drop = is_ipsec ? unprotect(packet, &view) : unprotected(packet, &view);
    if (drop == DROP_PASSED && end_host && !transport_checksum_ok(packet, &view))
        return DROP_IN_CHECKSUM;
    return drop;
}
