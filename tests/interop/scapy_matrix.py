#!/usr/bin/python3
"""Scapy and `cryptography` against `forebay seal` and `forebay open`, every suite in every setting.

A cell is a suite x tunnel or transport x address families x ESN x UDP encapsulation. All cells share
one SA file and one capture a direction, their packets interleaved, so the binary runs three times:

  seal    plain packets from scapy -> forebay seal -> opened by scapy and by esp.py: the same bytes,
          sequence numbers 1, 2, 3…, no IV twice, right outer headers, order and stamps kept
  open    packets sealed by scapy (by esp.py where scapy cannot) -> forebay open: the same bytes
  refuse  forged, damaged, replayed and stray packets among good ones -> forebay open: only the good

Scapy is GPL and stays in this process, which only ever runs as a test.

What scapy 2.5.0 cannot do, and what stands in for it:
  - ESN with a separate integrity algorithm: it leaves the high half out of the ICV. Its cipher work is
    used, the ICV is made and checked by esp.py.
  - GCM and CCM with an ICV of 8 or 12 bytes: it always makes 16. AES-GMAC and AES-XCBC it has not. Those
    cells are esp.py's alone.
  - UDP encapsulation over IPv4: it writes a UDP length of 8. Put right after sealing.
  - UDP encapsulation in transport mode over IPv6: it opens the packet but leaves the UDP header in.
    Taken out before opening.
  - It checks neither padding nor lengths. esp.py checks the padding, this script the lengths.
Neither side can begin at a sequence number other than 1, so the high half is 0 in all but a forgery.
"""

import argparse
import collections
import ipaddress
import itertools
import json
import logging
import multiprocessing
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from typing import NamedTuple

warnings.filterwarnings("ignore")
logging.getLogger("scapy").setLevel(logging.CRITICAL)

from scapy.layers import ipsec  # noqa: E402
from scapy.layers.inet import ICMP, IP, TCP, UDP  # noqa: E402
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6  # noqa: E402

import captures  # noqa: E402
import esp  # noqa: E402
import packets as plain_packets  # noqa: E402

SIZES = [0, 1, 63, 64, 576, 1400]  # of what TCP, UDP or ICMP carries
TOS = [0, 0xB8, 0x02, 0x01, 0x88, 0x03]  # DSCP and all four ECN marks
GATEWAYS = {4: ("192.0.2.1", "192.0.2.2"), 6: ("2001:db8::1", "2001:db8::2")}
SCAPY_CIPHER = {"gcm": "AES-GCM", "chacha20poly1305": "CHACHA20-POLY1305", "cbc": "AES-CBC", "ctr": "AES-CTR",
                "ccm": "AES-CCM", "3des": "3DES", "null": "NULL"}  # fmt: skip
SCAPY_AUTH = {None: None, "": None, "md5": "HMAC-MD5-96", "aescmac": "AES-CMAC-96", "sha1": "HMAC-SHA1-96", "sha256": "SHA2-256-128", "sha384": "SHA2-384-192", "sha512": "SHA2-512-256"}
STAMP = 1_700_000_000_123_456_789


class Cell(NamedTuple):
    number: int
    mode: str  # tunnel | transport
    outer: int  # address family
    inner: int
    udp: bool
    sa: esp.Sa

    def __str__(self):
        words = [self.sa.suite.name, self.mode, f"{self.inner}in{self.outer}" if self.mode == "tunnel" else f"v{self.outer}"]
        return " ".join(words + ["esn"] * self.sa.esn + ["udp"] * self.udp)

    def hosts(self):
        """Addresses of the plain packets, the cell's own."""
        if self.inner == 4:
            return tuple(f"10.{side}.{self.number >> 8}.{self.number & 255}" for side in (1, 2))
        return tuple(f"fd00:{side}::{self.number:x}" for side in (1, 2))

    def ends(self):
        """Addresses of the sealed packets."""
        return GATEWAYS[self.outer] if self.mode == "tunnel" else self.hosts()

    def toml(self, direction):
        local, remote = self.ends() if direction == "out" else self.ends()[::-1]
        local_ts, remote_ts = self.hosts() if direction == "out" else self.hosts()[::-1]
        bits = 32 if self.inner == 4 else 128
        key = f'key = "{self.sa.key.hex()}"\n' if self.sa.key else ""
        auth_key = f'auth_key = "{self.sa.auth_key.hex()}"\n' if self.sa.auth_key else ""
        weak = self.sa.suite.hash in ("", "md5")
        return f"""[[sa]]
name = "{str(self).replace(" ", "-")}-{direction}"
direction = "{direction}"
spi = {self.sa.spi:#x}
protocol = "esp"
mode = "{self.mode}"
proposal = "{self.sa.suite.name}"
{key}{auth_key}local = "{local}"
remote = "{remote}"
esn = {str(self.sa.esn).lower()}
replay_window = 64
encapsulation = "{"udp" if self.udp else "none"}"
allow_weak = {str(weak).lower()}
local_ts = ["{local_ts}/{bits}"]
remote_ts = ["{remote_ts}/{bits}"]
"""


def all_cells(quick):
    """Every cell; for --quick all settings of two suites and four settings, in turn, of the others."""
    keys = random.Random(4301)
    ways = [("tunnel", outer, inner) for outer in (4, 6) for inner in (4, 6)] + [("transport", 4, 4), ("transport", 6, 6)]
    settings = list(itertools.product(ways, (False, True), (False, True)))
    cells = []
    for order, suite in enumerate(esp.SUITES.values()):
        chosen = settings
        if quick and suite.name not in ("aes128gcm16", "aes256-sha256"):
            chosen = [settings[(order * 5 + step * 7) % len(settings)] for step in range(4)]
        for (mode, outer, inner), esn, udp in chosen:
            cells.append(Cell(len(cells), mode, outer, inner, udp, esp.new_sa(suite, 0x10001 + len(cells), esn, keys)))
    return cells


# ------------------------------------------------------------------ packets by scapy


def make_packets(cell, quick):
    """Plain packets of the cell: each protocol with each size, a third of them for --quick."""
    source, destination = cell.hosts()
    made = []
    for number, (protocol, size) in enumerate(itertools.product(("tcp", "udp", "icmp"), SIZES)):
        if quick and (number + cell.number) % 3:
            continue
        tos = TOS[(number + cell.number) % len(TOS)]
        data = random.Random(number).randbytes(size)
        if cell.inner == 4:
            head = IP(src=source, dst=destination, tos=tos, id=number + 1, flags="DF" if number % 2 else 0, ttl=60)
        else:
            head = IPv6(src=source, dst=destination, tc=tos, fl=number, hlim=60)
        echo = ICMP(id=7, seq=number) if cell.inner == 4 else ICMPv6EchoRequest(id=7, seq=number, data=data)
        transport = {"tcp": TCP(sport=40000, dport=443, seq=number, flags="PA"), "udp": UDP(sport=40000, dport=4242), "icmp": echo}[protocol]
        made.append(bytes(head / transport if protocol == "icmp" and cell.inner == 6 else head / transport / data))
    return made


def scapy_sa(cell, encapsulated=None):
    """Scapy's SA for the cell, None where it knows none."""
    suite = cell.sa.suite
    if suite.cipher in ("gcm", "ccm") and suite.icv_len != 16 or suite.cipher == "gmac" or suite.hash == "aesxcbc":
        return None
    source, destination = cell.ends()
    tunnel = (IP if cell.outer == 4 else IPv6)(src=source, dst=destination) if cell.mode == "tunnel" else None
    udp = UDP(sport=4500, dport=4500) if (cell.udp if encapsulated is None else encapsulated) else None
    return ipsec.SecurityAssociation(
        ipsec.ESP, spi=cell.sa.spi, crypt_algo=SCAPY_CIPHER[suite.cipher], crypt_key=cell.sa.key,
        auth_algo=SCAPY_AUTH[suite.hash], auth_key=cell.sa.auth_key or None,
        tunnel_header=tunnel, nat_t_header=udp, esn_en=cell.sa.esn, esn=0,
    )  # fmt: skip


