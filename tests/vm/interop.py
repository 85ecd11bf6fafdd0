#!/usr/bin/env python3
"""Linux's IPsec against `forebay gateway`, with hosts behind both that know of nothing.

    10.1.x.y, fd00:1::n            a namespace                                        a virtual machine
    hosts -- TUN "forebay0" -- forebay gateway -- tap "wire" 192.0.2.1 ...... eth0 192.0.2.2 -- Linux's xfrm -- 10.2.x.y, fd00:2::n

For each pair of SAs (cases.py), which has hosts of its own: pings of many sizes from Linux's side, beyond the MTU too
(fragments), and a TCP connection from Forebay's side that sends a file and gets it back.
"""

import argparse
import hashlib
import random
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from cases import FOREBAY, LINUX, matrix
from vm import Namespace, Vm, VmError, enter
from wire import prepare, stats

PINGS = (0, 56, 1000, 1300, 3000)  # bytes of ICMP payload
FILE = 200_000


def configuration(cases, work, processors):
    """The gateway's file."""
    sas = "".join(case.toml(True, "mtu = 1500") + case.toml(False) for case in cases)
    return f"""
[inside]
name = "forebay0"
mtu = 1360
routes = []

[[outside]]
kind = "udp"
listen = "0.0.0.0:4500"

[[outside]]
kind = "udp"
listen = "[::]:4500"

[[outside]]
kind = "raw"

[limits]
packet_size = 9216

[keys]
state = "{work}/state"

[control]
socket = "{work}/control.sock"

{processors}
{sas}"""


class Gateway:
    """`forebay gateway` on this side."""

    def __init__(self, program, cases, work, processors):
        self.log = open(work / "gateway.log", "w+")
        (work / "gateway.toml").write_text(configuration(cases, work, processors))
        (work / "gateway.toml").chmod(0o600)
        self.process = subprocess.Popen([program, "gateway", "--config", work / "gateway.toml"], stdout=self.log, stderr=subprocess.STDOUT)

    def wait(self, seconds=60):
        deadline = time.monotonic() + seconds
        while "gateway started" not in self.text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise VmError(f"the gateway did not start: {self.process.poll()}\n{self.text()}")
            time.sleep(0.1)

    def text(self):
        self.log.flush()
        self.log.seek(0)
        return self.log.read()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise VmError("the gateway does not end") from None
        return self.process.returncode


def network(here, cases):
    """Addresses and routes of this side; packets sealed in transport mode are routed by
    their protocol, not back into the tunnel."""
    addresses = "".join(f"addr add {host}/{32 if case.inner == 4 else 128} dev lo{'' if case.inner == 4 else ' nodad'}\n"
                        for case in cases for host in case.hosts()[:1])
    subprocess.run(["ip", "-batch", "-"], input=addresses, text=True, check=True)
    here.sh(f"""
        ip link set forebay0 up
        ip route add 10.2.0.0/16 dev forebay0; ip -6 route add fd00:2::/32 dev forebay0
        for family in -4 -6; do
            for what in "ipproto 255" "ipproto esp" "ipproto ah" "ipproto udp dport 4500"; do ip $family rule add $what table 100; done
        done
        ip route add 10.2.0.0/16 via {LINUX[4]} table 100; ip -6 route add fd00:2::/32 via {LINUX[6]} table 100
        echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter; echo 0 >/proc/sys/net/ipv4/icmp_ratelimit
        echo 0 >/proc/sys/net/ipv6/icmp/ratelimit""")


