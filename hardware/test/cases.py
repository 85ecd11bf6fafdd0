"""Cases of the stream cores: published vectors, and random packets by the Python package `cryptography`.

cases.py NAME [COUNT]     prints the cases of ctr, cbc, ... with so many random packets, for test/stream.cc
"""

import functools
import hashlib
import hmac
import os
import random
import sys

import engine_cases
import hash_state
import vectors
from cryptography.hazmat.primitives.ciphers import Cipher, aead, algorithms, modes

SIZES = {16: 0, 24: 1, 32: 2}
# The published vectors that a run takes; FULL=1 takes all of them.
SAMPLE = 10**9 if os.environ.get("FULL") else 150


def word(data):
    """Bytes as a case file has them."""
    return data.hex() or "-"


def packet(iv, decrypt, user, text, out, prefix=False):
    """One packet."""
    print("P", word(iv), int(decrypt), word(user), word(text), word(out) + ("*" if prefix else ""))


def key_words(key, first=0):
    """The key's words, most significant byte first."""
    for at in range(0, len(key), 4):
        print(f"K {first + at // 4:x} {key[at : at + 4].hex()}")


def aes_key(key):
    """The key and its control word."""
    key_words(key)
    print(f"K 8 {SIZES[len(key)]:x}")
    print("W")


class Keys:
    """Writes a key only if it is another than the last one."""

    def __init__(self, write):
        self.write, self.last = write, None

    def use(self, key):
        """The packets that follow have this key."""
        if key != self.last:
            self.write(key)
            self.last = key


def random_length(rng):
    """Lengths of packets, with the short ones and the ends of blocks often."""
    return rng.choice(
        [0, 1, 15, 16, 17, 31, 32, 48, rng.randrange(64), rng.randrange(300), rng.randrange(1500)]
    )


def ctr(rng, count):
    """AES-CTR: RFC 3686, then random counter blocks, 32-bit counters that wrap left out."""
    keys = Keys(aes_key)
    for key, nonce, plain, cipher in vectors.lines("ctr"):
        keys.use(bytes.fromhex(key))
        block = bytes.fromhex(nonce) + b"\0\0\0\1"
        packet(block, False, b"", bytes.fromhex(plain), bytes.fromhex(cipher))
        packet(block, True, b"", bytes.fromhex(cipher), bytes.fromhex(plain))
    for number in range(count):
        if number % 5 == 0:
            keys.use(rng.randbytes(rng.choice([16, 24, 32])))
        block = rng.randbytes(12) + rng.choice([b"\0\0\0\1", rng.randbytes(3) + b"\0", b"\0\0\xff\xf0"])
        if block[-4:] == b"\xff\xff\xff\xff":
            continue
        text = rng.randbytes(random_length(rng))
        packet(
            block,
            False,
            b"",
            text,
            Cipher(algorithms.AES(keys.last), modes.CTR(block)).encryptor().update(text),
        )
    for size in (16, 64, 1456):
        print(f"M {8 * len(keys.last)}-bit-key-{size}-bytes")
        text = bytes(size)
        packet(
            block,
            False,
            b"",
            text,
            Cipher(algorithms.AES(keys.last), modes.CTR(block)).encryptor().update(text),
        )


