#!/usr/bin/env python3
"""Ten thousand SAs between two gateways, each with its keys and its selectors: how long until they are there, whether
each carries its packets, and a reload of them all under traffic.

    scripts/lab.sh FOREBAY run tests/gateway/many_sas.py [PAIRS]
"""

import hashlib
import json
import re
import signal
import subprocess
import sys
import time

import lab
from lab import Talker, ask, ip, kill, program, start

PAIRS = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000


def far(pair):
    return f"10.2.{128 + pair // 250}.{pair % 250 + 1}"


# One datagram to each address from the second argument's socket; who gets them says which came, once and unchanged.
EACH = """
import socket, sys, time
count, back = int(sys.argv[1]), sys.argv[2] == "back"
far = lambda n: f"10.2.{128 + n // 250}.{n % 250 + 1}"
for n in range(count):
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if back:
        out.bind((far(n), 0))
    out.sendto(n.to_bytes(4, "big"), ("10.1.0.10" if back else far(n), 9100))
    out.close()
    if n % 50 == 49:
        time.sleep(0.005)
"""
GET = """
import select, socket, sys
back = sys.argv[1] == "back"
far = lambda n: f"10.2.{128 + n // 250}.{n % 250 + 1}"
taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
taken.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
taken.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO
taken.bind(("0.0.0.0", 9100))
print("ready", flush=True)
seen, wrong = set(), 0
while True:
    ready, _, _ = select.select([taken, sys.stdin], [], [])
    if taken in ready:
        data, extra, _, sender = taken.recvmsg(64, 64)
        n = int.from_bytes(data, "big")
        to = socket.inet_ntoa(extra[0][2][8:12])
        wrong += n in seen or (sender[0] if back else to) != far(n)
        seen.add(n)
    else:
        print(len(seen), wrong, flush=True)
        break
"""


def key(pair, way):
    return hashlib.sha256(f"{pair} {way}".encode()).hexdigest()[:40]


def sas(own, peer, outbound, inbound, changed=None):
    """The SAs of one gateway: `own` is its number in the addresses."""
    for pair in range(PAIRS):
        near = "10.1.0.0/16" if own == 1 else f"{far(pair)}/32"
        there = f"{far(pair)}/32" if own == 1 else "10.1.0.0/16"
        soft = "rekey_packets = 1000000\n" if pair == changed else ""
        for direction, spi, way in [("out", outbound, own), ("in", inbound, peer)]:
            yield (f'[[sa]]\nname = "{direction}-{pair}"\ndirection = "{direction}"\nspi = {spi + pair}\n{soft}'
                   f'proposal = "aes128gcm16"\nkey = "{key(pair, way)}"\nencapsulation = "udp"\n'
                   f'local = "192.0.2.{own}"\nremote = "192.0.2.{peer}"\nlocal_ts = ["{near}"]\nremote_ts = ["{there}"]\n')


def write(letter, head, *which, changed=None):
    with open(f"{lab.LAB}/{letter}.toml", "w", encoding="utf-8") as file:
        file.write(head + "\n".join(sas(*which, changed=changed)))


def main():
    heads = {letter: lab.file_of(letter).split("[[sa]]")[0] for letter in "ab"}
    which = {"a": (1, 2, 0x10000, 0x40000), "b": (2, 1, 0x40000, 0x10000)}
    for letter in "ab":
        kill(letter, signal.SIGTERM)
        write(letter, heads[letter], *which[letter])
    # All of their addresses are host B's.
    ip("host-b", "route", "add", "local", "10.2.128.0/17", "dev", "lo")
    ip("gw-b", "route", "add", "10.2.128.0/17", "via", "10.2.0.10")
    took = {}
    for letter in "ab":
        begin = time.monotonic()
        process = start(letter, wait=False)
        lab.wait_until(lambda: "gateway started" in lab.log(letter).split("gateway stopped")[-1], "start", process, limit=120)
        took[letter] = time.monotonic() - begin
    lines = re.findall(r"installed.*", lab.log("a"))
    print(f"many SAs: {2 * PAIRS} SAs from a file, the gateways run after {took['a']:.2f} s and {took['b']:.2f} s", *lines[-1:])

    for back in (False, True):
        getter = Talker("host-a" if back else "host-b", GET, "back" if back else "there")
        words = program("host-b" if back else "host-a", EACH, PAIRS, "back" if back else "there")
        subprocess.run(words, check=True, timeout=120)
        time.sleep(1)
        seen, wrong = map(int, getter.end().split())
        assert (seen, wrong) == (PAIRS, 0), f"{seen} of {PAIRS} arrived, {wrong} of them wrong; drops {lab.drops('a')} {lab.drops('b')}"
    for letter in "ab":
        packets = [sa["packets"] for sa in ask(letter, "sas")["sas"]]
        assert packets == [1] * 2 * PAIRS, f"not one packet each: {sorted(set(packets))}"
    print(f"many SAs: {PAIRS} pairs carried a packet each way, each through its own SA")

    # One SA changes; the others do not notice.
    write("a", heads["a"], *which["a"], changed=PAIRS - 1)
    heard = lab.Count("host-b")
    # Behind all the pairs' turn.
    sender = lab.send("host-a", far(7), 0, 20_000, rate=4_000)
    time.sleep(0.5)
    begin = time.monotonic()
    lab.reload("a")
    took = time.monotonic() - begin
    sender.wait(timeout=60)
    said = heard.end()
    assert (said["seen"], said["twice"], said["late"]) == (20_000, 0, 0), said
    counted = {sa["name"]: sa["packets"] for sa in ask("a", "sas")["sas"]}
    assert counted["out-7"] == 20_001 and counted[f"out-{PAIRS - 1}"] == 0, "other SAs began anew"
    print(f"many SAs: a reload that changes one of them took {took:.2f} s, and not one of 20000 packets was lost")


if __name__ == "__main__":
    main()
