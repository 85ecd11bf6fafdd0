#!/usr/bin/python3
"""Scapy and `ah.py` against `forebay seal` and `forebay open`: AH with every algorithm in every setting.

A cell is an algorithm x tunnel or transport x address families x ESN. Its packets carry IPv4 options or
IPv6 extension headers of all sorts. The binary runs three times, as in `scapy_matrix.py`:

  seal    plain packets -> forebay seal -> opened by scapy and by ah.py
  open    packets sealed by scapy (by ah.py where scapy cannot), changed on their way where the RFC lets
          them be -> forebay open: the packets that were sent, as they arrived
  refuse  each of them with one byte changed that may not be, or sent twice -> forebay open: only the good

What scapy 2.5.0 cannot do is ah.py's alone: GMAC and XCBC; source routes (it leaves the destination); an
IPv4 header whose options it does not write back byte by byte (found by trying); routing headers that have
been passed in part. It takes the ICV of a packet with ESP inside over the wrong bytes, so there is none.
"""

import argparse
import collections
import itertools
import json
import logging
import random
import struct
import sys
import tempfile
import time
import warnings
from typing import NamedTuple

warnings.filterwarnings("ignore")
logging.getLogger("scapy").setLevel(logging.CRITICAL)

from scapy.layers import ipsec  # noqa: E402
from scapy.layers.inet import IP  # noqa: E402
from scapy.layers.inet6 import IPv6  # noqa: E402

import ah  # noqa: E402
import packets as plain_packets  # noqa: E402
from scapy_matrix import Forebay, check_order, check_report, flip, hosts_of, interleave, stamped  # noqa: E402

GATEWAYS = {4: ("192.0.2.1", "192.0.2.2"), 6: ("2001:db8::1", "2001:db8::2")}
SCAPY_AUTH = {
    "md5": "HMAC-MD5-96", "sha1": "HMAC-SHA1-96", "sha256": "SHA2-256-128", "sha384": "SHA2-384-192",
    "sha512": "SHA2-512-256", "aescmac": "AES-CMAC-96",
}  # fmt: skip
ROUTER_ALERT = bytes([148, 4, 0, 0])
OPTIONS = {  # IPv4, whole words
    "none": b"", "router alert": ROUTER_ALERT, "record route": bytes([7, 11, 8, 192, 0, 2, 77]) + bytes(4) + b"\1",
    "time stamp": bytes([68, 12, 5, 0]) + bytes(8), "security": bytes([130, 11]) + bytes(range(9)) + b"\0",
    "unknown": bytes([222, 6, 1, 2, 3, 4, 1, 1]), "several": b"\1" + bytes([7, 7, 4, 0, 0, 0, 0]) + ROUTER_ALERT,
}  # fmt: skip
HOP = {"router alert": bytes([5, 2, 0, 0, 1, 0]), "mutable": bytes([0x3E, 4, 1, 2, 3, 4]), "several": bytes([0x1E, 1, 9, 0x3E, 1, 8])}


class Cell(NamedTuple):
    number: int
    mode: str
    outer: int
    inner: int
    sa: ah.Sa

    def __str__(self):
        ways = f"{self.inner}in{self.outer}" if self.mode == "tunnel" else f"v{self.outer}"
        return " ".join([self.sa.name, self.mode, ways] + ["esn"] * self.sa.esn)

    def hosts(self):
        if self.inner == 4:
            return tuple(f"10.{side}.{self.number >> 8}.{self.number & 255}" for side in (1, 2))
        return tuple(f"fd00:{side}::{self.number:x}" for side in (1, 2))

    def toml(self, direction):
        local, remote = GATEWAYS[self.outer] if self.mode == "tunnel" else self.hosts()
        local_ts, remote_ts = self.hosts()
        if direction == "in":
            local, remote, local_ts, remote_ts = remote, local, remote_ts, local_ts
        bits = 32 if self.inner == 4 else 128
        key = "key" if "gmac" in self.sa.name else "auth_key"
        weak = "allow_weak = true\n" if self.sa.name == "md5" else ""
        return f"""[[sa]]
name = "{str(self).replace(" ", "-")}-{direction}"
direction = "{direction}"
spi = {self.sa.spi:#x}
protocol = "ah"
mode = "{self.mode}"
proposal = "{self.sa.name}"
{key} = "{self.sa.key.hex()}"
local = "{local}"
remote = "{remote}"
esn = {str(self.sa.esn).lower()}
{weak}local_ts = ["{local_ts}/{bits}"]
remote_ts = ["{remote_ts}/{bits}"]
"""


