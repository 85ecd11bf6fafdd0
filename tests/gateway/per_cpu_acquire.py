#!/usr/bin/env python3
"""SAs are asked for by CPU (RFC 9611): a policy with XFRM_POLICY_CPU_ACQUIRE has each worker thread ask the
kernel for an SA of its own, once, and another policy has none say which it is.

Runs in the laboratory, in a namespace of its own, on Linux 6.13 or later:

    scripts/lab.sh FOREBAY run tests/gateway/per_cpu_acquire.py
"""

import os
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, f"{os.path.dirname(os.path.abspath(__file__))}/../../scripts")
import record_per_cpu as kernel  # noqa: E402

FOREBAY, LAB = os.environ["FOREBAY"], os.environ["LAB"]
NAMESPACE, MARK, HERE = "acquire", 0x4642, "10.1.0.1"
ACQUIRE, GROUP_ACQUIRE, ACQUIRE_LEN = 0x17, 1, 280
CONFIG = f"""
[inside]
name = "fb0"
mtu = 1400
queues = 2

[[outside]]
kind = "udp"
listen = "192.0.2.1:4500"

[keys]
source = "xfrm"
mark = {MARK}

[control]
socket = "{LAB}/acquire.sock"

[guard]
mode = "off"
"""


def acquires(heard):
    """Destination of the packet and CPU of each acquire that has come."""
    found = []
    while True:
        try:
            message = heard.recv(8192)
        except TimeoutError:
            return found
        if struct.unpack_from("=H", message, 4)[0] != ACQUIRE:
            continue
        at, cpu = 16 + ACQUIRE_LEN, None
        while at + 4 <= len(message):
            length, kind = struct.unpack_from("=HH", message, at)
            if kind == kernel.SA_PCPU:
                cpu = struct.unpack_from("=I", message, at + 4)[0]
            at += max(4, (length + 3) & ~3)
        found.append((socket.inet_ntoa(message[56:60]), cpu))


def say(destination):
    """Datagrams of many flows, so that each queue of the TUN interface gets some."""
    for _ in range(3):
        for _ in range(40):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
                one.bind((HERE, 0))
                one.sendto(b"some", (destination, 7000))
        time.sleep(0.3)


def main():
    if "in-namespace" not in sys.argv:
        subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
        words = ["ip", "netns", "exec", NAMESPACE, sys.executable, __file__, "in-namespace"]
        sys.exit(subprocess.run(words, timeout=120).returncode)
    for words in (
        "link set lo up",
        "link add wan type veth peer name peer",
        "link set wan up",
        "link set peer up",
        "addr add 192.0.2.1/24 dev wan",
        f"addr add {HERE}/32 dev lo",
    ):
        subprocess.run(["ip", *words.split()], check=True)
    heard, ask = (socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, kernel.NETLINK_XFRM) for _ in range(2))
    heard.bind((0, GROUP_ACQUIRE))
    heard.settimeout(1)
    ask.bind((0, 0))
    ask.settimeout(5)
    config = f"{LAB}/acquire.toml"
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG)
    with open(f"{LAB}/acquire.log", "w", encoding="utf-8") as log:
        gateway = subprocess.Popen([FOREBAY, "gateway", "--config", config], stderr=log)
    try:
        for _ in range(200):
            if subprocess.run(["ip", "link", "show", "fb0"], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        for flags, kind, destination, cpus in (
            (kernel.POLICY_CPU_ACQUIRE, kernel.NEWPOLICY, "10.2.0.1", [0, 1]),
            (0, kernel.UPDATE_POLICY, "10.2.0.2", [None]),
        ):
            ask.send(kernel.policy(flags, MARK, kind))
            refused = struct.unpack_from("=i", ask.recv(8192), 16)[0]
            assert refused == 0, f"the kernel refuses a policy: {refused}"
            subprocess.run(["ip", "route", "replace", "10.2.0.0/16", "dev", "fb0", "src", HERE], check=True)
            time.sleep(1)
            say(destination)
            found = acquires(heard)
            if flags and found and all(cpu is None for _, cpu in found):
                print("per_cpu_acquire: SKIPPED, the kernel knows no SAs per CPU")
                return
            wanted = [(destination, cpu) for cpu in cpus]
            assert sorted(found, key=str) == wanted, f"asked for {found}, expected {wanted}"
            print(f"per_cpu_acquire: with flags {flags} asked for {found}")
    finally:
        gateway.terminate()
        gateway.wait(timeout=20)


if __name__ == "__main__":
    main()
