#!/usr/bin/env python3
"""Gateways over IPv6 by the default link, and gateways on hosts that lack an IP version.

Runs in the laboratory:

    scripts/lab.sh FOREBAY run tests/gateway/families.py
"""

import subprocess
import sys

from icmp import ping, tun
from lab import FOREBAY, LAB, Wire, ask, inside, kill, log, start, wait_until
from xdp import end, network, sa


def config(letter, family, more=""):
    here = "ab".index(letter)
    spis = (0x1001, 0x2001) if here == 0 else (0x2001, 0x1001)
    return f"""
[inside]
{tun(here)}
[[outside]]
kind = "udp"
{more}
[[outside]]
kind = "raw"
[keys]
state = "state-{letter}"
[control]
socket = "{LAB}/{letter}.sock"
""" + sa("to-peer", "out", spis[0], f"{letter}-to-{'ba'[here]}", "udp", family, here) + \
        sa("from-peer", "in", spis[1], f"{'ba'[here]}-to-{letter}", "udp", family, here)


def restart(letter, text):
    end(letter)
    open(f"{LAB}/{letter}.log", "w").close()
    with open(f"{LAB}/{letter}.toml", "w", encoding="utf-8") as file:
        file.write(text)
    start(letter)


def disable(space, name, value):
    subprocess.run(inside(space, "sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6={value}"), check=True)


def pings(*families):
    for family in families:
        wait_until(lambda: " 2 received" in ping(family, "-c", 2), f"pings by IPv{family}")


def main():
    # The laboratory has no IPv6 at first; selectors and addresses of the file have.
    restart("b", config("b", 4))
    restart("a", config("a", 4))
    pings(4)
    for letter in "ab":
        said = [line for line in log(letter).splitlines() if "IPv6 is disabled" in line]
        assert any("no routes to" in line for line in said) and any("does not get the address" in line for line in said), log(letter)
        assert not ask(letter, "status")["guard"] or "cannot restore" not in log(letter), log(letter)
    print("families: a host without IPv6 starts with a warning, and IPv4 passes", flush=True)

    network()
    for letter in "ab":
        restart(letter, config(letter, 6))
        assert "IPv6 is disabled" not in log(letter), log(letter)
    pings(4, 6)
    names = [link["name"] for link in ask("a", "status")["links"]]
    assert "udp-1" in names and "udp-1-ipv6" in names, names
    print("families: two gateways by the default link over IPv6", flush=True)

    # What an SA says of its outer header is on the wire.
    labels = config("a", 6).replace('direction = "out"', 'direction = "out"\nttl = 33\nflow_label = 0x12345')
    restart("a", labels)
    wire = Wire()
    pings(4)
    sent = [packet for kind, left, packet in wire.end() if kind == 0x86DD and left and packet[6] == 17]
    assert sent and all(packet[7] == 33 and int.from_bytes(packet[:4], "big") & 0xFFFFF == 0x12345 for packet in sent), sent[:1]
    restart("a", config("a", 6))
    wire = Wire()
    pings(4)
    sent = [packet for kind, left, packet in wire.end() if kind == 0x86DD and left and packet[6] == 17]
    assert sent and all(packet[7] == 64 and int.from_bytes(packet[:4], "big") & 0xFFFFF == 0 for packet in sent), sent[:1]
    print("families: TTL and flow label of an SA over UDP", flush=True)

    # Without IPv6 on new interfaces only the TUN interface lacks it.
    disable("gw-a", "default", 1)
    restart("a", config("a", 6))
    pings(4)
    assert "IPv6 is disabled" in log("a"), log("a")
    # It comes by itself when it may.
    disable("gw-a", "fb0", 0)
    pings(4, 6)
    print("families: an interface without IPv6, until it has it", flush=True)

    # What no link reaches is said before.
    restart("a", config("a", 6, 'listen = "0.0.0.0:4500"'))
    checked = subprocess.run([FOREBAY, "check", "--config", f"{LAB}/a.toml"], capture_output=True, text=True)
    assert checked.returncode == 0 and "which no link does (IPv6)" in checked.stdout + checked.stderr, checked
    kill("a")
    kill("b")


if __name__ == "__main__":
    sys.exit(main())
