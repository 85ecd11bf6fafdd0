"""Four unlike processors at each end, beside the running core alone: throughput, and what arrives out of order.

Arrivals out of order are counted where they tell: by the receiving TCP (segments that it had to put aside, TCPOFOQueue,
and the reorderings that the sending TCP saw by SACK), and, in runs of their own so that looking does not slow what is
timed, in the sequence numbers of ESP between the gateways and of TCP behind the second one.
"""

import subprocess
import sys

from . import traffic

RECEIVER = ["TcpExt:TCPOFOQueue", "TcpExt:TCPOFODrop"]
SENDER = ["TcpExt:TCPSACKReorder", "TcpExt:TCPDSACKRecv", "Tcp:RetransSegs"]

# Reads what passes an interface with a packet socket: the sequence numbers of ESP, those of a train one by one,
# or those of TCP; counts those below what has been seen.
SEE = """
import socket, struct, sys, time
name, what, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
tap.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
tap.bind((name, 0x0800)); tap.settimeout(0.2)
spi = struct.pack("!I", 0x1001)
print("ready", flush=True)
end, seen, below, highest, missing = time.monotonic() + seconds, 0, 0, {}, 0
while time.monotonic() < end:
    try:
        packet, sender = tap.recvfrom(1 << 17)
    except TimeoutError:
        continue
    if sender[2] == 4:
        continue
    at = (packet[0] & 15) * 4
    if what == "esp" and packet[9] == 17 and packet[at + 8:at + 12] == spi:
        at += 8
        while at >= 0:
            number, = struct.unpack_from("!I", packet, at + 4)
            top = highest.get(spi)
            seen += 1
            below += top is not None and number <= top
            missing += max(0, number - top - 1) if top is not None else 0
            highest[spi] = max(number, top or 0)
            at = packet.find(spi, at + 8)
            while at >= 0 and abs(struct.unpack_from("!I", packet + bytes(8), at + 4)[0] - number) > 1 << 20:
                at = packet.find(spi, at + 1)
    if what == "tcp" and packet[9] == 6:
        flow = packet[12:20] + packet[at:at + 4]
        number, = struct.unpack_from("!I", packet, at + 4)
        length = len(packet) - at - (packet[at + 12] >> 4) * 4
        if length == 0:
            continue
        seen += 1
        top = highest.get(flow)
        distance = 0 if top is None else (number - top) & 0xffffffff
        below += distance >= 1 << 31
        if top is None or distance < 1 << 31:
            highest[flow] = (number + length) & 0xffffffff
lost = struct.unpack("II", tap.getsockopt(263, 6, 8))[1]
print(seen, below, lost, missing)
"""


def counters(peer, side, names):
    found = dict.fromkeys(names, 0)
    for path in ("/proc/net/netstat", "/proc/net/snmp"):
        lines = peer.pair.run(side, "cat", path).splitlines()
        for head, values in zip(lines[::2], lines[1::2]):
            prefix = head.split()[0]
            for name, value in zip(head.split()[1:], values.split()[1:]):
                if prefix + name in found:
                    found[prefix + name] = int(value)
    return found


def throughput(peer, seconds):
    before = [counters(peer, "b", RECEIVER), counters(peer, "a", SENDER)]
    meter = traffic.Meter(peer)
    end = traffic.iperf(peer, seconds)
    found = meter.read()
    after = [counters(peer, "b", RECEIVER), counters(peer, "a", SENDER)]
    found["gbit_per_s"] = end["sum_received"]["bits_per_second"] / 1e9
    found["cpu_s_per_gbit"] = (found["user_s"] + found["kernel_s"]) / max(1e-9, end["sum_received"]["bytes"] * 8e-9)
    for old, new in zip(before, after):
        found |= {name.split(":")[1]: new[name] - old[name] for name in new}
    return found


def looked_at(peer, seconds):
    """Sequence numbers below earlier ones, of ESP between the gateways and of TCP behind the second."""
    found = {}
    for what, interface in (("esp", "wan"), ("tcp", "fb0")):
        words = peer.pair.words("b", sys.executable, "-c", SEE, interface, what, seconds)
        seer = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert seer.stdout.readline() == "ready\n"
        before = counters(peer, "a", SENDER)["Tcp:RetransSegs"]
        traffic.iperf(peer, seconds)
        again = counters(peer, "a", SENDER)["Tcp:RetransSegs"] - before
        seen, below, lost, missing = map(int, seer.stdout.readline().split())
        seer.wait()
        found[what] = {"seen": seen, "below": below, "not_looked_at": lost, "missing": missing, "sent_again": again}
    return found


def shares(peer):
    """What part of the packets each processor did, both gateways together."""
    packets = {}
    for side in "ab":
        for one in peer.ask(side, "show", "processors")["processors"]:
            packets[one["name"]] = packets.get(one["name"], 0) + one["packets"]
    total = max(1, sum(packets.values()))
    return {name: count / total for name, count in packets.items()}
