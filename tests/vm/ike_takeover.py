#!/usr/bin/env python3
"""Two gateways with keys from strongSwan, of which one has the shared address: how long traffic stands still when its power goes off.

    gateway 0: 192.0.2.11 -+
                           +- bridge "br" -- peer 192.0.2.2 (10.2.0.1)          shared: 192.0.2.1, 10.1.0.1
    gateway 1: 192.0.2.12 -+

All three are virtual machines with strongSwan. strongSwan shares nothing between hosts: the gateway that takes the address over
connects anew, so that there are new keys and nothing of the old ones is needed (docs/pair.md). Its watcher stands for VRRP: it takes
the address when the other gateway has not answered three pings, 100 ms apart and of 300 ms at most.

    tests/vm/ike_takeover.py FOREBAY [--takeovers N]
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ike
from ike_gateway import CONFIGURATION, LINKS, start
from vm import HERE, Namespace, Vm, VmError, enter

# What takes over, with the times at which it saw the other one gone, had the address and had SAs, in the machine's seconds.
TAKE = """
ip addr add 192.0.2.1/24 dev eth0; ip addr add 10.1.0.1/16 dev lo
arping -U -c 1 -w 1 -I eth0 192.0.2.1 >/dev/null 2>&1 || true
"""
WATCH = f"""
misses=0
while [ $misses -lt 3 ]; do
    if ping -c 1 -W 0.3 192.0.2.1OTHER >/dev/null 2>&1; then misses=0; usleep 100000; else misses=$((misses + 1)); fi
done
gone=$(cut -d' ' -f1 /proc/uptime)
{TAKE}
swanctl --load-conns >/dev/null 2>&1
for try in 1 2 3 4 5; do swanctl --initiate --child net --timeout 10 >>/tmp/initiate 2>&1 && break; usleep 200000; done
echo "$gone $(cut -d' ' -f1 /proc/uptime)" >/tmp/taken
"""


def begin(vm, number, work):
    """Everything that a gateway has, whether it is active or not."""
    vm.wait(120)
    vm.sh(f"""
        modprobe -a esp4 ah4 xfrm_user tun; ip link set eth0 up; ip addr add 192.0.2.1{number + 1}/24 dev eth0
        mkdir -p /var/run /run/charon /dev/net; ln -sf /run/charon.vici /var/run/charon.vici
        [ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200""")
    vm.put(ike.STRONGSWAN.encode(), "/etc/strongswan.conf")
    vm.put(ike.connection(1, 2, child=ike.MARKED).encode(), "/etc/swanctl/swanctl.conf")
    ike.begin(vm)
    vm.put(work / "forebay", "/tmp/forebay", 0o755, seconds=180)
    vm.put(CONFIGURATION.replace("QUEUES", "1").replace("LINK", LINKS[False]).encode(), "/tmp/gateway.toml")
    start(vm)


def spis(peer):
    """Of the peer's SAs, both ways."""
    return set(re.findall(r"proto esp spi (0x\w+)", peer.sh("ip xfrm state")))


def take_over(machines, active, peer, make, work):
    """The power of the active gateway goes off; what that costs. It comes back as the one that stands by."""
    other = 1 - active
    machines[other].sh("rm -f /tmp/taken")
    machines[other].put(WATCH.replace("OTHER", str(active + 1)).encode(), "/tmp/watch.sh")
    machines[other].sh("setsid /bin/sh /tmp/watch.sh </dev/null >/tmp/watch.log 2>&1 &")
    before = spis(peer)
    process = peer.sh("ping -D -i 0.05 -w 300 -I 10.2.0.1 10.1.0.1 >/tmp/ping.out & echo $!").strip()
    time.sleep(2)
    machines[active].stop()
    deadline = time.monotonic() + 90
    while machines[other].sh("[ -e /tmp/taken ]", check=False)[0]:
        if time.monotonic() > deadline:
            raise VmError("not taken over:\n" + machines[other].sh("cat /tmp/watch.log /tmp/initiate; tail -20 /tmp/charon.log", check=False)[1])
        time.sleep(0.2)
    time.sleep(3)
    peer.sh(f"kill -INT {process}; sleep 0.3")
    gone, taken = map(float, machines[other].sh("cat /tmp/taken").split())
    times = [float(at) for at in re.findall(r"\[([\d.]+)\] \d+ bytes", peer.sh("cat /tmp/ping.out"))]
    gap = max((after - at for at, after in zip(times, times[1:])), default=None)
    if gap is None or gap < 0.5 or times[-1] - times[0] < 4:
        raise VmError(f"no gap that ends: {gap}, {times[-5:]}")
    if before & spis(peer):
        raise VmError(f"the peer still has SAs of the gateway that is gone: {before & spis(peer)}")
    machines[active] = make(active)
    begin(machines[active], active, work)
    return gap, taken - gone


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("forebay", type=Path)
    parser.add_argument("--takeovers", type=int, default=2)
    arguments = parser.parse_args()
    enter()
    began = time.monotonic()
    work = Path(tempfile.mkdtemp(dir="/run"))
    subprocess.run(["strip", "-o", work / "forebay", arguments.forebay], check=True)
    wire = Namespace("wire")
    for tap in ("a0", "a1", "b"):
        wire.tap(tap, "br")

    def make(number):
        return Vm(f"gateway-{number}", [(wire, f"a{number}")], ike=True, memory=512)

    machines = [make(0), make(1)]
    try:
        with Vm("peer", [(wire, "b")], ike=True) as peer:
            peer.wait(120)
            ike.start(peer, 2, 1, ike.connection(2, 1))
            peer.sh("""
                ip route add 10.1.0.0/16 via 192.0.2.1 src 10.2.0.1
                nft add table ip guard; nft add chain ip guard out '{ type filter hook output priority 0; }'
                nft add rule ip guard out rt ipsec missing ip daddr 10.0.0.0/8 oif eth0 drop""")
            for number, vm in enumerate(machines):
                begin(vm, number, work)
            machines[0].sh(TAKE + "swanctl --load-conns >/dev/null; swanctl --initiate --child net --timeout 20", seconds=40)
            watch = wire.start([sys.executable, HERE / "watch.py", "b", "10."], stdout=subprocess.PIPE, text=True)
            watch.stdout.readline()
            peer.sh("for try in $(seq 20); do ping -c 1 -W 1 -I 10.2.0.1 10.1.0.1 >/dev/null && exit 0; done; exit 1", seconds=40)
            gaps, active = [], 0
            for count in range(arguments.takeovers):
                gap, connects = take_over(machines, active, peer, make, work)
                active = 1 - active
                gaps.append((gap, connects))
                print(f"ike_takeover: {count + 1}: no answers for {gap:.2f} s, of which {connects:.2f} s to take the address and connect", flush=True)
            watch.terminate()
            seen = json.loads(watch.communicate(timeout=20)[0])
            if seen["clear"] or not seen["esp"]:
                raise VmError(f"{seen['esp']} sealed; in the clear: {seen['clear']}")
            print(f"ike_takeover: ok, median {statistics.median(gap for gap, _ in gaps):.2f} s without answers, of which "
                  f"{statistics.median(connects for _, connects in gaps):.2f} s to connect; {seen['esp']} packets sealed, none in the "
                  f"clear; {time.monotonic() - began:.0f} s")
    finally:
        for vm in machines:
            vm.stop()


if __name__ == "__main__":
    main()
