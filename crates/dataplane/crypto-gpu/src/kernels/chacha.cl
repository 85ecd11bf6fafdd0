// ChaCha20 and Poly1305 (RFC 8439).

#define QUARTER(a, b, c, d)        \
    do {                           \
        a += b;                    \
        d = rotl32(d ^ a, 16);     \
        c += d;                    \
        b = rotl32(b ^ c, 12);     \
        a += b;                    \
        d = rotl32(d ^ a, 8);      \
        c += d;                    \
        b = rotl32(b ^ c, 7);      \
    } while (0)

// A block of keystream, in 16 words. The nonce is salt and IV (RFC 7634 2).
FN void chacha_block(u32 *x, GLOBAL const u32 *record, u32 counter, u32 iv0, u32 iv1)
{
    u32 s[16];
    s[0] = 0x61707865u;
    s[1] = 0x3320646eu;
    s[2] = 0x79622d32u;
    s[3] = 0x6b206574u;
    for (int i = 0; i < 8; i++)
        s[4 + i] = record[RECORD_KEY + i];
    s[12] = counter;
    s[13] = record[RECORD_SALT];
    s[14] = iv0;
    s[15] = iv1;
    for (int i = 0; i < 16; i++)
        x[i] = s[i];
    for (int i = 0; i < 10; i++) {
        QUARTER(x[0], x[4], x[8], x[12]);
        QUARTER(x[1], x[5], x[9], x[13]);
        QUARTER(x[2], x[6], x[10], x[14]);
        QUARTER(x[3], x[7], x[11], x[15]);
        QUARTER(x[0], x[5], x[10], x[15]);
        QUARTER(x[1], x[6], x[11], x[12]);
        QUARTER(x[2], x[7], x[8], x[13]);
        QUARTER(x[3], x[4], x[9], x[14]);
    }
    for (int i = 0; i < 16; i++)
        x[i] += s[i];
}

// Numbers below 2^130 in five limbs of 26 bits.
typedef struct {
    u32 h0, h1, h2, h3, h4;
    u32 r0, r1, r2, r3, r4;
} Poly;

// Begins with r, clamped (RFC 8439 2.5).
FN Poly poly_new(const u32 *k)
{
    Poly p;
    p.h0 = p.h1 = p.h2 = p.h3 = p.h4 = 0;
    p.r0 = k[0] & 0x3ffffffu;
    p.r1 = (k[0] >> 26 | k[1] << 6) & 0x3ffff03u;
    p.r2 = (k[1] >> 20 | k[2] << 12) & 0x3ffc0ffu;
    p.r3 = (k[2] >> 14 | k[3] << 18) & 0x3f03fffu;
    p.r4 = k[3] >> 8 & 0x00fffffu;
    return p;
}

// Adds a block of 16 bytes and multiplies by r modulo 2^130 - 5. Texts are padded with zeros to whole blocks (2.8), so that
// each has its bit 128 set.
FN void poly_add(Poly *p, u32 w0, u32 w1, u32 w2, u32 w3)
{
    u64 h0 = p->h0 + (w0 & 0x3ffffffu);
    u64 h1 = p->h1 + ((w0 >> 26 | w1 << 6) & 0x3ffffffu);
    u64 h2 = p->h2 + ((w1 >> 20 | w2 << 12) & 0x3ffffffu);
    u64 h3 = p->h3 + ((w2 >> 14 | w3 << 18) & 0x3ffffffu);
    u64 h4 = p->h4 + (w3 >> 8 | 1u << 24);
    u64 r0 = p->r0, r1 = p->r1, r2 = p->r2, r3 = p->r3, r4 = p->r4;
    u64 s1 = 5u * r1, s2 = 5u * r2, s3 = 5u * r3, s4 = 5u * r4;
    u64 d0 = h0 * r0 + h1 * s4 + h2 * s3 + h3 * s2 + h4 * s1;
    u64 d1 = h0 * r1 + h1 * r0 + h2 * s4 + h3 * s3 + h4 * s2;
    u64 d2 = h0 * r2 + h1 * r1 + h2 * r0 + h3 * s4 + h4 * s3;
    u64 d3 = h0 * r3 + h1 * r2 + h2 * r1 + h3 * r0 + h4 * s4;
    u64 d4 = h0 * r4 + h1 * r3 + h2 * r2 + h3 * r1 + h4 * r0;
    const u64 m = 0x3ffffffu;
    d1 += d0 >> 26;
    d2 += d1 >> 26;
    d3 += d2 >> 26;
    d4 += d3 >> 26;
    d0 = (d0 & m) + 5u * (d4 >> 26);
    d1 = (d1 & m) + (d0 >> 26);
    p->h0 = (u32)(d0 & m);
    p->h1 = (u32)d1;
    p->h2 = (u32)(d2 & m);
    p->h3 = (u32)(d3 & m);
    p->h4 = (u32)(d4 & m);
}

// The tag: the sum modulo 2^130 - 5, plus s modulo 2^128.
FN void poly_tag(Poly *p, const u32 *s, u32 *tag)
{
    const u32 m = 0x3ffffffu;
    u32 h0 = p->h0, h1 = p->h1, h2 = p->h2, h3 = p->h3, h4 = p->h4;
    for (int i = 0; i < 2; i++) {
        h1 += h0 >> 26;
        h0 &= m;
        h2 += h1 >> 26;
        h1 &= m;
        h3 += h2 >> 26;
        h2 &= m;
        h4 += h3 >> 26;
        h3 &= m;
        h0 += 5u * (h4 >> 26);
        h4 &= m;
    }
    h1 += h0 >> 26;
    h0 &= m;
    // With 5 added, bit 130 says whether the modulus fits in.
    u32 g0 = h0 + 5u, g1 = h1 + (g0 >> 26), g2 = h2 + (g1 >> 26), g3 = h3 + (g2 >> 26), g4 = h4 + (g3 >> 26);
    u32 fits = 0u - (g4 >> 26);
    h0 = (h0 & ~fits) | (g0 & m & fits);
    h1 = (h1 & ~fits) | (g1 & m & fits);
    h2 = (h2 & ~fits) | (g2 & m & fits);
    h3 = (h3 & ~fits) | (g3 & m & fits);
    h4 = (h4 & ~fits) | (g4 & m & fits);
    u64 sum = (u64)(h0 | h1 << 26) + s[0];
    tag[0] = (u32)sum;
    sum = (sum >> 32) + (h1 >> 6 | h2 << 20) + s[1];
    tag[1] = (u32)sum;
    sum = (sum >> 32) + (h2 >> 12 | h3 << 14) + s[2];
    tag[2] = (u32)sum;
    sum = (sum >> 32) + (h3 >> 18 | h4 << 8) + s[3];
    tag[3] = (u32)sum;
}
