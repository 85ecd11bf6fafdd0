/* Whole packets: the examples of RFC 3602, and every suite in every mode there and back. */
#include "packets.h"

static struct packet packet;
static _Alignas(4) uint8_t plain[2048], sealed[4096];

/* RFC 3602 4, cases 5 to 8: SPI, mode, key, packet before, packet after. */
static const struct {
    uint32_t spi;
    enum mode mode;
    const char *key, *plain, *sealed;
} examples[] = {
    { 0x4321, MODE_TRANSPORT, "90d382b410eeba7ad938c46cec1a82bf",
      "4500005408f200004001f9fec0a87b03c0a87b6408000ebda70a00008e9c083db95b070008090a0b0c0d0e0f10111213"
      "1415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031323334353637",
      "4500007c08f200004032f9a5c0a87b03c0a87b640000432100000001e96e8c08ab465763fd098d45dd3ff893f663c25d"
      "325c18c6a9453e194e120849a4870b66cc6b9965330013b4898dc856a4699e523a55db080b59ec3a8e4b7e52775b07d1"
      "db34ed9c538ab50c551b874aa269add047ad2d5913ac19b7cfbad4a6" },
    { 0x4321, MODE_TRANSPORT, "90d382b410eeba7ad938c46cec1a82bf",
      "4500003008fe00004001fa16c0a87b03c0a87b640800b5e8a80a0500a69c083d0b660e00777777777777777777777777",
      "4500004c08fe00004032f9c9c0a87b03c0a87b64000043210000000869d08df7d203329db093fc4924e5bd80f5199588"
      "1ec4e0c4488987ce742e8109689bb379d2d750c0d915dca346a89f75" },
    { 0x8765, MODE_TUNNEL, "0123456789abcdef0123456789abcdef",
      "45000054090400004001f988c0a87b03c0a87bc808009f76a90a0100b49c083d02a2040008090a0b0c0d0e0f10111213"
      "1415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031323334353637",
      "4500008c090500004032f91ec0a87b03c0a87bc80000876500000002f4e765244f6407adf13dc1380f673f37773b5241"
      "a4c449225e4f3ce5ed611b0c237ca96cf74a93013c1b0ea1a0cf70f8e4ecaec78ac53aad7a0f022b859243c647752e94"
      "a859352b8a4d4d2decd136e5c177f132ad3fbfb2201ac9904c74ee0a109e0ca1e4dfe9d5a100b842f1c22f0d" },
    { 0x8765, MODE_TUNNEL, "0123456789abcdef0123456789abcdef",
      "45000044090c00004001f990c0a87b03c0a87bc80800d63caa0a0200c69c083da3de0300ffffffffffffffffffffffff"
      "ffffffffffffffffffffffffffffffffffffffff",
      "4500007c090d00004032f926c0a87b03c0a87bc8000087650000000585d47224b5f3dd5d2101d4ea8dffab2215b92683"
      "819596a8047232cc00f7048fe45318e11f8a0f62ede3c3fc61203bb50f980a08c9843fd3a1b06d5c07ff9639b7eb7dfb"
      "3512e5de435e7207ed971ef3d2726d9b5ef6affc6d17a0decbb13892" },
};

static void test_example(size_t i)
{
    const struct suite cbc = { "aes128", IP_ESP, CIPHER_AES_CBC, AUTH_NONE, 0, 16, 0 };
    struct image_sa record = sa_record(&cbc, DIRECTION_IN, examples[i].mode, 4, examples[i].spi);
    size_t len = unhex(sealed, sizeof sealed, examples[i].sealed);
    unhex(record.key, sizeof record.key, examples[i].key);
    memcpy(record.source, sealed + 12, 4);
    memcpy(record.destination, sealed + 16, 4);
    install(&record);
    packet_load(&packet, sealed, len);
    check("RFC 3602, packet", ipsec_input(&packet) == DROP_PASSED);
    check_hex("RFC 3602, opened", packet.data, packet.len, examples[i].plain);
    packet_load(&packet, sealed, len);
    check("RFC 3602, replayed", ipsec_input(&packet) == DROP_IN_STATE_SEQ_ERROR);
}

