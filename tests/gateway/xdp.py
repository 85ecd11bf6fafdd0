#!/usr/bin/env python3
"""A gateway whose links are AF_XDP, on one side or on both, against one with sockets and a TUN.

Runs in the laboratory, whose cables are pairs of veth:

    scripts/lab.sh FOREBAY run tests/gateway/xdp.py [CASE...]
"""

import os
import shutil
import signal
import subprocess
import sys
import time

from two_sites import ASK, FOREBAY, LAB, SEND, SERVE, SIZES, ask, gateway_of, inside, program, run, start

HOSTS = {4: ("10.1.0.10", "10.2.0.10"), 6: ("fd01::10", "fd02::10")}
OUTER = {4: ("192.0.2.1", "192.0.2.2"), 6: ("fd00::1", "fd00::2")}

# name: where the program runs, encapsulation, outer IP version, inside, MTU. Those with "cores" in their name have two cores for
# the one queue of each card.
CASES = {
    "driver-udp-4": ("copy", "udp", 4, "xdp", 1500),
    "driver-udp-4-cores": ("copy", "udp", 4, "xdp", 1500),
    "driver-esp-6": ("copy", "none", 6, "xdp", 1500),
    "driver-udp-6-tun": ("copy", "udp", 6, "tun", 1500),
    "auto-esp-4-large": ("auto", "none", 4, "xdp", 3400),
    "generic-esp-4": ("generic", "none", 4, "xdp", 1500),
    "generic-udp-6": ("generic", "udp", 6, "xdp", 1500),
    "generic-udp-4-large": ("generic", "udp", 4, "xdp", 3800),
}

# Of both IP versions.
SERVE_BOTH = SERVE.replace('socket.create_server(("0.0.0.0", 7001))', 'socket.create_server(("::", 7001), family=socket.AF_INET6, dualstack_ipv6=True)')
SERVE_BOTH = SERVE_BOTH.replace('socket.AF_INET, socket.SOCK_DGRAM); echo.bind(("0.0.0.0", 7002))', 'socket.AF_INET6, socket.SOCK_DGRAM); echo.setsockopt(41, 26, 0); echo.bind(("::", 7002))')
ASKS = {4: ASK, 6: ASK.replace("socket.AF_INET,", "socket.AF_INET6,")}


def ip(namespace, *words):
    subprocess.run(["ip", "-n", namespace, *words], check=True)


def network():
    """IPv6 beside the laboratory's IPv4."""
    addresses = {"host-a": [("eth0", "fd01::10/64")], "gw-a": [("lan", "fd01::1/64"), ("wan", "fd00::1/64")],
                 "gw-b": [("wan", "fd00::2/64"), ("lan", "fd02::1/64")], "host-b": [("eth0", "fd02::10/64")]}
    for namespace, those in addresses.items():
        settings = ["net.ipv6.conf.all.disable_ipv6=0", "net.ipv6.conf.all.forwarding=1"]
        subprocess.run(inside(namespace, "sysctl", "-qw", *settings), check=True)
        for device, address in those:
            ip(namespace, "address", "add", address, "dev", device, "nodad")
    ip("host-a", "route", "add", "default", "via", "fd01::1")
    ip("host-b", "route", "add", "default", "via", "fd02::1")


def mtu(value):
    for namespace, device in [("host-a", "eth0"), ("gw-a", "lan"), ("gw-a", "wan"), ("gw-b", "wan"), ("gw-b", "lan"), ("host-b", "eth0")]:
        ip(namespace, "link", "set", device, "mtu", str(value))


def trains(namespace, device, on):
    """Whether senders leave trains of packets to their device: not with a program in front of the kernel's stack."""
    word = "on" if on else "off"
    words = ["ethtool", "-K", device]
    for feature in ["tso", "gso", "tx-udp-segmentation"]:
        words += [feature, word]
    subprocess.run(inside(namespace, *words), check=True, capture_output=True)


def sa(name, direction, spi, key, encapsulation, family, here):
    local, remote = OUTER[family][here], OUTER[family][1 - here]
    return f"""
[[sa]]
name = "{name}"
direction = "{direction}"
spi = {spi}
key_file = "{key}.key"
proposal = "aes128gcm16"
encapsulation = "{encapsulation}"
replay_window = 4096
local = "{local}"
remote = "{remote}"
local_ts = ["10.{1 + here}.0.0/16", "fd0{1 + here}::/64"]
remote_ts = ["10.{2 - here}.0.0/16", "fd0{2 - here}::/64"]
"""


def config(letter, inside_link, outside_link, encapsulation, family):
    here = "ab".index(letter)
    own, other = "ab"[here], "ba"[here]
    spis = (0x1001, 0x2001) if here == 0 else (0x2001, 0x1001)
    return f"""
[inside]
answer = ["10.{1 + here}.0.1", "fd0{1 + here}::1"]
{inside_link}
{outside_link}
[keys]
state = "state-{letter}"
[control]
socket = "{LAB}/{letter}.sock"
[limits]
packet_size = 4096
""" + sa("to-peer", "out", spis[0], f"{own}-to-{other}", encapsulation, family, here) + \
        sa("from-peer", "in", spis[1], f"{other}-to-{own}", encapsulation, family, here)


