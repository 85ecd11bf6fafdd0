#!/usr/bin/env python3
"""What forged ICMP errors cost a gateway that has very many SAs: the processor time of its process with 2,000 of them a
second, less that without, as percent of a core.

    scripts/lab.sh FOREBAY run tests/gateway/icmp_load.py [PAIRS [SECONDS]]

PAIRS is half the number of SAs; 30,000 by default. Half of the messages quote SPIs of SAs that there are, of the right
peer; the others quote SPIs that there are not. Times depend on the machine: this prints them. What it asserts is that the
gateway has received the messages, and has believed none: no packet was sent that they could quote.
"""

import os
import subprocess
import sys
import time

sys.argv[1:2] = sys.argv[1:2] or ["30000"]
# pylint: disable=wrong-import-position
import signal

import lab
import many_sas
from lab import ask, kill, program, start

RATE = 2_000
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0

# Packet Too Big messages from the far gateway's address: rate, seconds, the first SPI and the number of SAs.
FORGE = """
import random, socket, struct, sys, time
rate, seconds, first, count = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
random.seed(1)
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
sent, begin = 0, time.monotonic()
while time.monotonic() - begin < seconds:
    while sent < rate * (time.monotonic() - begin):
        spi = first + random.randrange(count) if sent % 2 else random.randrange(0x01000000, 0xffffffff)
        udp = struct.pack("!HHHHII", 4500, 4500, 100, 0, spi, random.randrange(1 << 32))
        head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 120, 0, 0x4000, 64, 17, 0, socket.inet_aton("192.0.2.1"), socket.inet_aton("192.0.2.2"))
        body = struct.pack("!BBHHH", 3, 4, 0, 0, random.choice([300, 600, 1000])) + head + udp
        body = body[:2] + struct.pack("!H", checksum(body)) + body[4:]
        raw.sendto(body, ("192.0.2.1", 0))
        sent += 1
    time.sleep(0.002)
print(sent)
"""


def cpu(pid):
    """Processor time of a process in seconds, of all its threads."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    heads = {letter: lab.file_of(letter).split("[[sa]]")[0] for letter in "ab"}
    for letter in "ab":
        kill(letter, signal.SIGTERM)
    many_sas.write("a", heads["a"], 1, 2, 0x10000, 0x40000)
    process = start("a", wait=False)
    lab.wait_until(lambda: "gateway started" in lab.log("a").split("gateway stopped")[-1], "start", process, limit=240)
    pid = ask("a", "status").get("pid") or process.pid
    time.sleep(2)
    figures = {}
    for name, rate in (("idle", 0), ("forged", RATE)):
        before, begin = cpu(pid), time.monotonic()
        if rate:
            words = program("gw-b", FORGE, rate, SECONDS, 0x10000, many_sas.PAIRS)
            sent = int(subprocess.run(words, check=True, stdout=subprocess.PIPE, timeout=SECONDS + 60).stdout)
        else:
            time.sleep(SECONDS)
        figures[name] = 100 * (cpu(pid) - before) / (time.monotonic() - begin)
    print(f"ICMP load: {2 * many_sas.PAIRS} SAs, {sent / SECONDS:.0f} forged messages a second: "
          f"{figures['forged']:.2f} % of a core, {figures['idle']:.2f} % without")
    engines = ask("a", "status")["engines"]
    learnt, unmatched, limited = (sum(one[name] for one in engines) for name in ("paths_learnt", "paths_unmatched", "paths_limited"))
    print(f"ICMP load: {sent} messages; {learnt} believed, {unmatched} quote nothing that was sent, {limited} beyond the rate")
    assert learnt == 0 and unmatched + limited >= 0.95 * sent, "not what the gateway counts of forged messages"


if __name__ == "__main__":
    main()