/* Seals `plain` into `sealed`, as the SA of a record does. */
static size_t seal(const struct image_sa *record, size_t len)
{
    install(record);
    packet_load(&packet, plain, len);
    if (ipsec_output(&packet) != DROP_PASSED || !ip_checksum_ok(&packet))
        return 0;
    memcpy(sealed, packet.data, packet.len);
    return packet.len;
}

static bool opens(size_t len)
{
    packet_load(&packet, sealed, len);
    return ipsec_input(&packet) == DROP_PASSED;
}

/* A packet of each length up to 70 bytes and one of 1400: sealed; refused with one byte changed anywhere behind the
 * outer header, where there is an ICV; opened; and refused when it comes again. */
static void test_round_trip(const struct suite *suite, enum mode mode, unsigned outer, unsigned inner, bool esn)
{
    struct image_sa out = sa_record(suite, DIRECTION_OUT, mode, outer, 0x1001), in = out;
    size_t outer_len = outer == 4 ? IPV4_HEADER : IPV6_HEADER;
    bool made = true, forged = false, same = true, replayed = false;
    in.direction = DIRECTION_IN;
    out.flags = in.flags = esn ? IMAGE_SA_ESN : 0;
    for (unsigned size = 0; size <= 71; size++) {
        /* Extended numbers go from one subspace to the next. */
        out.sequence[0] = in.sequence[0] = esn ? UINT32_MAX - 30 + size : size;
        out.sequence[1] = in.sequence[1] = esn && size > 30;
        size_t len = make_udp(plain, inner, size == 71 ? 1400 : size);
        size_t sealed_len = seal(&out, len), at = outer_len + draw() % (sealed_len + 1 - outer_len);
        uint8_t change = (uint8_t)(1 + draw() % 255);
        made = made && sealed_len > len;
        install(&in);
        if (suite->icv_len != 0 && at < sealed_len) {
            sealed[at] ^= change;
            forged = forged || opens(sealed_len);
            sealed[at] ^= change;
        }
        same = same && opens(sealed_len) && packet.len == len && memcmp(packet.data, plain, len) == 0;
        replayed = replayed || opens(sealed_len);
    }
    check(suite->name, made);
    check("there and back: the same packet", same);
    check("a forged packet is refused", !forged);
    check("a replayed packet is refused", !replayed);
}

static void test_selectors(void)
{
    const struct suite *suite = &suites[0];
    struct image_sa record = sa_record(suite, DIRECTION_OUT, MODE_TUNNEL, 4, 0x1001);
    struct image_policy discard = any_policy(DIRECTION_OUT, 4, POLICY_DISCARD),
                        bypass = any_policy(DIRECTION_OUT, 4, POLICY_BYPASS);
    size_t len = make_udp(plain, 4, 10);
    ipsec_reset(false);
    packet_load(&packet, plain, len);
    check("no policy", ipsec_output(&packet) == DROP_OUT_NO_POLS);
    discard.destination_ports[0] = discard.destination_ports[1] = 53;
    spd_add(&discard, NULL);
    bypass.source_prefix = 24;
    memcpy(bypass.source, plain + 12, 3);
    spd_add(&bypass, NULL);
    packet_load(&packet, plain, len);
    check("bypass", ipsec_output(&packet) == DROP_PASSED && packet.len == len);
    store_be16(plain + 22, 53);
    packet_load(&packet, plain, len);
    check("discard by port", ipsec_output(&packet) == DROP_OUT_POL_BLOCK);
    plain[14] ^= 1;
    store_be16(plain + 22, 54);
    packet_load(&packet, plain, len);
    check("outside the prefix", ipsec_output(&packet) == DROP_OUT_NO_POLS);

    /* What comes out of a tunnel must be what its policies allow. */
    install(&record);
    len = make_udp(plain, 4, 10);
    packet_load(&packet, plain, len);
    ipsec_output(&packet);
    memcpy(plain, packet.data, packet.len);
    record.direction = DIRECTION_IN;
    ipsec_reset(false);
    struct image_policy other = any_policy(DIRECTION_IN, 4, POLICY_PROTECT);
    other.protocol = IP_TCP;
    spd_add(&other, sad_add(&record));
    packet_load(&packet, plain, packet.len);
    check("outside the selectors", ipsec_input(&packet) == DROP_IN_STATE_MISMATCH);
}

