#!/usr/bin/env python3
"""Records what a kernel says of per-CPU SAs and policies, for the tests of crates/dataplane/xfrm.

Needs Linux 6.13 or later with XFRM; no ESP, since the SA is one that is still being negotiated:

    unshare -n scripts/record_per_cpu.py crates/dataplane/xfrm/tests/data/kernel-6.18-per-cpu.netlink
"""

import socket
import struct
import sys

NETLINK_XFRM, GROUP_POLICY = 6, 1 << 3
NEWPOLICY, ALLOCSPI, UPDATE_POLICY = 0x13, 0x16, 0x19
TEMPLATES, MARK, SA_PCPU = 5, 21, 35
POLICY_CPU_ACQUIRE = 4
US, PEER = socket.inet_aton("192.0.2.1"), socket.inet_aton("192.0.2.2")
REQUEST_ACK = 5
NO_LIMIT = struct.pack("=8Q", *[2**64 - 1] * 4, 0, 0, 0, 0)


def attribute(kind, content):
    return struct.pack("=HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)


def message(kind, body):
    return struct.pack("=IHHII", 16 + len(body), kind, REQUEST_ACK, 1, 0) + body


def selector():
    return bytes(40) + struct.pack("=HBBBxxxiI", socket.AF_INET, 0, 0, 0, 0, 0)


def policy(flags, mark=None, kind=NEWPOLICY):
    info = selector() + NO_LIMIT + bytes(32) + struct.pack("=IIBBBBxxxx", 0, 0, 1, 0, flags, 0)
    template = struct.pack("=16s4sB3xH2x16sIBBBxIII", PEER, bytes(4), 50, 2, US, 7, 1, 0, 0, *[2**32 - 1] * 3)
    more = b"" if mark is None else attribute(MARK, struct.pack("=II", mark, 2**32 - 1))
    return message(kind, info + attribute(TEMPLATES, template) + more)


def larval(cpu):
    info = selector() + struct.pack("=16s4sB3x16s", PEER, bytes(4), 50, US) + NO_LIMIT + bytes(32 + 12)
    info += struct.pack("=IIHBBB7x", 0, 7, socket.AF_INET, 1, 0, 0)
    spi = struct.pack("=II", 0x1001, 0x1001)
    return message(ALLOCSPI, info + spi + attribute(SA_PCPU, struct.pack("=I", cpu)))


def main():
    heard = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_XFRM)
    heard.bind((0, GROUP_POLICY))
    ask = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_XFRM)
    ask.bind((0, 0))
    for one in (heard, ask):
        one.settimeout(5)
    datagrams = []
    for said, hears in ((policy(POLICY_CPU_ACQUIRE), heard), (larval(1), ask)):
        ask.send(said)
        if hears is heard:
            answer = ask.recv(8192)
            assert struct.unpack_from("=i", answer, 16)[0] == 0, f"refused: {answer[16:].hex()}"
        datagram = hears.recv(8192)
        assert struct.unpack_from("=H", datagram, 4)[0] != 2, f"refused: {datagram[16:].hex()}"
        datagrams.append(datagram)
    with open(sys.argv[1], "wb") as file:
        for datagram in datagrams:
            file.write(struct.pack("<I", len(datagram)) + datagram)


if __name__ == "__main__":
    main()
