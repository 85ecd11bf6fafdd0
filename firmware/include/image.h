/* What the firmware is given and gives back: SAs, policies and packets in one piece of memory. All numbers are
 * little-endian; `crates/workbench/embedded` writes and reads the same. */
#ifndef IMAGE_H
#define IMAGE_H

#include "bytes.h"

#define IMAGE_INPUT_MAGIC 0x4E494246u  /* "FBIN" */
#define IMAGE_OUTPUT_MAGIC 0x554F4246u /* "FBOU" */

enum {
    IMAGE_VERSION = 1,
    IMAGE_END_HOST = 1, /* header flag: TCP and UDP checksums are this core's work */
    IMAGE_SA_ESN = 1,   /* SA flags */
    IMAGE_SA_NO_REPLAY_CHECK = 2,
    IMAGE_PACKET_INBOUND = 1, /* packet flag */
};

struct image_header {
    uint32_t magic, version, flags, sas, policies, packets, reserved[2];
};

struct image_sa {
    uint32_t spi;
    uint8_t direction; /* enum direction */
    uint8_t protocol;  /* 50 ESP, 51 AH */
    uint8_t mode;      /* enum mode */
    uint8_t cipher;    /* enum cipher */
    uint8_t auth;      /* enum auth */
    uint8_t icv_len;   /* bytes: 12, 12, 16 by auth; 8, 12 or 16 for GCM; 0 without */
    uint8_t key_len;   /* bytes; the 4 of salt that stand behind the key for CTR and GCM are not counted */
    uint8_t auth_key_len;
    uint8_t flags;
    uint8_t family; /* 4 or 6, of the outer addresses */
    uint16_t reserved;
    uint32_t sequence[2];                /* low and high half of the last number sent or the highest received */
    uint8_t source[16], destination[16]; /* of the outer header, as sent */
    uint8_t key[36];
    uint8_t auth_key[64];
    uint32_t reserved2;
};

enum { POLICY_DISCARD, POLICY_BYPASS, POLICY_PROTECT };

struct image_policy {
    uint8_t direction;
    uint8_t action;
    uint8_t family;
    uint8_t protocol;                               /* 0: any */
    uint16_t sa;                                    /* which record */
    uint8_t source_prefix, destination_prefix;      /* bits */
    uint16_t source_ports[2], destination_ports[2]; /* lowest and highest; 0 and 65535: any */
    uint8_t source[16], destination[16];
};

struct image_packet {
    uint32_t len, flags;
    /* then the bytes, filled up to a multiple of 4 */
};

struct image_output {
    uint32_t magic, version, packets, len; /* len: bytes of the whole */
};

struct image_result {
    uint32_t status; /* enum drop, 0 for a packet that was passed */
    uint32_t len;
};

_Static_assert(sizeof(struct image_header) == 32, "image_header");
_Static_assert(sizeof(struct image_sa) == 160, "image_sa");
_Static_assert(sizeof(struct image_policy) == 48, "image_policy");

enum { IMAGE_DONE = 0, IMAGE_BAD = 1, IMAGE_OUTPUT_FULL = 2 };

/* Resets, and takes SAs and policies out of an input image. */
int image_load(const uint8_t *input, size_t input_len);

/* Works on all of an input image. Both stand on 4-byte boundaries. Returns what the program ends with. */
int image_run(const uint8_t *input, size_t input_len, uint8_t *output, size_t output_room);

#endif