def seal_here(cell, plains):
    """The plain packets sealed by scapy, by esp.py where scapy cannot."""
    sender = scapy_sa(cell)
    if sender is None:
        return [seal_by_hand(cell, sequence, plain) for sequence, plain in enumerate(plains, 1)]
    sealed = []
    for sequence, plain in enumerate(plains, 1):
        if cell.mode == "tunnel":
            setattr(sender.tunnel_header, "tos" if cell.outer == 4 else "tc", traffic_class(plain))
        packet = bytearray(bytes(sender.encrypt(IP(plain) if cell.inner == 4 else IPv6(plain), seq_num=sequence)))
        header = 20 if cell.outer == 4 else 40
        if cell.udp:
            struct.pack_into("!H", packet, header + 4, len(packet) - header)
        if cell.sa.esn and cell.sa.suite.hash:
            start, icv = header + 8 * cell.udp, cell.sa.suite.icv_len
            packet[-icv:] = cell.sa.icv(bytes(packet[start:-icv]), 0)
        sealed.append(bytes(packet))
    return sealed


def seal_by_hand(cell, sequence, plain):
    protocol, payload = (4 if cell.inner == 4 else 41, plain) if cell.mode == "tunnel" else split(plain)[1:]
    return wrap(cell, plain, cell.sa.seal(sequence, protocol, payload))


def wrap(cell, plain, sealed):
    """The IP packet that carries an ESP packet made of `plain`."""
    if cell.mode == "tunnel":
        return plain_packets.esp(*cell.ends(), sealed, cell.udp)
    return rehead(plain, sealed, cell.udp)


# ------------------------------------------------------------ what Forebay has sealed


def check_sealed(cell, plains, sealed):
    """What is wrong with a cell's sealed packets, and who said of how many that they are right."""
    wrong, by, ivs = [], collections.Counter(), set()
    for number, (plain, packet) in enumerate(zip(plains, sealed), 1):
        try:
            body = check_outer(cell, plain, packet)
            sequence, iv, protocol, payload = cell.sa.open(body)
            expected = (4 if cell.inner == 4 else 41, plain) if cell.mode == "tunnel" else split(plain)[1:]
            if sequence != number:
                raise esp.BadPacket(f"sequence number {sequence}")
            if iv and iv in ivs:
                raise esp.BadPacket("an IV used before")
            ivs.add(iv)
            if protocol != expected[0]:
                raise esp.BadPacket(f"next header {protocol}, expected {expected[0]}")
            by[same(payload, expected[1], cell.mode == "tunnel")] += 1
            by["esp.py"] += 1
            word = open_by_scapy(cell, plain, packet)
            if word:
                by[word] += 1
        except (esp.BadPacket, ipsec.IPSecIntegrityError, struct.error, IndexError) as error:
            wrong.append(f"{cell}: packet {number} of {len(plain)} bytes: {type(error).__name__}: {error}")
    return wrong, by


def check_outer(cell, plain, packet):
    """Checks everything up to the ESP header; the ESP packet."""
    header, protocol, body = split(packet)
    if cell.mode == "tunnel":
        expected = b"".join(ipaddress.ip_address(address).packed for address in cell.ends())
        if hosts_of(packet) != expected:
            raise esp.BadPacket(f"outer addresses {hosts_of(packet).hex()}, expected {expected.hex()}")
        if traffic_class(packet) != traffic_class(plain):  # RFC 4301 5.1.2.1, RFC 6040 4.1
            raise esp.BadPacket(f"outer traffic class {traffic_class(packet):#04x}, inner {traffic_class(plain):#04x}")
        if header[8 if cell.outer == 4 else 7] == 0:
            raise esp.BadPacket("outer TTL 0")
    elif blank(header) != blank(split(plain)[0]):
        raise esp.BadPacket(f"IP header {header.hex()} of {plain[: len(header)].hex()}")
    if protocol != (17 if cell.udp else 50):
        raise esp.BadPacket(f"protocol {protocol} in the outer header")
    if not cell.udp:
        return body
    source, destination, length, checksum = struct.unpack_from("!HHHH", body)
    if (source, destination) != (4500, 4500) or length != len(body):
        raise esp.BadPacket(f"UDP ports {source}, {destination}, length {length} of {len(body)}")
    if checksum != 0:  # RFC 3948 2.1: should be 0; over IPv6 a right one is as good (RFC 8200 8.1)
        pseudo = packet[8:40] + struct.pack("!II", len(body), 17) if cell.outer == 6 else b""
        if not pseudo or plain_packets.checksum(pseudo + body) not in (0, 0xFFFF):
            raise esp.BadPacket(f"UDP checksum {checksum:#06x}")
    return body[8:]


