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
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305


class Suite(NamedTuple):
    name: str
    cipher: str  # gcm | chacha20poly1305 | cbc | ctr
    key_len: int  # bytes, salt not counted
    salt_len: int
    iv_len: int
    align: int
    icv_len: int
    hash: Optional[str]
    auth_key_len: int


HASHES = {"sha1": (12, 20), "sha256": (16, 32), "sha384": (24, 48), "sha512": (32, 64)}  # ICV, key: RFC 2404, RFC 4868


def suites():
    for bits in 128, 192, 256:
        for icv in 8, 12, 16:
            yield Suite(f"aes{bits}gcm{icv}", "gcm", bits // 8, 4, 8, 4, icv, None, 0)
    yield Suite("chacha20poly1305", "chacha20poly1305", 32, 4, 8, 4, 16, None, 0)
    for word, cipher, salt, iv, align in ("", "cbc", 0, 16, 16), ("ctr", "ctr", 4, 8, 4):
        for bits in 128, 192, 256:
            for digest, (icv, key) in HASHES.items():
                yield Suite(f"aes{bits}{word}-{digest}", cipher, bits // 8, salt, iv, align, icv, digest, key)


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
            body = self._cipher(iv).encryptor().update(plain)
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
        body, icv = packet[8 + suite.iv_len : -suite.icv_len], packet[-suite.icv_len :]
        iv, sequence = packet[8 : 8 + suite.iv_len], high << 32 | low
        if len(body) % suite.align:
            raise BadPacket(f"{len(body)} encrypted bytes, not a multiple of {suite.align}")
        if suite.hash is None:
            plain, _ = self._aead(iv, self._aad(sequence), body, icv)
        else:
            if not hmac.compare_digest(icv, self.icv(packet[: -suite.icv_len], high)):
                raise BadPacket("ICV")
            plain = self._cipher(iv).decryptor().update(body)
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
        return hmac.digest(self.auth_key, data, self.suite.hash)[: self.suite.icv_len]

    def _cipher(self, iv):
        key, salt = self.key[: self.suite.key_len], self.key[self.suite.key_len :]
        mode = modes.CBC(iv) if self.suite.cipher == "cbc" else modes.CTR(salt + iv + b"\0\0\0\1")  # RFC 3686 4
        return Cipher(algorithms.AES(key), mode)

    def _aead(self, iv, aad, data, icv):
        """Seals when icv is None, opens otherwise: (data, icv)."""
        key, nonce, tag_len = self.key[: self.suite.key_len], self.key[self.suite.key_len :] + iv, self.suite.icv_len
        try:
            if self.suite.cipher == "chacha20poly1305":
                if icv is None:
                    sealed = ChaCha20Poly1305(key).encrypt(nonce, data, aad)
                    return sealed[:-16], sealed[-16:]
                return ChaCha20Poly1305(key).decrypt(nonce, data + icv, aad), icv
            work = Cipher(algorithms.AES(key), modes.GCM(nonce, icv, min_tag_length=tag_len))
            work = work.encryptor() if icv is None else work.decryptor()
            work.authenticate_additional_data(aad)
            out = work.update(data) + work.finalize()
            return out, work.tag[:tag_len] if icv is None else icv
        except InvalidTag as error:
            raise BadPacket("ICV") from error


def new_sa(suite, spi, esn, keys):
    """An SA with keys drawn from `keys`, a random.Random."""
    return Sa(suite, spi, keys.randbytes(suite.key_len + suite.salt_len), keys.randbytes(suite.auth_key_len), esn)
