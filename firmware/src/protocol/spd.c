#include "spd.h"

/* Addresses under a prefix, as words in the byte order of packets. */
struct prefix {
    uint32_t value[4], mask[4];
};

struct policy {
    uint8_t direction, action, address_len, protocol;
    bool any_port;
    uint16_t source_ports[2], destination_ports[2];
    struct prefix source, destination;
    struct sa *sa;
};

static NOINIT struct policy policies[POLICY_MAX];
static size_t count;

void spd_clear(void)
{
    count = 0;
}

static struct prefix make_prefix(const uint8_t address[16], unsigned bits)
{
    _Alignas(4) uint8_t mask[16] = { 0 };
    struct prefix prefix;
    for (unsigned i = 0; i < bits; i++)
        mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
    for (unsigned i = 0; i < 4; i++) {
        prefix.mask[i] = load_word(mask + 4 * i);
        prefix.value[i] = load_word(address + 4 * i) & prefix.mask[i];
    }
    return prefix;
}

PROFILED bool spd_add(const struct image_policy *record, struct sa *sa)
{
    if (count == POLICY_MAX || record->direction > DIRECTION_IN || record->action > POLICY_PROTECT ||
        (record->family != 4 && record->family != 6))
        return false;
    unsigned bits = record->family == 4 ? 32 : 128;
    if (record->source_prefix > bits || record->destination_prefix > bits)
        return false;
    if (record->action == POLICY_PROTECT && (sa == NULL || sa->direction != record->direction))
        return false;
    struct policy *policy = &policies[count++];
    policy->direction = record->direction;
    policy->action = record->action;
    policy->address_len = record->family == 4 ? 4 : 16;
    policy->protocol = record->protocol;
    memcpy(policy->source_ports, record->source_ports, sizeof policy->source_ports);
    memcpy(policy->destination_ports, record->destination_ports, sizeof policy->destination_ports);
    policy->any_port = record->source_ports[0] == 0 && record->source_ports[1] == UINT16_MAX &&
                       record->destination_ports[0] == 0 && record->destination_ports[1] == UINT16_MAX;
    policy->source = make_prefix(record->source, record->source_prefix);
    policy->destination = make_prefix(record->destination, record->destination_prefix);
    policy->sa = record->action == POLICY_PROTECT ? sa : NULL;
    return true;
}

static bool under(const struct prefix *prefix, const uint8_t *address, size_t len)
{
    for (size_t i = 0; i < len / 4; i++)
        if ((load_word(address + 4 * i) & prefix->mask[i]) != prefix->value[i])
            return false;
    return true;
}

static bool within(const uint16_t range[2], uint16_t port)
{
    return range[0] <= port && port <= range[1];
}

/* Fragments without ports match no policy that asks for some (RFC 4301 7). */
static bool ports_match(const struct policy *policy, const struct packet *packet, const struct ip_view *view)
{
    if (view->upper_at == 0 || packet->len < view->upper_at + 4)
        return false;
    if (view->upper_protocol != IP_TCP && view->upper_protocol != IP_UDP)
        return false;
    const uint8_t *ports = packet->data + view->upper_at;
    return within(policy->source_ports, load_be16(ports)) && within(policy->destination_ports, load_be16(ports + 2));
}

static bool matches(const struct policy *policy, const struct packet *packet, const struct ip_view *view)
{
    return policy->address_len == view->address_len && under(&policy->source, view->source, view->address_len) &&
           under(&policy->destination, view->destination, view->address_len) &&
           (policy->protocol == 0 || policy->protocol == view->upper_protocol) &&
           (policy->any_port || ports_match(policy, packet, view));
}

PROFILED int spd_lookup(enum direction direction, const struct packet *packet, const struct ip_view *view,
                        struct sa **sa)
{
    for (const struct policy *policy = policies; policy != policies + count; policy++)
        if (policy->direction == direction && matches(policy, packet, view)) {
            *sa = policy->sa;
            return policy->action;
        }
    return -1;
}

PROFILED bool spd_allows(const struct sa *sa, const struct packet *packet, const struct ip_view *view)
{
    for (const struct policy *policy = policies; policy != policies + count; policy++)
        if (policy->sa == sa && matches(policy, packet, view))
            return true;
    return false;
}
