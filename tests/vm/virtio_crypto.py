#!/usr/bin/env python3
"""`forebay gateway` on a crypto device: virtio-crypto, which QEMU computes, driven by DPDK in the virtual machine.

    a: 10.1.0.1 -- forebay0 -- forebay gateway -- eth0 192.0.2.1 ...... 192.0.2.2 eth0 -- Linux's xfrm -- 10.2.0.1 :b
                                |
                            0000:00:10.0 (uio_pci_generic, huge pages)

QEMU's own backend (cryptodev-backend-builtin) enciphers by AES-CBC and does nothing else: it refuses the sessions of AES-CBC
with HMAC-SHA-1 ("Unsupported optype"). So the SAs whose jobs the device has are without integrity. A second pair of SAs has
HMAC-SHA-1, and the core does its jobs. Pings, and 1,000 UDP datagrams of several sizes in either direction, through both.
Last, a gateway whose device is gone: it starts, says so, and traffic continues.
"""

import argparse
import json
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from vm import Namespace, Vm, VmError, enter

PLACE = "0000:00:10.0"
SIZES = (32, 200, 600, 1000, 1300)  # bytes of UDP payload
EACH = 200
# DPDK loads all drivers of this folder.
DRIVERS = ("librte_bus_pci", "librte_bus_vdev", "librte_mempool_ring", "librte_crypto_virtio")
# SPIs, and the last octet of the addresses behind both.
PAIRS = {"aes128": (0x1000, 1), "aes128-sha1": (0x2000, 2)}


def keys(spi, suite):
    """Cipher key of 16 bytes, and that of HMAC-SHA-1 if there is one."""
    return f"{spi:04x}" * 8, f"{spi + 0x100:04x}" * 10 if "sha1" in suite else ""


def configuration(place):
    sas = ""
    for suite, (spi, host) in PAIRS.items():
        for way, number, near, far in (("out", 1, "192.0.2.1", "192.0.2.2"), ("in", 2, "192.0.2.1", "192.0.2.2")):
            key, auth_key = keys(spi + number, suite)
            auth = f'auth_key = "{auth_key}"' if auth_key else ""
            sas += f"""
[[sa]]
name = "{suite}-{way}"
direction = "{way}"
spi = {spi + number}
proposal = "{suite}"
allow_weak = true
key = "{key}"
{auth}
local = "{near}"
remote = "{far}"
local_ts = ["10.1.0.{host}/32"]
remote_ts = ["10.2.0.{host}/32"]
"""
    return f"""
[inside]
name = "forebay0"
mtu = 1400
routes = []

[[outside]]
kind = "raw"

[[processor]]
kind = "core"

[[processor]]
kind = "dpdk"
name = "virtio"
device = "{place}"
queue = 64
sessions = 64

[scheduler]
policy = "round-robin"

[limits]
in_flight = 256
packet_size = 9216

[keys]
state = "/tmp/state"

[control]
socket = "/run/control.sock"
{sas}"""


def archive(forebay, work):
    """The program with DPDK's libraries and drivers, as they lie on this machine, for the machine's root."""
    tree = work / "tree"
    (tree / "bin").mkdir(parents=True)
    subprocess.run(["strip", "-o", tree / "bin/forebay", forebay], check=True)
    folders = sorted(Path("/usr/lib/x86_64-linux-gnu/dpdk").glob("pmds-*"))
    if not folders:
        raise VmError("DPDK's drivers are not installed")
    drivers = [folders[-1] / f"{name}.so{folders[-1].name.removeprefix('pmds')}".replace("-", ".") for name in DRIVERS]
    paths = set(drivers)
    for program in (forebay, *drivers):
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        paths |= {Path(path) for path in re.findall(r"(/\S+\.so\S*)", listed)}
    for path in sorted(paths):
        target = tree / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    subprocess.run(["tar", "-cf", work / "tree.tar", "-C", tree, "."], check=True)
    return work / "tree.tar"


def linux(b):
    """The peer's SAs and policies."""
    for suite, (spi, host) in PAIRS.items():
        for number, source, target in ((1, 1, 2), (2, 2, 1)):
            key, auth_key = keys(spi + number, suite)
            auth = f"auth-trunc 'hmac(sha1)' 0x{auth_key} 96" if auth_key else ""
            b.sh(f"ip xfrm state add src 192.0.2.{source} dst 192.0.2.{target} proto esp spi {spi + number:#x} reqid {spi} "
                 f"mode tunnel replay-window {64 if auth else 0} enc 'cbc(aes)' 0x{key} {auth}")
            for way in ["out"] if source == 2 else ["in", "fwd"]:
                b.sh(f"ip xfrm policy add src 10.{source}.0.{host}/32 dst 10.{target}.0.{host}/32 dir {way} "
                     f"tmpl src 192.0.2.{source} dst 192.0.2.{target} proto esp spi {spi + number:#x} reqid {spi} mode tunnel")