def pings(vm, cases):
    """From Linux's side, every size to every host; the cases that lost some."""
    lines = []
    for case in cases:
        near, far = case.hosts()
        # In transport mode a packet of several pieces is answered in pieces that cannot be sealed (RFC 4303 3.3.4).
        sizes = [size for size in PINGS if size < 1400 or case.mode == "tunnel"]
        # Linux drops small ESP in UDP over IPv6 (see wire.py).
        sizes = [max(size, 16) if case.udp and case.outer == 6 else size for size in sizes]
        lines += [f"try {case.number} {size} {far} {near}" for size in sizes]
    script = "try() { ping -q -c 1 -W 2 -s $2 -I $3 $4 >/dev/null 2>&1 || ping -q -c 1 -W 2 -s $2 -I $3 $4 >/dev/null 2>&1 || echo lost $1 $2; }\n"
    vm.put((script + "\n".join(lines)).encode(), "/tmp/pings")
    names = {str(case.number): case for case in cases}
    lost = {}
    for line in vm.sh("sh /tmp/pings", seconds=20 + 4 * len(lines)).splitlines():
        _, number, size = line.split()
        lost.setdefault(names[number], []).append(size)
    return [f"{case}: pings of {', '.join(sizes)} bytes lost" for case, sizes in lost.items()]


def tcp(case, content):
    """Sends a file to Linux's echo server and reads it back."""
    near, far = case.hosts()
    family = socket.AF_INET if case.inner == 4 else socket.AF_INET6
    got = hashlib.sha256()
    with socket.socket(family, socket.SOCK_STREAM) as stream:
        stream.settimeout(20)
        stream.bind((near, 0))
        stream.connect((far, 5001))
        stream.setblocking(True)
        stream.settimeout(20)
        sent = received = 0
        while received < len(content):
            if sent < len(content) and sent - received < 64_000:
                sent += stream.send(content[sent : sent + 16_000])
                continue
            piece = stream.recv(65536)
            if not piece:
                break
            got.update(piece)
            received += len(piece)
    return got.digest() == hashlib.sha256(content).digest()


def main():
    enter()
    parser = argparse.ArgumentParser()
    parser.add_argument("forebay", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="cases with this in their name")
    parser.add_argument("--processors", default="", help="[[processor]] and [scheduler] of the gateway's file")
    arguments = parser.parse_args()
    cases = [case for case in matrix(arguments.quick) if not arguments.only or arguments.only in str(case)]
    began = time.monotonic()
    work = Path(tempfile.mkdtemp(dir="/run"))
    here = Namespace()
    here.tap("wire")
    here.sh(f"ip addr add {FOREBAY[4]}/24 dev wire; ip addr add {FOREBAY[6]}/64 dev wire nodad")
    failures = []
    with Vm("linux", [(here, "wire")]) as vm:
        gateway = Gateway(arguments.forebay, cases, work, arguments.processors)
        try:
            vm.wait()
            prepare(vm, cases, work)
            vm.sh("setsid nc -ll -p 5001 -e cat >/dev/null 2>&1 &")
            gateway.wait()
            network(here, cases)
            vm.sh(f"ping -c 1 -W 5 {FOREBAY[4]}; ping -c 1 -W 5 {FOREBAY[6]}")
            print(f"interop: {len(cases)} pairs of SAs after {time.monotonic() - began:.0f} s", flush=True)
            before = stats(vm)
            failures += pings(vm, cases)
            print(f"interop: pings done after {time.monotonic() - began:.0f} s", flush=True)
            content = random.Random(1).randbytes(FILE)
            for case in cases:
                try:
                    if not tcp(case, content):
                        failures.append(f"{case}: the file came back changed or cut")
                except OSError as error:
                    failures.append(f"{case}: TCP: {error}")
            after = stats(vm)
            changed = {name: after[name] - before[name] for name in after if after[name] != before[name]}
            print(f"interop: files of {FILE} bytes done after {time.monotonic() - began:.0f} s; Linux's errors: {changed}")
        finally:
            status = gateway.stop()
            if failures or status:
                print(gateway.text()[-4000:])
        if status != 0:
            failures.append(f"the gateway ended with {status}")
    if failures:
        raise SystemExit("\n".join(["interop: FAILED", *failures[:40]]))
    print(f"interop: ok, {len(cases)} pairs of SAs, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
