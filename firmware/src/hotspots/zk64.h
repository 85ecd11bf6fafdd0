/* Instructions of RV64's scalar cryptography extensions 1.0.1 that C cannot name (gcc 12 has no intrinsics). */
#ifndef ZK64_H
#define ZK64_H

#include "bytes.h"

#define ZK64(name)                                               \
    static inline uint64_t name(uint64_t a, uint64_t b)          \
    {                                                            \
        uint64_t d;                                              \
        __asm__(#name " %0, %1, %2" : "=r"(d) : "r"(a), "r"(b)); \
        return d;                                                \
    }

ZK64(aes64es)
ZK64(aes64esm)
ZK64(aes64ds)
ZK64(aes64dsm)
ZK64(clmul)
ZK64(clmulh)

#endif
