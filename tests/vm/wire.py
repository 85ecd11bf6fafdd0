#!/usr/bin/env python3
"""Linux's IPsec against `forebay seal` and `forebay open`, packet by packet on a wire.

    this script -- tap "wire" 192.0.2.1 ....... eth0 192.0.2.2 -- Linux in a virtual machine

For each pair of SAs (cases.py) echo requests are sealed by Forebay and put on the wire. Linux must open them, answer,
and seal the answers, which Forebay must open: each with the bytes that were sent. Then each pair gets a sealed packet
again and one with a byte changed, which Linux must count as replayed and as forged.
"""

import argparse
import json
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cases import FOREBAY, LINUX, matrix
from vm import HERE, Namespace, Vm, VmError, enter

sys.path.insert(0, str(HERE.parent / "interop"))
import captures  # noqa: E402

SIZES = (0, 1, 7, 64, 333, 1280)
LARGE = 3000  # beyond the MTU: comes back in fragments
ETHERTYPE = {4: 0x0800, 6: 0x86DD}


def checksum(data):
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def echo(case, size, number):
    """An echo request from Forebay's host to Linux's."""
    near, far = case.hosts()
    family = socket.AF_INET if case.inner == 4 else socket.AF_INET6
    source, destination = socket.inet_pton(family, near), socket.inet_pton(family, far)
    payload = bytes((number + i * 7) & 0xFF for i in range(size))
    kind = 8 if case.inner == 4 else 128
    message = struct.pack("!BBHHH", kind, 0, 0, case.number, number) + payload
    pseudo = b"" if case.inner == 4 else source + destination + struct.pack("!II", len(message), 58)
    message = message[:2] + struct.pack("!H", checksum(pseudo + message)) + message[4:]
    if case.inner == 6:
        return struct.pack("!IHBB", 6 << 28, len(message), 58, 64) + source + destination + message
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(message), number, 0, 64, 1, 0) + source + destination
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + message


def in_fragments(packet):
    """Fragments a packet as a host does; no router on the path fragments IPv6."""
    if packet[0] >> 4 == 4 or len(packet) <= 1400:
        return [packet]
    text, room, pieces = packet[40:], 1232, []
    for at in range(0, len(text), room):
        piece = text[at : at + room]
        more = at + room < len(text)
        head = packet[:4] + struct.pack("!HBB", 8 + len(piece), 44, packet[7]) + packet[8:40]
        pieces.append(head + struct.pack("!BBHI", packet[6], 0, at | more, int.from_bytes(packet[44:48])) + piece)
    return pieces


def whole(packets):
    """Puts fragments of IPv6 together."""
    parts = {}
    for packet in packets:
        if packet[0] >> 4 == 6 and packet[6] == 44:
            after, _, place, name = struct.unpack("!BBHI", packet[40:48])
            pieces = parts.setdefault((packet[8:40], name), {})
            pieces[place & ~7] = packet[48 : 40 + int.from_bytes(packet[4:6])]
            if not place & 1:
                pieces["end"] = (place & ~7) + len(pieces[place & ~7])
            text = b"".join(piece for at, piece in sorted((at, piece) for at, piece in pieces.items() if at != "end"))
            if len(text) == pieces.get("end"):
                yield packet[:4] + struct.pack("!HB", len(text), after) + packet[7:40] + text
        else:
            yield packet


def answer(packet):
    """(family, identifier, number, payload) of an echo reply with good checksums, or None."""
    if packet[0] >> 4 == 4:
        length = 4 * (packet[0] & 15)
        message = packet[length : int.from_bytes(packet[2:4])]
        good = packet[9] == 1 and message[:1] == b"\0" and checksum(packet[:length]) == 0 and checksum(message) == 0
    else:
        message = packet[40 : 40 + int.from_bytes(packet[4:6])]
        pseudo = packet[8:40] + struct.pack("!II", len(message), 58)
        good = packet[6] == 58 and message[:1] == b"\x81" and checksum(pseudo + message) == 0
    if not good:
        return None
    identifier, number = struct.unpack("!HH", message[4:8])
    return packet[0] >> 4, identifier, number, message[8:]


