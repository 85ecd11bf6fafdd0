#!/usr/bin/env python3
"""An attacker between the gateways repeats, reorders, forges and truncates packets, and unknown hosts send packets
to both sides while programs communicate. Every packet of the programs arrives once and unchanged; every other packet is
dropped and counted under its reason.

    scripts/lab.sh FOREBAY run tests/gateway/hostile.py
"""

import json
import os
import signal
import subprocess
import sys
import time

import lab
from lab import HOST_A, HOST_B, Count, Talker, Wire, ask, balance, drops, edit, in_the_clear, ip, kill, program, send, start

SEED = int(os.environ.get("SEED", "7"))

# Passes frames between two interfaces, and does to ESP in UDP what its last argument says, until a line comes in.
BOX = """
import json, random, select, socket, sys
left, right = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in range(2))
for end, name in ((left, "left"), (right, "right")):
    end.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
    end.setsockopt(socket.SOL_SOCKET, 32, 1 << 26)
    end.bind((name, 3))
    end.setblocking(False)
random.seed(int(sys.argv[1]))
done = {side: dict.fromkeys(("passed", "again", "replayed", "forged", "cut", "stranger", "late"), 0) for side in "lr"}
old = {"l": [], "r": []}
held = {"l": [], "r": []}
def put(end, frame):
    try:
        end.send(frame)
        return 1
    except OSError as error:
        print("lost", len(frame), error, file=sys.stderr)
        return 0
print("ready", flush=True)
def forward(side, frame, out):
    counts, is_esp = done[side], len(frame) > 58 and frame[12:14] == b"\\x08\\x00" and frame[23] == 17 and frame[36:38] == b"\\x11\\x94" and frame[42:46] != bytes(4)
    if not is_esp:
        put(out, frame)
        return
    dice = random.random()
    forged = bytearray(frame); forged[40:42] = b"\\0\\0"
    if dice < 0.05:
        forged[random.randrange(50, len(frame))] ^= 1 << random.randrange(8)
        counts["forged"] += put(out, bytes(forged))
    elif dice < 0.08:
        forged[42:46] = random.randbytes(4)[:3] + b"\\x77"
        counts["stranger"] += put(out, bytes(forged))
    elif dice < 0.11:
        size = random.randrange(43, len(frame))
        forged = forged[:size]
        forged[16:18] = (size - 14).to_bytes(2, "big"); forged[38:40] = (size - 34).to_bytes(2, "big")
        forged[24:26] = b"\\0\\0"
        total = sum(int.from_bytes(forged[14 + i:16 + i], "big") for i in range(0, 20, 2))
        while total >> 16:
            total = (total & 0xffff) + (total >> 16)
        forged[24:26] = (total ^ 0xffff).to_bytes(2, "big")
        counts["cut"] += put(out, bytes(forged))
    if dice > 0.9 and len(held[side]) < 40:
        counts["late"] += 1
        held[side].append([random.randrange(1, 40), frame])
    else:
        counts["passed"] += put(out, frame)
        if dice > 0.85:
            counts["again"] += put(out, frame)
        old[side].append(frame)
        if len(old[side]) > 3000:
            old[side].pop(0)
    if 0.2 < dice < 0.23 and old[side]:
        counts["replayed"] += put(out, random.choice(old[side]))
    release(side, out, 1)
def release(side, out, steps):
    for one in held[side]:
        one[0] -= steps
    for one in [one for one in held[side] if one[0] <= 0]:
        held[side].remove(one)
        done[side]["passed"] += put(out, one[1])
        old[side].append(one[1])
end = False
while not end:
    ready, _, _ = select.select([left, right, sys.stdin], [], [], 0.05)
    end = sys.stdin in ready
    if not ready or end:
        release("l", right, 100); release("r", left, 100)
    for side, one, other in (("l", left, right), ("r", right, left)):
        for _ in range(64):
            try:
                frame, about = one.recvfrom(65535)
            except (BlockingIOError, OSError):
                break
            if about[2] != 4:
                forward(side, frame, other)
print(json.dumps(done), flush=True)
"""

