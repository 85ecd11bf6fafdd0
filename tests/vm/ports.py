#!/usr/bin/env python3
"""`forebay gateway` with DPDK's ports inside: a virtual machine behind vhost-user and two containers behind memif, each with a
gateway, and Linux's own IPsec at the other end.

    guest   10.1.1.10, fd01:1::10 eth0 -- vhost-user -- gateway 192.0.2.11 --+
    c2      10.1.2.10, fd01:2::10 eth0 -- memif ------- gateway 192.0.2.12 --+-- bridge -- 192.0.2.2 eth0 -- Linux's xfrm -- 10.2.0.1 :b
    c3      10.1.3.10, fd01:3::10 eth0 -- memif ------- gateway 192.0.2.13 --+             (a virtual machine)

The lines of QEMU and the arguments of the devices are those of docs/links.md. For each: pings of many sizes, fragments too, in both
IP versions; packets that are too big are answered with the size that fits; TCP in both directions; 100,000 datagrams; and again
after the gateway was killed and started, and after the virtual machine was. Nothing between the gateways and Linux is in the clear.
"""

import argparse
import json
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from vm import HERE, ROOT, Namespace, Vm, VmError, enter, shell

MEMORY = 256  # MiB of each virtual machine
MTU = 1500
DATAGRAMS = 50_000  # each direction
# RFC 4303 in tunnel mode, AES-GCM of a 16-byte ICV: what the inner packet of a frame of 1,500 bytes may have.
FITS = MTU - 20 - 8 - 8 - 16 - 2


def key(spi):
    """Of an SA: 16 bytes of key, 4 of salt."""
    return f"{spi:08x}" * 5


def documented():
    """QEMU's words, and the arguments of devices, as docs/links.md has them."""
    text = (ROOT / "docs/links.md").read_text(encoding="utf-8")
    words = re.search(r"qemu-system-x86_64 \.\.\. \\\n(.*?)```", text, re.DOTALL)[1]
    words = shlex.split(words.replace("\\\n", " ").replace("size=1G", f"size={MEMORY}M"))
    # QEMU 7.2 without KVM ends by a segmentation fault otherwise, once the guest's driver starts.
    words = [f"{word},vectors=0" if word.startswith("virtio-net-pci") else word for word in words]
    rows = re.findall(r"^\| [\w-]+ \| `(\w+)` \| `([^`]*)`", text, re.MULTILINE)
    return words, {name.rstrip("0123456789"): arguments for name, arguments in rows}


class Site:
    """A gateway in a namespace of its own, and the hosts inside."""

    def __init__(self, number, device, arguments, forebay, work):
        self.number, self.work = number, work / f"gw{number}"
        self.forebay = forebay
        self.work.mkdir()
        self.here = Namespace(f"gw{number}")
        self.outer = f"192.0.2.{10 + number}"
        self.here.sh(f"ip link add eth0 type veth peer name gw{number} netns wire; ip addr add {self.outer}/24 dev eth0; ip link set eth0 up")
        shell(f"ip -n wire link set gw{number} up master br")
        # One file of configuration for all that it says itself.
        (self.work / "gateway.toml").write_text(self.configuration(device, arguments), encoding="utf-8")
        (self.work / "gateway.toml").chmod(0o600)
        self.process = None

    def spis(self):
        """Out and in, for each IP version inside one pair."""
        return 0x1000 * self.number + 1, 0x1000 * self.number + 2

    def configuration(self, device, arguments):
        number = self.number
        sas = "".join(f"""
[[sa]]
name = "linux-{way}"
direction = "{way}"
spi = {spi}
proposal = "aes128gcm16"
key = "{key(spi)}"
local = "{self.outer}"
remote = "192.0.2.2"
local_ts = ["10.1.{number}.0/24", "fd01:{number}::/64"]
remote_ts = ["10.2.0.0/24", "fd02::/64"]
""" for way, spi in zip(("out", "in"), self.spis()))
        return f"""
[inside]
kind = "dpdk"
device = "{device}"
arguments = "{arguments}"
addresses = ["10.1.{number}.1/24", "fd01:{number}::1/64"]

[[outside]]
kind = "raw"

[limits]
packet_size = 9216

[keys]
state = "{self.work}/state"

[control]
socket = "{self.work}/control.sock"
{sas}"""

    def start(self):
        with open(self.work / "gateway.log", "ab") as log:
            self.process = self.here.start([self.forebay, "gateway", "--config", self.work / "gateway.toml"], stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while subprocess.run([self.forebay, "status", "--socket", self.work / "control.sock"], capture_output=True, check=False).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise VmError(f"gateway {self.number} did not start: {self.process.poll()}\n{self.log()}")
            time.sleep(0.1)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def log(self):
        return (self.work / "gateway.log").read_text(encoding="utf-8", errors="replace")[-4000:]

    def status(self):
        words = [self.forebay, "status", "--socket", self.work / "control.sock", "--json"]
        return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)

    def link(self):
        """The inside link."""
        return next(link for link in self.status()["links"] if link.get("device"))

    def wait_up(self, is_up=True):
        """Until the device's link is up."""
        deadline = time.monotonic() + 60
        while self.link()["device"]["up"] != is_up:
            if time.monotonic() > deadline:
                raise VmError(f"gateway {self.number}: the link is {'down' if is_up else 'up'} still\n{self.log()}")
            time.sleep(0.1)

    def own(self):
        """What gives the host inside its addresses and routes."""
        number = self.number
        return f"""ip link set eth0 up; ip addr add 10.1.{number}.10/24 dev eth0; ip addr add fd01:{number}::10/64 dev eth0 nodad
            ip route add 10.2.0.0/24 via 10.1.{number}.1; ip -6 route add fd02::/64 via fd01:{number}::1"""


