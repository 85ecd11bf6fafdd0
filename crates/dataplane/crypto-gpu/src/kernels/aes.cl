// AES (FIPS 197), bitsliced: four blocks in eight planes of 64 bits. Plane i holds bit i of every byte; in it a block has 16
// bits, and the byte of row r and column c is its bit 4r + c. ShiftRows then turns nibbles, and MixColumns lanes of 16 bits.

#define LANES(x) ((u64)(x) * 0x0001000100010001UL)

// Transposes 8 by 8 bits: bit i of byte k of word j goes to bit j of byte k of word i.
#define EXCHANGE(a, b, low, n)                        \
    do {                                              \
        u64 t_ = ((a) >> (n) ^ (b)) & (low);          \
        (b) ^= t_;                                    \
        (a) ^= t_ << (n);                             \
    } while (0)

FN void transpose(u64 *q)
{
    const u64 ones = 0x5555555555555555UL, twos = 0x3333333333333333UL, fours = 0x0f0f0f0f0f0f0f0fUL;
    EXCHANGE(q[0], q[1], ones, 1);
    EXCHANGE(q[2], q[3], ones, 1);
    EXCHANGE(q[4], q[5], ones, 1);
    EXCHANGE(q[6], q[7], ones, 1);
    EXCHANGE(q[0], q[2], twos, 2);
    EXCHANGE(q[1], q[3], twos, 2);
    EXCHANGE(q[4], q[6], twos, 2);
    EXCHANGE(q[5], q[7], twos, 2);
    EXCHANGE(q[0], q[4], fours, 4);
    EXCHANGE(q[1], q[5], fours, 4);
    EXCHANGE(q[2], q[6], fours, 4);
    EXCHANGE(q[3], q[7], fours, 4);
}

// Adds a column (the four bytes of word c of block b) to what will be planes.
FN void put_column(u64 *q, u32 b, u32 c, u32 w)
{
    u32 even = (w & 0xffu) | (w >> 8 & 0xff00u), odd = (w >> 8 & 0xffu) | (w >> 16 & 0xff00u);
    q[c] |= (u64)even << 16u * b;
    q[4 + c] |= (u64)odd << 16u * b;
}

FN u32 column(const u64 *q, u32 b, u32 c)
{
    u32 even = (u32)(q[c] >> 16u * b) & 0xffffu, odd = (u32)(q[4 + c] >> 16u * b) & 0xffffu;
    return (even & 0xffu) | (even & 0xff00u) << 8 | (odd & 0xffu) << 8 | (odd & 0xff00u) << 16;
}

FN void add_round_key(u64 *q, GLOBAL const u32 *record, u32 round)
{
    GLOBAL const u32 *k = record + RECORD_KEY + 4u * round;
    for (int i = 0; i < 4; i++) {
        u32 w = k[i];
        q[2 * i] ^= LANES(w & 0xffffu);
        q[2 * i + 1] ^= LANES(w >> 16);
    }
}

// SubBytes as the circuit of Boyar and Peralta, "A depth-16 circuit for the AES S-box" (IACR 2011/332): a linear layer into
// a tower field, the inversion there, and a linear layer back with the affine map.
FN void sub_bytes(u64 *q)
{
    const u64 a = q[7], b = q[6], c = q[5], d = q[4], e = q[3], f = q[2], g = q[1], h = q[0];
    // Into the tower field.
    u64 df = d ^ f, ag = a ^ g, ad = a ^ d, af = a ^ f, bc = b ^ c;
    u64 l1 = bc ^ h, l4 = l1 ^ d, l12 = ag ^ df, l2 = l1 ^ a, l5 = l1 ^ g, l3 = l5 ^ af;
    u64 m = e ^ l12, l15 = m ^ f, l20 = m ^ b, l6 = l15 ^ h, l10 = l15 ^ bc, l11 = l20 ^ ad, l7 = h ^ l11;
    u64 l17 = l10 ^ l11, l19 = l10 ^ af, l16 = bc ^ l11, l21 = ag ^ l16, l18 = a ^ l16;
    // The inversion.
    u64 p = l12 & l15, r = ag & l16, s = ad & l11;
    u64 v1 = (l3 & l6) ^ p, v2 = (l4 & h) ^ p, v3 = (l5 & l1) ^ r, v4 = (l2 & l7) ^ r;
    u64 w1 = (df & l17) ^ s, w2 = (af & l10) ^ s;
    u64 n1 = v1 ^ w1 ^ l20, n2 = v2 ^ w2 ^ l19, n3 = v3 ^ w1 ^ l21, n4 = v4 ^ w2 ^ l18;
    u64 n12 = n1 ^ n2, n13 = n1 & n3, i4 = n4 ^ n13, o2 = (n12 & i4) ^ n2, n34 = n3 ^ n4;
    u64 o4 = ((n2 ^ n13) & n34) ^ n4, k = i4 ^ o4, nk = n4 & k, o3 = nk ^ n3 ^ o4;
    u64 o1 = n12 ^ (o2 & (i4 ^ nk));
    u64 x13 = o1 ^ o3, x24 = o2 ^ o4, x12 = o2 ^ o1, x34 = o4 ^ o3, x = x24 ^ x13;
    u64 z0 = x34 & l15, z1 = o3 & l6, z2 = o4 & h, z3 = x12 & l16, z4 = o1 & l1, z5 = o2 & l7;
    u64 z6 = x24 & l11, z7 = x & l17, z8 = x13 & l10, z9 = x34 & l12, z10 = o3 & l3, z11 = o4 & l4;
    u64 z12 = x12 & ag, z13 = o1 & l5, z14 = o2 & l2, z15 = x24 & ad, z16 = x & df, z17 = x13 & af;
    // Out of it, and the affine map.
    u64 t46 = z15 ^ z16, t48 = z5 ^ z13, t53 = z0 ^ z3, t57 = z2 ^ z12 ^ t53, t58 = z4 ^ t46;
    u64 t59 = z3 ^ z6 ^ z7, t60 = t46 ^ t57, t62 = z7 ^ z8 ^ t58, t63 = z9 ^ z10 ^ t58, t64 = z4 ^ t59;
    u64 t65 = z14 ^ t57 ^ t62, t66 = z1 ^ t63;
    u64 s3 = t53 ^ t66;
    q[7] = t59 ^ t63;
    q[6] = t64 ^ ~s3;
    q[5] = z16 ^ z17 ^ ~(t64 ^ t65);
    q[4] = s3;
    q[3] = z2 ^ z5 ^ t66;
    q[2] = z10 ^ z11 ^ t65;
    q[1] = z12 ^ t48 ^ ~t62;
    q[0] = t48 ^ ~t60;
}

// The inverse of SubBytes' affine map (FIPS 197 5.3.2). InvSubBytes is this, SubBytes, and this again, because the field's
// inversion is its own inverse.
FN void undo_affine(u64 *q)
{
    u64 a = q[0], b = q[1], c = q[2], d = q[3], e = q[4], f = q[5], g = q[6], h = q[7];
    q[0] = ~(c ^ f ^ h);
    q[1] = d ^ g ^ a;
    q[2] = ~(e ^ h ^ b);
    q[3] = f ^ a ^ c;
    q[4] = g ^ b ^ d;
    q[5] = h ^ c ^ e;
    q[6] = a ^ d ^ f;
    q[7] = b ^ e ^ g;
}

FN void shift_rows(u64 *q)
{
    for (int i = 0; i < 8; i++) {
        u64 x = q[i];
        q[i] = (x & LANES(0x000f)) | (x & LANES(0x00e0)) >> 1 | (x & LANES(0x0010)) << 3 | (x & LANES(0x0c00)) >> 2
            | (x & LANES(0x0300)) << 2 | (x & LANES(0x8000)) >> 3 | (x & LANES(0x7000)) << 1;
    }
}

