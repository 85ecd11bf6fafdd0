#!/usr/bin/env python3
"""What a host behind a gateway is told by ICMP: packets that are too big, hops, and what cannot be reached; both IP versions.

Runs in the laboratory:

    scripts/lab.sh FOREBAY run tests/gateway/icmp.py
"""

import re
import subprocess
import sys

from lab import FOREBAY, LAB, inside, ip, kill, log, start, wait_until
from xdp import HOSTS, end, network, sa

# The path between the gateways is narrower than the TUN interfaces' 1400 bytes with what is put around packets.
PATH = 1400
OWN = {4: ("10.1.0.1", "10.2.0.1"), 6: ("fd01::1", "fd02::1")}


def config(letter, link):
    """The shipped file, with IPv6 beside IPv4."""
    here = "ab".index(letter)
    spis = (0x1001, 0x2001) if here == 0 else (0x2001, 0x1001)
    return f"""
[inside]
{link}
[[outside]]
kind = "udp"
[keys]
state = "state-{letter}"
[control]
socket = "{LAB}/{letter}.sock"
""" + sa("to-peer", "out", spis[0], f"{letter}-to-{'ba'[here]}", "udp", 4, here) + \
        sa("from-peer", "in", spis[1], f"{'ba'[here]}-to-{letter}", "udp", 4, here)


def tun(here, addresses=True):
    own = f'addresses = ["{OWN[4][here]}/32", "{OWN[6][here]}/128"]' if addresses else ""
    return f'name = "fb0"\n{own}\n'


def restart(letter, link):
    end(letter)
    with open(f"{LAB}/{letter}.toml", "w", encoding="utf-8") as file:
        file.write(config(letter, link))
    if 'kind = "xdp"' in link:
        start(letter, wait=False)
        asked = lambda: subprocess.run([FOREBAY, "status", "--socket", f"{LAB}/{letter}.sock"], capture_output=True).returncode == 0
        wait_until(asked, f"gateway {letter}")
    else:
        start(letter)


def ping(family, *words, to=None, host="host-a"):
    other = HOSTS[family][1] if host == "host-a" else HOSTS[family][0]
    words = ["ping", f"-{family}", "-n", "-i", "0.2", "-W", "1", *map(str, words), to or other]
    return subprocess.run(inside(host, *words), capture_output=True, text=True).stdout


def forget_paths():
    for host in ("host-a", "host-b"):
        for family in (4, 6):
            subprocess.run(["ip", "-n", host, f"-{family}", "route", "flush", "cache"], check=True, capture_output=True)


def too_big(family, source, host="host-a"):
    """Packets that the TUN interface takes and the path does not: their source is told the size that fits, and that does."""
    headers = 28 if family == 4 else 48
    words = r"From (\S+) icmp_seq=\d+ (?:Frag needed and DF set \(mtu = |Packet too big: mtu=)(\d+)"

    def ask():
        forget_paths()
        said = ping(family, "-M", "do", "-c", 4, "-s", 1400 - headers, host=host)
        return said, re.search(words, said)

    said, told = until(ask)
    assert told, f"IPv{family}: {host} is told nothing of its packets:\n{said}\n{log('a')[-2000:]}"
    assert told[1] == source, f"IPv{family}: from {told[1]}, not {source}"
    mtu = int(told[2])
    assert 1280 <= mtu < 1400, said
    said, passed = until(lambda: received(ping(family, "-M", "do", "-c", 2, "-s", mtu - headers, host=host)))
    assert passed, said
    return mtu


def received(said):
    return said, " 2 received" in said


def until(ask, times=5):
    """Asks again where a machine was too busy to answer: what is said, and what was looked for in it."""
    for _ in range(times):
        said, found = ask()
        if found:
            break
    return said, found


def hops(family, second=None, first=None):
    """What traceroute does: a hop answers that the packet's time is over."""
    for ttl, hop in ((1, first or OWN[family][0]), (2, second or OWN[family][1])):
        # The kernel's own limit of such messages is one a second.
        def ask(ttl=ttl):
            said = ping(family, "-t", ttl, "-c", 4, "-i", "0.5")
            return said, re.search(r"From (\S+) icmp_seq=\d+ Time (?:to live )?exceeded", said)

        said, told = until(ask)
        assert told and told[1] == hop, f"IPv{family}: hop {ttl} is {told and told[1]}, not {hop}:\n{said}"
    said, passed = until(lambda: received(ping(family, "-t", 3, "-c", 2)))
    assert passed, said


def unreachable(family):
    """A host that is not there: its gateway says so, through the tunnel."""
    gone = "10.2.0.99" if family == 4 else "fd02::99"
    words = rf"From {re.escape(OWN[family][1])} icmp_seq=\d+ Destination.*[Uu]nreachable"

    def ask():
        said = ping(family, "-c", 5, "-i", "1", to=gone)
        return said, re.search(words, said)

    said, told = until(ask)
    assert told, said