def is_running(pid):
    """Whether a process is there and no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def end(letter, how=signal.SIGTERM):
    pid = gateway_of(letter)
    os.kill(pid, how)
    while is_running(pid):
        time.sleep(0.02)


def write(case):
    mode, encapsulation, family, inside_kind, size = CASES[case]
    device = f'kind = "xdp"\ninterface = "%s"\nmode = "{mode}"\n'
    cores = ""
    if "cores" in case:
        device += "queues = [0]\n"
        cores = '[[processor]]\nkind = "core"\ncount = 2\n'
    tun = f'name = "fb0"\nmtu = {size - 100}\n'
    inside_a = device % "lan" if inside_kind == "xdp" else tun
    links = '[[outside]]\nkind = "udp"\n[[outside]]\nkind = "raw"\n'
    files = {"a": (inside_a, "[[outside]]\n" + device % "wan" + cores), "b": (tun, links)}
    for letter, (inside_link, outside_link) in files.items():
        with open(f"{LAB}/{letter}.toml", "w", encoding="utf-8") as file:
            file.write(config(letter, inside_link, outside_link, encapsulation, family))


def traffic(sizes=SIZES, megabytes=10):
    for family, (host_a, host_b) in HOSTS.items():
        run("host-a", ASKS[family], host_b, *sizes)
        run("host-b", ASKS[family], host_a, *sizes)
        if megabytes:
            run("host-a", SEND, host_b, megabytes * 1_000_000)
            run("host-b", SEND, host_a, megabytes * 1_000_000)


def one(case):
    mode, _, _, inside_kind, size = CASES[case]
    mtu(size)
    for namespace, device in [("host-a", "eth0"), ("gw-b", "wan")]:
        trains(namespace, device, mode != "generic")
    write(case)
    start("b")
    start("a")
    began = time.monotonic()
    traffic()
    took = time.monotonic() - began
    status = ask("status")
    links = {link["name"]: link for link in status["links"]}
    if "cores" in case:
        assert len(status["engines"]) == 2 and len(links) == 2, status
    wan = next(link for name, link in links.items() if name.startswith("xdp"))
    assert wan["packets_in"] > 5_000 and wan["packets_out"] > 5_000, links
    # What is not the gateway's passes beside it, trains and all.
    for address in OUTER[4][1], OUTER[6][1]:
        run("gw-a", SEND, address, 3_000_000)
        subprocess.run(inside("gw-a", "ping", "-q", "-c", "2", "-i", "0.1", address), check=True, capture_output=True)
    for address in ["10.1.0.1", "fd01::1"]:
        subprocess.run(inside("host-a", "ping", "-q", "-c", "2", "-i", "0.1", address), check=True, capture_output=True)
    # Links down and up, and other addresses of the cards.
    for device in ["wan", "lan"]:
        ip("gw-a", "link", "set", device, "down")
        time.sleep(0.2)
        ip("gw-a", "link", "set", device, "up")
        # IPv6 addresses go with a link.
        address = "fd00::1/64" if device == "wan" else "fd01::1/64"
        ip("gw-a", "address", "replace", address, "dev", device, "nodad")
    time.sleep(1)
    traffic([100, 1400], 0)
    ip("gw-a", "link", "set", "wan", "address", "02:00:00:00:00:77")
    ip("host-a", "link", "set", "eth0", "address", "02:00:00:00:00:78")
    time.sleep(6)
    traffic([100, 1400], 0)
    drops = {reason: count for reason, count in status["drops"].items() if count}
    print(f"xdp: {case}: {wan['packets_in']} in, {wan['packets_out']} out in {took:.1f} s, drops {drops}, not sent {wan['drops']}", flush=True)
    # Killed, nothing is left in the way of the next.
    end("b")
    end("a", signal.SIGKILL)
    start("b")
    start("a")
    traffic([100], 0)
    end("a")
    end("b")


def tell_state():
    """What both gateways and the kernel around them have counted and logged, when something has failed."""
    for letter in "ab":
        for words in (["status", "--socket", f"{LAB}/{letter}.sock"], ["show", "drops", "--socket", f"{LAB}/{letter}.sock"]):
            subprocess.run([FOREBAY, *words], stdout=sys.stderr, check=False)
        with open(f"{LAB}/{letter}.log", encoding="utf-8") as log:
            sys.stderr.writelines(log.readlines()[-20:])
    for name in ("host-a", "gw-a", "gw-b", "host-b"):
        for words in (["-s", "link"], ["neighbour"], ["-6", "neighbour"], ["route"]):
            print("--", name, *words, file=sys.stderr, flush=True)
            subprocess.run(["ip", "-n", name, *words], stdout=sys.stderr, check=False)


def main():
    if not shutil.which("ethtool"):
        sys.exit("xdp: it needs ethtool")
    network()
    servers = [subprocess.Popen(program(name, SERVE_BOTH), stdout=subprocess.PIPE, text=True) for name in ("host-a", "host-b", "gw-b")]
    for server in servers:
        assert server.stdout.readline() == "ready\n"
    end("a")
    end("b")
    for case in sys.argv[1:] or CASES:
        try:
            one(case)
        except Exception:
            tell_state()
            raise
    for server in servers:
        server.kill()


if __name__ == "__main__":
    main()
