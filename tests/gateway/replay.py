#!/usr/bin/env python3
"""Recorded packets that are sent again from elsewhere after the receiver was stopped, killed, reloaded or rekeyed: none is
delivered, none moves the peer, and each is counted. New packets pass; after a kill only as many are refused as the
receiver may have received in its last second.

    scripts/lab.sh FOREBAY run tests/gateway/replay.py
"""

import os
import signal
import struct
import time

import lab
from lab import HOST_A, HOST_B, Count, Wire, ask, edit, ip, kill, program, send

COUNT = 1_000
ELSEWHERE = "192.0.2.66"
ESN = os.environ.get("ESN") == "1"
# Numbers that are noted ahead at least (LEAST in gateway/state/src/windows/state.rs); after a pause none are.
LEAST = 16

# Sends IPv4 packets of a file again, each behind its length: from another address, at a rate.
AGAIN = """
import socket, struct, sys, time
path, source, to, rate = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, 255)
bytes_, at, sent = open(path, "rb").read(), 0, 0
begin = time.monotonic()
while at < len(bytes_):
    length, = struct.unpack_from("!I", bytes_, at)
    packet = bytearray(bytes_[at + 4:at + 4 + length])
    at += 4 + length
    packet[12:16] = socket.inet_aton(source)
    if packet[9] == 17:
        packet[26:28] = b"\\0\\0"
    raw.sendto(bytes(packet), (to, 0))
    sent += 1
    ahead = begin + sent / rate - time.monotonic()
    if ahead > 0.002:
        time.sleep(ahead)
print(sent)
"""


def start(letter):
    """Starts a gateway, and waits until it answers."""
    def answers():
        try:
            return "sas" in ask(letter, "status")
        except OSError:
            return False

    # Of a gateway that was killed just now.
    lab.wait_until(lambda: "fb0" not in ip(f"gw-{letter}", "link", "show"), "the end of the interface")
    lab.start(letter)
    lab.wait_until(answers, f"the control socket of gateway {letter}")


def inbound(letter="b"):
    """The inbound SA of a gateway, and the peers that have moved there."""
    status = ask(letter, "status")
    sa = next(sa for sa in status["sas"] if sa["direction"] == "in")
    return sa, sum(engine["moved_peers"] for engine in status["engines"])


def exchange(first, count, rate=2_000):
    """Sends datagrams from A's host to B's; which arrived."""
    heard = Count("host-b", numbers=True)
    assert send("host-a", HOST_B, first, count, rate).wait(timeout=60) == 0
    return heard.end(settle=0.5)["numbers"]


def record(first, count=COUNT):
    """Delivers datagrams, and gives the packets that carried them."""
    wire = Wire()
    arrived = exchange(first, count)
    packets = [packet for kind, leaves, packet in wire.end() if kind == 0x0800 and leaves]
    sealed = [packet for packet in packets if packet[9] == 50 or packet[9] == 17 and packet[20:22] == b"\x11\x94" and len(packet) > 60]
    assert len(arrived) == count == len(sealed), (len(arrived), len(sealed))
    return sealed


def refused(sa, counter):
    """With ESN, numbers far below the window are taken for numbers 2^32 ahead, and their ICVs fail (RFC 4303 A2.2)."""
    return sa[counter] + (sa["auth_failures"] if ESN and counter == "replays" else 0)


def attack(sealed, what, counter="replays"):
    """Sends packets again, from elsewhere and from where they came: none may have an effect."""
    path = f"{lab.LAB}/recorded"
    with open(path, "wb") as file:
        for packet in sealed:
            file.write(struct.pack("!I", len(packet)) + packet)
    (before, moved), heard = inbound(), Count("host-b", numbers=True)
    for source in (ELSEWHERE, "192.0.2.1"):
        attacker = program("gw-a", AGAIN, path, source, "192.0.2.2", 4_000)
        assert int(lab.subprocess.run(attacker, check=True, capture_output=True, text=True, timeout=60).stdout) == len(sealed)
    said = heard.end(settle=0.5)
    after, moved_after = inbound()
    assert said["seen"] == 0, f"{what}: {said['seen']} of {len(sealed)} recorded packets were delivered"
    assert after["packets"] == before["packets"], (what, before, after)
    assert refused(after, counter) - refused(before, counter) == 2 * len(sealed), (what, before, after)
    assert moved_after == moved and after["remote"] == "192.0.2.1", f"{what}: the peer has moved"
    # What B sends still goes to A.
    heard = Count("host-a", numbers=True)
    assert send("host-b", HOST_A, 0, 20).wait(timeout=30) == 0
    assert heard.end()["seen"] == 20, f"{what}: what B sends does not arrive"
    print(f"replay: {what}: {2 * len(sealed)} recorded packets refused, none delivered, the peer has not moved")