def linux(b, sites):
    """The peer's SAs and policies."""
    lines = ["ip addr add 192.0.2.2/24 dev eth0", "ip link set eth0 up", "ip addr add 10.2.0.1/32 dev lo", "ip addr add fd02::1/128 dev lo nodad",
             "ip route add 10.1.0.0/16 via 192.0.2.11 src 10.2.0.1", "ip -6 route add fd01::/16 dev eth0 src fd02::1"]
    for site in sites:
        for direction, spi in zip(("in", "out"), site.spis()):
            ends = [site.outer, "192.0.2.2"][:: 1 if direction == "in" else -1]
            outer = f"src {ends[0]} dst {ends[1]} proto esp spi {spi:#x} reqid {site.number} mode tunnel"
            lines.append(f"ip xfrm state add {outer} replay-window 64 flag af-unspec aead 'rfc4106(gcm(aes))' 0x{key(spi)} 128")
            for far, near in ((f"10.1.{site.number}.0/24", "10.2.0.0/24"), (f"fd01:{site.number}::/64", "fd02::/64")):
                selectors = (far, near) if direction == "in" else (near, far)
                for way in ["in", "fwd"] if direction == "in" else ["out"]:
                    lines.append(f"ip xfrm policy add src {selectors[0]} dst {selectors[1]} dir {way} "
                                 f"tmpl src {ends[0]} dst {ends[1]} proto esp reqid {site.number} mode tunnel")
    b.sh("\n".join(lines))


def pings(host, number, sizes, count=5):
    """Of many sizes, in both IP versions."""
    for target in ("10.2.0.1", "fd02::1"):
        for size in sizes:
            said = host.sh(f"ping -q -c {count} -i 0.05 -W 5 -s {size} {target} || true", timeout=60)
            if not re.search(rf" [{count - 1}{count}] (packets )?received", said):
                raise VmError(f"{number}: pings of {size} bytes to {target}:\n{said}")


def too_big(host):
    """What does not fit and may not be fragmented is answered, and TCP goes by that."""
    for target, headers in (("10.2.0.1", 28), ("fd02::1", 48)):
        said = host.sh(f"ping -c 3 -i 0.3 -W 2 -M do -s {MTU - headers} {target} 2>&1 || true")
        if not re.search(r"Frag needed|Packet too big|essage too long", said):
            raise VmError(f"a ping of {MTU} bytes to {target} is not answered with the size that fits:\n{said}")
        route = host.sh(f"ip route get {target}")
        learnt = re.search(r"mtu (\d+)", route)
        if not learnt or not MTU - 80 <= int(learnt[1]) <= FITS:
            raise VmError(f"path MTU to {target}: {route}")


def tcp(host, target, seconds=3):
    """Bytes each way."""
    rates = []
    for way in ("", "-R"):
        said = json.loads(host.sh(f"iperf3 -c {target} -t {seconds} -J {way}", timeout=60))
        got = said["end"]["sum_received"]["bytes"]
        if got < 1_000_000:
            raise VmError(f"TCP to {target} {way}: {got} bytes")
        rates.append(f"{8 * got / seconds / 1e6:.0f}")
    return " and ".join(rates)


def datagrams(host, rate):
    """So many at least in either direction; how many were sent, and how many of them lost."""
    sent, lost = 0, 0
    for way in ("", "-R"):
        of_way, end = 0, time.monotonic() + 120
        while of_way < DATAGRAMS:
            if time.monotonic() > end:
                raise VmError(f"{of_way} datagrams of {DATAGRAMS} {way}")
            said = json.loads(host.sh(f"iperf3 -c 10.2.0.1 -u -l 200 -t 6 -b {rate} -J {way}", timeout=60))["end"]["sum"]
            of_way, lost = of_way + said["packets"], lost + said["lost_packets"]
        sent += of_way
    return sent, lost