# Throws packets of many kinds, by raw sockets: how, to whom, from whom, seed, how many.
THROW = """
import os, random, socket, struct, sys
side, to, source, seed, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
random.seed(seed)
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, 255)
raw.setsockopt(socket.IPPROTO_IP, socket.IP_HDRINCL, 1)
def address(text):
    return socket.inet_aton(text)
def packet(protocol, body, options=b"", fragment=0, identification=0, ttl=64):
    options += b"\\0" * (-len(options) % 4)
    head = struct.pack("!BBHHHBBH4s4s", 0x45 + len(options) // 4, random.randrange(256), 20 + len(options) + len(body),
                       identification, fragment, ttl, protocol, 0, address(source), address(to))
    return head + options + body
def udp(body, port=4500):
    return struct.pack("!HHHH", 4500, port, 8 + len(body), 0) + body
spis = [0x1001, 0x2001, 0x1002, 0, 1, 0xffffffff]
esp = lambda: struct.pack("!II", random.choice(spis), random.randrange(1 << 32)) + random.randbytes(random.randrange(300))
kinds = [
    lambda: packet(17, udp(esp())), lambda: packet(17, udp(random.randbytes(random.randrange(40)))),
    lambda: packet(17, udp(bytes(4) + random.randbytes(60))), lambda: packet(17, udp(b"\\xff")), lambda: packet(17, udp(b"")),
    lambda: packet(50, esp()), lambda: packet(51, bytes([6, random.randrange(256)]) + random.randbytes(60)),
    lambda: packet(17, udp(esp()), options=bytes([random.choice([7, 68, 130, 148])]) + random.randbytes(random.randrange(36))),
    lambda: packet(50, random.randbytes(random.randrange(1, 1400)), fragment=random.choice([0x2000, 1, 0x2001, 0x1fff, 5]), identification=random.randrange(4)),
    lambda: packet(17, random.randbytes(48), fragment=random.choice([0x2000, 2, 0x2003, 6]), identification=random.randrange(4)),
    # ICMP: the path to the peer is small.
    lambda: packet(1, b"\\x03\\x04\\0\\0\\0\\0" + struct.pack("!H", random.choice([0, 68, 500, 1280, 65535])) + packet(17, udp(struct.pack("!II", random.choice(spis), 5)))[:28 + 8]),
    lambda: packet(41, bytes([0x60]) + random.randbytes(60)), lambda: packet(4, random.randbytes(60)),
    lambda: packet(random.randrange(256), random.randbytes(random.randrange(100)), ttl=random.choice([0, 1, 255])),
    lambda: packet(6, random.randbytes(random.randrange(60))),
]
sent = 0
for _ in range(count):
    bytes_ = random.choice(kinds)()
    if side == "inner":
        bytes_ = bytearray(bytes_); bytes_[16:20] = address(to)
    try:
        raw.sendto(bytes(bytes_), (to, 0)); sent += 1
    except OSError:
        pass
print(sent)
"""
# Random IPv6, as frames straight onto the interface: chains of extension headers, fragments, ESP and AH inside.
THROW6 = """
import random, socket, struct, sys
random.seed(int(sys.argv[1]))
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); out.bind((sys.argv[2], 0x86dd))
for _ in range(int(sys.argv[3])):
    body, following = random.randbytes(random.randrange(80)), random.choice([17, 50, 51, 59, 58, 6])
    for _ in range(random.randrange(12)):
        kind = random.choice([0, 43, 60, 44, 135, 51])
        body = (bytes([following, 0]) + random.randbytes(6) if kind == 44 else bytes([following, random.choice([0, 0, 1, 255])]) + random.randbytes(14)) + body
        following = kind
    head = struct.pack("!IHBB", 6 << 28 | random.randrange(1 << 28), random.choice([len(body), 0, 65535]), following, 64) + random.randbytes(32)
    mac = bytes.fromhex(open("/sys/class/net/" + sys.argv[2] + "/address").read().replace(":", ""))
    try:
        out.send(b"\\xff" * 6 + mac + b"\\x86\\xdd" + head + body)
    except OSError:
        pass
"""


def insert_box():
    """Puts a network namespace in the middle of the cable between the gateways."""
    ip("gw-a", "link", "del", "wan")
    subprocess.run(["ip", "netns", "add", "middle"], check=True)
    for letter, side, number in (("a", "left", 1), ("b", "right", 2)):
        subprocess.run(["ip", "link", "add", "wan", "netns", f"gw-{letter}", "type", "veth", "peer", "name", side, "netns", "middle"], check=True)
        ip(f"gw-{letter}", "addr", "add", f"192.0.2.{number}/24", "dev", "wan")
        ip("middle", "link", "set", side, "up")
        ip(f"gw-{letter}", "link", "set", "wan", "up")
        lab.no_offloads("middle", side)
        lab.no_offloads(f"gw-{letter}", "wan")
    # ARP goes through the box too.
    return Talker("middle", BOX, SEED)


def join():
    """The cable as it was."""
    for letter in "ab":
        ip(f"gw-{letter}", "link", "del", "wan")
    subprocess.run(["ip", "link", "add", "wan", "netns", "gw-a", "type", "veth", "peer", "name", "wan", "netns", "gw-b"], check=True)
    for letter, number in (("a", 1), ("b", 2)):
        ip(f"gw-{letter}", "addr", "add", f"192.0.2.{number}/24", "dev", "wan")
        ip(f"gw-{letter}", "link", "set", "wan", "up")
    lab.wait_until(lambda: subprocess.run(lab.inside("host-a", "ping", "-c1", "-W1", HOST_B), capture_output=True).returncode == 0, "a ping")


