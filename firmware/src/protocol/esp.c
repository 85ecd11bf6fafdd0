/* ESP (RFC 4303) with AES-CBC (RFC 3602), AES-CTR (RFC 3686), AES-GCM (RFC 4106) or NULL (RFC 2410).
 *
 *   SPI (4) | sequence number (4) | IV | payload | padding | pad length (1) | next header (1) | ICV
 *                                        \____________ enciphered, aligned ____________/ */
#include "ipsec.h"

enum { ESP_FIXED = 8, ESP_TRAILER = 2 };

size_t esp_header_len(const struct sa *sa)
{
    return ESP_FIXED + (size_t)sa->iv_len;
}

/* The IV must never repeat under a key, and for CBC it must be unpredictable: NIST SP 800-38A appendix C, first
 * method, makes it by enciphering a counter. For CTR and GCM the counter itself will do (RFC 3686 3.1, RFC 4106 3.1).
 */
static void make_iv(const struct sa *sa, uint64_t sequence, uint8_t *iv)
{
    if (sa->cipher == CIPHER_AES_CBC) {
        uint32_t block[4] = { 0, 0, swap32((uint32_t)(sequence >> 32)), swap32((uint32_t)sequence) };
        aes_encrypt(&sa->key.aes, block);
        store_block(iv, block);
    } else if (sa->iv_len != 0) {
        store_be64(iv, sequence);
    }
}

/* Salt, IV and, for CTR, the count that begins at one (RFC 3686 4, RFC 4106 4). */
static void make_nonce(const struct sa *sa, const uint8_t *iv, uint8_t nonce[16])
{
    memcpy(nonce, sa->salt, 4);
    memcpy(nonce + 4, iv, 8);
    store_be32(nonce + 12, 1);
}

/* SPI and sequence number, whole (RFC 4106 5). */
static size_t make_aad(const struct sa *sa, uint64_t sequence, uint8_t aad[12])
{
    store_be32(aad, sa->spi);
    if (!sa->esn) {
        store_be32(aad + 4, (uint32_t)sequence);
        return 8;
    }
    store_be64(aad + 4, sequence);
    return 12;
}

/* Over the packet from the SPI to the trailer, and the half that is not sent of an extended number (RFC 4303 2.2.1). */
static void make_icv(const struct sa *sa, uint64_t sequence, const uint8_t *esp, size_t len,
                     uint8_t icv[HASH_DIGEST_MAX])
{
    uint8_t high[4];
    store_be32(high, (uint32_t)(sequence >> 32));
    hmac(&sa->hmac, esp, len, high, sa->esn ? sizeof high : 0, icv);
}

PROFILED static void seal_body(const struct sa *sa, uint64_t sequence, uint8_t *esp, size_t body_len)
{
    uint8_t *iv = esp + ESP_FIXED, *body = iv + sa->iv_len;
    _Alignas(4) uint8_t nonce[16], aad[12], icv[HASH_DIGEST_MAX];
    switch (sa->cipher) {
    case CIPHER_AES_CBC:
        aes_cbc_encrypt(&sa->key.aes, iv, body, body_len);
        break;
    case CIPHER_AES_CTR:
        make_nonce(sa, iv, nonce);
        aes_ctr(&sa->key.aes, nonce, body, body_len);
        break;
    case CIPHER_AES_GCM:
        make_nonce(sa, iv, nonce);
        gcm_seal(&sa->key, nonce, aad, make_aad(sa, sequence, aad), body, body_len, icv);
        break;
    }
    if (sa->auth != AUTH_NONE)
        make_icv(sa, sequence, esp, esp_header_len(sa) + body_len, icv);
    memcpy(body + body_len, icv, sa->icv_len);
}