class Wire:
    """The tap as a packet socket."""

    def __init__(self, tap, peer):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.bind((tap, 0))
        self.header = bytes.fromhex(peer.replace(":", "")) + self.socket.getsockname()[4]
        self.seen = []

    def exchange(self, packets, patience=1.5):
        """Sends packets and takes in what comes, until nothing has come for a while."""
        packets = list(packets)
        last = time.monotonic()
        while packets or time.monotonic() - last < patience:
            for packet in packets[:8]:
                self.socket.send(self.header + struct.pack("!H", ETHERTYPE[packet[0] >> 4]) + packet)
            sent, packets = packets[:8], packets[8:]
            until = time.monotonic() + (0.004 if sent else 0.05)
            while (left := until - time.monotonic()) > 0:
                self.socket.settimeout(left)
                try:
                    frame, origin = self.socket.recvfrom(65536)
                except TimeoutError:
                    break
                if origin[2] != socket.PACKET_OUTGOING and frame[12:14] in (b"\x08\x00", b"\x86\xdd"):
                    last = time.monotonic()
                    self.seen.append((time.time_ns(), frame[14:]))
            last = max(last, time.monotonic()) if sent else last

    def take(self):
        seen, self.seen = self.seen, []
        return seen


def forebay(program, command, sas, packets, work):
    """`forebay seal` or `forebay open` over packets."""
    captures.write(work / "in.pcap", packets)
    done = subprocess.run([program, command, "--sas", sas, work / "in.pcap", "-o", work / "out.pcap", "--state", work / "state", "--json"],
                          capture_output=True, text=True, timeout=300)
    if done.returncode not in (0, 1):
        raise VmError(f"forebay {command}: {done.returncode}\n{done.stderr}")
    return captures.read(work / "out.pcap"), json.loads(done.stdout)


def stats(vm):
    return {name: int(value) for name, value in (line.split() for line in vm.sh("cat /proc/net/xfrm_stat").splitlines())}


def prepare(vm, cases, work):
    """Addresses, routes, SAs and policies of Linux's side."""
    modules = "esp4 esp6 ah4 ah6 xfrm_user xfrm4_tunnel xfrm6_tunnel tunnel4 tunnel6 ip6_tunnel"
    vm.sh(f"modprobe -a {modules}; ip link set eth0 up; ip addr add {LINUX[4]}/24 dev eth0; ip addr add {LINUX[6]}/64 dev eth0 nodad\n"
          f"ip route add 10.1.0.0/16 via {FOREBAY[4]}; ip route add fd00:1::/32 via {FOREBAY[6]}\n"
          "echo 0 >/proc/sys/net/ipv4/icmp_ratelimit; echo 0 >/proc/sys/net/ipv6/icmp/ratelimit")
    subprocess.run(["cc", "-O1", "-static", "-o", work / "encap", HERE / "encap.c"], check=True)
    vm.put(work / "encap", "/tmp/encap", 0o755)
    vm.sh("setsid /tmp/encap >/tmp/encap.out 2>&1 & sleep 0.2; grep ready /tmp/encap.out")
    batch = "".join(f"addr add {case.hosts()[1]}/{32 if case.inner == 4 else 128} dev lo{'' if case.inner == 4 else ' nodad'}\n" for case in cases)
    batch += "".join(case.xfrm(sent) for case in cases for sent in (True, False))
    vm.put(batch.encode(), "/tmp/batch")
    vm.sh("ip -batch /tmp/batch", seconds=300)


def main():
    enter()
    parser = argparse.ArgumentParser()
    parser.add_argument("forebay", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="cases with this in their name")
    arguments = parser.parse_args()
    cases = [case for case in matrix(arguments.quick) if not arguments.only or arguments.only in str(case)]
    began = time.monotonic()
    work = Path(tempfile.mkdtemp(dir="/run"))
    here = Namespace()
    here.tap("wire")
    here.sh(f"ip addr add {FOREBAY[4]}/24 dev wire; ip addr add {FOREBAY[6]}/64 dev wire nodad")
    sas = work / "sas.toml"
    sas.write_text("".join(case.toml(True, "mtu = 1500") + case.toml(False) for case in cases))
    sas.chmod(0o600)
    with Vm("linux", [(here, "wire")]) as vm:
        vm.wait()
        prepare(vm, cases, work)
        print(f"wire: {len(cases)} pairs of SAs in Linux after {time.monotonic() - began:.0f} s")
        vm.sh(f"ping -c 1 -W 5 {FOREBAY[4]}; ping -c 1 -W 5 {FOREBAY[6]}")  # neighbours know each other
        wire = Wire("wire", vm.sh("cat /sys/class/net/eth0/address").strip())
        failures = exchange(arguments.forebay, vm, wire, cases, sas, work)
    if failures:
        raise SystemExit("\n".join(["wire: FAILED", *failures[:40]]))
    print(f"wire: ok, {len(cases)} pairs of SAs, {time.monotonic() - began:.0f} s")


