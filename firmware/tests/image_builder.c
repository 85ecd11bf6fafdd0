#include "packets.h"

#define AEAD(bits, icv)                                                             \
    {                                                                               \
        "aes" #bits "gcm" #icv, IP_ESP, CIPHER_AES_GCM, AUTH_NONE, icv, bits / 8, 0 \
    }
#define WITH(protocol, cipher, key, name)                                \
    { name "-md5", protocol, cipher, AUTH_HMAC_MD5, 12, key, 16 },       \
        { name "-sha1", protocol, cipher, AUTH_HMAC_SHA1, 12, key, 20 }, \
    {                                                                    \
        name "-sha256", protocol, cipher, AUTH_HMAC_SHA256, 16, key, 32  \
    }

const struct suite suites[] = {
    AEAD(128, 8),
    AEAD(128, 12),
    AEAD(128, 16),
    AEAD(192, 16),
    AEAD(256, 16),
    WITH(IP_ESP, CIPHER_AES_CBC, 16, "aes128"),
    WITH(IP_ESP, CIPHER_AES_CBC, 24, "aes192"),
    WITH(IP_ESP, CIPHER_AES_CBC, 32, "aes256"),
    WITH(IP_ESP, CIPHER_AES_CTR, 16, "aes128ctr"),
    WITH(IP_ESP, CIPHER_AES_CTR, 24, "aes192ctr"),
    WITH(IP_ESP, CIPHER_AES_CTR, 32, "aes256ctr"),
    WITH(IP_ESP, CIPHER_NULL, 0, "null"),
    WITH(IP_AH, CIPHER_NULL, 0, "ah"),
    { "aes128", IP_ESP, CIPHER_AES_CBC, AUTH_NONE, 0, 16, 0 },
};
const size_t suite_count = COUNT(suites);

static const uint8_t ends[2][2][16] = {
    { { 192, 0, 2, 1 }, { 192, 0, 2, 2 } },
    { { 0x20, 1, 0x0D, 0xB8, [15] = 1 }, { 0x20, 1, 0x0D, 0xB8, [15] = 2 } },
};

struct image_sa sa_record(const struct suite *suite, enum direction direction, enum mode mode, unsigned family,
                          uint32_t spi)
{
    struct image_sa record = {
        .spi = spi,
        .direction = (uint8_t)direction,
        .protocol = suite->protocol,
        .mode = (uint8_t)mode,
        .cipher = suite->cipher,
        .auth = suite->auth,
        .icv_len = suite->icv_len,
        .key_len = suite->key_len,
        .auth_key_len = suite->auth_key_len,
        .family = (uint8_t)family,
    };
    memcpy(record.source, ends[family == 6][0], 16);
    memcpy(record.destination, ends[family == 6][1], 16);
    for (unsigned i = 0; i < suite->key_len + 4u; i++)
        record.key[i] = (uint8_t)(spi + i);
    for (unsigned i = 0; i < suite->auth_key_len; i++)
        record.auth_key[i] = (uint8_t)(spi + 100 + i);
    return record;
}

struct image_policy any_policy(enum direction direction, unsigned family, unsigned action)
{
    return (struct image_policy) {
        .direction = (uint8_t)direction,
        .action = (uint8_t)action,
        .family = (uint8_t)family,
        .source_ports = { 0, UINT16_MAX },
        .destination_ports = { 0, UINT16_MAX },
    };
}

struct sa *install(const struct image_sa *record)
{
    ipsec_reset(false);
    struct sa *sa = sad_add(record);
    check("an SA is taken", sa != NULL);
    for (unsigned family = 4; family <= 6; family += 2) {
        struct image_policy policy = any_policy(record->direction, family, POLICY_PROTECT);
        check("a policy is taken", spd_add(&policy, sa));
    }
    return sa;
}

size_t make_udp(uint8_t *to, unsigned family, size_t len)
{
    size_t header_len = family == 4 ? IPV4_HEADER : IPV6_HEADER;
    memset(to, 0, header_len + 8);
    to[0] = family == 4 ? 0x45 : 0x60;
    store_be16(to + (family == 4 ? 2 : 4), (uint16_t)(8 + len + (family == 4 ? header_len : 0)));
    to[family == 4 ? 8 : 7] = 60;
    to[family == 4 ? 9 : 6] = IP_UDP;
    memcpy(to + (family == 4 ? 12 : 8), ends[family == 6][0], family == 4 ? 4 : 16);
    memcpy(to + (family == 4 ? 16 : 24), ends[family == 6][1], family == 4 ? 4 : 16);
    store_be16(to + header_len, 40000);
    store_be16(to + header_len + 2, 4242);
    store_be16(to + header_len + 4, (uint16_t)(8 + len));
    for (size_t i = 0; i < len; i++)
        to[header_len + 8 + i] = (uint8_t)draw();
    set_length(to, header_len + 8 + len);
    return header_len + 8 + len;
}

void set_length(uint8_t *packet, size_t len)
{
    static struct packet whole;
    whole.data = packet;
    whole.len = len;
    ip_finish(&whole);
}
