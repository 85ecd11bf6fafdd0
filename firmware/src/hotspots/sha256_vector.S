# HOTSPOT SHA-256, with Zvknha and Zvkb (FIPS 180-4 6.2.2): two rounds an instruction, the constants in registers.
    .include "vector.inc"

# Four rounds with the words in v\w0 and their constants in v\k: {a, b, e, f} in v6, {c, d, g, h} in v7.
    .macro four k, w0
    vadd.vv v5, v\k, v\w0
    sha2cl 7, 6, 5
    sha2ch 6, 7, 5
    .endm
# The four words that follow those of v\w0 to v\w3, in the place of the first.
    .macro more w0, w1, w2, w3
    vmerge.vvm v5, v\w2, v\w1, v0
    sha2ms \w0, 5, \w3
    .endm
    .macro sixteen k0, k1, k2, k3
    four \k0, 10
    more 10, 11, 12, 13
    four \k1, 11
    more 11, 12, 13, 10
    four \k2, 12
    more 12, 13, 10, 11
    four \k3, 13
    more 13, 10, 11, 12
    .endm

# void sha256_blocks(uint32_t state[8], const uint8_t *data, size_t blocks)
    function sha256_blocks
    beqz a2, 2f
    vsetivli zero, 1, e8, m1, ta, ma
    vmv.v.i v0, 1
    vsetivli zero, 4, e32, m1, ta, ma
    la t0, constants
    .irp k, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
    vle32.v v\k, (t0)
    addi t0, t0, 16
    .endr
    # v6: f, e, b, a; v7: h, g, d, c.
    addi sp, sp, -32
    .irp at, 0, 1, 2, 3, 4, 5, 6, 7
    lw t1, 4*\at(a0)
    .if \at == 0
    sw t1, 12(sp)
    .elseif \at == 1
    sw t1, 8(sp)
    .elseif \at == 2
    sw t1, 28(sp)
    .elseif \at == 3
    sw t1, 24(sp)
    .elseif \at == 4
    sw t1, 4(sp)
    .elseif \at == 5
    sw t1, 0(sp)
    .elseif \at == 6
    sw t1, 20(sp)
    .else
    sw t1, 16(sp)
    .endif
    .endr
    addi t1, sp, 16
    vle32.v v6, (sp)
    vle32.v v7, (t1)
1:  .irp w, 10, 11, 12, 13
    vle32.v v\w, (a1)
    rev8 \w, \w
    addi a1, a1, 16
    .endr
    vmv.v.v v8, v6
    vmv.v.v v9, v7
    sixteen 14, 15, 16, 17
    sixteen 18, 19, 20, 21
    sixteen 22, 23, 24, 25
    four 26, 10
    four 27, 11
    four 28, 12
    four 29, 13
    vadd.vv v6, v6, v8
    vadd.vv v7, v7, v9
    addi a2, a2, -1
    bnez a2, 1b
    vse32.v v6, (sp)
    vse32.v v7, (t1)
    .irp from, 12, 8, 28, 24, 4, 0, 20, 16
    lw t1, \from(sp)
    sw t1, 0(a0)
    addi a0, a0, 4
    .endr
    addi sp, sp, 32
2:  ret
    end_function sha256_blocks

    .section .rodata.sha256_constants, "a", @progbits
    .balign 16
constants:
    .word 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5
    .word 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174
    .word 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da
    .word 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967
    .word 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85
    .word 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070
    .word 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3
    .word 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
