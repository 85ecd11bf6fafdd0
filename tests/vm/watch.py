#!/usr/bin/env python3
"""Looks at an interface until it is terminated; then says how many packets were ESP, in UDP or not, and AH, how many of
both went to each address, and which were in the clear.

    watch.py INTERFACE PREFIX [HOSTS]   packets from or to PREFIX (the beginning of an IPv4 address) should not be there,
                                        nor between HOSTS (another prefix), but for ESP, AH and IKE

A virtual machine cannot see that itself: tcpdump there shows what its kernel has opened as if it had come so.
"""

import json
import signal
import socket
import sys

# Of ESP in UDP (RFC 3948), beside IKE with its marker of zeroes.
PORT = (4500).to_bytes(2, "big")
IKE = (500).to_bytes(2, "big")


def main():
    interface, prefix, *hosts = sys.argv[1:]
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    wire.bind((interface, 0))
    esp, ah, to, clear = 0, 0, {}, []

    def end(*_):
        print(json.dumps({"esp": esp, "ah": ah, "to": to, "clear": clear[:20]}), flush=True)
        raise SystemExit

    signal.signal(signal.SIGTERM, end)
    print("ready", flush=True)
    while True:
        frame = wire.recv(65536)
        packet = frame[14:]
        if frame[12:14] == b"\x86\xdd":  # inner IPv6 addresses of the tests begin with fd, outer ones do not
            esp, ah = esp + (packet[6] == 50), ah + (packet[6] == 51)
            if 0xFD in (packet[8], packet[24]):
                ends = [socket.inet_ntop(socket.AF_INET6, packet[at : at + 16]) for at in (8, 24)]
                clear.append(" > ".join(ends) + f" protocol {packet[6]}")
            continue
        if frame[12:14] != b"\x08\x00":
            continue
        udp = packet[4 * (packet[0] & 15) :]
        # Behind a NAT the port is the destination's or, on the way back, the source's.
        of_port = packet[9] == 17 and PORT in (udp[:2], udp[2:4])
        is_esp = packet[9] == 50 or (of_port and len(udp) > 16 and udp[8:12] != bytes(4))
        esp, ah = esp + is_esp, ah + (packet[9] == 51)
        ends = [socket.inet_ntoa(packet[at : at + 4]) for at in (12, 16)]
        sealed = is_esp or packet[9] == 51
        if sealed:
            to[ends[1]] = to.get(ends[1], 0) + 1
        ike = packet[9] == 17 and (of_port or IKE in (udp[:2], udp[2:4]))
        error = packet[9] == 1 and udp[0] == 3  # of a port whose daemon is gone
        bare = hosts and not (sealed or ike or error) and all(address.startswith(hosts[0]) for address in ends)
        if bare or any(address.startswith(prefix) for address in ends):
            clear.append(" > ".join(ends) + f" protocol {packet[9]}")


if __name__ == "__main__":
    main()
