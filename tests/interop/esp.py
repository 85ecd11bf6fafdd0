"""ESP (RFC 4303) by Python's `cryptography` alone: a second opinion beside scapy's and tshark's.

Knows every suite of Forebay's, extended sequence numbers included, where scapy 2.5.0 and
Wireshark 4.0 know only some. Written from the RFCs for these tests and slow on purpose: one packet
at a time, nothing shared with the code under test.
"""

import hmac
import os
import struct
from typing import NamedTuple, Optional

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.cmac import CMAC


class Suite(NamedTuple):
    name: str
    cipher: str  # gcm | ccm | gmac | chacha20poly1305 | cbc | ctr | 3des | null
    key_len: int  # bytes, salt not counted
    salt_len: int
    iv_len: int
    align: int
    icv_len: int
    hash: Optional[str]  # None for an AEAD, "" for no integrity at all
    auth_key_len: int


HASHES = {"sha1": (12, 20), "sha256": (16, 32), "sha384": (24, 48), "sha512": (32, 64)}  # ICV, key: RFC 2404, RFC 4868
# RFC 2403, RFC 3566, RFC 4494; and RFC 4303's NULL.
MORE_HASHES = {"md5": (12, 16), "aesxcbc": (12, 16), "aescmac": (12, 16), "": (0, 0)}


