/* Capture files (pcap) as lists of IP packets. */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdio.h>

#include "bytes.h"

struct record {
    uint32_t seconds, fraction; /* as in the file */
    uint32_t len;
    uint8_t bytes[65536];
};

struct capture {
    FILE *file;
    bool swapped, ethernet, nanoseconds;
};

/* False, with a message on standard error, if it is no capture file of raw IP or Ethernet. */
bool capture_open(struct capture *capture, const char *path);

/* The next IP packet; frames without are passed over. False at the end. */
bool capture_next(struct capture *capture, struct record *record);

/* Writes a file of raw IP with stamps like those of `like`. */
bool capture_create(struct capture *capture, const char *path, const struct capture *like);
bool capture_put(struct capture *capture, const struct record *record);

#endif
