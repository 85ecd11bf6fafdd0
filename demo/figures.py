#!/usr/bin/env python3
"""Prints a capture's figures as Markdown tables: protocols, packets, bytes, sizes.

Reads classic pcap with Ethernet framing; sizes are of IP packets.
"""

import statistics
import struct
import sys
from collections import defaultdict

TCP, UDP, ICMP, ICMPV6 = 6, 17, 1, 58
PORTS = {80: "HTTP", 53: "DNS", 2222: "SSH", 40000: "RTP audio", 40002: "RTP video"}
BINS = [64, 128, 256, 512, 1024, 1400, 1500]


def frames(path):
    with open(path, "rb") as file:
        data = file.read()
    order, second = {
        b"\x4d\x3c\xb2\xa1": ("<", 1e9), b"\xa1\xb2\x3c\x4d": (">", 1e9),
        b"\xd4\xc3\xb2\xa1": ("<", 1e6), b"\xa1\xb2\xc3\xd4": (">", 1e6),
    }[data[:4]]
    at = 24
    while at + 16 <= len(data):
        seconds, fraction, length, _ = struct.unpack_from(order + "IIII", data, at)
        yield seconds + fraction / second, data[at + 16 : at + 16 + length]
        at += 16 + length


def kind(frame):
    """The protocol's name and the IP packet's length in bytes."""
    ether_type = struct.unpack_from("!H", frame, 12)[0]
    if ether_type == 0x0800:
        family, protocol, header = "IPv4", frame[23], (frame[14] & 15) * 4
        size = struct.unpack_from("!H", frame, 16)[0]
    elif ether_type == 0x86DD:
        family, protocol, header = "IPv6", frame[20], 40
        size = 40 + struct.unpack_from("!H", frame, 18)[0]
    else:
        return "other", f"{ether_type:#06x}", len(frame) - 14
    name = {TCP: "TCP", UDP: "UDP", ICMP: "ping", ICMPV6: "ping"}.get(protocol, str(protocol))
    if protocol in (TCP, UDP):
        ports = struct.unpack_from("!HH", frame, 14 + header)
        word = next((PORTS[port] for port in ports if port in PORTS), "?")
        name = f"{word} ({name})"
    return family, name, size


def main():
    rows, sizes, stamps = defaultdict(list), [], []
    for stamp, frame in frames(sys.argv[1]):
        family, name, size = kind(frame)
        rows[name, family].append(size)
        sizes.append(size)
        stamps.append(stamp)
    print("| what | family | packets | bytes | mean | median |\n|---|---|--:|--:|--:|--:|")
    for (name, family), group in sorted(rows.items(), key=lambda row: -sum(row[1])):
        print(f"| {name} | {family} | {len(group):,} | {sum(group):,} | {statistics.mean(group):.0f} | {statistics.median(group):.0f} |")
    print(f"| **all** | | **{len(sizes):,}** | **{sum(sizes):,}** | **{statistics.mean(sizes):.0f}** | **{statistics.median(sizes):.0f}** |")
    seconds = max(stamps) - min(stamps)
    print(f"\n{seconds:.1f} s, {len(sizes) / seconds:.0f} packets/s, {sum(sizes) * 8 / seconds / 1e6:.2f} Mbit/s\n")
    print("| IP packet size | packets | share |\n|---|--:|--:|")
    low = 0
    for high in BINS:
        count = sum(low < size <= high for size in sizes)
        print(f"| {low + 1} to {high} | {count:,} | {count / len(sizes):.0%} |")
        low = high
    if (over := sum(size > low for size in sizes)):
        print(f"| over {low} | {over:,} | {over / len(sizes):.0%} |")


main()
