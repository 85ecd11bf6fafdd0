# HOTSPOT CBC, with Zvkned (NIST SP 800-38A 6.2): encryption goes block by block, for each needs the one before;
# decryption takes as many blocks as four registers hold.
    .include "vector.inc"

# void aes_cbc_encrypt(const struct aes_key *key, const uint8_t iv[16], uint8_t *data, size_t len)
    function aes_cbc_encrypt
    load_key
    vle32.v v16, (a1)
    li t0, 16
    bltu a3, t0, 2f
1:  vle32.v v17, (a2)
    vxor.vv v16, v16, v17
    rounds 16, aesem, aesef
    vse32.v v16, (a2)
    addi a2, a2, 16
    addi a3, a3, -16
    bgeu a3, t0, 1b
2:  ret
    end_function aes_cbc_encrypt

# void aes_cbc_decrypt(const struct aes_key *inverse, const uint8_t iv[16], uint8_t *data, size_t len)
    function aes_cbc_decrypt
    load_key
    vle32.v v28, (a1)
    srli a3, a3, 4
    slli a3, a3, 2
    beqz a3, 2f
1:  vsetvli t0, a3, e32, m4, ta, ma
    vle32.v v16, (a2)
    # The block before each: the last one of the turn before, then those of this turn.
    vmv.v.v v20, v28
    vslideup.vi v20, v16, 4
    addi t1, t0, -4
    vslidedown.vx v28, v16, t1
    rounds 16, aesdm, aesdf
    vxor.vv v16, v16, v20
    vse32.v v16, (a2)
    slli t1, t0, 2
    add a2, a2, t1
    sub a3, a3, t0
    bnez a3, 1b
2:  ret
    end_function aes_cbc_decrypt
