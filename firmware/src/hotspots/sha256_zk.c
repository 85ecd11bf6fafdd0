/* HOTSPOT SHA-256, with Zknh: each of the four functions is one instruction. */
#include "zk.h"

#define big_sigma0 sha256sum0
#define big_sigma1 sha256sum1
#define small_sigma0 sha256sig0
#define small_sigma1 sha256sig1

#include "sha256_rounds.h"
