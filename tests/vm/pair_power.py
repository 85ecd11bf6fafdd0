#!/usr/bin/env python3
"""Two gateways as one, each Linux in a virtual machine with a disk: faults that only a machine has. The power of the active
gateway or of the one that stands by goes off, the machine of the active one is paused, and clocks make steps, drawn from a seed,
under traffic.

    host-a -- lan -+- machine 0 -+- wan -- gw-b -- host-b
                   |    link     |
                   +- machine 1 -+

The power goes off by killing QEMU: what the guest has not synced to its disk is lost. Everything that the pair sends is captured by
the switch and judged: no sequence number and no IV twice for an SPI, nothing in the clear. Packets of B that were recorded before are
sent again after each fault and none of them is delivered. Times are measured and printed; a machine of software emulation is slow.

    tests/vm/pair_power.py FOREBAY [--faults N] [--seed N]
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "gateway"))
from vm import IMAGE, Namespace, Vm, VmError, enter, shell  # noqa: E402

LAB = "/run/lab"
MACHINES = (0, 1)
RATE = 200
# From host A to host B and back: names, addresses and ports.
TO_B, TO_A = ("a to b", "10.2.0.10", 9000), ("b to a", "10.1.0.10", 9000)


def initramfs(forebay, directory):
    """The image of the machines with the gateway and the libraries that it has here."""
    tree = Path(directory) / "tree"
    (tree / "usr/bin").mkdir(parents=True)
    shell(f"strip -o {tree}/usr/bin/forebay {forebay}")
    for line in shell(f"ldd {forebay}").splitlines():
        path = next((word for word in line.split() if word.startswith("/")), None)
        if path and "ld-linux" not in path:
            shell(f"mkdir -p {tree}/usr/lib/x86_64-linux-gnu && cp -L {path} {tree}/usr/lib/x86_64-linux-gnu/")
    made = Path(directory) / "initramfs"
    shell(f"cd {tree} && find . -print0 | cpio -0o --quiet -H newc | cat {IMAGE}/initramfs - >{made}")
    return made


def configuration(name, own, peer):
    """A gateway's file."""
    number = name if name != "b" else None
    (address, network, out, out_spi), (peer_address, peer_network, inward, in_spi) = own, peer
    folder = LAB if number is None else "/disk"
    pair = "" if number is None else f"""
[pair]
number = {number}
listen = ["10.9.0.1:7411"]
peers = ["10.9.0.1:7411"]
key_file = "pair.key"
preferred = {str(number == 0).lower()}
addresses = ["eth0 192.0.2.1/24", "eth1 10.1.0.1/16"]
"""
    sas = "".join(f"""
[[sa]]
name = "{way}"
direction = "{way}"
spi = {spi:#x}
key_file = "{key}.key"
proposal = "aes128gcm16"
encapsulation = "udp"
local = "{address}"
remote = "{peer_address}"
local_ts = ["{network}"]
remote_ts = ["{peer_network}"]
""" for way, key, spi in (("out", out, out_spi), ("in", inward, in_spi)))
    return f"""
[inside]
name = "fb0"
mtu = 1400

[[outside]]
kind = "udp"
listen = "{address}:4500"

[keys]
state = "{folder}/state"

[control]
socket = "/run/control.sock"
{pair}{sas}""".replace("/run/control.sock", f"{LAB}/b.sock" if number is None else "/run/control.sock")