def all_cells():
    keys = random.Random(4302)
    ways = [("tunnel", outer, inner) for outer in (4, 6) for inner in (4, 6)] + [("transport", 4, 4), ("transport", 6, 6)]
    cells = []
    for name, (mode, outer, inner), esn in itertools.product(ah.ALGORITHMS, ways, (False, True)):
        cells.append(Cell(len(cells), mode, outer, inner, ah.new_sa(name, 0x20001 + len(cells), esn, keys)))
    return cells


# ------------------------------------------------------------------------------ packets


def make_packets(cell):
    """[(kind, plain packet)]: every kind of header, with payloads of several lengths."""
    source, destination = cell.hosts()
    draw, made = random.Random(cell.number), []
    if cell.inner == 4:
        for kind, options in OPTIONS.items():
            data = draw.randbytes(draw.choice([0, 1, 40, 700]))
            packet = plain_packets.udp(source, destination, (40000, 4242), data)
            head = bytes([0x45 + len(options) // 4, draw.choice([0, 0xB8, 3])]) + packet[2:20]
            made.append((kind, ah.relength(head + options + packet[20:])))
        return made
    for kind in ["none", *HOP, "destination", "routing"]:
        packet = plain_packets.udp(source, destination, (40000, 4242), draw.randbytes(draw.choice([0, 1, 40, 700])))
        head = struct.pack("!I", 6 << 28 | draw.randrange(1 << 28)) + packet[4:40]
        route = b""
        if kind == "routing" and cell.mode == "tunnel":
            # Inside a tunnel it is payload. In transport it would lead away from the SA's other end.
            route = bytes([17, 2, 0, 1, 0, 0, 0, 0]) + packet[24:40]
        extensions = {"none": b"", "routing": route, "destination": bytes([17, 0]) + HOP["mutable"]}.get(kind, bytes([17, 0]) + HOP.get(kind, b""))
        number = {"none": 17, "destination": 60, "routing": 43 if route else 17}.get(kind, 0)
        made.append((kind, ah.relength(head[:6] + bytes([number]) + head[7:40] + extensions + packet[40:])))
    return made


def travelled(packet):
    """The sealed packet after routers have had it: what may change has changed. All but ECN, which AH does not
    cover either, but which the end of a tunnel gives to the packet inside (RFC 6040)."""
    header = 4 * (packet[0] & 15) if packet[0] >> 4 == 4 else 40
    if packet[0] >> 4 == 4:
        options, out = packet[20:header], b""
        while options and options[0]:
            size = 1 if options[0] == 1 else options[1]
            option, options = options[:size], options[size:]
            covered = option[0] in ah.COVERED_OPTIONS
            out += option if covered else option[:2] + bytes(byte ^ 0x11 for byte in option[2:])
        head = packet[:1] + bytes([packet[1] ^ 0x2C]) + packet[2:8] + bytes([packet[8] - 3]) + packet[9:20]
        return ah.relength(head + out + options + packet[header:])
    packet = struct.pack("!I", struct.unpack_from("!I", packet)[0] ^ 0x0C54321) + packet[4:7] + bytes([packet[7] - 3]) + packet[8:]
    if packet[6] != 0:
        return packet
    size = 8 + 8 * packet[41]
    changed = b"".join(bytes(option[:2]) + bytes(byte ^ (0x11 if option[0] & 0x20 else 0) for byte in option[2:]) for option in walk(packet[42 : 40 + size]))
    return packet[:42] + changed + packet[40 + size :]


def walk(data):
    while data:
        size = 1 if data[0] == 0 else 2 + data[1]
        yield data[:size]
        data = data[size:]


def scapy_sa(cell):
    if cell.sa.name not in SCAPY_AUTH:
        return None
    tunnel = None
    if cell.mode == "tunnel":
        source, destination = GATEWAYS[cell.outer]
        tunnel = (IP if cell.outer == 4 else IPv6)(src=source, dst=destination)
    return ipsec.SecurityAssociation(
        ipsec.AH, spi=cell.sa.spi, auth_algo=SCAPY_AUTH[cell.sa.name], auth_key=cell.sa.key, tunnel_header=tunnel,
        esn_en=cell.sa.esn, esn=0,
    )  # fmt: skip


def parsed(packet):
    return IP(packet) if packet[0] >> 4 == 4 else IPv6(packet)


def seal_here(cell, plain, sequence):
    """(sealed packet, who made it)."""
    sender = scapy_sa(cell)
    if sender is not None and bytes(parsed(plain)) == plain:
        sealed = bytes(sender.encrypt(parsed(plain), seq_num=sequence))
        try:
            cell.sa.open(sealed)
            return sealed, "scapy"
        except ah.BadPacket:
            pass
    if cell.mode == "tunnel":
        plain = plain_packets.ip(*GATEWAYS[cell.outer], 4 if cell.inner == 4 else 41, plain)
    return cell.sa.seal(plain, sequence, struct.pack("!Q", sequence) if "gmac" in cell.sa.name else b""), "ah.py"


# ----------------------------------------------------------------------- the three runs


def check_seal(forebay, cells, made):
    sent = stamped(interleave([[plain for _, plain in packets] for packets in made]))
    status, report, received = forebay.run("seal", "ah-seal", [cell.toml("out") for cell in cells], sent)
    wrong, by = check_report("seal", report, status, len(sent), len(sent), 0), collections.Counter()
    groups = collections.defaultdict(list)
    for _, packet in received:
        groups[struct.unpack_from("!I", packet, ah.place(packet)[0] + 4)[0]].append(packet)
    for cell, packets in zip(cells, made):
        sealed, ivs = groups[cell.sa.spi], set()
        if len(sealed) != len(packets):
            wrong.append(f"seal: {cell}: {len(sealed)} packets of {len(packets)}")
        for number, ((kind, plain), packet) in enumerate(zip(packets, sealed), 1):
            try:
                sequence, iv, opened, next_header, at = cell.sa.open(packet)
                if cell.mode == "tunnel":
                    opened = opened[at:]
                    if next_header != (4 if cell.inner == 4 else 41):
                        raise ah.BadPacket(f"next header {next_header}")
                if opened != plain or sequence != number or (iv and iv in ivs):
                    raise ah.BadPacket(f"sequence {sequence}, {opened.hex()} for {plain.hex()}")
                ivs.add(iv)
                by["ah.py"] += 1
                receiver = scapy_sa(cell)
                if receiver is not None and bytes(parsed(packet)) == packet:
                    opened = bytes(receiver.decrypt(parsed(packet)))
                    if opened != plain:
                        raise ah.BadPacket(f"scapy: {opened.hex()} for {plain.hex()}")
                    by["scapy"] += 1
            except (ah.BadPacket, ipsec.IPSecIntegrityError) as error:
                wrong.append(f"seal: {cell}: {kind}: {type(error).__name__} {str(error)[:200]}")
    return wrong, by


def check_open(forebay, cells, made):
    by, streams, expected, good = collections.Counter(), [], [], []
    for cell, packets in zip(cells, made):
        sealed = []
        for sequence, (_, plain) in enumerate(packets, 1):
            packet, who = seal_here(cell, plain, sequence)
            by[who] += 1
            sealed.append(travelled(packet))
        good.append(sealed)
        streams.append(sealed)
        expected.append([plain if cell.mode == "tunnel" else cell.sa.open(packet)[2] for (_, plain), packet in zip(packets, sealed)])
    sent = stamped(interleave(streams))
    status, report, received = forebay.run("open", "ah-open", [cell.toml("in") for cell in cells], sent)
    wrong = check_report("open", report, status, len(sent), len(sent), 0)
    wrong += compare("open", cells, expected, received)
    if len(received) == len(sent):
        wrong += check_order("open", stamped(hosts_of(packet) for packet in interleave(expected)),
                             [(stamp, hosts_of(packet)) for stamp, packet in received], lambda hosts: hosts)  # fmt: skip
    return wrong, by, good, expected


def compare(name, cells, expected, received):
    groups, wrong = collections.defaultdict(list), []
    for _, packet in received:
        groups[hosts_of(packet)].append(packet)
    for cell, plains in zip(cells, expected):
        found = groups[hosts_of(plains[0])]
        for number in range(max(len(plains), len(found))):
            if found[number : number + 1] != plains[number : number + 1]:
                wrong.append(f"{name}: {cell}: packet {number + 1} of {len(plains)}, {len(found)} came out")
                break
    return wrong


def check_refuse(forebay, cells, good, expected):
    streams, counts = [], collections.Counter()
    for cell, packets in zip(cells, good):
        bad, draw = [("replay", packets[0])], random.Random(cell.number)
        for packet in packets[1:]:
            at = ah.place(packet)[0]
            size = cell.sa.header_len(cell.outer)
            bad += [("ICV", flip(packet, at + 12 + draw.randrange(size - 12))), ("sequence", flip(packet, at + 8, 0x7F)),
                    ("next header", flip(packet, at)), ("reserved", flip(packet, at + 2)), ("SPI", flip(packet, at + 4, 0x40)),
                    ("length", flip(packet, at + 1)), ("source", flip(packet, 15 if cell.outer == 4 else 23))]  # fmt: skip
            if len(packet) > at + size:
                bad.append(("payload", flip(packet, draw.randrange(at + size, len(packet)))))
            if cell.mode == "transport" and cell.outer == 4 and packet[20] in (130, 148):
                bad.append(("immutable option", flip(packet, 22)))
            if cell.mode == "transport" and cell.outer == 6 and packet[6] == 0 and packet[42] == 5:
                bad.append(("immutable option", flip(packet, 45)))
        counts += collections.Counter(kind for kind, _ in bad)
        streams.append(packets[:1] + [packet for _, packet in bad] + packets[1:])
    sent, dropped = stamped(interleave(streams)), sum(counts.values())
    status, report, received = forebay.run("open", "ah-refuse", [cell.toml("in") for cell in cells], sent)
    wrong = check_report("refuse", report, status, len(sent), len(sent) - dropped, dropped)
    return wrong + compare("refuse", cells, expected, received), counts, report.get("drops", {})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forebay", required=True, metavar="BINARY")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    start, cells = time.monotonic(), all_cells()
    made = [make_packets(cell) for cell in cells]
    with tempfile.TemporaryDirectory() as scratch:
        forebay = Forebay(args.forebay, scratch)
        wrong, sealed = check_seal(forebay, cells, made)
        faults, opened, good, expected = check_open(forebay, cells, made)
        wrong += faults
        faults, refused, drops = check_refuse(forebay, cells, good, expected)
        wrong += faults
    result = {
        "schema": 1, "passed": not wrong, "cells": len(cells), "packets_each_way": sum(map(len, made)), "seal": dict(sealed),
        "open": dict(opened), "refused": dict(refused), "drops": drops, "seconds": round(time.monotonic() - start, 1), "failures": wrong,
    }  # fmt: skip
    if args.json:
        print(json.dumps(result))
    else:
        for name in "cells", "packets_each_way", "seal", "open", "refused", "drops", "seconds":
            print(f"{name}: {result[name]}")
        for fault in wrong[:40]:
            print("  FAIL " + fault)
        print("pass" if not wrong else f"FAIL: {len(wrong)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
