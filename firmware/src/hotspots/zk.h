/* Instructions of RISC-V's scalar cryptography extensions 1.0.1 that C cannot name (gcc 12 has no intrinsics).
 * Elsewhere than on RISC-V a model in C (tests/model.c) stands in. */
#ifndef ZK_H
#define ZK_H

#include "bytes.h"

#ifdef __riscv

#define ZK_AES(name)                                                                                  \
    static inline __attribute__((always_inline)) uint32_t name(uint32_t a, uint32_t b, const int row) \
    {                                                                                                 \
        uint32_t d;                                                                                   \
        __asm__(#name " %0, %1, %2, %3" : "=r"(d) : "r"(a), "r"(b), "i"(row));                        \
        return d;                                                                                     \
    }
#define ZK_ONE(name)                                 \
    static inline uint32_t name(uint32_t a)          \
    {                                                \
        uint32_t d;                                  \
        __asm__(#name " %0, %1" : "=r"(d) : "r"(a)); \
        return d;                                    \
    }
#define ZK_TWO(name)                                             \
    static inline uint32_t name(uint32_t a, uint32_t b)          \
    {                                                            \
        uint32_t d;                                              \
        __asm__(#name " %0, %1, %2" : "=r"(d) : "r"(a), "r"(b)); \
        return d;                                                \
    }

#else

#define ZK_AES(name) uint32_t name(uint32_t a, uint32_t b, int row);
#define ZK_ONE(name) uint32_t name(uint32_t a);
#define ZK_TWO(name) uint32_t name(uint32_t a, uint32_t b);

#endif

ZK_AES(aes32esmi)
ZK_AES(aes32esi)
ZK_AES(aes32dsmi)
ZK_AES(aes32dsi)
ZK_ONE(sha256sum0)
ZK_ONE(sha256sum1)
ZK_ONE(sha256sig0)
ZK_ONE(sha256sig1)
ZK_TWO(clmul)
ZK_TWO(clmulh)

#endif