def passes(first, count, what):
    arrived = exchange(first, count)
    assert arrived == list(range(first, first + count)), f"{what}: of {count} new packets {len(arrived)} arrived"


def stopped():
    sealed = record(0)
    kill("b", signal.SIGTERM)
    start("b")
    attack(sealed, "after a clean stop")
    passes(10_000, 300, "after a clean stop")
    kill("b", signal.SIGTERM)
    start("b")
    passes(11_000, 300, "after a clean stop")
    attack(sealed, "after two clean stops")


def reloaded():
    sealed = record(20_000)
    edit("b", 'remote_ts = ["10.1.0.0/16"]', 'remote_ts = ["10.1.0.0/16", "10.9.0.0/16"]')
    lab.reload("b")
    attack(sealed, "after a reload that replaces the SA")
    passes(21_000, 300, "after a reload")
    edit("b", 'remote_ts = ["10.1.0.0/16", "10.9.0.0/16"]', 'remote_ts = ["10.1.0.0/16"]')
    lab.reload("b")
    passes(22_000, 300, "after a second reload")
    # Under traffic, too.
    heard = Count("host-b", numbers=True)
    sender = send("host-a", HOST_B, 23_000, 6_000, 3_000)
    for old, new in (("10.1.0.0/16", "10.0.0.0/15"), ("10.0.0.0/15", "10.1.0.0/16")) * 2:
        time.sleep(0.3)
        edit("b", f'remote_ts = ["{old}"]', f'remote_ts = ["{new}"]')
        lab.reload("b")
    assert sender.wait(timeout=60) == 0
    said = heard.end()
    assert said["seen"] == 6_000, f"{said['seen']} of 6000 packets arrived while the SA was replaced"


def killed(idle):
    """At rest nothing new is refused, under traffic what came in about a second."""
    sealed = record(30_000)
    if idle:
        time.sleep(4)
    kill("b")
    start("b")
    attack(sealed, "after a kill" + (" at rest" if idle else ""))
    before, _ = inbound()
    arrived = exchange(40_000, 4 * COUNT)
    lost = 4 * COUNT - len(arrived)
    after, _ = inbound()
    assert arrived == list(range(40_000 + lost, 40_000 + 4 * COUNT)), "refused in between"
    assert lost <= (0 if idle else 2 * COUNT), f"{lost} new packets refused"
    assert after["unsure"] - before["unsure"] == lost == after["replays"] - before["replays"], (lost, before, after)
    attack(sealed, "behind the first new packets")
    # Killed again before anything came: nothing more is refused.
    kill("b")
    start("b")
    kill("b")
    start("b")
    again = exchange(50_000, 4 * COUNT)
    assert 4 * COUNT - len(again) <= 2 * 2_000 + 2 * LEAST, len(again)
    print(f"replay: after a kill{' at rest' if idle else ''} {lost} new packets were refused and counted as unsure")


def rekeyed():
    """New keys are a new SA; the old ones go on where they were if they come back."""
    sealed = record(60_000)
    path = f"{lab.LAB}/a-to-b.key"
    with open(path, encoding="utf-8") as file:
        old = file.read()
    def rekey(key):
        with open(path, "w", encoding="utf-8") as file:
            file.write(key)
        for letter in "ba":
            lab.reload(letter)
    rekey(os.urandom(len(old) // 2).hex())
    attack(sealed, "after a rekey", "auth_failures")
    passes(61_000, 300, "after a rekey")
    rekey(old)
    attack(sealed, "after the old keys came back")
    passes(62_000, 300, "with the old keys")


def main():
    ip("gw-a", "addr", "add", f"{ELSEWHERE}/24", "dev", "wan")
    udp = os.environ.get("ENCAPSULATION", "udp") == "udp"
    for number, letter in enumerate("ab", 1):
        if udp:
            edit(letter, f'listen = "192.0.2.{number}:4500"\n', f'listen = "192.0.2.{number}:4500"\ngso = false\nkeepalive = 0\n')
        if ESN:
            edit(letter, 'proposal = ', 'esn = true\nproposal = ')
        kill(letter, signal.SIGTERM)
        start(letter)
    stopped()
    reloaded()
    killed(idle=True)
    killed(idle=False)
    rekeyed()


if __name__ == "__main__":
    main()
