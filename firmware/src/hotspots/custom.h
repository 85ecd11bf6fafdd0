/* The custom instructions of [E], as this core has them. The encodings are those of instructions in the
 * custom-0 (0x0B) and custom-1 (0x2B) spaces of RISC-V; README.md has the table.
 * Elsewhere than on RISC-V a model in C (tests/model.c) stands in, so that what uses them can be tested. */
#ifndef CUSTOM_H
#define CUSTOM_H

#include "bytes.h"

#ifdef __riscv

/* acc += the four 16-bit halves of a and b. */
static inline void add64(uint32_t a, uint32_t b)
{
    __asm__ volatile(".insn r 0x0B, 0, 0, x0, %0, %1" : : "r"(a), "r"(b));
}

/* acc folded to 16 bits; acc = 0. */
static inline uint32_t fold64(void)
{
    uint32_t sum;
    __asm__ volatile(".insn r 0x0B, 0, 1, %0, x0, x0" : "=r"(sum));
    return sum;
}

/* AES state: column i in and out. */
#define aes_put(i, word) __asm__ volatile(".insn r 0x0B, 1, %0, x0, %1, x0" : : "i"(i), "r"(word))
#define aes_get(i, word) __asm__ volatile(".insn r 0x0B, 2, %1, %0, x0, x0" : "=r"(word) : "i"(i))

/* A round on the state with the four round-key words at `key`: kind 0 enciphers, 1 is its last round, 2 deciphers
 * (equivalent inverse), 3 is its last. */
#define aes_round(kind, key) \
    __asm__ volatile(".insn r 0x0B, 3, %0, x0, %1, x0" : : "i"(kind), "r"(key), "m"(*(const uint32_t(*)[4])(key)))

/* The same with the round key in custom registers: its word i in, and a round of the same kinds. */
#define aes_key_put(i, word) __asm__ volatile(".insn r 0x0B, 4, %0, x0, %1, x0" : : "i"(i), "r"(word))
#define aes_keyed_round(kind) __asm__ volatile(".insn r 0x0B, 5, %0, x0, x0, x0" : : "i"(kind))

/* MD5: state word i in and out, and step `step` with message word x and constant t. */
#define md5_put(i, word) __asm__ volatile(".insn r 0x2B, 1, %0, x0, %1, x0" : : "i"(i), "r"(word))
#define md5_get(i, word) __asm__ volatile(".insn r 0x2B, 2, %1, %0, x0, x0" : "=r"(word) : "i"(i))
#define md5_iteration(step, x, t) __asm__ volatile(".insn r 0x2B, 0, %0, x0, %1, %2" : : "i"(step), "r"(x), "r"(t))

#else

void add64(uint32_t a, uint32_t b);
uint32_t fold64(void);
void model_aes_put(unsigned i, uint32_t word);
uint32_t model_aes_get(unsigned i);
void model_aes_round(unsigned kind, const uint32_t key[4]);
void model_aes_key_put(unsigned i, uint32_t word);
void model_aes_keyed_round(unsigned kind);
void model_md5_put(unsigned i, uint32_t word);
uint32_t model_md5_get(unsigned i);
void md5_iteration(unsigned step, uint32_t x, uint32_t t);

#define aes_put(i, word) model_aes_put(i, word)
#define aes_get(i, word) ((word) = model_aes_get(i))
#define aes_round(kind, key) model_aes_round(kind, key)
#define aes_key_put(i, word) model_aes_key_put(i, word)
#define aes_keyed_round(kind) model_aes_keyed_round(kind)
#define md5_put(i, word) model_md5_put(i, word)
#define md5_get(i, word) ((word) = model_md5_get(i))

#endif
#endif
