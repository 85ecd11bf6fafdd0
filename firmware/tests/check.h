/* What the tests are written with. They want nothing of an operating system, so the vectors run on the core too. */
#ifndef CHECK_H
#define CHECK_H

#include "bytes.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

void check(const char *what, bool ok);
void check_hex(const char *what, const uint8_t *found, size_t len, const char *expected);

/* The bytes of a string of hexadecimal digits; fails the test if they are too many. */
size_t unhex(uint8_t *bytes, size_t room, const char *hex);

/* Numbers that are the same everywhere. */
uint32_t draw(void);

/* How many checks have failed, and all of them. */
extern unsigned checks_failed, checks_made;

void print(const char *text); /* of the platform */

void test_aes(void);
void test_hash(void);
void test_gcm(void);
void test_checksum(void);

/* All of the above; the number of checks that failed. */
int run_vectors(void);

#endif