static void test_ecn(void)
{
    static const struct {
        uint8_t inner, outer, result; /* RFC 6040, figure 4; 4 is a drop */
    } cases[] = {
        { 0, 0, 0 }, { 0, 2, 0 }, { 0, 1, 0 }, { 0, 3, 4 }, { 2, 0, 2 }, { 2, 2, 2 }, { 2, 1, 1 }, { 2, 3, 3 },
        { 1, 0, 1 }, { 1, 2, 1 }, { 1, 1, 1 }, { 1, 3, 3 }, { 3, 0, 3 }, { 3, 2, 3 }, { 3, 1, 3 }, { 3, 3, 3 },
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (unsigned family = 4; family <= 6; family += 2) {
            struct image_sa record = sa_record(&suites[0], DIRECTION_OUT, MODE_TUNNEL, 4, 0x1001);
            install(&record);
            packet_load(&packet, plain, make_udp(plain, family, 10));
            ip_set_traffic_class(packet.data, cases[i].inner);
            ipsec_output(&packet);
            check("ECN is copied out", (ip_traffic_class(packet.data) & 3) == cases[i].inner);
            ip_set_traffic_class(packet.data, cases[i].outer);
            record.direction = DIRECTION_IN;
            install(&record);
            enum drop drop = ipsec_input(&packet);
            check("ECN comes back",
                  cases[i].result == 4 ? drop == DROP_IN_ECN
                                       : drop == DROP_PASSED && (ip_traffic_class(packet.data) & 3) == cases[i].result);
            check("the checksum stays right", ip_checksum_ok(&packet));
        }
}

static void test_end_host(void)
{
    struct image_policy policies[2] = { any_policy(DIRECTION_OUT, 4, POLICY_BYPASS),
                                        any_policy(DIRECTION_IN, 4, POLICY_BYPASS) };
    for (unsigned turn = 0; turn < 2; turn++) {
        ipsec_reset(true);
        policies[turn].family = 4;
        for (unsigned i = 0; i < 2; i++)
            spd_add(&policies[i], NULL);
        packet_load(&packet, plain, make_udp(plain, 4, 33 + turn));
        check("end host, out", ipsec_output(&packet) == DROP_PASSED && load_be16(packet.data + 26) != 0);
        check("end host, in", ipsec_input(&packet) == DROP_PASSED);
        packet.data[40] ^= 4;
        check("end host, damaged", ipsec_input(&packet) == DROP_IN_CHECKSUM);
    }
}

static void test_exhausted(void)
{
    struct image_sa record = sa_record(&suites[0], DIRECTION_OUT, MODE_TUNNEL, 4, 0x1001);
    record.sequence[0] = UINT32_MAX;
    install(&record);
    packet_load(&packet, plain, make_udp(plain, 4, 10));
    check("no number is used twice", ipsec_output(&packet) == DROP_OUT_STATE_SEQ_ERROR);
}

void test_packets(void)
{
    for (size_t i = 0; i < COUNT(examples); i++)
        test_example(i);
    for (size_t i = 0; i < suite_count; i++)
        for (unsigned esn = 0; esn < 2; esn++) {
            for (unsigned outer = 4; outer <= 6; outer += 2)
                for (unsigned inner = 4; inner <= 6; inner += 2)
                    test_round_trip(&suites[i], MODE_TUNNEL, outer, inner, esn);
            test_round_trip(&suites[i], MODE_TRANSPORT, 4, 4, esn);
            test_round_trip(&suites[i], MODE_TRANSPORT, 6, 6, esn);
        }
    test_selectors();
    test_ecn();
    test_end_host();
    test_exhausted();
}
