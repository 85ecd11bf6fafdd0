"""States of MD5, SHA-1 and SHA-256 after one block, which hashlib does not show: the key of hash/hmac.v."""

import hashlib
import math
import struct

MASK = 0xFFFFFFFF
INITIAL = {
    "md5": [0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476],
    "sha1": [0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0],
    "sha256": [
        0x6A09E667,
        0xBB67AE85,
        0x3C6EF372,
        0xA54FF53A,
        0x510E527F,
        0x9B05688C,
        0x1F83D9AB,
        0x5BE0CD19,
    ],
}


def _rol(x, n):
    return (x << n | (x & MASK) >> (32 - n)) & MASK


def _md5(state, block):
    words = struct.unpack("<16I", block)
    a, b, c, d = state
    shifts = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]]
    for t in range(64):
        f = [b & c | ~b & d, d & b | ~d & c, b ^ c ^ d, c ^ (b | ~d & MASK)][t // 16]
        word = words[[t, 5 * t + 1, 3 * t + 5, 7 * t][t // 16] % 16]
        constant = int(abs(math.sin(t + 1)) * 2**32)
        a, b, c, d = d, (b + _rol((a + f + word + constant) & MASK, shifts[t // 16][t % 4])) & MASK, b, c
    return [a, b, c, d]


def _sha1(state, block):
    words = list(struct.unpack(">16I", block))
    a, b, c, d, e = state
    for t in range(80):
        if t >= 16:
            words.append(_rol(words[t - 3] ^ words[t - 8] ^ words[t - 14] ^ words[t - 16], 1))
        f = [b & c | ~b & d, b ^ c ^ d, b & c | b & d | c & d, b ^ c ^ d][t // 20]
        constant = [0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6][t // 20]
        a, b, c, d, e = (_rol(a, 5) + f + e + constant + words[t]) & MASK, a, _rol(b, 30), c, d
    return [a, b, c, d, e]


def _primes(count):
    found = []
    at = 2
    while len(found) < count:
        if all(at % one for one in found):
            found.append(at)
        at += 1
    return found


def _cube_root_bits(n):
    """The first 32 bits of the fraction of n's cube root (FIPS 180-4 4.2.2)."""
    low, high = 0, n << 33
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= n << 96 else (low, middle)
    return low & MASK


K256 = [_cube_root_bits(prime) for prime in _primes(64)]


def _sha256(state, block):
    words = list(struct.unpack(">16I", block))

    def ror(x, n):
        return _rol(x, 32 - n)

    a, b, c, d, e, f, g, h = state
    for t in range(64):
        if t >= 16:
            x, y = words[t - 15], words[t - 2]
            small0 = ror(x, 7) ^ ror(x, 18) ^ x >> 3
            small1 = ror(y, 17) ^ ror(y, 19) ^ y >> 10
            words.append((words[t - 16] + small0 + words[t - 7] + small1) & MASK)
        t1 = h + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) + (e & f ^ ~e & g) + K256[t] + words[t]
        t2 = (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) + (a & b ^ a & c ^ b & c)
        a, b, c, d, e, f, g, h = (t1 + t2) & MASK, a, b, c, (d + t1) & MASK, e, f, g
    return [a, b, c, d, e, f, g, h]


ROUNDS = {"md5": _md5, "sha1": _sha1, "sha256": _sha256}


def after(name, block):
    """The state after one block of 64 bytes."""
    start = INITIAL[name]
    return [(x + y) & MASK for x, y in zip(start, ROUNDS[name](start, block))]


def hmac_states(name, key):
    """The inner and the outer state of HMAC."""
    if len(key) > 64:
        key = hashlib.new(name, key).digest()
    key = key.ljust(64, b"\0")
    return [after(name, bytes(byte ^ pad for byte in key)) for pad in (0x36, 0x5C)]
