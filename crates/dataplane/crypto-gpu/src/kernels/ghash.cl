// GHASH (NIST SP 800-38D 6.4) without tables. A block is two numbers of 64 bits, big-endian, so that the coefficient of x^i is
// bit 127 - i of the whole.

typedef struct {
    u64 high, low;
} Block;

// The low 64 bits of a product without carries. Integers of every fourth bit are multiplied, so that carries stay in the
// three bits between, which are masked off.
FN u64 clmul_low(u64 x, u64 y)
{
    const u64 m = 0x1111111111111111UL;
    u64 x0 = x & m, x1 = x & m << 1, x2 = x & m << 2, x3 = x & m << 3;
    u64 y0 = y & m, y1 = y & m << 1, y2 = y & m << 2, y3 = y & m << 3;
    u64 z0 = x0 * y0 ^ x1 * y3 ^ x2 * y2 ^ x3 * y1;
    u64 z1 = x0 * y1 ^ x1 * y0 ^ x2 * y3 ^ x3 * y2;
    u64 z2 = x0 * y2 ^ x1 * y1 ^ x2 * y0 ^ x3 * y3;
    u64 z3 = x0 * y3 ^ x1 * y2 ^ x2 * y1 ^ x3 * y0;
    return (z0 & m) | (z1 & m << 1) | (z2 & m << 2) | (z3 & m << 3);
}

FN u64 reverse64(u64 x)
{
    x = (x >> 1 & 0x5555555555555555UL) | (x & 0x5555555555555555UL) << 1;
    x = (x >> 2 & 0x3333333333333333UL) | (x & 0x3333333333333333UL) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0fUL) | (x & 0x0f0f0f0f0f0f0f0fUL) << 4;
    x = (x >> 8 & 0x00ff00ff00ff00ffUL) | (x & 0x00ff00ff00ff00ffUL) << 8;
    x = (x >> 16 & 0x0000ffff0000ffffUL) | (x & 0x0000ffff0000ffffUL) << 16;
    return x >> 32 | x << 32;
}

// The product in GHASH's field. High halves of products are low halves of products of reversed factors; three products of 64
// bits make one of 128 (Karatsuba).
FN Block ghash_multiply(Block a, Block b)
{
    u64 ah = reverse64(a.high), al = reverse64(a.low), bh = reverse64(b.high), bl = reverse64(b.low);
    u64 low = clmul_low(a.low, b.low), low_up = reverse64(clmul_low(al, bl)) >> 1;
    u64 high = clmul_low(a.high, b.high), high_up = reverse64(clmul_low(ah, bh)) >> 1;
    u64 mid = clmul_low(a.high ^ a.low, b.high ^ b.low) ^ low ^ high;
    u64 mid_up = reverse64(clmul_low(ah ^ al, bh ^ bl)) >> 1 ^ low_up ^ high_up;
    u64 v0 = low, v1 = low_up ^ mid, v2 = high ^ mid_up, v3 = high_up;
    // The product of reversed factors is the reversed product less one place.
    v3 = v3 << 1 | v2 >> 63;
    v2 = v2 << 1 | v1 >> 63;
    v1 = v1 << 1 | v0 >> 63;
    v0 = v0 << 1;
    // x^128 is 1 + x + x^2 + x^7.
    v2 ^= v0 ^ v0 >> 1 ^ v0 >> 2 ^ v0 >> 7;
    v1 ^= v0 << 63 ^ v0 << 62 ^ v0 << 57;
    v3 ^= v1 ^ v1 >> 1 ^ v1 >> 2 ^ v1 >> 7;
    v2 ^= v1 << 63 ^ v1 << 62 ^ v1 << 57;
    Block product = {v3, v2};
    return product;
}

// H to this power, 1 to 16.
FN Block ghash_power(GLOBAL const u32 *record, u32 power)
{
    GLOBAL const u32 *w = record + RECORD_POWERS + 4u * (power - 1u);
    Block h = {(u64)w[1] << 32 | w[0], (u64)w[3] << 32 | w[2]};
    return h;
}

// The running value with a block of four words added, times H.
FN Block ghash_add(Block y, const u32 *w, Block h)
{
    y.high ^= (u64)swap32(w[0]) << 32 | swap32(w[1]);
    y.low ^= (u64)swap32(w[2]) << 32 | swap32(w[3]);
    return ghash_multiply(y, h);
}