PROFILED static bool open_body(const struct sa *sa, uint64_t sequence, uint8_t *esp, size_t body_len)
{
    const uint8_t *iv = esp + ESP_FIXED;
    uint8_t *body = esp + esp_header_len(sa);
    _Alignas(4) uint8_t nonce[16], aad[12], icv[HASH_DIGEST_MAX];
    if (sa->auth != AUTH_NONE) {
        make_icv(sa, sequence, esp, esp_header_len(sa) + body_len, icv);
        if (!same_bytes(icv, body + body_len, sa->icv_len))
            return false;
    }
    switch (sa->cipher) {
    case CIPHER_AES_CBC:
        aes_cbc_decrypt(&sa->inverse, iv, body, body_len);
        break;
    case CIPHER_AES_CTR:
        make_nonce(sa, iv, nonce);
        aes_ctr(&sa->key.aes, nonce, body, body_len);
        break;
    case CIPHER_AES_GCM:
        make_nonce(sa, iv, nonce);
        return gcm_open(&sa->key, nonce, aad, make_aad(sa, sequence, aad), body, body_len, body + body_len,
                        sa->icv_len);
    }
    return true;
}

enum drop esp_seal(struct sa *sa, struct packet *packet, size_t at, uint8_t next)
{
    uint8_t *esp = packet->data + at;
    size_t payload_len = packet->len - at - esp_header_len(sa);
    size_t pad_len = -(payload_len + ESP_TRAILER) & (sa->align - 1U);
    size_t body_len = payload_len + pad_len + ESP_TRAILER;
    size_t len = at + esp_header_len(sa) + body_len + sa->icv_len;
    uint64_t sequence;
    if (len > PACKET_MAX)
        return DROP_OUT_TOO_BIG;
    if (!sa_next_sequence(sa, &sequence))
        return DROP_OUT_STATE_SEQ_ERROR;
    store_be32(esp, sa->spi);
    store_be32(esp + 4, (uint32_t)sequence);
    make_iv(sa, sequence, esp + ESP_FIXED);
    uint8_t *pad = packet->data + packet->len;
    for (size_t i = 0; i < pad_len; i++)
        pad[i] = (uint8_t)(i + 1); /* RFC 4303 2.4 */
    pad[pad_len] = (uint8_t)pad_len;
    pad[pad_len + 1] = next;
    seal_body(sa, sequence, esp, body_len);
    packet->len = len;
    return DROP_PASSED;
}

/* Takes off the trailer (RFC 4303 2.4, 2.5). */
static enum drop strip_trailer(struct packet *packet, size_t body_at, size_t body_len, uint8_t *next)
{
    const uint8_t *end = packet->data + body_at + body_len;
    size_t pad_len = end[-2];
    *next = end[-1];
    if (pad_len + ESP_TRAILER > body_len)
        return DROP_IN_PADDING;
    const uint8_t *pad = end - ESP_TRAILER - pad_len;
    for (size_t i = 0; i < pad_len; i++)
        if (pad[i] != i + 1)
            return DROP_IN_PADDING;
    packet->len = (size_t)(pad - packet->data);
    return DROP_PASSED;
}

enum drop esp_open(struct sa *sa, struct packet *packet, size_t at, uint8_t *next, size_t *payload_at)
{
    uint8_t *esp = packet->data + at;
    size_t around = at + esp_header_len(sa) + sa->icv_len;
    uint64_t sequence;
    if (packet->len < around + sa->align)
        return DROP_IN_HDR_ERROR;
    size_t body_len = packet->len - around;
    if (body_len % sa->align != 0)
        return DROP_IN_HDR_ERROR;
    if (!replay_check(&sa->replay, load_be32(esp + 4), &sequence))
        return DROP_IN_STATE_SEQ_ERROR;
    if (!open_body(sa, sequence, esp, body_len))
        return DROP_IN_STATE_PROTO_ERROR;
    replay_update(&sa->replay, sequence);
    *payload_at = at + esp_header_len(sa);
    return strip_trailer(packet, *payload_at, body_len, next);
}
