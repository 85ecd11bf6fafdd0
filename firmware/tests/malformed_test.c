/* Packets that are not what they should be: each is refused for the right reason, and none is read or written out of
 * bounds, which AddressSanitizer watches to the byte, for all memory around the packet is poisoned. */
#include "fence.h"
#include "packets.h"

static struct packet packet;
static _Alignas(4) uint8_t bytes[4096];

static enum drop open_fenced(size_t len)
{
    packet_load(&packet, bytes, len);
    fence(&packet, true);
    enum drop drop = ipsec_input(&packet);
    unfence(&packet);
    return drop;
}

/* A good packet of a suite in `bytes`, with the SA that would open it installed. */
static size_t prepare(const struct suite *suite, enum mode mode, unsigned family, size_t payload)
{
    struct image_sa record = sa_record(suite, DIRECTION_OUT, mode, family, 0x1001);
    install(&record);
    packet_load(&packet, bytes, make_udp(bytes, family, payload));
    ipsec_output(&packet);
    memcpy(bytes, packet.data, packet.len);
    record.direction = DIRECTION_IN;
    install(&record);
    return packet.len;
}

/* A packet cut at every place, with headers that agree and headers that do not. */
static void test_cut(const struct suite *suite, enum mode mode, unsigned family)
{
    size_t len = prepare(suite, mode, family, 40);
    bool refused = true;
    for (size_t cut = 0; cut < len; cut++) {
        refused = refused && open_fenced(cut) == DROP_IN_HDR_ERROR;
        if (cut < (family == 4 ? IPV4_HEADER : IPV6_HEADER))
            continue;
        prepare(suite, mode, family, 40);
        set_length(bytes, cut);
        enum drop drop = open_fenced(cut);
        refused = refused && (drop != DROP_PASSED || suite->icv_len == 0);
        len = prepare(suite, mode, family, 40);
    }
    check("a packet cut short is refused", refused);
}

/* Without an ICV nothing stands before the trailer: every pad length, and padding that does not count. */
static void test_trailer(void)
{
    const struct suite null_suite = { "aes128", IP_ESP, CIPHER_AES_CBC, AUTH_NONE, 0, 16, 0 };
    unsigned passed = 0;
    for (unsigned pad_len = 0; pad_len < 256; pad_len++) {
        struct image_sa record = sa_record(&null_suite, DIRECTION_IN, MODE_TRANSPORT, 4, 0x1001);
        struct sa *sa = install(&record);
        struct aes_key key = sa->key.aes;
        uint8_t *body = bytes + IPV4_HEADER + 8 + 16;
        make_udp(bytes, 4, 8 + 16 + 64 - 8);
        bytes[9] = IP_ESP;
        set_length(bytes, IPV4_HEADER + 8 + 16 + 64);
        store_be32(bytes + IPV4_HEADER, 0x1001);
        store_be32(bytes + IPV4_HEADER + 4, 1);
        memset(body, 0xEE, 64);
        for (unsigned i = 0; i < pad_len && i < 62; i++)
            body[61 - i] = (uint8_t)(pad_len - i);
        body[62] = (uint8_t)pad_len;
        body[63] = IP_UDP;
        aes_cbc_encrypt(&key, body - 16, body, 64);
        enum drop drop = open_fenced(IPV4_HEADER + 8 + 16 + 64);
        check("a trailer", drop == (pad_len <= 62 ? DROP_PASSED : DROP_IN_PADDING));
        passed += drop == DROP_PASSED && packet.len == IPV4_HEADER + 62 - pad_len;
        if (pad_len == 0 || pad_len > 62)
            continue;
        aes_key_invert(&sa->inverse, &key);
        aes_cbc_decrypt(&sa->inverse, body - 16, body, 64);
        body[61 - draw() % pad_len] ^= 0x80;
        aes_cbc_encrypt(&key, body - 16, body, 64);
        sa->replay = (struct replay) { .top = 0 };
        check("padding that does not count", open_fenced(IPV4_HEADER + 8 + 16 + 64) == DROP_IN_PADDING);
    }
    check("padding is taken off", passed == 63);
}