def open_by_scapy(cell, plain, packet):
    """Opens a packet with scapy and compares; how far scapy's word goes, None where it has none."""
    unwrap = cell.udp and cell.mode == "transport" and cell.outer == 6
    receiver = scapy_sa(cell, encapsulated=cell.udp and not unwrap)
    if receiver is None:
        return None
    if unwrap:
        packet = rehead(packet, split(packet)[2][8:], False)
    own_icv = cell.sa.esn and cell.sa.suite.hash is not None
    opened = bytes(receiver.decrypt(IP(packet) if cell.outer == 4 else IPv6(packet), verify=not own_icv))
    same(opened, plain, cell.mode == "tunnel")
    return "scapy but for the ICV" if own_icv else "scapy"


def same(found, expected, forwarded):
    """Raises unless the packets are the same; a forwarder may have taken one hop off (RFC 4301 5.1.2.1)."""
    if found == expected:
        return "identical"
    if forwarded and found == one_hop_less(expected):
        return "one hop less"
    at = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected)))
    raise esp.BadPacket(f"{len(found)} bytes, expected {len(expected)}; they differ from byte {at}")


def split(packet):
    """(header, protocol, payload) of an IP packet without options, lengths and checksum checked."""
    if packet[0] >> 4 == 6:
        if struct.unpack_from("!H", packet, 4)[0] != len(packet) - 40:
            raise esp.BadPacket(f"IPv6 payload length in a packet of {len(packet)} bytes: {packet[:6].hex()}")
        return packet[:40], packet[6], packet[40:]
    if packet[0] != 0x45 or struct.unpack_from("!H", packet, 2)[0] != len(packet):
        raise esp.BadPacket(f"IPv4 lengths in a packet of {len(packet)} bytes: {packet[:4].hex()}")
    if plain_packets.checksum(packet[:20]) or packet[6] & 0x3F or packet[7]:
        raise esp.BadPacket(f"IPv4 checksum or fragment: {packet[:20].hex()}")
    return packet[:20], packet[9], packet[20:]


def rehead(packet, sealed, encapsulated):
    """The packet's own header before other contents (transport mode)."""
    if encapsulated:
        sealed = struct.pack("!HHHH", 4500, 4500, 8 + len(sealed), 0) + sealed
    protocol = bytes([17 if encapsulated else 50])
    if packet[0] >> 4 == 6:
        return packet[:4] + struct.pack("!H", len(sealed)) + protocol + packet[7:40] + sealed
    header = packet[:2] + struct.pack("!H", 20 + len(sealed)) + packet[4:9] + protocol + b"\0\0" + packet[12:20]
    return header[:10] + struct.pack("!H", plain_packets.checksum(header)) + header[12:] + sealed


def blank(header):
    """A header without what transport mode changes: lengths, protocol, checksum."""
    if header[0] >> 4 == 6:
        return header[:4] + header[7:]
    return header[:2] + header[4:9] + header[12:]


def one_hop_less(packet):
    if packet[0] >> 4 == 6:
        return packet[:7] + bytes([packet[7] - 1]) + packet[8:]
    header = packet[:8] + bytes([packet[8] - 1, packet[9], 0, 0]) + packet[12:20]
    return header[:10] + struct.pack("!H", plain_packets.checksum(header)) + packet[12:]


def traffic_class(packet):
    return packet[1] if packet[0] >> 4 == 4 else struct.unpack_from("!H", packet)[0] >> 4 & 0xFF


