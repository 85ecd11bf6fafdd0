"""Cases of the ESP engines: packets as `cryptography` and hmac seal them, faults, and descriptors that are
refused."""

import hmac
import os
import struct

import hash_state
from cryptography.hazmat.primitives.ciphers import Cipher, aead, algorithms, modes

DONE, AUTH_FAILED, REFUSED, WRONG_LENGTH = range(4)
CIPHERS = {"null": 0, "ctr": 1, "cbc": 2, "3des": 3, "gcm": 4, "chacha": 5}
INTEGRITIES = {"": 0, "md5": 1, "sha1": 2, "sha256": 3}
IV_LENGTH = {"null": 0, "ctr": 8, "cbc": 16, "3des": 8, "gcm": 8, "chacha": 8}
ICV_LENGTH = {"": 16, "md5": 12, "sha1": 12, "sha256": 16}
BLOCK = {"cbc": 16, "3des": 8}
SLOT_WORDS = 32


def triple_des(key):
    """Triple DES of `cryptography`, which has moved it between its versions."""
    try:
        from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
    except ImportError:
        TripleDES = algorithms.TripleDES
    return TripleDES(key)


class Keys:
    """The keys of a slot."""

    def __init__(self, rng, cipher, integrity):
        self.cipher, self.integrity = cipher, integrity
        length = {"3des": 24, "chacha": 32}.get(cipher) or rng.choice([16, 24, 32])
        self.key, self.salt, self.auth = rng.randbytes(length), rng.randbytes(4), rng.randbytes(20)

    def words(self):
        """The slot's words: key, size, salt, HMAC, states."""
        words = [0] * SLOT_WORDS
        words[: len(self.key) // 4] = struct.unpack(f">{len(self.key) // 4}I", self.key)
        words[8] = {16: 0, 24: 1, 32: 2}[len(self.key)]
        words[9] = int.from_bytes(self.salt, "big")
        if self.integrity:
            inner, outer = hash_state.hmac_states(self.integrity, self.auth)
            words[10] = 1
            words[16 : 16 + len(inner)], words[24 : 24 + len(outer)] = inner, outer
        return words

    def encipher(self, iv, text):
        """Text through a cipher that does not authenticate."""
        if self.cipher == "ctr":
            mode = modes.CTR(self.salt + iv + b"\0\0\0\1")
        else:
            mode = modes.CBC(iv)
        of = triple_des if self.cipher == "3des" else algorithms.AES
        return Cipher(of(self.key), mode).encryptor().update(text)

    def seal(self, cipher, head, high, iv, text):
        """Cipher text and whole tag."""
        if cipher in ("gcm", "chacha"):
            of = aead.AESGCM if cipher == "gcm" else aead.ChaCha20Poly1305
            sealed = of(self.key).encrypt(self.salt + iv, text, head[:4] + high + head[4:])
            return sealed[:-16], sealed[-16:]
        out = text if cipher == "null" or not text else self.encipher(iv, text)
        return out, hmac.digest(self.auth, head + iv + out + high, self.integrity)


def descriptor(cipher, integrity, slot, lengths, **flags):
    """Eight words. `lengths`: all, skip, head, iv, text, icv."""
    whole, skip, head, iv, text, icv = lengths
    first = CIPHERS[cipher] | INTEGRITIES[integrity] << 4 | slot << 16
    first |= bool(flags.get("open")) << 8 | bool(flags.get("high")) << 9 | bool(flags.get("zero_iv")) << 10
    high = int.from_bytes(flags.get("high") or b"", "little")
    return struct.pack(
        "<8I", first, whole, head << 16 | skip, icv << 24 | iv << 16 | text, high, flags.get("token", 0), 0, 0
    )


def status(token, code):
    """The last two words."""
    return struct.pack("<2I", token, code)


class Engine:
    """Packets of one engine."""

    def __init__(self, rng, cipher, integrity, slots=16):
        self.rng, self.cipher, self.integrity = rng, cipher, integrity
        self.slots = [Keys(rng, cipher, integrity) for _ in range(slots)]

    def key_lines(self):
        """Writes all slots."""
        lines = ["W"]
        for slot, keys in enumerate(self.slots):
            lines += [f"K {slot * SLOT_WORDS + at:x} {word:x}" for at, word in enumerate(keys.words())]
        return lines

    def packet(self, slot, text_length, opening, **options):
        """(input, output) of a packet; options: cipher, head, skip, extended, forged, zero_iv."""
        rng, keys = self.rng, self.slots[slot]
        cipher = options.get("cipher", self.cipher)
        skip = rng.randbytes(options.get("skip", 0))
        head, text = rng.randbytes(options.get("head", 8)), rng.randbytes(text_length)
        high = rng.randbytes(4) if options.get("extended") else b""
        iv, icv_length, token = (
            rng.randbytes(IV_LENGTH[cipher]),
            ICV_LENGTH[self.integrity],
            rng.getrandbits(32),
        )
        zero_iv = bool(options.get("zero_iv"))
        if zero_iv:
            iv = b""
            out = keys.encipher(bytes(BLOCK[cipher]), text)
            tag = hmac.digest(keys.auth, head + out + high, self.integrity)
        else:
            out, tag = keys.seal(cipher, head, high, iv, text)
        tag = tag[:icv_length]
        flags = {"open": opening, "high": high, "zero_iv": zero_iv, "token": token}
        whole = len(skip + head + iv + text) + (icv_length if opening else 0)
        lengths = (whole, len(skip), len(head), len(iv), len(text), icv_length)
        described = descriptor(cipher, self.integrity, slot, lengths, **flags)
        if not opening:
            return described + skip + head + iv + text, skip + head + iv + out + tag + status(token, DONE)
        code = DONE
        if options.get("forged"):
            at = rng.randrange(icv_length)
            tag = tag[:at] + bytes([tag[at] ^ 1 << rng.randrange(8)]) + tag[at + 1 :]
            code = AUTH_FAILED
        return described + skip + head + iv + out + tag, skip + head + iv + text + status(token, code)

    def random_packet(self, opening=None):
        """A packet of random parts."""
        rng = self.rng
        align = BLOCK.get(self.cipher, 4)
        length = align * rng.choice([1, 2, 3, 4, 5, rng.randrange(40), rng.randrange(1500 // align)])
        options = {
            "skip": rng.choice([0, 20, 40]),
            "extended": rng.random() < 0.3,
            "forged": rng.random() < 0.1,
        }
        if self.cipher in BLOCK:
            options["zero_iv"] = rng.random() < 0.3 and length > 0
        if self.integrity and rng.random() < 0.2:  # AH, or ESP with NULL encryption
            options |= {"cipher": "null", "head": 4 * rng.randrange(1, 40), "zero_iv": False}
        opening = rng.random() < 0.5 if opening is None else opening
        return self.packet(rng.choice([0, 1, rng.randrange(16)]), length, opening, **options)


def line(pair):
    """A packet as the case files have it."""
    print("P - 0 -", pair[0].hex(), pair[1].hex())


def bad(engine, rng):
    """Descriptors that are refused, packets that are cut or too long; a good packet behind each."""
    text = engine.packet(1, 48, False)[0]
    words = list(struct.unpack("<8I", text[:32]))
    token = words[5]
    changes = [
        (0, words[0] ^ 8),
        (0, words[0] ^ 0x40),
        (0, words[0] | 0xFFF00000),
        (0, words[0] | 0x800),
        (1, words[1] + 4),
        (1, words[1] | 1 << 16),
        (2, words[2] ^ 2),
        (2, words[2] & 0xFFFF),
        (3, words[3] ^ 4 << 16),
        (3, words[3] | 0xFF000000),
        (3, words[3] & 0xFFFFFF),
        (6, 1),
        (7, 1 << 31),
    ]
    for at, value in changes:
        changed = words.copy()
        changed[at] = value
        yield struct.pack("<8I", *changed) + text[32:], status(token, REFUSED), False
        yield (*engine.random_packet(), False)
    for opening in (False, True):
        given, _ = engine.packet(2, 96, opening, extended=True)
        token = given[20:24]
        for cut in {
            4,
            24,
            28,
            32,
            36,
            40,
            44,
            48,
            52,
            60,
            64,
            100,
            len(given) - 4,
            rng.randrange(8, len(given)) & ~3,
        }:
            end = status(int.from_bytes(token, "little"), WRONG_LENGTH)
            yield given[:cut], end if cut >= 24 else b"", True
            yield (*engine.random_packet(), False)
        yield given + b"more", status(int.from_bytes(token, "little"), WRONG_LENGTH), True
        yield (*engine.random_packet(), False)


def cases(cipher, integrity, rng, count):
    """All of an engine's cases."""
    engine = Engine(rng, cipher, integrity)
    print("\n".join(engine.key_lines()))
    for _ in range(count):
        line(engine.random_packet())
    for given, out, ends_with in bad(engine, rng):
        # What of a cut packet comes out is not said; its status is.
        print("P - 0 -", given.hex(), ("$" if ends_with else "") + out.hex())
    print("C")
    print("\n".join(engine.key_lines()))
    for slot, name in ((3, "key-loaded-anew"), (3, "same-key")):
        for size in (48, 576, 1440):
            print(f"M {name}-{size}-bytes")
            line(engine.packet(slot, size, False))
    if os.environ.get("FULL"):
        for _ in range(10000):
            line(engine.random_packet())
