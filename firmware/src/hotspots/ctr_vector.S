# HOTSPOT CTR, with Zvkned and Zvkb (NIST SP 800-38A 6.5; RFC 3686): as many counters at once as four registers hold.
    .include "vector.inc"

# void aes_ctr(const struct aes_key *key, const uint8_t counter[16], uint8_t *data, size_t len)
    function aes_ctr
    beqz a3, 2f
    load_key
    lw t1, 0(a1)
    lw t2, 4(a1)
    lw t3, 8(a1)
    # The last word counts big-endian.
    lbu t4, 12(a1)
    lbu t5, 13(a1)
    slli t4, t4, 8
    or t4, t4, t5
    lbu t5, 14(a1)
    slli t4, t4, 8
    or t4, t4, t5
    lbu t5, 15(a1)
    slli t4, t4, 8
    or t4, t4, t5
    # v20: the first three words of each block; v24: the number of the fourth; v0: where that stands.
    vsetvli t0, zero, e32, m4, ta, ma
    vid.v v24
    vand.vi v28, v24, 3
    vmv.v.x v20, t1
    vmseq.vi v0, v28, 1
    vmerge.vxm v20, v20, t2, v0
    vmseq.vi v0, v28, 2
    vmerge.vxm v20, v20, t3, v0
    vmseq.vi v0, v28, 3
    vsrl.vi v24, v24, 2
    vadd.vx v24, v24, t4
    # Words of whole blocks that are left.
    addi t1, a3, 15
    srli t1, t1, 4
    slli t1, t1, 2
1:  vsetvli t0, t1, e32, m4, ta, ma
    rev8 28, 24
    vmerge.vvm v16, v20, v28, v0
    rounds 16, aesem, aesef
    srli t2, t0, 2
    vadd.vx v24, v24, t2
    # The last block may be cut short.
    slli t2, t0, 2
    bgeu a3, t2, 3f
    mv t2, a3
3:  vsetvli zero, t2, e8, m4, ta, ma
    vle8.v v28, (a2)
    vxor.vv v28, v28, v16
    vse8.v v28, (a2)
    add a2, a2, t2
    sub a3, a3, t2
    sub t1, t1, t0
    bnez a3, 1b
2:  ret
    end_function aes_ctr
