#include "sa.h"

enum { ROWS = 16 };

static NOINIT struct sa entries[SA_MAX];
static size_t count;
static struct sa *rows[ROWS];

void sad_clear(void)
{
    count = 0;
    memset(rows, 0, sizeof rows);
}

/* ICV lengths: RFC 2403, RFC 2404, RFC 4868. */
static const struct {
    const struct hash_kind *kind;
    uint8_t icv_len;
} auths[] = {
    [AUTH_NONE] = { NULL, 0 },
    [AUTH_HMAC_MD5] = { &hash_md5, 12 },
    [AUTH_HMAC_SHA1] = { &hash_sha1, 12 },
    [AUTH_HMAC_SHA256] = { &hash_sha256, 16 },
};

/* IV, alignment and salt in bytes: RFC 2410, RFC 3602, RFC 3686, RFC 4106. */
static const struct {
    uint8_t iv_len, align, salt_len;
} ciphers[] = {
    [CIPHER_NULL] = { 0, 4, 0 },
    [CIPHER_AES_CBC] = { 16, 16, 0 },
    [CIPHER_AES_CTR] = { 8, 4, 4 },
    [CIPHER_AES_GCM] = { 8, 4, 4 },
};

static bool key_lengths_ok(const struct image_sa *record)
{
    uint8_t len = record->key_len;
    if (record->cipher == CIPHER_NULL ? len != 0 : len != 16 && len != 24 && len != 32)
        return false;
    return record->auth == AUTH_NONE ? record->auth_key_len == 0
                                     : record->auth_key_len != 0 && record->auth_key_len <= sizeof record->auth_key;
}

/* Which ciphers want a separate ICV: NULL (RFC 4303 3.2), CTR (RFC 3686 9) and AH, and GCM must have none. CBC without
 * one is allowed here, for [E] measures it; RFC 8221 4 says that it should not be used. */
static bool algorithms_ok(const struct image_sa *record)
{
    if (record->cipher >= sizeof ciphers / sizeof *ciphers || record->auth >= sizeof auths / sizeof *auths)
        return false;
    if (record->protocol == IP_AH && record->cipher != CIPHER_NULL)
        return false;
    if (record->cipher == CIPHER_AES_GCM)
        return record->auth == AUTH_NONE && (record->icv_len == 8 || record->icv_len == 12 || record->icv_len == 16);
    return (record->auth != AUTH_NONE || record->cipher == CIPHER_AES_CBC) &&
           record->icv_len == auths[record->auth].icv_len;
}

static bool record_ok(const struct image_sa *record)
{
    return record->spi != 0 && record->direction <= DIRECTION_IN && record->mode <= MODE_TRANSPORT &&
           (record->protocol == IP_ESP || record->protocol == IP_AH) && (record->family == 4 || record->family == 6) &&
           algorithms_ok(record) && key_lengths_ok(record);
}

static void install_keys(struct sa *sa, const struct image_sa *record)
{
    size_t len = record->key_len;
    memcpy(sa->salt, record->key + len, ciphers[sa->cipher].salt_len);
    if (sa->cipher == CIPHER_AES_GCM)
        gcm_key_init(&sa->key, record->key, len);
    else if (sa->cipher != CIPHER_NULL)
        aes_key_expand(&sa->key.aes, record->key, len);
    if (sa->cipher == CIPHER_AES_CBC && sa->direction == DIRECTION_IN)
        aes_key_invert(&sa->inverse, &sa->key.aes);
    if (sa->auth != AUTH_NONE)
        hmac_key_init(&sa->hmac, auths[sa->auth].kind, record->auth_key, record->auth_key_len);
}

PROFILED struct sa *sad_add(const struct image_sa *record)
{
    if (count == SA_MAX || !record_ok(record))
        return NULL;
    struct sa *sa = &entries[count++];
    memset(sa, 0, sizeof *sa);
    sa->spi = record->spi;
    sa->direction = record->direction;
    sa->protocol = record->protocol;
    sa->mode = record->mode;
    sa->cipher = record->cipher;
    sa->auth = record->auth;
    sa->icv_len = record->icv_len;
    sa->iv_len = ciphers[record->cipher].iv_len;
    sa->align = ciphers[record->cipher].align;
    sa->address_len = record->family == 4 ? 4 : 16;
    memcpy(sa->source, record->source, sizeof sa->source);
    memcpy(sa->destination, record->destination, sizeof sa->destination);
    sa->esn = (record->flags & IMAGE_SA_ESN) != 0;
    sa->sequence = (uint64_t)record->sequence[1] << 32 | record->sequence[0];
    sa->replay = (struct replay) {
        .top = sa->sequence,
        .esn = sa->esn,
        .off = (record->flags & IMAGE_SA_NO_REPLAY_CHECK) != 0,
    };
    install_keys(sa, record);
    if (sa->direction == DIRECTION_IN) {
        sa->next = rows[sa->spi % ROWS];
        rows[sa->spi % ROWS] = sa;
    }
    return sa;
}

PROFILED struct sa *sad_lookup(uint32_t spi, uint8_t protocol, const uint8_t *destination, size_t address_len)
{
    for (struct sa *sa = rows[spi % ROWS]; sa != NULL; sa = sa->next)
        if (sa->spi == spi && sa->protocol == protocol && sa->address_len == address_len &&
            memcmp(sa->destination, destination, address_len) == 0)
            return sa;
    return NULL;
}

bool sa_next_sequence(struct sa *sa, uint64_t *number)
{
    if (sa->sequence == (sa->esn ? UINT64_MAX : UINT32_MAX))
        return false;
    *number = ++sa->sequence;
    return true;
}