def quiet():
    time.sleep(1)
    for letter in "ab":
        came, went = balance(letter)
        assert came == went, f"gateway {letter}: {came} packets came, of {went} it is known what became: {json.dumps(ask(letter, 'status'), indent=1)}"


def middle():
    for number, letter in enumerate("ab", 1):
        edit(letter, f"listen = \"192.0.2.{number}:4500\"\n", f"listen = \"192.0.2.{number}:4500\"\ngso = false\nkeepalive = 0\n")
        kill(letter, signal.SIGTERM)
    box = insert_box()
    for letter in "ab":
        start(letter)
    # ARP first.
    lab.wait_until(lambda: subprocess.run(lab.inside("host-a", "ping", "-c1", "-W1", HOST_B), capture_output=True).returncode == 0, "a ping through the box")
    before = {letter: ask(letter, "status") for letter in "ab"}
    count, sizes = 12_000, (16, 50, 200, 900, 1300)
    heard = [Count("host-b"), Count("host-a")]
    senders = [send("host-a", HOST_B, 0, count, 2_000, sizes), send("host-b", HOST_A, 0, count, 2_000, sizes)]
    for sender in senders:
        assert sender.communicate(timeout=60)[0] == "0\n"
    said = [one.end(settle=1) for one in heard]
    quiet()
    box = json.loads(box.end())
    for letter, side, one in (("b", "l", said[0]), ("a", "r", said[1])):
        assert (one["seen"], one["twice"], one["forged"]) == (count, 0, 0), (letter, one, box, drops("a"), drops("b"))
        assert one["late"] > 0, "the box does not reorder; the test is worth nothing"
        status, did = ask(letter, "status"), box[side]
        then = before[letter]["drops"]
        reasons = {reason: n - then.get(reason, 0) for reason, n in status["drops"].items() if n > then.get(reason, 0)}
        thrown = did["again"] + did["replayed"] + did["forged"] + did["cut"] + did["stranger"]
        over = lambda doc: sum(sum(link["passed_over"].values()) + sum(link["drops"].get(reason, 0) for reason in lab.BEFORE)
                               for link in doc["links"] if link["side"] == "outside")
        passed_over = over(status) - over(before[letter])
        assert sum(reasons.values()) + passed_over == thrown, (letter, reasons, passed_over, did, said)
        repeated = did["again"] + did["replayed"]
        assert repeated <= reasons["in_state_seq_error"] <= repeated + did["forged"] + did["cut"], (reasons, did)
        assert reasons["in_no_states"] >= did["stranger"], (reasons, did)
        print(f"hostile: {did} on the way to gateway {letter}: {count} datagrams arrived, each once; dropped {reasons}")


def storm():
    """Strangers on both sides while programs talk; then nothing is amiss."""
    heard = Count("host-b")
    wire = Wire()
    throwers = [subprocess.Popen(words, stdout=subprocess.DEVNULL) for words in (
        program("gw-b", THROW, "outer", "192.0.2.1", "192.0.2.2", SEED, 40_000),
        program("gw-a", THROW, "outer", "192.0.2.2", "192.0.2.1", SEED + 1, 40_000),
        program("gw-b", THROW, "outer", "192.0.2.1", "198.51.100.9", SEED + 2, 20_000),
        program("host-a", THROW, "inner", HOST_B, HOST_A, SEED + 3, 20_000),
        program("host-b", THROW, "inner", HOST_A, "203.0.113.7", SEED + 4, 20_000),
        program("gw-b", THROW6, SEED, "wan", 5_000),
        program("gw-a", THROW6, SEED, "lan", 5_000),
    )]
    sender = send("host-a", HOST_B, 0, 10_000, 2_000, (16, 100, 1000))
    assert sender.communicate(timeout=60)[0] == "0\n"
    for thrower in throwers:
        assert thrower.wait(timeout=60) == 0
    said = heard.end(settle=1)
    packets = wire.end()
    # Programs share the interfaces' queues with the storm: some may be lost there, none in the gateways.
    assert said["seen"] > 9_000 and (said["twice"], said["forged"]) == (0, 0), (said, drops("a"), drops("b"))
    clear = in_the_clear(packets)
    assert not clear, f"{len(clear)} in the clear: {clear[0].hex()}"
    quiet()
    # And all is well.
    heard = Count("host-b")
    assert send("host-a", HOST_B, 0, 1_000, 2_000).communicate(timeout=30)[0] == "0\n"
    said = heard.end()
    assert said["seen"] == 1_000, said
    print(f"hostile: a storm of 150000 packets on both sides; dropped at a {drops('a')}, at b {drops('b')}; every packet is accounted for")


def main():
    if os.environ.get("ENCAPSULATION", "udp") == "udp":
        middle()
        join()
    storm()


if __name__ == "__main__":
    main()