def cbc(rng, count):
    """AES-CBC: RFC 3602 and NIST's, then random blocks."""
    keys = Keys(aes_key)
    for key, iv, plain, cipher in vectors.sampled(vectors.lines("cbc"), SAMPLE):
        if plain == "-":
            continue
        keys.use(bytes.fromhex(key))
        packet(bytes.fromhex(iv), False, b"", bytes.fromhex(plain), bytes.fromhex(cipher))
        packet(bytes.fromhex(iv), True, b"", bytes.fromhex(cipher), bytes.fromhex(plain))
    for number in range(count):
        if number % 5 == 0:
            keys.use(rng.randbytes(rng.choice([16, 24, 32])))
        iv, text = rng.randbytes(16), rng.randbytes(16 * rng.choice([1, 2, 3, rng.randrange(1, 94)]))
        cipher = Cipher(algorithms.AES(keys.last), modes.CBC(iv)).encryptor().update(text)
        pair = (text, cipher) if rng.random() < 0.5 else (cipher, text)
        packet(iv, pair[0] is cipher, b"", *pair)
    print("C")
    aes_key(bytes(16))
    for size in (16, 64, 1456):
        print(f"M 128-bit-key-{size}-bytes")
        text = bytes(size)
        packet(
            iv, False, b"", text, Cipher(algorithms.AES(bytes(16)), modes.CBC(iv)).encryptor().update(text)
        )


def aead_cases(rng, count, name, write, make, key_lengths):
    """An AEAD of 96-bit nonces with tags of up to 16 bytes: a file of vectors and random packets."""
    keys = Keys(write)
    for key, iv, aad, plain, cipher, tag in vectors.sampled(vectors.lines(name), SAMPLE):
        if plain == "x":  # the tag is wrong: the caller would see that
            continue
        keys.use(bytes.fromhex(key))
        iv, aad, plain, cipher, tag = [vectors.unhex(one) for one in (iv, aad, plain, cipher, tag)]
        packet(iv, False, aad, plain, cipher + tag, len(tag) < 16)
        packet(iv, True, aad, cipher, plain + tag, len(tag) < 16)
    for number in range(count):
        if number % 5 == 0:
            keys.use(rng.randbytes(rng.choice(key_lengths)))
        iv, aad, text = rng.randbytes(12), rng.randbytes(rng.choice([0, 8, 12, 16, rng.randrange(60)])), b""
        if rng.random() < 0.9:
            text = rng.randbytes(random_length(rng))
        sealed = make(keys.last).encrypt(iv, text, aad)
        if rng.random() < 0.5:
            packet(iv, False, aad, text, sealed)
        else:
            packet(iv, True, aad, sealed[:-16], text + sealed[-16:])
    print("C")
    keys = Keys(write)
    keys.use(bytes(key_lengths[0]))
    for size in (16, 64, 1456):
        print(f"M {8 * key_lengths[0]}-bit-key-{size}-bytes")
        packet(
            bytes(12), False, bytes(8), bytes(size), make(keys.last).encrypt(bytes(12), bytes(size), bytes(8))
        )


def gcm(rng, count):
    """AES-GCM: NIST's and Wycheproof's, then random packets."""
    aead_cases(rng, count, "gcm", aes_key, aead.AESGCM, [16, 24, 32])


def state_words(state, first):
    """Words of state as numbers."""
    for at, one in enumerate(state):
        print(f"K {first + at:x} {one:x}")


def hmac_key(name, key):
    """The two states, and HMAC."""
    inner, outer = hash_state.hmac_states(name, key)
    state_words(inner, 0)
    state_words(outer, 8)
    print("K 10 1")


def hashes(name, rng, count):
    """The hash of `abc` and of other messages; HMAC by the RFCs', NIST's and Wycheproof's vectors and by
    random ones."""
    state_words(hash_state.INITIAL[name], 0)
    print("K 10 0")
    lengths = [0, 1, 3, 4, 51, 52, 54, 55, 56, 57, 59, 60, 61, 63, 64, 65, 119, 120, 128]
    for text in [b"abc"] + [rng.randbytes(length) for length in lengths]:
        packet(b"", False, b"", text, hashlib.new(name, text).digest())
    if name == "sha256":  # FIPS 180-4's example, and one of RFC 6234
        packet(
            b"",
            False,
            b"",
            b"abc",
            bytes.fromhex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        )
    keys = Keys(functools.partial(hmac_key, name))
    mine = (line for line in vectors.lines("hmac") if line[0] == name and not line[3].startswith("x"))
    for _, key, text, tag in vectors.sampled(mine, SAMPLE):
        keys.use(bytes.fromhex(key))
        packet(b"", False, b"", vectors.unhex(text), bytes.fromhex(tag), True)
    for number in range(count):
        if number % 5 == 0:
            keys.use(rng.randbytes(rng.choice([16, 20, 32, 64, 100])))
        text = rng.randbytes(random_length(rng))
        packet(b"", False, b"", text, hmac.digest(keys.last, text, name))
    print("C")
    keys.use(b"key")
    for size in (16, 64, 1456):
        print(f"M hmac-{size}-bytes")
        packet(b"", False, b"", bytes(size), hmac.digest(b"key", bytes(size), name))


