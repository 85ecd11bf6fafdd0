"""Plain headers for where scapy is not wanted: IPv4, IPv6, UDP, and UDP encapsulation (RFC 3948)."""

import ipaddress
import struct

IPIP, UDP, IPV6, ESP = 4, 17, 41, 50


def ip(source, destination, protocol, payload):
    """An IP packet of the addresses' family."""
    source, destination = ipaddress.ip_address(source), ipaddress.ip_address(destination)
    if source.version == 6:
        return struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64) + source.packed + destination.packed + payload
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0) + source.packed + destination.packed
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload


def udp(source, destination, ports, payload):
    """An IP packet with a UDP datagram, checksum included."""
    addresses = b"".join(ipaddress.ip_address(address).packed for address in (source, destination))
    datagram = struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload
    total = checksum(addresses + struct.pack("!II", len(datagram), UDP) + datagram) or 0xFFFF
    return ip(source, destination, UDP, datagram[:6] + struct.pack("!H", total) + datagram[8:])


def esp(source, destination, sealed, encapsulated=False):
    """An IP packet with ESP, in UDP on port 4500 where asked for."""
    if encapsulated:
        return ip(source, destination, UDP, struct.pack("!HHHH", 4500, 4500, 8 + len(sealed), 0) + sealed)
    return ip(source, destination, ESP, sealed)


def checksum(data):
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF
