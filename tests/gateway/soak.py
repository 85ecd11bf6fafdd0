#!/usr/bin/env python3
"""Everything at once for a while: many flows, fragments, floods, reloads that replace SAs, people who ask and people who
connect and say nothing. Memory and descriptors of both gateways are the same at the end as after the warm-up.

    scripts/lab.sh FOREBAY run tests/gateway/soak.py [SECONDS]
"""

import os
import socket
import subprocess
import sys
import threading
import time

import lab
from lab import HOST_A, HOST_B, ask, balance, program

LENGTH = float(sys.argv[1]) if len(sys.argv) > 1 else 8
# Growth that is no leak: buffers that a first burst fills, pages that the allocator keeps.
ALLOWED = 6 << 20

# Bursts of datagrams of all sizes from ever new ports, until its time is over: how many.
FLOWS = """
import os, random, socket, sys, time
to, end, sent = sys.argv[1], time.monotonic() + float(sys.argv[2]), 0
random.seed(int(sys.argv[3]))
data = os.urandom(40000)
while time.monotonic() < end:
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    if random.random() < 0.3:
        out.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_PMTUDISC_DONT: fragments
    for _ in range(random.randrange(1, 200)):
        try:
            out.sendto(data[:random.choice([0, 1, 64, 500, 1300, 1400, 3000, 20000])], (to, random.randrange(20000, 60000)))
            sent += 1
        except OSError:
            pass
    out.close()
print(sent)
"""
# First fragments of datagrams that never become complete, and packets of unknown senders.
JUNK = """
import os, random, socket, struct, sys, time
end = time.monotonic() + float(sys.argv[3])
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, 255); raw.setsockopt(0, 3, 1)
to, source = map(socket.inet_aton, sys.argv[1:3])
while time.monotonic() < end:
    for n in range(20):
        body = struct.pack("!HHHH", 4500, 4500, 68, 0) + struct.pack("!II", random.choice([0x1001, 0x2001, 7]), n) + os.urandom(52)
        fragment = random.choice([0, 0, 0x2000])
        raw.sendto(struct.pack("!BBHHHBBH4s4s", 0x45, 0, 0, random.randrange(65536), fragment, 64, random.choice([17, 50]), 0, source, to) + body, (sys.argv[1], 0))
    time.sleep(0.004)
"""


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Reloads(threading.Thread):
    """Replaces a pair of SAs beside the others, over and over; gateways with new keys every time."""

    def __init__(self, end):
        super().__init__(daemon=True)
        self.end_at, self.count, self.failure = end, 0, None

    def run(self):
        try:
            files = {letter: lab.file_of(letter) for letter in "ab"}
            while time.monotonic() < self.end_at:
                key = os.urandom(20).hex()
                for letter, direction in (("a", "out"), ("b", "in")):
                    own, peer = (1, 2) if letter == "a" else (2, 1)
                    extra = (f'\n[[sa]]\nname = "extra"\ndirection = "{direction}"\nspi = {0x3000 + self.count % 9}\nproposal = "aes128gcm16"\n'
                             f'key = "{key}"\nencapsulation = "udp"\nlocal = "192.0.2.{own}"\nremote = "192.0.2.{peer}"\n'
                             f'local_ts = ["10.{own}.99.0/24"]\nremote_ts = ["10.{peer}.99.0/24"]\n')
                    with open(f"{lab.LAB}/{letter}.toml", "w", encoding="utf-8") as file:
                        file.write(files[letter] + extra)
                    said = ask(letter, "reload")
                    assert said.get("errors", []) == [] and said["response"] == "reload", said
                self.count += 1
                time.sleep(0.1)
        except Exception as error:
            self.failure = error


class Asking(threading.Thread):
    """Asks, says half a word, says too much, and goes."""

    def __init__(self, end):
        super().__init__(daemon=True)
        self.end_at, self.count, self.failure = end, 0, None

    def run(self):
        try:
            while time.monotonic() < self.end_at:
                for letter in "ab":
                    for said in (b"", b'{"request":"st', b"\xff" * 100_000, b'{"request":"status"}\n'):
                        control = socket.socket(socket.AF_UNIX)
                        try:
                            control.connect(f"{lab.LAB}/{letter}.sock")
                            control.sendall(said)
                        except (BrokenPipeError, ConnectionError):
                            pass
                        control.close()
                    assert ask(letter, "sas")["sas"]
                    self.count += 5
                time.sleep(0.05)
        except Exception as error:
            self.failure = error


def main():
    pids = {letter: lab.pid_of(letter) for letter in "ab"}
    end = time.monotonic() + LENGTH
    programs = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for words in (
        program("host-a", FLOWS, HOST_B, LENGTH, 1), program("host-b", FLOWS, HOST_A, LENGTH, 2),
        program("gw-a", JUNK, "192.0.2.2", "192.0.2.1", LENGTH), program("gw-b", JUNK, "192.0.2.1", "192.0.2.2", LENGTH))]
    reloads, asking = Reloads(end), Asking(end)
    reloads.start()
    asking.start()
    time.sleep(LENGTH * 0.4)
    warm = {letter: resident(pid) for letter, pid in pids.items()}
    # Sources and ports that ICMP said are closed do not matter here.
    for one in programs:
        one.wait(timeout=LENGTH + 30)
    for thread in (reloads, asking):
        thread.join(timeout=20)
        assert thread.failure is None, repr(thread.failure)
    time.sleep(1)
    sent = sum(int(one.communicate()[0] or 0) for one in programs)
    fds = {letter: descriptors(pid) for letter, pid in pids.items()}
    for letter, pid in pids.items():
        assert lab.pid_of(letter) == pid, lab.log(letter)[-2000:]
        status = ask(letter, "status")
        grown = resident(pid) - warm[letter]
        packets = sum(link["packets_in"] + link["packets_out"] for link in status["links"])
        print(f"soak: gateway {letter}: {packets} packets in and out, {status['drops']}; memory {warm[letter] >> 10} KiB after the warm-up, "
              f"{grown >> 10:+} KiB at the end; {fds[letter]} descriptors")
        assert grown < ALLOWED, f"memory grew by {grown} bytes"
        assert fds[letter] < 60, f"{fds[letter]} descriptors"
        assert len(status["sas"]) == 3, status["sas"]
    print(f"soak: {LENGTH:.0f} s, {sent} datagrams of programs, {reloads.count} reloads that replaced SAs, {asking.count} connections to the control sockets")


if __name__ == "__main__":
    main()