/* Random damage to good packets, IPv6 extension headers of random sorts, and noise; out and in. */
static void test_noise(unsigned turns)
{
    for (unsigned turn = 0; turn < turns; turn++) {
        const struct suite *suite = &suites[draw() % suite_count];
        unsigned family = draw() % 2 ? 4 : 6;
        size_t len = prepare(suite, draw() % 2 ? MODE_TUNNEL : MODE_TRANSPORT, family, draw() % 90);
        size_t header_len = family == 4 ? IPV4_HEADER : IPV6_HEADER;
        for (unsigned changes = draw() % 4; changes != 0; changes--)
            bytes[draw() % (draw() % 2 ? header_len : len)] = (uint8_t)draw();
        if (draw() % 3 == 0) {
            static const uint8_t chain[] = { IP_HOP_BY_HOP, IP_ROUTING, IP_DESTINATION, IP_FRAGMENT, IP_ESP, IP_AH };
            bytes[family == 4 ? 9 : 6] = chain[draw() % COUNT(chain)];
            for (size_t at = header_len; at + 1 < len && draw() % 4 != 0; at += 8) {
                bytes[at] = chain[draw() % COUNT(chain)];
                bytes[at + 1] = (uint8_t)(draw() % 3);
            }
        }
        if (draw() % 4 == 0)
            len = draw() % (len + 1);
        if (draw() % 2 && len >= header_len && bytes[0] >> 4 == (family == 4 ? 4 : 6))
            set_length(bytes, len);
        open_fenced(len);

        struct image_sa record =
            sa_record(suite, DIRECTION_OUT, draw() % 2 ? MODE_TUNNEL : MODE_TRANSPORT, family, 0x1001);
        install(&record);
        packet_load(&packet, bytes, len);
        fence(&packet, false);
        ipsec_output(&packet);
        unfence(&packet);
    }
    check("noise is survived", true);
}

static void test_largest(void)
{
    static uint8_t large[PACKET_MAX + 1];
    struct image_sa record = sa_record(&suites[0], DIRECTION_OUT, MODE_TUNNEL, 4, 0x1001);
    install(&record);
    memset(large, 0, sizeof large);
    check("larger than IP", !packet_load(&packet, large, PACKET_MAX + 1));
    make_udp(large, 4, 100);
    for (size_t len = PACKET_MAX - 100; len <= PACKET_MAX; len++) {
        packet_load(&packet, large, len);
        ip_finish(&packet);
        enum drop drop = ipsec_output(&packet);
        check("sealed or too big", drop == DROP_OUT_TOO_BIG || (drop == DROP_PASSED && packet.len <= PACKET_MAX));
    }
}

static void test_records(void)
{
    struct image_sa record;
    for (unsigned turn = 0; turn < 20000; turn++) {
        record = sa_record(&suites[draw() % suite_count], DIRECTION_IN, MODE_TUNNEL, 4, 0x1001);
        ((uint8_t *)&record)[draw() % 16] = (uint8_t)draw();
        ipsec_reset(false);
        sad_add(&record);
    }
    record = sa_record(&suites[14], DIRECTION_IN, MODE_TUNNEL, 4, 0x1001);
    record.auth = AUTH_NONE;
    record.icv_len = record.auth_key_len = 0;
    check("CTR without an ICV", sad_add(&record) == NULL);
}

void test_malformed(void)
{
    for (size_t i = 0; i < suite_count; i++)
        for (unsigned mode = MODE_TUNNEL; mode <= MODE_TRANSPORT; mode++)
            for (unsigned family = 4; family <= 6; family += 2)
                test_cut(&suites[i], mode, family);
    test_trailer();
    test_noise(60000);
    test_largest();
    test_records();
}
