/* Tests of whole packets, and what they build SAs with. */
#ifndef PACKETS_H
#define PACKETS_H

#include "check.h"
#include "ipsec.h"
#include "spd.h"

void test_replay(void);
void test_packets(void);
void test_malformed(void);

/* What an SA is, in words that tests can hold in tables. Keys are counted up from the SPI where none is given. */
struct suite {
    const char *name;
    uint8_t protocol, cipher, auth, icv_len, key_len, auth_key_len;
};

extern const struct suite suites[];
extern const size_t suite_count;

/* Records of an SA and of a policy for all packets of an address family through it. */
struct image_sa sa_record(const struct suite *suite, enum direction direction, enum mode mode, unsigned family,
                          uint32_t spi);
struct image_policy any_policy(enum direction direction, unsigned family, unsigned action);

/* Resets, and installs an SA with a policy for each address family. */
struct sa *install(const struct image_sa *record);

/* A UDP packet of `len` bytes after its headers; returns its length. */
size_t make_udp(uint8_t *to, unsigned family, size_t len);

/* Makes a packet's header say that it is `len` bytes long. */
void set_length(uint8_t *packet, size_t len);

#endif
