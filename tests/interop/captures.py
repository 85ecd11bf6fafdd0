"""Capture files as lists of IP packets: reads pcap and pcapng, writes raw-IP pcap."""

import struct

RAW, ETHERNET = {12, 14, 101, 228, 229}, 1
MAGICS = {  # byte order, units of a stamp in a second
    b"\xd4\xc3\xb2\xa1": ("<", 10**6), b"\xa1\xb2\xc3\xd4": (">", 10**6),
    b"\x4d\x3c\xb2\xa1": ("<", 10**9), b"\xa1\xb2\x3c\x4d": (">", 10**9),
}


def read(path):
    """[(stamp in ns, IP packet)]; other packets of an Ethernet capture are left out."""
    with open(path, "rb") as file:
        data = file.read()
    records = _pcapng(data) if data[:4] == b"\x0a\x0d\x0d\x0a" else _pcap(data)
    return [(stamp, ip) for stamp, link, frame in records if (ip := _ip(link, frame)) is not None]


def write(path, packets):
    """Writes [(stamp in ns, IP packet)] as a nanosecond pcap of raw IP."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101))
        for stamp, packet in packets:
            file.write(struct.pack("<IIII", stamp // 10**9, stamp % 10**9, len(packet), len(packet)) + packet)


def _pcap(data):
    order, units = MAGICS[data[:4]]
    link = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
    at = 24
    while at + 16 <= len(data):
        seconds, fraction, length, _ = struct.unpack_from(order + "IIII", data, at)
        yield seconds * 10**9 + fraction * (10**9 // units), link, data[at + 16 : at + 16 + length]
        at += 16 + length


def _pcapng(data):
    at, order, interfaces = 0, "<", []
    while at + 12 <= len(data):
        if data[at : at + 4] == b"\x0a\x0d\x0d\x0a":
            order = "<" if data[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces = []
        kind, length = struct.unpack_from(order + "II", data, at)
        if kind == 1:  # interface description
            interfaces.append((struct.unpack_from(order + "H", data, at + 8)[0], _resolution(data[at + 16 : at + length - 4], order)))
        elif kind == 6:  # enhanced packet
            interface, high, low, captured = struct.unpack_from(order + "IIII", data, at + 8)
            link, units = interfaces[interface]
            yield (high << 32 | low) * 10**9 // units, link, data[at + 28 : at + 28 + captured]
        at += length


def _resolution(options, order):
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from(order + "HH", options, at)
        if code == 9:  # if_tsresol
            value = options[at + 4]
            return 1 << (value & 127) if value & 128 else 10**value
        if code == 0:
            break
        at += 4 + (length + 3) // 4 * 4
    return 10**6


def _ip(link, frame):
    if link in RAW:
        return frame
    if link != ETHERNET:
        raise ValueError(f"link type {link} is not understood")
    kind = struct.unpack_from("!H", frame, 12)[0]
    if kind == 0x0800:
        return frame[14 : 14 + struct.unpack_from("!H", frame, 16)[0]]
    if kind == 0x86DD:
        return frame[14 : 54 + struct.unpack_from("!H", frame, 18)[0]]
    return None
