"""AH (RFC 4302) by Python's `cryptography` alone: a second opinion beside scapy's.

Knows every integrity algorithm of Forebay's, GMAC included (RFC 4543 4), and source routes, which scapy
2.5.0 leaves as they are. Written from the RFCs for these tests, nothing shared with the code under test.
"""

import hmac
import struct
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.cmac import CMAC

AH = 51
# ICV, key, salt, IV: RFC 2403, 2404, 4868, 4494, 3566, 4543
ALGORITHMS = {
    "md5": (12, 16, 0, 0), "sha1": (12, 20, 0, 0), "sha256": (16, 32, 0, 0), "sha384": (24, 48, 0, 0), "sha512": (32, 64, 0, 0),
    "aescmac": (12, 16, 0, 0), "aesxcbc": (12, 16, 0, 0),
    "aes128gmac": (16, 16, 4, 8), "aes192gmac": (16, 24, 4, 8), "aes256gmac": (16, 32, 4, 8),
}  # fmt: skip
COVERED_OPTIONS = {0, 1, 130, 133, 134, 148, 149}  # RFC 4302 A1
SOURCE_ROUTES = {131, 137}


class BadPacket(Exception):
    """The packet is not what a correct sender would have made."""


class Sa(NamedTuple):
    name: str
    spi: int
    key: bytes
    esn: bool

    def mac(self, data, iv):
        icv_len, _, salt, _ = ALGORITHMS[self.name]
        if iv:
            return AESGCM(self.key[:-salt]).encrypt(self.key[-salt:] + iv, b"", data)
        if self.name == "aescmac":
            work = CMAC(algorithms.AES(self.key))
            work.update(data)
            return work.finalize()[:icv_len]
        if self.name == "aesxcbc":
            return xcbc(self.key, data)[:icv_len]
        return hmac.digest(self.key, data, self.name)[:icv_len]

    def header_len(self, version):
        icv_len, _, _, iv_len = ALGORITHMS[self.name]
        words = 4 if version == 4 else 8  # RFC 4302 3.3.3.2.1
        return -(-(12 + iv_len + icv_len) // words) * words

    def seal(self, packet, sequence, iv=b""):
        """Puts AH into an IP packet, behind the headers that routers look at."""
        at, named_at = place(packet)
        header = struct.pack("!BBHII", packet[named_at], self.header_len(packet[0] >> 4) // 4 - 2, 0, self.spi, sequence & 0xFFFFFFFF)
        header = (header + iv).ljust(self.header_len(packet[0] >> 4), b"\0")
        packet = relength(packet[:named_at] + bytes([AH]) + packet[named_at + 1 : at] + header + packet[at:])
        icv = self.mac(self.covered(image(packet[:at], True) + header + packet[at + len(header) :], sequence >> 32), iv)
        icv_at = at + 12 + len(iv)
        return packet[:icv_at] + icv + packet[icv_at + len(icv) :]

    def open(self, packet, high=0):
        """(sequence, IV, the packet without AH, AH's next header, where it stood); raises BadPacket."""
        icv_len, _, _, iv_len = ALGORITHMS[self.name]
        at, named_at = place(packet)
        if packet[named_at] != AH:
            raise BadPacket(f"next header {packet[named_at]}, not AH")
        next_header, words, reserved, spi, low = struct.unpack_from("!BBHII", packet, at)
        size = (words + 2) * 4
        if size != self.header_len(packet[0] >> 4) or reserved or spi != self.spi:
            raise BadPacket(f"AH of {size} bytes, reserved {reserved}, SPI {spi:#x}")
        icv_at = at + 12 + iv_len
        iv, icv = packet[at + 12 : icv_at], packet[icv_at : icv_at + icv_len]
        blank = packet[at:icv_at] + bytes(icv_len) + packet[icv_at + icv_len :]
        if self.mac(self.covered(image(packet[:at], True) + blank, high), iv) != icv:
            raise BadPacket("ICV")
        plain = packet[:named_at] + bytes([next_header]) + packet[named_at + 1 : at] + packet[at + size :]
        return low, iv, relength(plain), next_header, at

    def covered(self, data, high):
        return data + (struct.pack("!I", high) if self.esn else b"")  # RFC 4302 3.3.3.2.2


def new_sa(name, spi, esn, keys):
    return Sa(name, spi, keys.randbytes(sum(ALGORITHMS[name][1:3])), esn)


def xcbc(key, data):
    """AES-XCBC-MAC (RFC 3566 4)."""
    ecb = lambda key, block: Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)
    first, whole, padded = (ecb(key, bytes([n]) * 16) for n in (1, 2, 3))
    blocks = [data[at : at + 16] for at in range(0, max(len(data), 1), 16)]
    last, last_key = (blocks[-1], whole) if len(blocks[-1]) == 16 else ((blocks[-1] + b"\x80").ljust(16, b"\0"), padded)
    state = bytes(16)
    for block in blocks[:-1]:
        state = ecb(first, xor(state, block))
    return ecb(first, xor(xor(state, last), last_key))


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def place(packet):
    """Where AH stands or goes, and the byte that names it."""
    if packet[0] >> 4 == 4:
        return 4 * (packet[0] & 15), 9
    at, named_at = 40, 6
    while packet[named_at] in (0, 43) or packet[named_at] == 60 and packet[at] == 43:
        at, named_at = at + 8 + 8 * packet[at + 1], at
    return at, named_at


def relength(packet):
    """The packet with lengths and IPv4 checksum that fit."""
    if packet[0] >> 4 == 6:
        return packet[:4] + struct.pack("!H", len(packet) - 40) + packet[6:]
    header = 4 * (packet[0] & 15)
    packet = packet[:2] + struct.pack("!H", len(packet)) + packet[4:10] + b"\0\0" + packet[12:]
    total = sum(struct.unpack(f"!{header // 2}H", packet[:header]))
    total = (total & 0xFFFF) + (total >> 16)
    return packet[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + packet[12:]


def image(headers, sending):
    """What the ICV covers of the headers in front of AH (RFC 4302 3.3.3.1)."""
    if headers[0] >> 4 == 4:
        options, out, target = headers[20:], b"", headers[16:20]
        while options and options[0]:
            size = 1 if options[0] == 1 else options[1]
            option, options = options[:size], options[size:]
            if option[0] in SOURCE_ROUTES and sending and option[2] <= size:
                target = option[-4:]
            out += option if option[0] in COVERED_OPTIONS else bytes(size)
        return headers[:1] + b"\0" + headers[2:6] + b"\0\0\0" + headers[9:10] + b"\0\0" + headers[12:16] + target + out + options
    kind, at, target, out = headers[6], 40, headers[24:40], b""
    while at < len(headers):
        header = headers[at : at + 8 + 8 * headers[at + 1]]
        if kind == 43:
            stops = [header[n : n + 16] for n in range(8, len(header), 16)]
            done = len(stops) - header[3]
            if header[3] and sending:
                target, stops = stops[-1], stops[:done] + [target] + stops[done:-1]
            out += header[:3] + b"\0" + header[4:8] + b"".join(stops)
        else:
            out += header[:2] + b"".join(settled(header[2:]))
        kind, at = header[0], at + len(header)
    return b"\x60\0\0\0" + headers[4:7] + b"\0" + headers[8:24] + target + out


def settled(data):
    while data:
        size = 1 if data[0] == 0 else 2 + data[1]
        yield data[:2] + bytes(size - 2) if data[0] & 0x20 else data[:size]
        data = data[size:]