def fits(case, size):
    """Whether a packet can get there at all."""
    if case.mode == "transport" and case.outer == 6:
        # Transport mode does not take fragments (RFC 4303 3.3.4), and no router fragments IPv6. Linux also silently
        # drops UDP of less than 48 bytes (`skb->len < ip6hlen + len` in xfrm6_udp_encap_rcv, the header being gone).
        return size < LARGE and (size > 1 or not case.udp)
    return True


def exchange(program, vm, wire, cases, sas, work):
    sizes = [*SIZES, LARGE]
    plain = [(case, number) for number in range(len(sizes)) for case in cases if fits(case, sizes[number])]
    start = time.time_ns()
    packets = [(start + 1000 * index, part) for index, (case, number) in enumerate(plain)
               for part in in_fragments(echo(case, sizes[number], number + 1))]
    sealed, report = forebay(program, "seal", sas, packets, work)
    before = stats(vm)
    wire.exchange(packet for _, packet in sealed)
    back = wire.take()
    opened, _ = forebay(program, "open", sas, back, work)
    told = {}
    for packet in whole(packet for _, packet in opened):
        if found := answer(packet):
            family, identifier, number, payload = found
            told[identifier, number] = payload
    failures = []
    for case in cases:
        missing = [sizes[number] for number in range(len(sizes)) if fits(case, sizes[number])
                   and told.get((case.number, number + 1)) != bytes((number + 1 + i * 7) & 0xFF for i in range(sizes[number]))]
        if missing:
            failures.append(f"{case}: no good answer to sizes {missing}")
    after = stats(vm)
    changed = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    print(f"wire: {len(packets)} sealed by Forebay, {len(told)} answers sealed by Linux and opened; Linux's errors: {changed}")
    if report["drops"]:
        failures.append(f"forebay seal dropped {report['drops']}")
    index = next(index for index, (_, number) in enumerate(plain) if sizes[number] == 64)
    return failures + refuse(vm, wire, [packet for _, packet in sealed[index : index + len(cases)]])


def refuse(vm, wire, sealed):
    """Linux must not take a packet twice, nor a changed one."""
    failures = []
    for what, packets, counter in [("replayed", sealed, "XfrmInStateSeqError"), ("changed", [flip(packet) for packet in sealed], "XfrmInStateProtoError")]:
        before = stats(vm)
        wire.exchange(packets)
        wire.take()
        after = stats(vm)
        refused = after[counter] - before[counter]
        changed = {name: after[name] - before[name] for name in after if after[name] != before[name]}
        print(f"wire: {len(packets)} {what}: Linux counts {changed}")
        if refused != len(packets):
            failures.append(f"{len(packets) - refused} {what} packets were not refused")
    return failures


def flip(packet):
    """The same with its last byte changed and a sequence number not used before."""
    header = 20 if packet[0] >> 4 == 4 else 40
    protocol = packet[9] if header == 20 else packet[6]
    at = header + {17: 8, 51: 4}.get(protocol, 0) + 4
    number = struct.pack("!I", int.from_bytes(packet[at : at + 4]) + 20)
    packet = packet[:at] + number + packet[at + 4 : -1] + bytes([packet[-1] ^ 1])
    if header == 40 and protocol == 17:  # or UDP drops it
        length = len(packet) - 40
        cleared = packet[:46] + b"\0\0" + packet[48:]
        right = checksum(packet[8:40] + struct.pack("!II", length, 17) + cleared[40:]) or 0xFFFF
        packet = packet[:46] + struct.pack("!H", right) + packet[48:]
    return packet


if __name__ == "__main__":
    main()
