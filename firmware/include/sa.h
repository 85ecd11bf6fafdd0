/* A security association and the database of them (RFC 4301 4.4.2). */
#ifndef SA_H
#define SA_H

#include "gcm.h"
#include "hmac.h"
#include "image.h"
#include "ip.h"
#include "replay.h"

enum cipher { CIPHER_NULL, CIPHER_AES_CBC, CIPHER_AES_CTR, CIPHER_AES_GCM };
enum auth { AUTH_NONE, AUTH_HMAC_MD5, AUTH_HMAC_SHA1, AUTH_HMAC_SHA256 };
enum mode { MODE_TUNNEL, MODE_TRANSPORT };
enum direction { DIRECTION_OUT, DIRECTION_IN };

struct sa {
    uint32_t spi;
    uint8_t direction, protocol, mode, cipher, auth;
    uint8_t icv_len, iv_len, align;
    uint8_t address_len; /* of the outer header: 4 or 16 */
    uint8_t source[ADDRESS_MAX], destination[ADDRESS_MAX];
    struct sa *next; /* in its row of the table */
    bool esn;
    uint64_t sequence;    /* last one sent */
    struct replay replay; /* of what is received */
    uint8_t salt[4];      /* CTR, GCM */
    struct gcm_key key;   /* of CBC and CTR, the AES key alone is used */
    struct aes_key inverse;
    struct hmac_key hmac;
};

enum { SA_MAX = 64 };

/* Forgets all. */
void sad_clear(void);

/* Makes an SA from its record. NULL if the record makes no sense or there is no room. */
struct sa *sad_add(const struct image_sa *record);

/* The inbound SA of an SPI, a protocol and a destination, or NULL. */
struct sa *sad_lookup(uint32_t spi, uint8_t protocol, const uint8_t *destination, size_t address_len);

/* The number of the next packet; false when they are used up (RFC 4303 3.3.3). */
bool sa_next_sequence(struct sa *sa, uint64_t *number);

#endif