class Machine:
    """A gateway of the pair, through all its lives."""

    def __init__(self, number, switch, image, files):
        self.number, self.switch, self.image = number, switch, image
        self.disk = f"{LAB}/disk-{number}"
        folder = tempfile.mkdtemp(dir="/run")
        for name, text in files.items():
            Path(folder, name).write_text(text)
            os.chmod(Path(folder, name), 0o600)
        shell(f"truncate -s 48M {self.disk} && mkfs.ext4 -q -d {folder} {self.disk}")
        self.vm = None

    def on(self):
        """Switches it on; `wait` says when the gateway is started."""
        taps = [(self.switch, f"{side}{self.number}") for side in "wlp"]
        disk = ("-drive", f"file={self.disk},format=raw,if=virtio,cache=writeback")
        self.vm = Vm(f"gw-{self.number}", taps, memory=320, initramfs=self.image, more=disk)

    def wait(self):
        self.vm.wait(120)
        n = self.number
        self.vm.sh(f"""
            modprobe -a virtio_blk ext4 tun
            for try in 1 2 3 4 5 6 7 8 9 10; do [ -e /dev/vda ] && break; sleep 0.2; done
            mkdir -p /disk && mount -t ext4 /dev/vda /disk
            sysctl -qw net.ipv4.ip_forward=1; sysctl -qw net.ipv4.conf.all.arp_ignore=1
            for device in eth0 eth1 eth2; do ip link set $device up; done
            ip addr add 192.0.2.1{n}/24 dev eth0; ip addr add 10.1.0.2{n}/16 dev eth1; ip addr add 10.9.0.{n + 1}/30 dev eth2
            forebay gateway --config /disk/gateway.toml 2>>/disk/log &
        """, seconds=60)

    def off(self):
        """The power goes off."""
        self.vm.stop()
        self.vm = None

    def status(self):
        """What it says of the pair."""
        if self.vm is None:
            return {}
        status, text = self.vm.sh("forebay status --json --socket /run/control.sock", check=False)
        return json.loads(text).get("pair") or {} if status == 0 else {}

    def log(self):
        return self.vm.sh("tail -c 3000 /disk/log", check=False)[1] if self.vm else "(off)"