def start(a, place):
    a.put(configuration(place).encode(), "/tmp/gateway.toml", 0o600)
    a.sh(": >/tmp/gateway.log; setsid /bin/forebay gateway --config /tmp/gateway.toml >/tmp/gateway.log 2>&1 & echo $! >/tmp/pid\n"
         "for try in $(seq 300); do grep -q 'gateway started' /tmp/gateway.log && break; usleep 200000; done\n"
         "grep -q 'gateway started' /tmp/gateway.log || { cat /tmp/gateway.log; exit 1; }\n"
         "ip link set forebay0 up; ip route replace 10.2.0.0/16 dev forebay0 src 10.1.0.1", seconds=90)


def processor(a):
    status = json.loads(a.sh("/bin/forebay status --socket /run/control.sock --json"))
    return {one["name"]: one for one in status["processors"]}


def pings(a, host, count=20):
    for size in (0, 56, 1000, 1300, 3000):
        a.sh(f"ping -q -c {count} -i 0.05 -W 5 -s {size} -I 10.1.0.{host} 10.2.0.{host}", seconds=90)


def datagrams(a, b, host):
    """1,000 in either direction; how many were lost."""
    b.sh(f"iperf3 -s -D -B 10.2.0.{host} --pidfile /tmp/iperf.pid; sleep 1")
    lost = 0
    for size in SIZES:
        for way in ("", "-R"):
            text = a.sh(f"iperf3 -c 10.2.0.{host} -B 10.1.0.{host} -u -l {size} -k {EACH} -b 1M -J {way}", seconds=90)
            end = json.loads(text)["end"]["sum"]
            if end["packets"] < EACH:
                raise VmError(f"{size} bytes {way}: {end['packets']} datagrams of {EACH}")
            lost += end["lost_packets"]
    b.sh("kill $(cat /tmp/iperf.pid); sleep 1")
    return lost


def main():
    enter()
    parser = argparse.ArgumentParser()
    parser.add_argument("forebay", type=Path, help="the program, built with the feature dpdk")
    arguments = parser.parse_args()
    began = time.monotonic()
    work = Path(tempfile.mkdtemp(dir="/run"))
    tree = archive(arguments.forebay, work)
    wire = Namespace("wire")
    wire.tap("a", "br"), wire.tap("b", "br")
    crypto = ["-object", "cryptodev-backend-builtin,id=cd0", "-device", "virtio-crypto-pci,cryptodev=cd0,addr=0x10"]
    with Vm("a", [(wire, "a")], memory=1024, more=crypto) as a, Vm("b", [(wire, "b")]) as b:
        for vm in (a, b):
            vm.wait()
        for vm, own in ((a, 1), (b, 2)):
            vm.sh(f"ip addr add 192.0.2.{own}/24 dev eth0; ip link set eth0 up\n"
                  f"for host in 1 2; do ip addr add 10.{own}.0.$host/32 dev lo; done")
        b.sh("ip route add 10.1.0.0/16 via 192.0.2.1 src 10.2.0.1")
        linux(b)
        a.put(tree, "/tmp/tree.tar", seconds=120)
        a.sh(f"""cd / && tar -xf /tmp/tree.tar && rm /tmp/tree.tar
            modprobe tun; mkdir -p /dev/net /tmp/state; [ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200
            echo 128 >/proc/sys/vm/nr_hugepages
            modprobe uio_pci_generic
            cat /sys/bus/pci/devices/{PLACE}/vendor /sys/bus/pci/devices/{PLACE}/device
            echo uio_pci_generic >/sys/bus/pci/devices/{PLACE}/driver_override
            echo {PLACE} >/sys/bus/pci/devices/{PLACE}/driver/unbind
            echo {PLACE} >/sys/bus/pci/drivers_probe; readlink /sys/bus/pci/devices/{PLACE}/driver""", seconds=60)
        start(a, PLACE)
        for suite, (_, host) in PAIRS.items():
            before = processor(a)["virtio"]["packets"]
            pings(a, host)
            lost = datagrams(a, b, host)
            found = processor(a)["virtio"]
            done = found["packets"] - before
            print(f"virtio_crypto: {suite}: pings, 2 x {EACH * len(SIZES)} datagrams, {lost} lost; {done} packets by the device")
            if lost or found["out"]:
                raise VmError(f"{suite}: {lost} datagrams lost; {found}\n{a.sh('tail -20 /tmp/gateway.log')}")
            if (done == 0) == (suite == "aes128"):
                raise VmError(f"{suite}: the device did {done} packets\n{a.sh('tail -20 /tmp/gateway.log')}")
        a.sh("kill $(cat /tmp/pid); sleep 2")
        # A card that was pulled out: another place of the bus.
        start(a, "0000:00:1f.0")
        pings(a, 1, count=5)
        if not processor(a)["virtio"]["out"]:
            raise VmError("a device that is not there counts as in")
        log = a.sh("cat /tmp/gateway.log")
        if "processor unavailable" not in log or "there is no device 0000:00:1f.0" not in log:
            raise VmError(log)
    print(f"virtio_crypto: ok, {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
