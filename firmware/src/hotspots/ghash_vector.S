# HOTSPOT GHASH, with Zvkg and Zvkb: one block after the other.
    .include "vector.inc"

# void ghash_key_init(struct ghash_key *key, const uint32_t h[4]): H alone
    function ghash_key_init
    vsetivli zero, 4, e32, m1, ta, ma
    vle32.v v1, (a1)
    vse32.v v1, (a0)
    ret
    end_function ghash_key_init

# void ghash_blocks(const struct ghash_key *key, uint32_t y[4], const uint8_t *data, size_t blocks)
    function ghash_blocks
    vsetivli zero, 4, e32, m1, ta, ma
    vle32.v v1, (a1)
    vle32.v v2, (a0)
    rev8 1, 1
    rev8 2, 2
    beqz a3, 2f
1:  vle32.v v3, (a2)
    ghsh 1, 2, 3
    addi a2, a2, 16
    addi a3, a3, -1
    bnez a3, 1b
2:  rev8 1, 1
    vse32.v v1, (a1)
    ret
    end_function ghash_blocks