def spi_of(packet):
    at = 20 if packet[0] >> 4 == 4 else 40
    at += 8 * (packet[9 if at == 20 else 6] == 17)
    return struct.unpack_from("!I", packet, at)[0]


def hosts_of(packet):
    return packet[12:20] if packet[0] >> 4 == 4 else packet[8:40]


# ------------------------------------------------------------------- running Forebay


class Forebay:
    def __init__(self, binary, scratch):
        self.binary, self.scratch, self.seconds = binary, scratch, {}

    def run(self, verb, name, sas, packets):
        """(exit status, JSON, [(stamp, packet)]) of one seal or open."""
        paths = [os.path.join(self.scratch, f"{name}{suffix}") for suffix in (".toml", "-in.pcap", "-out.pcap")]
        with open(paths[0], "w") as file:
            file.write("\n".join(sas))
        captures.write(paths[1], packets)
        start = time.monotonic()
        command = [self.binary, verb, "--sas", paths[0], paths[1], "-o", paths[2], "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.seconds[name] = self.seconds.get(name, 0) + time.monotonic() - start
        if done.returncode not in (0, 1):
            raise SystemExit(f"forebay {verb}: exit {done.returncode}\n{done.stderr[-2000:]}")
        return done.returncode, json.loads(done.stdout), captures.read(paths[2])


def stamped(packets):
    return [(STAMP + number * 1_000_003, packet) for number, packet in enumerate(packets)]


def interleave(groups):
    """One of each group, then the second of each…"""
    return [packet for turn in itertools.zip_longest(*groups) for packet in turn if packet is not None]


def check_report(name, report, status, packets_in, packets_out, dropped):
    """What is wrong with the exit status and the JSON."""
    wrong = []
    facts = {"schema": 1, "packets_in": packets_in, "packets_out": packets_out}
    for key, expected in facts.items():
        if report.get(key) != expected:
            wrong.append(f"{name}: {key} is {report.get(key)!r}, expected {expected}")
    if sum(report.get("drops", {}).values()) != dropped:
        wrong.append(f"{name}: drops {report.get('drops')!r}, expected {dropped}")
    for key in ("bytes_in", "bytes_out", "processors"):
        if key not in report:
            wrong.append(f"{name}: no {key} in the JSON")
    if status != (1 if dropped else 0):
        wrong.append(f"{name}: exit status {status}")
    return wrong


def check_order(name, sent, received, key):
    """Order and stamps are kept, where nothing was dropped."""
    if [key(packet) for _, packet in sent] != [key(packet) for _, packet in received]:
        return [f"{name}: order not kept"]
    if [stamp for stamp, _ in sent] != [stamp for stamp, _ in received]:
        return [f"{name}: stamps not kept"]
    return []


# ----------------------------------------------------------------------- the three runs


def check_seal(forebay, cells, plains, pool):
    sent = stamped(interleave(plains))
    status, report, received = forebay.run("seal", "seal", [cell.toml("out") for cell in cells], sent)
    wrong = check_report("seal", report, status, len(sent), len(sent), 0)
    groups = collections.defaultdict(list)
    for _, packet in received:
        groups[spi_of(packet)].append(packet)
    spis = {hosts_key(cell): cell.sa.spi for cell in cells}
    if len(received) == len(sent):
        wrong += check_order("seal", [(stamp, spis[hosts_of(packet)]) for stamp, packet in sent],
                             [(stamp, spi_of(packet)) for stamp, packet in received], lambda spi: spi)  # fmt: skip
    work, by = [], collections.Counter()
    for cell, plain in zip(cells, plains):
        sealed = groups[cell.sa.spi]
        if len(sealed) != len(plain):
            wrong.append(f"seal: {cell}: {len(sealed)} packets of {len(plain)} came out")
        else:
            work.append((cell, plain, sealed))
    for faults, words in pool.starmap(check_sealed, work, chunksize=8):
        wrong += ["seal: " + fault for fault in faults]
        by += words
    return wrong, by


def check_open(forebay, cells, plains, sealed):
    sent = stamped(interleave(sealed))
    status, report, received = forebay.run("open", "open", [cell.toml("in") for cell in cells], sent)
    wrong = check_report("open", report, status, len(sent), len(sent), 0)
    if len(received) == len(sent):
        wrong += check_order("open", stamped(hosts_of(packet) for packet in interleave(plains)),
                             [(stamp, hosts_of(packet)) for stamp, packet in received], lambda hosts: hosts)  # fmt: skip
    groups, by = collections.defaultdict(list), collections.Counter()
    for _, packet in received:
        groups[hosts_of(packet)].append(packet)
    for cell, plain in zip(cells, plains):
        opened = groups[hosts_key(cell)]
        if len(opened) != len(plain):
            wrong.append(f"open: {cell}: {len(opened)} packets of {len(plain)} came out")
            continue
        for number, (found, expected) in enumerate(zip(opened, plain), 1):
            try:
                by[same(found, expected, cell.mode == "tunnel")] += 1
            except esp.BadPacket as error:
                wrong.append(f"open: {cell}: packet {number}: {error}")
    return wrong, by


def check_refuse(forebay, cells):
    """Bad packets among good ones, in one tunnel and one transport cell of each suite, with and without ESN."""
    chosen = {}
    for cell in cells:
        if cell.sa.suite.icv_len:  # without an ICV nothing can be refused
            chosen.setdefault((cell.sa.suite, cell.mode, cell.sa.esn), cell)
    cells, streams, expected, counts = list(chosen.values()), [], {}, collections.Counter()
    for cell in cells:
        plain = make_packets(cell, quick=False)
        good = [seal_by_hand(cell, sequence, plain[sequence]) for sequence in range(1, 6)]
        bad = forgeries(cell, plain, good)
        counts += collections.Counter(kind for kind, _ in bad)
        # Good ones after the bad: nothing refused may have moved the window.
        streams.append(good[:3] + [packet for _, packet in bad] + good[3:])
        expected[hosts_key(cell)] = plain[1:6]
    sent = stamped(interleave(streams))
    dropped = sum(counts.values())
    status, report, received = forebay.run("open", "refuse", [cell.toml("in") for cell in cells], sent)
    wrong = check_report("refuse", report, status, len(sent), len(sent) - dropped, dropped)
    for reason, kind in ("in_no_states", "wrong SPI"), ("in_state_seq_error", "replay"):
        found = report.get("drops", {}).get(reason, 0)
        if found != counts[kind]:
            wrong.append(f"refuse: {reason} is {found}, expected {counts[kind]}")
    groups = collections.defaultdict(list)
    for _, packet in received:
        groups[hosts_of(packet)].append(packet)
    for cell in cells:
        found = groups.pop(hosts_key(cell), [])
        for number, plain in enumerate(expected[hosts_key(cell)]):
            try:
                same(found[number] if number < len(found) else b"", plain, cell.mode == "tunnel")
            except esp.BadPacket as error:
                wrong.append(f"refuse: {cell}: good packet {number + 1}: {error}")
        if len(found) > 5:
            wrong.append(f"refuse: {cell}: {len(found) - 5} bad packets were let through")
    if groups:
        wrong.append(f"refuse: {sum(map(len, groups.values()))} packets came out that no cell sent")
    return wrong, counts, report.get("drops", {})


def forgeries(cell, plain, good):
    """[(kind, packet)] that must be refused after good[:3]."""
    at = (20 if cell.outer == 4 else 40) + 8 * cell.udp
    body = at + 8 + cell.sa.suite.iv_len
    victim, protocol = good[3], {("tunnel", 4): 4, ("tunnel", 6): 41}.get((cell.mode, cell.inner), 17)
    made = [
        ("sequence number changed", flip(victim, at + 4, 0x7F)),  # far ahead: must not move the window
        ("IV changed", flip(victim, at + 8)),
        ("ciphertext changed", flip(victim, body)),
        ("ICV changed", flip(victim, len(victim) - 1)),
        ("replay", good[1]),
        ("wrong SPI", flip(victim, at, 0x40)),
        ("cut short", cut(victim, at + 12)),
        ("padding longer than the packet", wrap(cell, plain[0], cell.sa.seal(6, protocol, bytes(8), pad_len=255))),
    ]
    if cell.mode == "tunnel":
        other = ("10.9.0.1", "10.2.9.9") if cell.inner == 4 else ("fd00:9::1", "fd00:2::9:9")
        stray = plain_packets.udp(*other, (1, 2), b"stray")
        made.append(("outside the selectors", wrap(cell, stray, cell.sa.seal(7, protocol, stray))))
    if cell.sa.esn:
        made.append(("another high half", seal_by_hand(cell, (1 << 32) + 8, plain[8])))
    return made


def flip(packet, at, mask=1):
    return packet[:at] + bytes([packet[at] ^ mask]) + packet[at + 1 :]


def cut(packet, length):
    """The packet's first bytes, with IP and UDP lengths that fit."""
    header = 20 if packet[0] >> 4 == 4 else 40
    encapsulated = packet[9 if header == 20 else 6] == 17
    return rehead(packet, packet[header + 8 * encapsulated : length], encapsulated)


def hosts_key(cell):
    return b"".join(ipaddress.ip_address(host).packed for host in cell.hosts())


def parts(cells):
    """The cells by their suites, of which a Forebay has 64 at a time."""
    suites = list(esp.SUITES.values())
    for at in range(0, len(suites), 48):
        yield {cell for cell in cells if cell.sa.suite in suites[at : at + 48]}


def prepare(cell, quick):
    plains = make_packets(cell, quick)
    return plains, seal_here(cell, plains)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forebay", required=True, metavar="BINARY")
    parser.add_argument("--quick", action="store_true", help="all settings of two suites, four of each other")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", metavar="DIR", help="leave SA files and captures there")
    args = parser.parse_args()

    start = time.monotonic()
    cells = all_cells(args.quick)
    with tempfile.TemporaryDirectory() as scratch, multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
        if args.keep:
            os.makedirs(args.keep, exist_ok=True)
        forebay = Forebay(args.forebay, args.keep or scratch)
        prepared = pool.starmap(prepare, [(cell, args.quick) for cell in cells], chunksize=8)
        plains, sealed = [plain for plain, _ in prepared], [packets for _, packets in prepared]
        wrong, sealed_by, opened_by, refused, drops = [], *(collections.Counter() for _ in range(4))
        for part in parts(cells):
            of_part = [[what for cell, what in zip(cells, of_all) if cell in part] for of_all in (cells, plains, sealed)]
            faults, by = check_seal(forebay, *of_part[:2], pool)
            wrong, sealed_by = wrong + faults, sealed_by + by
            faults, by = check_open(forebay, *of_part)
            wrong, opened_by = wrong + faults, opened_by + by
            faults, kinds, reasons = check_refuse(forebay, of_part[0])
            wrong, refused, drops = wrong + faults, refused + kinds, drops + collections.Counter(reasons)

    result = {
        "schema": 1, "passed": not wrong, "suites": len({cell.sa.suite for cell in cells}), "cells": len(cells),
        "packets_each_way": sum(map(len, plains)), "seal": dict(sealed_by), "open": dict(opened_by),
        "refused": dict(refused), "drops": dict(drops), "seconds": round(time.monotonic() - start, 1),
        "forebay_seconds": {name: round(seconds, 2) for name, seconds in forebay.seconds.items()}, "failures": wrong,
    }  # fmt: skip
    if args.json:
        print(json.dumps(result))
    else:
        show(result)
    sys.exit(1 if wrong else 0)


def show(result):
    print(f"{result['suites']} suites, {result['cells']} cells, {result['packets_each_way']} packets each way, {result['seconds']} s")
    for name in "seal", "open", "refused", "drops":
        print(f"  {name}: " + ", ".join(f"{word} {count}" for word, count in sorted(result[name].items())))
    shown = result["failures"][:40]
    for fault in shown:
        print("  FAIL " + fault)
    if len(shown) < len(result["failures"]):
        print(f"  … and {len(result['failures']) - len(shown)} more")
    print("pass" if result["passed"] else f"FAIL: {len(result['failures'])}")


if __name__ == "__main__":
    main()