class Guest:
    """A virtual machine as a host: scripts with the signature of `Namespace.sh`."""

    def __init__(self, vm):
        self.vm = vm

    def sh(self, script, timeout=60):
        return self.vm.sh(script, seconds=timeout)


def everything(site, host, what, rate="8M"):
    began = time.monotonic()
    site.wait_up()
    too_big(host)
    pings(host, what, (0, 56, 1000, 1372, 1472, 3000))
    speeds = [tcp(host, target) for target in ("10.2.0.1", "fd02::1")]
    before = site.link()
    sent, lost = datagrams(host, rate)
    link = site.link()
    counts = {key: link[key] - before[key] for key in ("packets_in", "packets_out")}
    drops = {reason: count for reason, count in site.status()["drops"].items() if count}
    print(f"ports: {what}: pings, PMTU, TCP {speeds[0]} Mbit/s, by IPv6 {speeds[1]}; {sent} datagrams, {lost} lost; "
          f"link {counts}, {link['drops']}, {link['passed_over']}; drops {drops}; {time.monotonic() - began:.1f} s", flush=True)
    # An emulated machine loses what it is too slow for; the gateway's own losses are counted.
    own = sum(count for reason, count in drops.items() if reason != "out_path_mtu") + sum(one["drops"].get("queue_full", 0) for one in site.status()["links"])
    if own > DATAGRAMS // 50 or lost > sent // 2 or counts["packets_in"] < DATAGRAMS * 0.9:
        raise VmError(f"{what}: {lost} datagrams lost, {own} of them by the gateway, {counts}\n{site.log()}")


def again(site, host, what):
    """A gateway that was killed and started: the link comes back by itself, and traffic."""
    site.wait_up()
    pings(host, what, (0, 1000))
    site.kill()
    site.start()
    site.wait_up()
    # Numbers of about a second of the load before are refused, because they may have been seen before the kill.
    host.sh("for try in $(seq 500); do ping -q -c 1 -W 0.1 10.2.0.1 >/dev/null && exit 0; done; exit 1", timeout=90)
    pings(host, what, (0, 1000))
    print(f"ports: {what}: killed, started, and back", flush=True)


def main():
    enter()
    parser = argparse.ArgumentParser()
    parser.add_argument("forebay", type=Path, help="the program, built with the feature dpdk")
    arguments = parser.parse_args()
    began = time.monotonic()
    forebay = arguments.forebay.resolve()
    work = Path(tempfile.mkdtemp(dir="/run"))
    Path("/run/forebay").mkdir()
    qemu, devices = documented()
    wire = Namespace("wire")
    wire.tap("b", "br")
    memifs = devices["net_memif"]
    sites = [Site(1, "eth_vhost0", devices["eth_vhost"], forebay, work)] + [
        Site(number, "net_memif0", memifs.replace("memif.sock", f"memif{number}.sock"), forebay, work) for number in (2, 3)]
    watch = wire.start([sys.executable, HERE / "watch.py", "b", "10."], stdout=subprocess.PIPE, text=True)
    watch.stdout.readline()
    with Vm("b", [(wire, "b")]) as b:
        b.wait(120)
        linux(b, sites)
        b.sh("iperf3 -s -D; sleep 1")
        for site in sites:
            site.start()
        for number in (2, 3):
            host = Namespace(f"c{number}")
            words = [sys.executable, ROOT / "tests/gateway/memif.py", f"/run/forebay/memif{number}.sock", "eth0"]
            container = host.start(words, stdout=subprocess.PIPE, text=True)
            assert container.stdout.readline() == "ready\n"
            host.sh(sites[number - 1].own())
            again(sites[number - 1], host, f"container {number}")
            everything(sites[number - 1], host, f"container {number} behind memif")
        for run in (1, 2):
            with Vm("guest", [], memory=MEMORY, more=qemu) as vm:
                vm.wait(120)
                guest = Guest(vm)
                guest.sh(sites[0].own())
                sites[0].wait_up()
                if run == 2:
                    # The virtual machine was ended, and another one is in its place.
                    pings(guest, "the second guest", (0, 1000))
                    print("ports: another virtual machine at the same socket", flush=True)
                    break
                everything(sites[0], guest, "guest behind vhost-user")
            sites[0].wait_up(False)
    watch.send_signal(signal.SIGTERM)
    seen = json.loads(watch.communicate(timeout=30)[0])
    if seen["clear"] or seen["esp"] < 100_000:
        raise VmError(f"between the gateways and Linux: {seen}")
    print(f"ports: ok, {seen['esp']} packets of ESP, none in the clear, {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