def settle(machines, limit=180):
    """Waits until one machine is active and the other has its records: which."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        said = [machine.status() for machine in machines]
        roles = [one.get("role") for one in said]
        if sorted(map(str, roles)) == ["active", "standby"] and all(one["in_sync"] for one in said):
            return roles.index("active")
        time.sleep(0.2)
    raise VmError(f"the machines do not agree: {said}\n" + "\n".join(machine.log() for machine in machines))


class Traffic:
    def __init__(self, flows):
        self.listen = {"a to b": flows.flows("host-b", flows.LISTEN, [TO_B]), "b to a": flows.flows("host-a", flows.LISTEN, [TO_A])}
        self.speak = [flows.flows("host-a", flows.SPEAK, [("a to b", "10.1.0.10", *TO_B[1:])], RATE),
                      flows.flows("host-b", flows.SPEAK, [("b to a", "10.2.0.10", *TO_A[1:])], RATE)]

    def end(self):
        for one in [*self.speak, *self.listen.values()]:
            one.process.kill()

    def ask(self, word="ask"):
        return {name: one.ask(word)[name] for name, one in self.listen.items()}

    def flows_since(self, moment, limit=120):
        """Waits until all flows have come for a while behind a moment: the longest time that one took."""
        end = time.monotonic() + limit
        while True:
            said = self.ask()
            if all(one["last"] > moment + 0.5 for one in said.values()):
                return max((end - moment for one in said.values() for begin, end in one["gaps"] if begin < moment + 3 and end > moment),
                           default=0)
            if time.monotonic() > end:
                raise VmError(f"no traffic: {said}")
            time.sleep(0.1)


# Each strikes, says whether the other machine is to take over and when it struck, and undoes it when it goes on.

def power_active(machines, one):
    moment = time.monotonic()
    machines[one].off()
    yield True, moment
    machines[one].on()
    machines[one].wait()


def power_standby(machines, one):
    moment = time.monotonic()
    machines[1 - one].off()
    yield False, moment
    machines[1 - one].on()
    machines[1 - one].wait()


def pause_active(machines, one):
    moment = time.monotonic()
    machines[one].vm.process.send_signal(19)
    yield True, moment
    machines[one].vm.process.send_signal(18)


def clock(machines, seconds):
    for machine in machines:
        machine.vm.sh(f"date -s @$(($(date +%s) {seconds:+d}))")


def clock_ahead(machines, one):
    moment = time.monotonic()
    clock([machines[one]], 7_200)
    yield False, moment


def clock_back(machines, one):
    """Of both, and then the power of the active one goes off: what comes next is behind what was used all the same."""
    clock(machines, -86_400)
    moment = time.monotonic()
    machines[one].off()
    yield True, moment
    machines[one].on()
    machines[one].wait()
    clock([machines[one]], -86_400)


FAULTS = [power_active, clock_ahead, clock_back, power_standby, pause_active]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("forebay", type=os.path.realpath)
    parser.add_argument("--faults", type=int, default=len(FAULTS))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    enter()
    began = time.monotonic()
    os.environ |= {"FOREBAY": options.forebay, "LAB": LAB}
    import flows
    import lab
    os.makedirs(LAB, mode=0o700)
    switch, space = Namespace("sw"), {name: Namespace(name) for name in ("host-a", "gw-b", "host-b")}
    for side, bridge in (("w", "wan"), ("l", "lan"), ("p", "link")):
        for number in MACHINES:
            switch.tap(f"{side}{number}", bridge)
    switch.sh("""
        ip link add la type veth peer name eth0 netns host-a; ip link set la up master lan
        ip link add wb type veth peer name wan netns gw-b; ip link set wb up master wan
        ip -n gw-b link add lan type veth peer name eth0 netns host-b""")
    for name, device, address in (("host-a", "eth0", "10.1.0.10/16"), ("gw-b", "wan", "192.0.2.2/24"), ("gw-b", "lan", "10.2.0.1/16"),
                                  ("host-b", "eth0", "10.2.0.10/16")):
        space[name].sh(f"ip addr add {address} dev {device}; ip link set {device} up; echo 1 >/proc/sys/net/ipv4/ip_forward")
    space["host-a"].sh("ip route add default via 10.1.0.1")
    space["host-b"].sh("ip route add default via 10.2.0.1")
    os.umask(0o077)
    keys = {f"{name}.key": os.urandom(length).hex() for name, length in (("a-to-b", 20), ("b-to-a", 20), ("pair", 32))}
    a, b = ("192.0.2.1", "10.1.0.0/16", "a-to-b", 0x1001), ("192.0.2.2", "10.2.0.0/16", "b-to-a", 0x2001)
    image = initramfs(options.forebay, tempfile.mkdtemp(dir="/run"))
    machines = [Machine(number, switch, image, {**keys, "gateway.toml": configuration(number, a, b)}) for number in MACHINES]
    for name, text in {**keys, "b.toml": configuration("b", b, a)}.items():
        Path(LAB, name).write_text(text)
    gateway = lab.start("b")
    try:
        for machine in machines:
            machine.on()
        for machine in machines:
            machine.wait()
        assert settle(machines) == 0, "the preferred gateway is not the active one"
        judge = flows.Asked("sw", flows.JUDGE, f"{LAB}/recorded", "w0,w1", "wb", "192.0.2.1")
        traffic = Traffic(flows)
        traffic.flows_since(time.monotonic())
        draw = random.Random(options.seed)
        took, replayed = {}, 0
        for count in range(options.faults):
            fault = FAULTS[count] if options.faults <= len(FAULTS) else draw.choice(FAULTS)
            one = settle(machines)
            judge.ask("record")
            strikes = fault(machines, one)
            moves, moment = next(strikes)
            middle = traffic.flows_since(moment)
            next(strikes, None)
            now = settle(machines)
            assert (now != one) == moves or fault is pause_active, f"{fault.__name__}: machine {now} is active behind machine {one}"
            traffic.flows_since(time.monotonic())
            replayed += flows.again("gw-b", f"{LAB}/recorded")
            time.sleep(0.5)
            twice = {name: said["twice"] for name, said in traffic.ask().items()}
            assert not any(twice.values()), f"replayed packets were delivered: {twice}"
            took.setdefault(fault.__name__, []).append(middle)
            print(f"pair_power: {count + 1} {fault.__name__}: flows again after {middle:.2f} s", flush=True)
        traffic.end()
        judged = judge.ask("end")
        assert not judged["twice"], f"twice: {judged['twice']}"
        assert not judged["clear"], f"{judged['clear']} packets in the clear"
        assert judged["packets"] > 1_000 and replayed > 100, (judged, replayed)
        for name, times in took.items():
            print(f"pair_power: {name}: median {statistics.median(times):.2f} s, longest {max(times):.2f} s of {len(times)}")
        print(f"pair_power: ok, {judged['packets']} packets of the pair captured: no number and no IV twice, none in the clear; "
              f"{replayed} packets replayed, none delivered; {time.monotonic() - began:.0f} s")
    except (VmError, AssertionError):
        for machine in machines:
            print(machine.number, machine.log())
        raise
    finally:
        for machine in machines:
            if machine.vm:
                machine.off()
        gateway.kill()


if __name__ == "__main__":
    main()
