"""Traffic that is watched for gaps: programs that send numbered datagrams over many flows and say when none came, a judge of
what gateways send, and what sends their recorded packets again."""

import json
import subprocess

from lab import Talker, program

# Counts numbered datagrams at several ports and logs the gaps in which none came; a line in asks, "end" ends.
LISTEN = """
import json, select, socket, sys, time
ports = {}
for name, address, port in json.loads(sys.argv[1]):
    taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taken.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)
    taken.bind((address, port))
    ports[taken] = {"name": name, "seen": set(), "twice": 0, "gaps": [], "last": time.monotonic()}
print("ready", flush=True)
while True:
    ready, _, _ = select.select([*ports, sys.stdin], [], [])
    for taken in ready:
        if taken is sys.stdin:
            continue
        flow, number, now = ports[taken], int.from_bytes(taken.recv(65535)[:8], "big"), time.monotonic()
        flow["twice"] += number in flow["seen"]
        flow["seen"].add(number)
        if now - flow["last"] > 0.1:
            flow["gaps"].append((flow["last"], now))
        flow["last"] = now
    if sys.stdin in ready:
        word = sys.stdin.readline()
        print(json.dumps({flow["name"]: {**flow, "seen": len(flow["seen"])} for flow in ports.values()}), flush=True)
        if word != "ask\\n":
            break
"""
# Sends numbered datagrams of 64 bytes (with their IP header) to each of several ports until a line comes in: how many.
SPEAK = """
import json, select, socket, sys, time
flows, rate = [(name, source, (address, port)) for name, source, address, port in json.loads(sys.argv[1])], float(sys.argv[2])
outs = []
for name, source, _ in flows:
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.bind((source, 0))
    outs.append(out)
print("ready", flush=True)
begin, n = time.monotonic(), 0
while not select.select([sys.stdin], [], [], 0)[0]:
    for out, (_, _, to) in zip(outs, flows):
        try:
            out.sendto(n.to_bytes(8, "big") + bytes(28), to)
        except OSError:
            pass
    n += 1
    ahead = begin + n / rate - time.monotonic()
    if ahead > 0.001:
        time.sleep(ahead)
print(n, flush=True)
"""
# Judges what comes in by ports of a switch: of gateways everything, of their peer the packets that are to be sent again.
JUDGE = """
import collections, json, select, socket, struct, sys
# Every protocol: what a port of a bridge receives is seen so only.
tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
tap.setsockopt(socket.SOL_SOCKET, 33, 1 << 27)
ours, peer, shared = sys.argv[2].split(","), sys.argv[3], set(map(socket.inet_aton, sys.argv[4].split(",")))
print("ready", flush=True)
numbers, ivs, packets, clear, twice = set(), set(), 0, 0, []
recorded = collections.deque(maxlen=600)
sites = (bytes([10, 1]), bytes([10, 2]))
while True:
    ready, _, _ = select.select([tap, sys.stdin], [], [])
    if tap in ready:
        packet, (port, protocol, kind, *_) = tap.recvfrom(65535)
        if protocol != 0x0800 or kind == 4 or port not in ours and port != peer:
            continue
        if packet[12:14] in sites or packet[16:18] in sites:
            clear += 1
        if packet[9] == 17 and packet[22:24] == b"\\x11\\x94" and len(packet) > 60:
            spi, number, iv = struct.unpack_from("!IIQ", packet, 28)
            if port == peer:
                # Not what is sent again.
                if packet[12:16] != bytes([192, 0, 2, 66]):
                    recorded.append(packet)
                continue
            # A host that has lost the address forwards what still comes for it, unchanged.
            if packet[12:16] not in shared:
                continue
            packets += 1
            for known, one in ((numbers, (spi, number)), (ivs, (spi, iv))):
                if one in known:
                    twice.append((port, spi, number, iv))
                known.add(one)
    if sys.stdin in ready:
        word = sys.stdin.readline().strip()
        if word == "record":
            with open(sys.argv[1], "wb") as file:
                for packet in recorded:
                    file.write(struct.pack("!I", len(packet)) + packet)
        print(json.dumps({"packets": packets, "clear": clear, "twice": twice[:5], "recorded": len(recorded)}), flush=True)
        if word == "end":
            break
"""
# Sends IPv4 packets of a file again, as if from elsewhere.
AGAIN = """
import socket, struct, sys
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, 255)
bytes_, at, sent = open(sys.argv[1], "rb").read(), 0, 0
while at < len(bytes_):
    length, = struct.unpack_from("!I", bytes_, at)
    packet = bytearray(bytes_[at + 4:at + 4 + length])
    at += 4 + length
    packet[12:16] = socket.inet_aton("192.0.2.66")
    packet[26:28] = bytes(2)
    raw.sendto(bytes(packet), (socket.inet_ntoa(packet[16:20]), 0))
    sent += 1
print(sent)
"""


class Asked(Talker):
    """A program that answers each line."""

    def ask(self, word="ask"):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def flows(namespace, text, all_, *arguments):
    return Asked(namespace, text, json.dumps(all_), *arguments)


def again(namespace, path):
    """Sends recorded packets again: how many."""
    done = subprocess.run(program(namespace, AGAIN, path), capture_output=True, text=True, check=True)
    return int(done.stdout)
