#!/usr/bin/env python3
"""Ten thousand SAs of the kernel: a gateway with `source = "xfrm"` in a virtual machine follows them while they come and go at once,
and while it was suspended, so that the kernel could not tell it (ENOBUFS). Traffic of another pair of SAs goes on meanwhile.

    a virtual machine: kernel's SAs -- forebay gateway -- eth0 192.0.2.1 ... tap "wire" 192.0.2.2 -- forebay gateway, SAs of a file

    tests/vm/kernel_sas.py FOREBAY [--sas N]
"""

import argparse
import json
import re
import subprocess
import tempfile
import time
from pathlib import Path

from ike_gateway import start
from vm import Namespace, Vm, VmError, enter

MARK = "mark 0x4642 mask 0xffffffff"
KEYS = {0x1001: "11" * 20, 0x2001: "22" * 20}
COMMON = '[inside]\nname = "fb0"\nmtu = 1400\n[[outside]]\nkind = "raw"\n[guard]\nmode = "off"\n[limits]\nsas = 40000\n'
OURS = COMMON + '[keys]\nsource = "xfrm"\nmark = 0x4642\n[control]\nsocket = "/run/control.sock"\n'


def until(true, what, limit=120):
    """How long it took."""
    began = time.monotonic()
    while not true():
        if time.monotonic() - began > limit:
            raise VmError(f"not in time: {what}")
        time.sleep(0.1)
    return time.monotonic() - began


def sa(verb, spi, key, out, reqid=1):
    ends = "src 192.0.2.1 dst 192.0.2.2" if out else "src 192.0.2.2 dst 192.0.2.1"
    words = f" reqid {reqid} mode tunnel replay-window 64 aead rfc4106(gcm(aes)) 0x{key} 128" if verb == "add" else ""
    return f"xfrm state {verb} {ends} proto esp spi {spi:#x} {MARK}{words}"


def many(verb, first, count):
    """Of no policy, each with a key and a reqid of its own, as of so many tunnels."""
    return "\n".join(sa(verb, first + n, f"{first + n:08x}{0:032x}", n % 2 == 0, 2 + n) for n in range(count)) + "\n"


def theirs(work):
    """The file of the gateway on this side."""
    sas = "".join(f"""
[[sa]]
name = "{way}"
direction = "{way}"
spi = {spi:#x}
key = "{KEYS[spi]}"
proposal = "aes128gcm16"
local = "192.0.2.2"
remote = "192.0.2.1"
local_ts = ["10.2.0.0/16"]
remote_ts = ["10.1.0.0/16"]
""" for way, spi in (("in", 0x1001), ("out", 0x2001)))
    return f'{COMMON}[keys]\nstate = "{work}/state"\n[control]\nsocket = "{work}/control.sock"\n{sas}'


def main():
    enter()
    parser = argparse.ArgumentParser()
    parser.add_argument("forebay", type=Path)
    parser.add_argument("--sas", type=int, default=10_000)
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(dir="/run"))
    subprocess.run(["strip", "-o", work / "forebay", options.forebay], check=True)
    (work / "gateway.toml").write_text(theirs(work))
    (work / "gateway.toml").chmod(0o600)
    here = Namespace()
    here.tap("wire")
    here.sh("ip addr add 192.0.2.2/24 dev wire; ip addr add 10.2.0.1/16 dev lo")
    with Vm("gateway", [(here, "wire")], memory=1024) as vm, open(work / "log", "w") as log:
        peer = subprocess.Popen([options.forebay, "gateway", "--config", work / "gateway.toml"], stderr=log)
        vm.wait(120)
        try:
            follow(vm, options.sas, work)
        except VmError:
            print(vm.sh("tail -20 /tmp/gateway.log", check=False)[1], (work / "log").read_text()[-2000:])
            raise
        finally:
            peer.kill()


