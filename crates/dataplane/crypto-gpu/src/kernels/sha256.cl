// SHA-256 (FIPS 180-4 6.2) and what HMAC reads.

CONSTANT u32 ROUND_CONSTANTS[64] = {
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u,
    0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u,
    0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
    0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u,
    0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
    0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u,
};

#define SHA_ROUND(a, b, c, d, e, f, g, h, i)                                                                        \
    do {                                                                                                            \
        u32 t_ = h + (rotl32(e, 26) ^ rotl32(e, 21) ^ rotl32(e, 7)) + ((e & f) ^ (~e & g)) + ROUND_CONSTANTS[r + i] \
            + w[i];                                                                                                 \
        d += t_;                                                                                                    \
        h = t_ + (rotl32(a, 30) ^ rotl32(a, 19) ^ rotl32(a, 10)) + ((a & b) ^ (a & c) ^ (b & c));                   \
    } while (0)

// Takes a block of 16 words in; they are used up.
FN void sha256_block(u32 *s, u32 *w)
{
    u32 a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
    for (u32 r = 0; r < 64u; r += 16u) {
        if (r > 0u) {
            for (u32 i = 0; i < 16u; i++) {
                u32 x = w[(i + 1u) & 15u], y = w[(i + 14u) & 15u];
                w[i] += w[(i + 9u) & 15u] + (rotl32(x, 25) ^ rotl32(x, 14) ^ x >> 3)
                    + (rotl32(y, 15) ^ rotl32(y, 13) ^ y >> 10);
            }
        }
        SHA_ROUND(a, b, c, d, e, f, g, h, 0);
        SHA_ROUND(h, a, b, c, d, e, f, g, 1);
        SHA_ROUND(g, h, a, b, c, d, e, f, 2);
        SHA_ROUND(f, g, h, a, b, c, d, e, 3);
        SHA_ROUND(e, f, g, h, a, b, c, d, 4);
        SHA_ROUND(d, e, f, g, h, a, b, c, 5);
        SHA_ROUND(c, d, e, f, g, h, a, b, 6);
        SHA_ROUND(b, c, d, e, f, g, h, a, 7);
        SHA_ROUND(a, b, c, d, e, f, g, h, 8);
        SHA_ROUND(h, a, b, c, d, e, f, g, 9);
        SHA_ROUND(g, h, a, b, c, d, e, f, 10);
        SHA_ROUND(f, g, h, a, b, c, d, e, 11);
        SHA_ROUND(e, f, g, h, a, b, c, d, 12);
        SHA_ROUND(d, e, f, g, h, a, b, c, 13);
        SHA_ROUND(c, d, e, f, g, h, a, b, 14);
        SHA_ROUND(b, c, d, e, f, g, h, a, 15);
    }
    s[0] += a;
    s[1] += b;
    s[2] += c;
    s[3] += d;
    s[4] += e;
    s[5] += f;
    s[6] += g;
    s[7] += h;
}

// Four bytes from any place of a buffer, the first one lowest. Reads the words that they are in.
FN u32 load_anywhere(GLOBAL const u32 *in, u32 at)
{
    u32 shift = 8u * (at & 3u), w = in[at >> 2];
    return shift == 0u ? w : w >> shift | in[(at >> 2) + 1u] << (32u - shift);
}

// The word at byte `at` of what HMAC hashes in one message: `len` bytes, perhaps the number's high half, the bit that ends it,
// zeros (FIPS 180-4 5.1.1).
FN u32 message_word(GLOBAL const u32 *in, GLOBAL const u32 *job, u32 at)
{
    u32 start = job[JOB_AUTH], len = job[JOB_AUTH_LEN], extra = job[JOB_KIND] & FLAG_HIGH ? 4u : 0u;
    if (at + 4u <= len)
        return load_anywhere(in, start + at);
    u32 high = job[JOB_HIGH], word = 0;
    for (u32 i = 0; i < 4u; i++) {
        u32 place = at + i, byte = 0;
        if (place < len)
            byte = in[(start + place) >> 2] >> 8u * ((start + place) & 3u) & 0xffu;
        else if (place < len + extra)
            byte = high >> 8u * (place - len) & 0xffu;
        else if (place == len + extra)
            byte = 0x80u;
        word |= byte << 8u * i;
    }
    return word;
}