def triple_des_cipher(key, iv):
    """Triple DES of `cryptography`, which has moved it between its versions."""
    try:
        from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
    except ImportError:
        TripleDES = algorithms.TripleDES
    return Cipher(TripleDES(key), modes.CBC(iv)).encryptor()


def triple_des(rng, count):
    """3DES-CBC: NIST's vectors, then random blocks."""
    keys = Keys(key_words)
    for key, iv, plain, cipher in vectors.sampled(vectors.lines("3des"), SAMPLE):
        keys.use(bytes.fromhex(key))
        packet(bytes.fromhex(iv), False, b"", bytes.fromhex(plain), bytes.fromhex(cipher))
        packet(bytes.fromhex(iv), True, b"", bytes.fromhex(cipher), bytes.fromhex(plain))
    for number in range(count):
        if number % 5 == 0:
            keys.use(rng.randbytes(24))
        iv, text = rng.randbytes(8), rng.randbytes(8 * rng.choice([1, 2, 3, rng.randrange(1, 188)]))
        cipher = triple_des_cipher(keys.last, iv).update(text)
        pair = (text, cipher) if rng.random() < 0.5 else (cipher, text)
        packet(iv, pair[0] is cipher, b"", *pair)
    print("C")
    keys.use(bytes(range(24)))
    for size in (16, 64, 1456):
        print(f"M {size}-bytes")
        packet(iv, False, b"", bytes(size), triple_des_cipher(keys.last, iv).update(bytes(size)))


def chacha(rng, count):
    """ChaCha20-Poly1305: BoringSSL's, OpenSSL's and Wycheproof's vectors, then random packets."""
    aead_cases(rng, count, "chacha20poly1305", key_words, aead.ChaCha20Poly1305, [32])


def checksum(rng, count):
    """The Internet checksum: RFC 1071's example, then random bytes, also many ones, whose sums carry."""

    def of(data):
        data += b"\0" * (len(data) % 2)
        total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        return (total ^ 0xFFFF).to_bytes(2, "big")

    packet(b"", False, b"", bytes.fromhex("0001f203f4f5f6f7"), bytes.fromhex("220d"))
    for _ in range(count):
        data = rng.choice([rng.randbytes, lambda n: b"\xff" * n])(random_length(rng))
        packet(b"", False, b"", data, of(data))
    for size in (16, 64, 1456):
        print(f"M {size}-bytes")
        packet(b"", False, b"", bytes(size), of(bytes(size)))


CASES = {name: functools.partial(hashes, name) for name in hash_state.INITIAL}
CASES |= {"ctr": ctr, "cbc": cbc, "gcm": gcm, "3des": triple_des, "chacha": chacha, "checksum": checksum}
CASES |= {
    f"esp-{cipher}{'-' + integrity if integrity else ''}": functools.partial(
        engine_cases.cases, cipher, integrity
    )
    for cipher in ("ctr", "cbc", "3des", "gcm", "chacha")
    for integrity in ("", "md5", "sha1", "sha256")
    if (integrity == "") == (cipher in ("gcm", "chacha"))
}

if __name__ == "__main__":
    name, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100
    CASES[name](random.Random(f"{name} {os.environ.get('SEED', '1')}"), count)
