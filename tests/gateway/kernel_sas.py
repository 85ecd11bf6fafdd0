#!/usr/bin/env python3
"""Ten thousand SAs of the kernel: a gateway with `source = "xfrm"` follows them while they come and go at once, and while it was
suspended, so that the kernel could not tell it (ENOBUFS). Traffic of another pair of SAs goes on meanwhile.

Runs in the laboratory, in namespaces of its own, each with a gateway: one has its SAs from the kernel, the other from its file.

    scripts/lab.sh FOREBAY run tests/gateway/kernel_sas.py [SAS]
"""

import json
import os
import re
import signal
import subprocess
import sys
import time

FOREBAY, LAB = os.environ["FOREBAY"], os.environ["LAB"]
MARK = "mark 0x4642 mask 0xffffffff"
COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
KEYS = {0x1001: "11" * 20, 0x2001: "22" * 20}
INSIDE = '[inside]\nname = "fb0"\nmtu = 1400\n[[outside]]\nkind = "raw"\n[guard]\nmode = "off"\n[limits]\nsas = 40000\n'


def run(words, **options):
    return subprocess.run(words.split(), check=True, capture_output=True, text=True, **options).stdout


def wait_until(true, what, limit=60):
    end = time.monotonic() + limit
    while not true():
        if time.monotonic() > end:
            with open(f"{LAB}/ka.log", encoding="utf-8") as log:
                sys.exit(f"kernel_sas: not in time: {what}\n{log.read()[-3000:]}")
        time.sleep(0.02)


def status():
    done = subprocess.run([FOREBAY, "status", "--json", "--socket", f"{LAB}/ka.sock"], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def sas():
    return len(status().get("sas", []))


def sa(verb, spi, key, out):
    ends = "src 192.0.2.1 dst 192.0.2.2" if out else "src 192.0.2.2 dst 192.0.2.1"
    words = f" reqid 1 mode tunnel replay-window 64 aead rfc4106(gcm(aes)) 0x{key} 128" if verb == "add" else ""
    return f"xfrm state {verb} {ends} proto esp spi {spi:#x} {MARK}{words}"


def batch(lines):
    subprocess.run(["ip", "-n", "ka", "-batch", "-"], input="\n".join(lines), text=True, check=True, capture_output=True)


def many(verb, first, count):
    batch(sa(verb, first + n, f"{first + n:040x}", n % 2 == 0) for n in range(count))


def start(name, text):
    with open(f"{LAB}/{name}.toml", "w", encoding="utf-8") as file:
        file.write(INSIDE + text)
    with open(f"{LAB}/{name}.log", "w", encoding="utf-8") as log:
        return subprocess.Popen(["ip", "netns", "exec", name, FOREBAY, "gateway", "--config", f"{LAB}/{name}.toml"], stderr=log)


def main():
    os.umask(0o077)
    for name, own, net in (("ka", 1, "10.1.0.1/16"), ("kb", 2, "10.2.0.1/16")):
        run(f"ip netns add {name}")
        run(f"ip -n {name} link set lo up")
        run(f"ip -n {name} addr add {net} dev lo")
    run("ip link add wan netns ka type veth peer name wan netns kb")
    for name, own in (("ka", 1), ("kb", 2)):
        run(f"ip -n {name} addr add 192.0.2.{own}/24 dev wan")
        run(f"ip -n {name} link set wan up")
    batch([sa("add", 0x1001, KEYS[0x1001], True), sa("add", 0x2001, KEYS[0x2001], False),
           f"xfrm policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir out {MARK} tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 1 mode tunnel",
           f"xfrm policy add src 10.2.0.0/16 dst 10.1.0.0/16 dir in {MARK} tmpl src 192.0.2.2 dst 192.0.2.1 proto esp reqid 1 mode tunnel"])
    file = "".join(f"""
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
    gateways = [start("ka", f'[keys]\nsource = "xfrm"\nmark = 0x4642\n[control]\nsocket = "{LAB}/ka.sock"\n'),
                start("kb", f'[keys]\nstate = "{LAB}/kb"\n[control]\nsocket = "{LAB}/kb.sock"\n{file}')]
    try:
        follow(gateways[0])
    finally:
        for gateway in gateways:
            gateway.kill()


def follow(gateway):
    wait_until(lambda: sas() == 2, "the first SAs")
    wait_until(lambda: "fb0" in run("ip -n ka route show") and "fb0" in run("ip -n kb route show"), "routes")
    ping = subprocess.Popen("ip netns exec ka ping -i 0.02 -I 10.1.0.1 10.2.0.1".split(), stdout=subprocess.PIPE, text=True)
    time.sleep(1)
    began = time.monotonic()
    many("add", 0x10000, COUNT)
    told = time.monotonic() - began
    wait_until(lambda: sas() == COUNT + 2, f"{COUNT} SAs")
    print(f"kernel_sas: {COUNT} SAs, made in {told:.2f} s, followed {time.monotonic() - began - told:.2f} s behind that", flush=True)
    # As long as it does not run, the kernel's messages fill its buffer, and what does not fit is lost.
    os.kill(gateway.pid, signal.SIGSTOP)
    try:
        many("add", 0x100000, COUNT)
        many("delete", 0x10000, COUNT // 2)
    finally:
        os.kill(gateway.pid, signal.SIGCONT)
    began = time.monotonic()
    wait_until(lambda: sas() == COUNT * 3 // 2 + 2, f"{COUNT * 3 // 2} SAs behind what was lost")
    again = time.monotonic() - began
    print(f"kernel_sas: {COUNT} more and {COUNT // 2} gone while it was suspended: right {again:.2f} s after that", flush=True)
    ping.send_signal(signal.SIGINT)
    said = ping.communicate(timeout=20)[0]
    numbers = [int(number) for number in re.findall(r"icmp_seq=(\d+)", said)]
    assert len(set(numbers)) == len(numbers) and len(numbers) > 50, said[-500:]
    print(f"kernel_sas: {max(numbers) - len(numbers)} of {max(numbers)} pings lost", flush=True)
    run("ip -n ka xfrm state flush")
    wait_until(lambda: sas() == 0, "the end of all SAs")
    batch([sa("add", 0x1002, KEYS[0x1001], True)])
    wait_until(lambda: sas() == 1, "an SA behind the flush")
    print("kernel_sas: ok")


if __name__ == "__main__":
    main()