def suites():
    for bits in 128, 192, 256:
        for icv in 8, 12, 16:
            yield Suite(f"aes{bits}gcm{icv}", "gcm", bits // 8, 4, 8, 4, icv, None, 0)
    yield Suite("chacha20poly1305", "chacha20poly1305", 32, 4, 8, 4, 16, None, 0)
    for word, cipher, salt, iv, align in ("", "cbc", 0, 16, 16), ("ctr", "ctr", 4, 8, 4):
        for bits in 128, 192, 256:
            for digest, (icv, key) in HASHES.items():
                yield Suite(f"aes{bits}{word}-{digest}", cipher, bits // 8, salt, iv, align, icv, digest, key)
    for bits in 128, 192, 256:
        for icv in 8, 12, 16:
            yield Suite(f"aes{bits}ccm{icv}", "ccm", bits // 8, 3, 8, 4, icv, None, 0)
        yield Suite(f"aes{bits}gmac", "gmac", bits // 8, 4, 8, 4, 16, None, 0)
    aes = [(f"aes{bits}{word}", cipher, bits // 8, salt, iv, align)
           for word, cipher, salt, iv, align in (("", "cbc", 0, 16, 16), ("ctr", "ctr", 4, 8, 4)) for bits in (128, 192, 256)]  # fmt: skip
    for name, *sizes in [*aes, ("3des", "3des", 24, 0, 8, 8), ("null", "null", 0, 0, 0, 4)]:
        for digest, (icv, key) in (MORE_HASHES if name.startswith("aes") else HASHES | MORE_HASHES).items():
            if digest or name != "null":
                yield Suite(f"{name}-{digest}".rstrip("-"), *sizes, icv, digest, key)


SUITES = {suite.name: suite for suite in suites()}


class BadPacket(Exception):
    """The packet is not what a correct sender would have made."""


class Sa(NamedTuple):
    suite: Suite
    spi: int
    key: bytes  # the salt behind it
    auth_key: bytes
    esn: bool

    def seal(self, sequence, next_header, payload, iv=None, pad_len=None):
        """The ESP packet, header to ICV; `sequence` counts in 64 bits when esn is set.

        `pad_len` is what the trailer says of the padding, for packets that lie.
        """
        suite = self.suite
        iv = iv or os.urandom(suite.iv_len)
        pad = bytes(range(1, 1 + -(len(payload) + 2) % suite.align))  # RFC 4303 2.4
        plain = payload + pad + bytes([len(pad) if pad_len is None else pad_len, next_header])
        header = struct.pack("!II", self.spi, sequence & 0xFFFFFFFF)
        if suite.hash is None:
            body, icv = self._aead(iv, self._aad(sequence), plain, None)
        else:
            body = self._cipher(iv, plain, "encryptor")
            icv = self.icv(header + iv + body, sequence >> 32)
        return header + iv + body + icv

    def open(self, packet, high=0):
        """(sequence, iv, next header, payload) of an ESP packet; raises BadPacket."""
        suite = self.suite
        if len(packet) < 8 + suite.iv_len + suite.align + suite.icv_len:
            raise BadPacket("too short")
        spi, low = struct.unpack_from("!II", packet)
        if spi != self.spi:
            raise BadPacket(f"SPI {spi:#x}, not {self.spi:#x}")
        end = len(packet) - suite.icv_len
        body, icv = packet[8 + suite.iv_len : end], packet[end:]
        iv, sequence = packet[8 : 8 + suite.iv_len], high << 32 | low
        if len(body) % suite.align:
            raise BadPacket(f"{len(body)} encrypted bytes, not a multiple of {suite.align}")
        if suite.hash is None:
            plain, _ = self._aead(iv, self._aad(sequence), body, icv)
        else:
            if not hmac.compare_digest(icv, self.icv(packet[:end], high)):
                raise BadPacket("ICV")
            plain = self._cipher(iv, body, "decryptor")
        pad_len, next_header = plain[-2], plain[-1]
        pad, payload = plain[len(plain) - 2 - pad_len : -2], plain[: len(plain) - 2 - pad_len]
        if len(pad) != pad_len or pad != bytes(range(1, pad_len + 1)):
            raise BadPacket(f"padding {pad.hex()}, length {pad_len}")
        return sequence, iv, next_header, payload

    def _aad(self, sequence):
        return struct.pack("!IQ" if self.esn else "!II", self.spi, sequence)  # RFC 4106 5, RFC 7634 2.1

    def icv(self, data, high):
        """The separate integrity algorithm's ICV over a packet up to its ICV; `high` is not sent."""
        if self.esn:
            data += struct.pack("!I", high)  # RFC 4303 2.2.1
        if not self.suite.hash:
            return b""
        macs = {"aesxcbc": xcbc, "aescmac": cmac}
        make = macs.get(self.suite.hash, lambda key, data: hmac.digest(key, data, self.suite.hash))
        return make(self.auth_key, data)[: self.suite.icv_len]

    def _cipher(self, iv, data, way):
        key, salt = self.key[: self.suite.key_len], self.key[self.suite.key_len :]
        if self.suite.cipher == "null":
            return data
        mode = modes.CTR(salt + iv + b"\0\0\0\1") if self.suite.cipher == "ctr" else modes.CBC(iv)  # RFC 3686 4
        algorithm = algorithms.TripleDES if self.suite.cipher == "3des" else algorithms.AES
        return getattr(Cipher(algorithm(key), mode), way)().update(data)

    def _aead(self, iv, aad, data, icv):
        """Seals when icv is None, opens otherwise: (data, icv)."""
        key, nonce, tag_len = self.key[: self.suite.key_len], self.key[self.suite.key_len :] + iv, self.suite.icv_len
        try:
            if self.suite.cipher == "chacha20poly1305":
                if icv is None:
                    sealed = ChaCha20Poly1305(key).encrypt(nonce, data, aad)
                    return sealed[:-16], sealed[-16:]
                return ChaCha20Poly1305(key).decrypt(nonce, data + icv, aad), icv
            if self.suite.cipher == "ccm":
                if icv is None:
                    sealed = AESCCM(key, tag_len).encrypt(nonce, data, aad)
                    return sealed[:-tag_len], sealed[-tag_len:]
                return AESCCM(key, tag_len).decrypt(nonce, data + icv, aad), icv
            if self.suite.cipher == "gmac":  # RFC 4543 3: everything is AAD
                work = Cipher(algorithms.AES(key), modes.GCM(nonce, icv))
                work = work.encryptor() if icv is None else work.decryptor()
                work.authenticate_additional_data(aad + iv + data)
                work.finalize()
                return data, work.tag if icv is None else icv
            work = Cipher(algorithms.AES(key), modes.GCM(nonce, icv, min_tag_length=tag_len))
            work = work.encryptor() if icv is None else work.decryptor()
            work.authenticate_additional_data(aad)
            out = work.update(data) + work.finalize()
            return out, work.tag[:tag_len] if icv is None else icv
        except InvalidTag as error:
            raise BadPacket("ICV") from error


def cmac(key, data):
    work = CMAC(algorithms.AES(key))
    work.update(data)
    return work.finalize()


def xcbc(key, data):
    """RFC 3566 4, for data that is not empty."""
    encrypt = lambda key, block: Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)  # noqa: E731
    xor = lambda a, b: bytes(x ^ y for x, y in zip(a, b))  # noqa: E731
    k1, k2, k3 = (encrypt(key, bytes([n]) * 16) for n in (1, 2, 3))
    blocks = [data[at : at + 16] for at in range(0, len(data), 16)]
    last, mixed = (blocks[-1], k2) if len(blocks[-1]) == 16 else ((blocks[-1] + b"\x80").ljust(16, b"\0"), k3)
    chain = bytes(16)
    for block in blocks[:-1]:
        chain = encrypt(k1, xor(chain, block))
    return encrypt(k1, xor(xor(chain, last), mixed))


def new_sa(suite, spi, esn, keys):
    """An SA with keys drawn from `keys`, a random.Random."""
    return Sa(suite, spi, keys.randbytes(suite.key_len + suite.salt_len), keys.randbytes(suite.auth_key_len), esn)