FN void undo_shift_rows(u64 *q)
{
    for (int i = 0; i < 8; i++) {
        u64 x = q[i];
        q[i] = (x & LANES(0x000f)) | (x & LANES(0x0070)) << 1 | (x & LANES(0x0080)) >> 3 | (x & LANES(0x0c00)) >> 2
            | (x & LANES(0x0300)) << 2 | (x & LANES(0xe000)) >> 1 | (x & LANES(0x1000)) << 3;
    }
}

// The next row in each row's place, and the one after the next.
FN u64 next_row(u64 x)
{
    return (x >> 4 & LANES(0x0fff)) | (x & LANES(0x000f)) << 12;
}

FN u64 next_but_one(u64 x)
{
    return (x >> 8 & LANES(0x00ff)) | (x & LANES(0x00ff)) << 8;
}

// Times x in AES's field.
FN void times_x(u64 *t)
{
    u64 top = t[7];
    t[7] = t[6];
    t[6] = t[5];
    t[5] = t[4];
    t[4] = t[3] ^ top;
    t[3] = t[2] ^ top;
    t[2] = t[1];
    t[1] = t[0] ^ top;
    t[0] = top;
}

// Row r becomes 2 (r + r') + r' + r'' + r''', with the rows that follow it.
FN void mix_columns(u64 *q)
{
    u64 t[8], rest[8];
    for (int i = 0; i < 8; i++) {
        u64 next = next_row(q[i]);
        t[i] = q[i] ^ next;
        rest[i] = next ^ next_but_one(t[i]);
    }
    times_x(t);
    for (int i = 0; i < 8; i++)
        q[i] = t[i] ^ rest[i];
}

// InvMixColumns is MixColumns of x + 4 (x + x''): (14, 11, 13, 9) = (2, 3, 1, 1) (5, 0, 4, 0).
FN void undo_mix_columns(u64 *q)
{
    u64 t[8];
    for (int i = 0; i < 8; i++)
        t[i] = q[i] ^ next_but_one(q[i]);
    times_x(t);
    times_x(t);
    for (int i = 0; i < 8; i++)
        q[i] ^= t[i];
    mix_columns(q);
}

// Enciphers four blocks of four words.
FN void aes_encipher(u32 *w, GLOBAL const u32 *record)
{
    u64 q[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (u32 i = 0; i < 16u; i++)
        put_column(q, i >> 2, i & 3u, w[i]);
    transpose(q);
    u32 rounds = record[RECORD_ROUNDS];
    add_round_key(q, record, 0);
    for (u32 round = 1; round < rounds; round++) {
        sub_bytes(q);
        shift_rows(q);
        mix_columns(q);
        add_round_key(q, record, round);
    }
    sub_bytes(q);
    shift_rows(q);
    add_round_key(q, record, rounds);
    transpose(q);
    for (u32 i = 0; i < 16u; i++)
        w[i] = column(q, i >> 2, i & 3u);
}

// Deciphers four blocks.
FN void aes_decipher(u32 *w, GLOBAL const u32 *record)
{
    u64 q[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (u32 i = 0; i < 16u; i++)
        put_column(q, i >> 2, i & 3u, w[i]);
    transpose(q);
    u32 rounds = record[RECORD_ROUNDS];
    add_round_key(q, record, rounds);
    for (u32 round = rounds - 1u;; round--) {
        undo_shift_rows(q);
        undo_affine(q);
        sub_bytes(q);
        undo_affine(q);
        add_round_key(q, record, round);
        if (round == 0u)
            break;
        undo_mix_columns(q);
    }
    transpose(q);
    for (u32 i = 0; i < 16u; i++)
        w[i] = column(q, i >> 2, i & 3u);
}
