# HOTSPOT AES, with Zvkned: one block at a time, for keys and IVs. `aes_decrypt` wants the round keys in reverse order
# as they are (AES_STRAIGHT=1), since the instructions mix columns after the key.
    .include "vector.inc"

# void aes_encrypt(const struct aes_key *key, uint32_t block[4])
    function aes_encrypt
    load_key
    vle32.v v16, (a1)
    rounds 16, aesem, aesef
    vse32.v v16, (a1)
    ret
    end_function aes_encrypt

# void aes_decrypt(const struct aes_key *inverse, uint32_t block[4])
    function aes_decrypt
    load_key
    vle32.v v16, (a1)
    rounds 16, aesdm, aesdf
    vse32.v v16, (a1)
    ret
    end_function aes_decrypt