def follow(vm, count, work):
    vm.sh("""
        modprobe -a esp4 xfrm_user tun; mkdir -p /dev/net; [ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200
        ip link set eth0 up; ip addr add 192.0.2.1/24 dev eth0; ip addr add 10.1.0.1/16 dev lo""")
    vm.put(work / "forebay", "/tmp/forebay", 0o755, seconds=180)
    vm.put(OURS.encode(), "/tmp/gateway.toml")
    batches = {"first": many("add", 0x10000, count), "second": many("add", 0x100000, count), "gone": many("delete", 0x10000, count // 2)}
    for name, text in batches.items():
        vm.put(text.encode(), f"/tmp/{name}")
    policy = "dir {} " + MARK + " tmpl src {} dst {} proto esp reqid 1 mode tunnel"
    vm.put("\n".join([sa("add", 0x1001, KEYS[0x1001], True), sa("add", 0x2001, KEYS[0x2001], False),
                      "xfrm policy add src 10.1.0.0/16 dst 10.2.0.0/16 " + policy.format("out", "192.0.2.1", "192.0.2.2"),
                      "xfrm policy add src 10.2.0.0/16 dst 10.1.0.0/16 " + policy.format("in", "192.0.2.2", "192.0.2.1"), ""]).encode(), "/tmp/pair")
    start(vm)
    vm.sh("ip -batch /tmp/pair")

    def sas():
        return len(json.loads(vm.sh("/tmp/forebay status --json --socket /run/control.sock", seconds=60))["sas"])

    until(lambda: sas() == 2, "the first SAs")
    vm.sh("for try in $(seq 20); do ping -c 1 -W 1 -I 10.1.0.1 10.2.0.1 >/dev/null && exit 0; done; ip route; exit 1", seconds=40)
    process = vm.sh("ping -i 0.05 -w 600 -I 10.1.0.1 10.2.0.1 >/tmp/ping.out & echo $!").strip()
    began = time.monotonic()
    vm.sh("ip -batch /tmp/first", seconds=120)
    made = time.monotonic() - began
    took = until(lambda: sas() == count + 2, f"{count} SAs")
    print(f"kernel_sas: {count} SAs, made in {made:.1f} s; followed {took:.1f} s behind that, with the first look that said so", flush=True)
    # As long as it does not run, the kernel's messages fill its buffer, and what does not fit is lost.
    vm.sh("kill -STOP $(pidof forebay); ip -batch /tmp/second; ip -batch /tmp/gone; kill -CONT $(pidof forebay)", seconds=240)
    wanted = count + count - count // 2 + 2
    took = until(lambda: sas() == wanted, f"{wanted} SAs behind what was lost")
    print(f"kernel_sas: {count} more and {count // 2} gone while it was suspended: right {took:.1f} s after that", flush=True)
    # It says so after everything was read anew.
    anew = int(vm.sh("grep -c 'XFRM state synchronized' /tmp/gateway.log || true")) - 1
    if anew < 1 and count >= 10_000:
        raise VmError("the kernel lost no message, so that nothing was shown")
    time.sleep(2)
    vm.sh(f"kill -INT {process}; sleep 0.5")
    numbers = [int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", vm.sh("cat /tmp/ping.out"))]
    if len(numbers) < 50 or len(set(numbers)) != len(numbers):
        raise VmError(f"{len(numbers)} pings came back, {len(set(numbers))} of them different")
    lost = sorted(set(range(1, max(numbers) + 1)) - set(numbers))
    print(f"kernel_sas: state read anew {anew} times; {len(lost)} of {max(numbers)} pings lost {lost[:10]}", flush=True)
    vm.sh("ip xfrm state flush", seconds=120)
    until(lambda: sas() == 0, "the end of all SAs")
    vm.sh("ip " + sa("add", 0x1002, KEYS[0x1001], True).replace("rfc4106(gcm(aes))", "'rfc4106(gcm(aes))'"))
    until(lambda: sas() == 1, "an SA behind the flush")
    print("kernel_sas: ok")


if __name__ == "__main__":
    main()