def main():
    network()
    for space, device in (("gw-a", "wan"), ("gw-b", "wan")):
        ip(space, "link", "set", device, "mtu", str(PATH))
        # As strict as a host may be.
        for name in ("all", "default"):
            subprocess.run(inside(space, "sysctl", "-qw", f"net.ipv4.conf.{name}.rp_filter=1"), check=True)
    restart("b", tun(1))
    restart("a", tun(0))
    for family in (4, 6):
        mtu = too_big(family, OWN[family][0]), too_big(family, OWN[family][1], host="host-b")
        hops(family)
        unreachable(family)
        print(f"icmp: TUN, IPv{family}: told {mtu[0]} and {mtu[1]} bytes, two hops, and what is unreachable", flush=True)

    # The TUN interface makes no way to the protected network, in whatever order interfaces come up.
    for _ in range(2):
        ip("gw-a", "link", "set", "lan", "down")
        ip("gw-a", "link", "set", "lan", "up")
        ip("gw-a", "address", "replace", f"{OWN[6][0]}/64", "dev", "lan", "nodad")
        network_is_back = lambda: all(
            OWN[family][0].rpartition("." if family == 4 else "::")[0] in ip("gw-a", f"-{family}", "route", "show", "dev", "lan")
            for family in (4, 6)
        )
        wait_until(network_is_back, "the routes of the LAN")
        for family in (4, 6):
            routes = ip("gw-a", f"-{family}", "route", "show", "dev", "fb0")
            assert "10.1." not in routes and not re.search(r"^fd01::/", routes, re.M), routes
            wait_until(lambda: " 2 received" in ping(family, "-c", 2), "pings behind a link that was down")

    # Another program, such as udev with the system's sysctls, makes the interface strict again.
    for setting in ("accept_local=0", "rp_filter=1"):
        subprocess.run(inside("gw-a", "sysctl", "-qw", f"net.ipv4.conf.fb0.{setting}"), check=True)
    read = lambda name: subprocess.run(inside("gw-a", "sysctl", "-n", f"net.ipv4.conf.fb0.{name}"), capture_output=True, text=True).stdout.strip()
    wait_until(lambda: (read("accept_local"), read("rp_filter")) == ("1", "2"), "the interface's settings")
    too_big(4, OWN[4][0])
    print("icmp: settings of the interface are looked after, and it makes no route to the protected network", flush=True)

    # `answer` alone is enough.
    restart("a", tun(0, addresses=False) + f'answer = ["{OWN[4][0]}", "{OWN[6][0]}"]\n')
    for family in (4, 6):
        too_big(family, OWN[family][0])

    restart("a", tun(0, addresses=False))
    for family in (4, 6):
        too_big(family, HOSTS[family][1])
    print("icmp: TUN without addresses: told by the address that packets are for", flush=True)

    # As `tunnel new` writes files: the interfaces have the addresses that the LANs' have. As strict as before, and as Ubuntu is.
    restart("b", tun(1, addresses=False))
    own = lambda space: re.findall(r"inet (\S+) scope (\S+)", ip(space, "-4", "address", "show", "dev", "fb0"))
    for strictness in (1, 2):
        for space in ("gw-a", "gw-b"):
            for name in ("all", "default", "fb0", "wan", "lan"):
                subprocess.run(inside(space, "sysctl", "-qw", f"net.ipv4.conf.{name}.rp_filter={strictness}"), check=True)
        wait_until(lambda: (own("gw-a"), own("gw-b")) == ([("10.1.0.1/32", "global")], [("10.2.0.1/32", "global")]), "the lent addresses")
        for family in (4, 6):
            hops(family)
    # Another one where that is taken away, and none is left of what is not the host's any more.
    ip("gw-a", "address", "add", "10.1.0.2/24", "dev", "lan")
    ip("gw-a", "address", "del", "10.1.0.1/16", "dev", "lan")
    wait_until(lambda: own("gw-a") == [("10.1.0.2/32", "global")], "the other address")
    # A gateway without an address in its protected network takes an answer from an address that no selector knows: the packet that it
    # quotes is the SA's.
    ip("gw-a", "address", "add", "172.31.0.1/32", "dev", "lan")
    ip("gw-a", "address", "del", "10.1.0.2/24", "dev", "lan")
    ip("gw-a", "route", "replace", "10.1.0.0/16", "dev", "lan")
    ip("host-a", "route", "replace", "default", "via", "172.31.0.1", "dev", "eth0", "onlink")
    restart("b", tun(1, addresses=False) + 'addresses = ["192.0.2.77/32"]\n')
    wait_until(lambda: [scope for _, scope in own("gw-a")] == ["host"], f"an address of the host alone: {own('gw-a')}")
    hops(4, second="192.0.2.77", first="172.31.0.1")
    ip("gw-a", "address", "add", "10.1.0.1/16", "dev", "lan")
    ip("gw-a", "address", "del", "172.31.0.1/32", "dev", "lan")
    ip("host-a", "route", "replace", "default", "via", "10.1.0.1")
    print("icmp: without addresses every hop has a name, with rp_filter 1 and 2; so has one with an address that no selector knows", flush=True)

    restart("a", 'kind = "xdp"\ninterface = "lan"\nmode = "copy"\n')
    for family in (4, 6):
        mtu = too_big(family, HOSTS[family][1])
        print(f"icmp: AF_XDP, IPv{family}: told {mtu} bytes", flush=True)
    kill("a")
    kill("b")


if __name__ == "__main__":
    sys.exit(main())
