#!/usr/bin/env python3
"""The guard: what pretends to come from inside is dropped by the host, IPv4 and IPv6, and nothing that is to be protected
leaves in the clear, whatever becomes of the gateway; without the guard both pass, so that the tests say something.

    scripts/lab.sh FOREBAY run tests/gateway/guard.py
"""

import json
import os
import signal
import struct
import subprocess
import sys
import time

import lab
from lab import FOREBAY, HOST_B, LAB, Count, Wire, ask, edit, in_the_clear, inside, ip, kill, program, send, start, wait_until

SA_6 = """
[[sa]]
name = "{name}-6"
direction = "{direction}"
spi = {spi}
key_file = "{name}-6.key"
proposal = "aes128gcm16"
encapsulation = "udp"
local = "192.0.2.1"
remote = "192.0.2.2"
local_ts = ["2001:db8:1::/48"]
remote_ts = ["2001:db8:2::/48"]
"""
# Sends packets with any source through an interface: Ethernet frames, as they come from a network.
FORGE = """
import socket, struct, sys
interface, theirs, source, destination, count, *kind = sys.argv[1:]
ports = {"": (7000, 9000), "dhcp": (67, 68), "dhcp6": (547, 546), "request": (68, 67)}[kind[0] if kind and kind[0] != "later" else ""]
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind((interface, 0))
mac = bytes.fromhex(theirs.replace(":", ""))
six = ":" in source
family = socket.AF_INET6 if six else socket.AF_INET
ends = [socket.inet_pton(family, address) for address in (source, destination)]

def total(data):
    words = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while words >> 16:
        words = (words & 0xffff) + (words >> 16)
    return ~words & 0xffff

for n in range(int(count)):
    payload = struct.pack("!Q", n)
    udp = struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload
    pseudo = b"".join(ends) + struct.pack("!HH", len(udp), 17)
    udp = udp[:6] + struct.pack("!H", total(pseudo + udp) or 0xffff) + udp[8:]
    # The end of a datagram, 64 bytes behind its beginning.
    later = kind == ["later"]
    if six:
        udp = struct.pack("!BBHI", 17, 0, 64, n) + udp if later else udp
        head = struct.pack("!IHBB", 6 << 28, len(udp), 44 if later else 17, 64) + b"".join(ends)
    else:
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), n, 8 if later else 0x4000, 64, 17, 0) + b"".join(ends)
        head = head[:10] + struct.pack("!H", total(head)) + head[12:]
    out.send(mac + out.getsockname()[4] + struct.pack("!H", 0x86dd if six else 0x0800) + head + udp)
"""
# Counts datagrams of both IP versions until a line comes in.
HEAR = """
import select, socket, sys
heard = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
heard.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
heard.bind(("::", 9000))
print("ready", flush=True)
count = 0
while True:
    ready, _, _ = select.select([heard, sys.stdin], [], [])
    if sys.stdin in ready and heard not in ready:
        print(count, flush=True)
        break
    heard.recv(65535)
    count += 1
"""


def nft(*words, namespace="gw-a", text=None):
    return subprocess.run(inside(namespace, "nft", *words), input=text, capture_output=True, text=True)


def table(namespace="gw-a"):
    return nft("list", "table", "inet", "forebay_fb0", namespace=namespace).stdout


def told():
    return ask("a", "status")["guard"]


def saved():
    """What the next start of gateway A is to guard before it has read its file."""
    with open(f"{os.environ['FOREBAY_STATE']}/guard-run%2Flab%2Fa.toml.rules", encoding="utf-8") as file:
        return file.read()


def forged_by_now(namespace="gw-a"):
    """What the kernel has counted until now; the status is as old as the gateway's last look."""
    listed = nft("-j", "list", "counter", "inet", "forebay_fb0", "forged", namespace=namespace).stdout
    return next(one["counter"]["packets"] for one in json.loads(listed)["nftables"] if "counter" in one)


def mac(namespace, interface):
    return json.loads(ip(namespace, "-j", "link", "show", interface))[0]["address"]


def forge(source, destination, count=50, *kind):
    """Packets from the network outside to gateway A; how many host-a has heard."""
    heard = lab.Talker("host-a", HEAR)
    subprocess.run(program("gw-b", FORGE, "wan", mac("gw-a", "wan"), source, destination, count, *kind), check=True)
    time.sleep(0.3)
    return int(heard.end())


def both_versions():
    """Gateway A also has IPv6, and no filter of the reverse path."""
    for namespace in ("host-a", "gw-a", "gw-b", "host-b"):
        for setting in ("net.ipv6.conf.all.disable_ipv6=0", "net.ipv6.conf.all.forwarding=1",
                        "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0"):
            subprocess.run(inside(namespace, "sysctl", "-qw", setting), check=True)
    for interface in ("wan", "lan"):
        subprocess.run(inside("gw-a", "sysctl", "-qw", f"net.ipv4.conf.{interface}.rp_filter=0"), check=True)
    ip("gw-a", "addr", "add", "2001:db8:1::1/64", "dev", "lan", "nodad")
    ip("gw-a", "addr", "add", "2001:db8:f::1/64", "dev", "wan", "nodad")
    ip("gw-b", "addr", "add", "2001:db8:f::2/64", "dev", "wan", "nodad")
    ip("host-a", "addr", "add", "2001:db8:1::10/64", "dev", "eth0", "nodad")
    ip("host-a", "route", "add", "default", "via", "2001:db8:1::1")
    # Ways for what is not routed to the gateway: those by which it would leak.
    ip("gw-a", "route", "add", "default", "via", "192.0.2.2")
    ip("gw-a", "route", "add", "default", "via", "2001:db8:f::2")
    sas = ""
    for name, direction, spi, octet in (("to-peer", "out", 0x1006, "5a"), ("from-peer", "in", 0x2006, "5b")):
        with open(f"{LAB}/{name}-6.key", "w", encoding="utf-8") as file:
            file.write(octet * 20)
        sas += SA_6.format(name=name, direction=direction, spi=spi)
    with open(f"{LAB}/a.toml", "a", encoding="utf-8") as file:
        file.write(sas)
    lab.reload("a")


def forged():
    assert told()["state"] == "on", told()
    before = told()["forged"]
    inner = [("10.2.0.10", "10.1.0.10"), ("2001:db8:2::10", "2001:db8:1::10")]
    for source, destination in inner:
        assert forge(source, destination) == 0, f"{source} was believed"
    # The addresses of the gateway itself, inside and outside.
    for source, destination in [("10.2.0.10", "192.0.2.1"), ("10.2.0.10", "10.1.0.1"), ("2001:db8:2::10", "2001:db8:f::1")]:
        forge(source, destination)
    wait_until(lambda: told()["forged"] == before + 250, f"the counters: {told()}")
    # Others may send what they like: the guard does not filter them.
    assert forge("203.0.113.5", "10.1.0.10") == 50 and forge("2001:db8:77::1", "2001:db8:1::10") == 50
    # The control.
    edit("a", "[keys]\n", "[guard]\nmode = \"off\"\n\n[keys]\n")
    lab.reload("a")
    assert table() == "" and told()["state"] == "off", table()
    assert "table" not in saved() and "discard 10.2.0.0/16" in saved(), saved()
    assert [forge(source, destination) for source, destination in inner] == [50, 50], "the host drops them anyway"
    edit("a", "mode = \"off\"\n", "mode = \"nftables\"\n")
    lab.reload("a")
    assert [forge(source, destination) for source, destination in inner] == [0, 0]
    print("guard: 250 packets in the clear with a source of the peer's network were dropped and counted, IPv4 and IPv6; "
          "without the guard they reach the inner network")


def leaks():
    """Restarts of all kinds under traffic, without blackhole routes to help."""
    edit("a", "[inside]\n", "[inside]\nblackhole = \"none\"\n")
    kill("a", signal.SIGTERM)
    start("a")
    assert "blackhole" not in ip("gw-a", "route")
    wire = Wire()
    storm = send("host-a", HOST_B, 0, 12_000, rate=2_000)
    time.sleep(0.3)
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
        kill("a", number)
        assert "goto clear_out" in table(), "the rules went with the gateway"
        time.sleep(0.3)
        assert forge("10.2.0.10", "10.1.0.10") == 0, "believed while there is no gateway"
        start("a")
        time.sleep(0.3)
    storm.wait(timeout=60)
    clear = in_the_clear([packet for packet in wire.end() if packet[1]])
    assert not clear, f"{len(clear)} packets in the clear, as {clear[0][:40].hex()}"
    heard = Count("host-b")
    send("host-a", HOST_B, 0, 100).wait(timeout=30)
    assert heard.end()["seen"] == 100, "the rules are in the way of the tunnel"
    # The control: the rules are deleted at a clean stop where the file says so, and then packets do leave.
    edit("a", "[guard]\n", "[guard]\nremove = true\n")
    lab.reload("a")
    kill("a", signal.SIGTERM)
    assert table() == ""
    wire = Wire()
    send("host-a", HOST_B, 0, 20).wait(timeout=30)
    time.sleep(0.2)
    assert in_the_clear([packet for packet in wire.end() if packet[1]]), "nothing leaves anyway; the test is worth nothing"
    edit("a", "[guard]\nremove = true\n", "[guard]\n")
    edit("a", "blackhole = \"none\"\n", "")
    start("a")
    print("guard: stopped twice and killed once under traffic: nothing in the clear, with the rules alone, which stay")


def follows():
    """The sets follow the file; what another program deletes is restored; other tables are left alone."""
    nft("-f", "-", text="table inet others { }")
    edit("a", 'remote_ts = ["10.2.0.0/16"]', 'remote_ts = ["10.2.0.0/16", "10.77.0.0/16"]')
    lab.reload("a")
    assert "10.77.0.0/16" in table() and forge("10.77.0.1", "10.1.0.10") == 0, table()
    edit("a", 'remote_ts = ["10.2.0.0/16", "10.77.0.0/16"]', 'remote_ts = ["10.2.0.0/16"]')
    lab.reload("a")
    assert "10.77.0.0/16" not in table()
    # An interface of another name waits for a restart: until then rules and routes are those of the one that is there.
    edit("a", '"fb0"', '"fb9"')
    for _ in range(2):
        said = lab.reload("a").stdout
        assert 'name: "fb0" -> "fb9"' in said, said
        assert "forebay_fb9" not in nft("list", "tables").stdout and "10.2.0.0/16" in table()
    edit("a", '"fb9"', '"fb0"')
    assert "restart" not in lab.reload("a").stdout
    # What is saved and not wanted any more when the gateway starts goes, and so do rules for another interface.
    edit("a", 'remote_ts = ["10.2.0.0/16"]', 'remote_ts = ["10.2.0.0/16", "10.77.0.0/16"]')
    lab.reload("a")
    kill("a")
    whole = lab.file_of("a").replace(', "10.77.0.0/16"', "")
    for name in ("fb2", "fb0"):
        with open(f"{LAB}/a.toml", "w", encoding="utf-8") as file:
            file.write(whole.replace('"fb0"', f'"{name}"'))
        start("a", wait=False)
        wait_until(lambda: f"dev {name}" in ip("gw-a", "route"), f"gateway a with {name}")
        tables = nft("list", "tables").stdout
        assert tables.count("forebay_") == 1 and f"forebay_{name}" in tables, tables
        assert "10.77" not in ip("gw-a", "route") + saved(), ip("gw-a", "route")
        kill("a", signal.SIGTERM)
    start("a")
    before = table()
    forged_before = told()["forged"]
    strip = lambda text: [line for line in text.splitlines() if "packets" not in line]
    # All of it, and one rule, element or flag.
    changes = ["flush ruleset", "flush chain inet forebay_fb0 clear_in", "flush set inet forebay_fb0 remote4",
               "delete element inet forebay_fb0 remote6 { 2001:db8:2::/48 }", "insert rule inet forebay_fb0 arriving accept",
               "add element inet forebay_fb0 peers4 { 10.2.0.0/16 }", "add table inet forebay_fb0 { flags dormant ; }"]
    took = []
    for change in changes:
        restored, lines, began = told()["restored"], lab.log("a").count("installed again"), time.monotonic()
        assert nft(*change.split()).returncode == 0, change
        wait_until(lambda: told()["restored"] == restored + 1, f"the rules after {change}")
        took.append(time.monotonic() - began)
        assert strip(table()) == strip(before), table()
        assert forge("10.2.0.10", "10.1.0.10") == 0 and forge("2001:db8:2::10", "2001:db8:1::10") == 0
        assert lab.log("a").count("installed again") == lines + 1, lab.log("a")
    # Tables of others are not ours.
    restored = told()["restored"]
    nft("-f", "-", text="table inet others { set one { type ipv4_addr; elements = { 192.0.2.9 }; }; }")
    time.sleep(1)
    assert told()["restored"] == restored
    # Routes to the peer's networks, those that discard behind them, and the interface's addresses.
    edit("a", "[inside]\n", "[inside]\naddresses = [\"10.7.0.1/24\", \"2001:db8:7::1/64\"]\n")
    kill("a")
    start("a")
    addresses = lambda: sorted(word for word in ip("gw-a", "addr", "show", "dev", "fb0").split() if word in ("10.7.0.1/24", "2001:db8:7::1/64"))
    routes = lambda: sorted(line for version in ("-4", "-6") for line in ip("gw-a", version, "route").splitlines()
                            if ("dev fb0" in line or "blackhole" in line) and "fe80" not in line and "proto kernel" not in line)
    # A start has ended for the lab with the first route to the interface.
    wait_until(lambda: len(routes()) == 4 and len(addresses()) == 2, f"all routes: {routes()}")
    wanted = routes()
    for words in (["-4", "route", "flush", "type", "blackhole"], ["-6", "route", "flush", "type", "blackhole"],
                  ["-4", "route", "flush", "dev", "fb0"], ["route", "replace", "10.2.0.0/16", "via", "192.0.2.2"],
                  ["-4", "addr", "flush", "dev", "fb0"], ["-6", "addr", "flush", "dev", "fb0", "scope", "global"],
                  ["link", "set", "fb0", "down"], ["link", "set", "fb0", "name", "fb9"]):
        lines, began = lab.log("a").count("installed again"), time.monotonic()
        ip("gw-a", *words, check="name" not in words)
        if "name" in words and "fb9" not in ip("gw-a", "link"):
            # Before Linux 6.2.
            for old in (["link", "set", "fb0", "down"], words, ["link", "set", "fb9", "up"]):
                ip("gw-a", *old)
        if "replace" in words:
            wait_until(lambda: "10.2.0.0/16 dev fb0" in ip("gw-a", "route"), "the route to the interface")
            ip("gw-a", "route", "del", "10.2.0.0/16", "via", "192.0.2.2")
        if "down" in words:
            time.sleep(0.7)
            ip("gw-a", "link", "set", "fb0", "up")
            began = time.monotonic()
        wait_until(lambda: routes() == wanted and len(addresses()) == 2, f"the routes after {words}: {routes()}")
        took.append(time.monotonic() - began)
        # Addresses come back while it is down, and routes when it is up.
        said = lab.log("a").count("installed again") - lines - ("down" in words)
        # A look may fall into the middle of a flush.
        assert 1 <= said <= 2, lab.log("a")
    assert told()["blackholes"] == 2 and forge("10.2.0.10", "10.1.0.10") == 0 and told()["routes_restored"] >= 4, told()
    assert told()["forged"] >= forged_before, "counts went back"
    # What is printed is what is made.
    printed = subprocess.run(inside("gw-a", FOREBAY, "check", "--config", f"{LAB}/a.toml", "--print-rules"), capture_output=True, text=True, check=True)
    assert nft("-f", "-", namespace="host-a", text=printed.stdout).returncode == 0, printed.stdout
    assert strip(table("host-a")) == strip(table()), table("host-a") + table()
    nft("delete", "table", "inet", "forebay_fb0", namespace="host-a")
    print(f"guard: the rules follow the file, are those that are printed, and come back with the routes {len(took)} times after another "
          f"program changed them, within {max(took):.2f} s")


# Sends datagrams to host-a by both IP versions for some seconds.
TO_HOST_A = """
import socket, sys, time
out = [(socket.socket(family, socket.SOCK_DGRAM), (to, 9000)) for family, to in
       ((socket.AF_INET, "10.1.0.10"), (socket.AF_INET6, "2001:db8:1::10"))]
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    for one, to in out:
        one.sendto(b"opened", to)
    time.sleep(0.001)
"""


def opened():
    """What the gateway opens for a network of this side takes no other way while the LAN is away, IPv4 and IPv6."""
    sas = ""
    for name, direction, spi in (("from-peer", "out", 0x2006), ("to-peer", "in", 0x1006)):
        sa = SA_6.format(name=name, direction=direction, spi=spi)
        for one, other in (("192.0.2.1", "192.0.2.2"), ("2001:db8:1:", "2001:db8:2:")):
            sa = sa.replace(one, "-").replace(other, one).replace("-\"", f"{other}\"").replace("-:/48", f"{other}:/48")
        sas += sa
    with open(f"{LAB}/b.toml", "a", encoding="utf-8") as file:
        file.write(sas)
    ip("gw-b", "addr", "add", "2001:db8:2::1/64", "dev", "lan", "nodad")
    ip("host-b", "addr", "add", "2001:db8:2::10/64", "dev", "eth0", "nodad")
    ip("host-b", "route", "add", "default", "via", "2001:db8:2::1")
    lab.reload("b")

    def lan(is_up):
        ip("gw-a", "link", "set", "lan", "up" if is_up else "down")
        if is_up:
            # The kernel takes IPv6 addresses away with the link.
            ip("gw-a", "addr", "replace", "2001:db8:1::1/64", "dev", "lan", "nodad")

    def flaps():
        """How many packets of each version leave in the clear, and how many host-a hears when all is well again."""
        wire = Wire()
        sends = subprocess.Popen(program("host-b", TO_HOST_A, 8))
        for _ in range(3):
            time.sleep(0.4)
            lan(False)
            time.sleep(0.6)
            lan(True)
        heard = lab.Talker("host-a", HEAR)
        sends.wait(timeout=60)
        seen = wire.end()
        clear = len([one for one in in_the_clear([packet for packet in seen if packet[1]]) if one[16:18] == bytes([10, 1])])
        clear_6 = len([one for kind, left, one in seen if kind == 0x86dd and left and one[24:30] == bytes.fromhex("20010db80001")])
        return clear, clear_6, int(heard.end())

    before = told()["leaked"]
    clear, clear_6, heard = flaps()
    assert (clear, clear_6) == (0, 0), f"{clear} and {clear_6} opened packets left in the clear"
    assert heard > 200, f"host-a heard {heard} packets"
    wait_until(lambda: told()["leaked"] > before + 200, f"the counter: {told()}")
    assert "local networks have no route of their own" in lab.log("a") and "of their own again" in lab.log("a"), lab.log("a")
    # A gateway that comes up before its LAN, and before the way to the peer.
    kill("a")
    lan(False)
    routes = [["default", "via", "192.0.2.2"], ["default", "via", "2001:db8:f::2"]]
    for route in routes:
        ip("gw-a", "route", "del", *route)
    ip("gw-a", "link", "set", "wan", "down")
    start("a", wait=False)
    wait_until(lambda: "dev fb0" in ip("gw-a", "route"), "the gateway without a network")
    wire = Wire()
    sends = subprocess.Popen(program("host-b", TO_HOST_A, 3))
    time.sleep(0.3)
    ip("gw-a", "link", "set", "wan", "up")
    ip("gw-a", "addr", "replace", "2001:db8:f::1/64", "dev", "wan", "nodad")
    for route in routes:
        ip("gw-a", "route", "replace", *route)
    sends.wait(timeout=30)
    seen = [one for kind, left, one in wire.end() if left and (one[16:18] == bytes([10, 1]) if kind == 0x0800 else
                                                              kind == 0x86dd and one[24:30] == bytes.fromhex("20010db80001"))]
    assert not seen, f"{len(seen)} opened packets left in the clear by a link that came up first"
    lan(True)
    # The controls: an interface that leads inside by the file's word, and no guard.
    for line in ('local_interfaces = ["wan"]\n', 'mode = "off"\n'):
        edit("a", "[guard]\n", f"[guard]\n{line}")
        if "off" in line:
            edit("a", 'mode = "off"\nmode = "nftables"\n', line)
        lab.reload("a")
        clear, clear_6, _ = flaps()
        assert clear and clear_6, f"nothing leaves anyway with {line}: {clear} and {clear_6}; the test is worth nothing"
        edit("a", f"[guard]\n{line}", "[guard]\n" + ('mode = "nftables"\n' if "off" in line else ""))
    lab.reload("a")
    print("guard: opened packets, IPv4 and IPv6, take no other way while the LAN flaps three times and before it has come up")


def exceptions():
    """What passes though its addresses are guarded is for this host only, and fragments are from peers only."""
    for source, destination, kind in [
            ("10.2.0.10", "10.1.0.10", "dhcp"), ("2001:db8:2::10", "2001:db8:1::10", "dhcp6"),
            ("10.2.0.10", "192.0.2.1", "later"), ("2001:db8:2::10", "2001:db8:f::1", "later")]:
        before = forged_by_now()
        forge(source, destination, 50, kind)
        assert forged_by_now() == before + 50, f"{forged_by_now() - before} of 50 {kind} from {source} to {destination} were dropped"
    # Those of the host's own DHCP.
    for source, destination, kind in [("10.2.0.10", "192.0.2.1", "dhcp"), ("10.2.0.10", "192.0.2.255", "dhcp"),
                                      ("2001:db8:2::10", "2001:db8:f::1", "dhcp6")]:
        before = forged_by_now()
        forge(source, destination, 50, kind)
        assert forged_by_now() == before, f"{kind} from {source} to {destination}"
    # Of a peer whose outer address is guarded they pass; without it they do not. The rules are tried on another host.
    printed = subprocess.run(inside("gw-a", FOREBAY, "check", "--config", f"{LAB}/a.toml", "--print-rules"), capture_output=True, text=True, check=True)
    assert nft("-f", "-", namespace="host-a", text=printed.stdout).returncode == 0, printed.stdout
    for source, destination, peers in [("10.2.0.10", "10.1.0.10", "peers4"), ("2001:db8:2::10", "2001:db8:1::10", "peers6")]:
        counts = []
        for is_peer in (False, True):
            if is_peer:
                assert nft("add", "element", "inet", "forebay_fb0", peers, "{", source, "}", namespace="host-a").returncode == 0
            subprocess.run(program("gw-a", FORGE, "lan", mac("host-a", "eth0"), source, destination, 50, "later"), check=True)
            time.sleep(0.3)
            counts.append(forged_by_now("host-a"))
        assert counts[1] == counts[0] >= 50, f"{peers}: {counts}"
    nft("delete", "table", "inet", "forebay_fb0", namespace="host-a")
    print("guard: DHCP that would be forwarded and fragments of others are dropped, IPv4 and IPv6")


def reloaded():
    """Rules that are installed again and again under traffic, as at each start, never leave a gap."""
    edit("a", "[inside]\n", "[inside]\nblackhole = \"none\"\n")
    kill("a", signal.SIGTERM)
    start("a")
    kill("a", signal.SIGTERM)
    assert "blackhole" not in ip("gw-a", "route")
    wire, loads = Wire(), 0
    storm = send("host-a", HOST_B, 0, 30_000, rate=6_000)
    while storm.poll() is None:
        subprocess.run(inside("gw-a", FOREBAY, "guard", "load", "--config", f"{LAB}/a.toml"), check=True, capture_output=True)
        loads += 1
    clear = in_the_clear([packet for packet in wire.end() if packet[1]])
    assert not clear, f"{len(clear)} packets in the clear while rules were installed {loads} times"
    edit("a", "blackhole = \"none\"\n", "")
    start("a")
    print(f"guard: rules were installed {loads} times under 6000 packets a second: none in the clear")


BROKEN = {
    "an unknown key": lambda text: text.replace("[inside]\n", "[inside]\nno_such_key = 1\n"),
    "no TOML": lambda text: text + "\n[[[",
    "a missing key file": lambda text: text.replace("a-to-b.key", "no-such.key"),
    "a state directory that cannot be written": lambda text: text.replace('"state-a"', '"a.toml/state"'),
    # Records know whose they are: those of another role are elsewhere.
    "an interface of a pair that is missing": lambda text: text.replace('"state-a"', '"state-pair"') + """
[pair]
number = 0
listen = ["127.0.0.1:7411"]
peers = ["127.0.0.2:7411"]
key_file = "pair.key"
addresses = ["nowhere 10.1.0.1/16"]
""",
    "an etcd certificate that cannot be read": lambda text: text.replace('"state-a"', '"state-cluster"') + """
[cluster]
name = "gw-a"
endpoints = ["https://127.0.0.1:2379"]
ca_file = "no-such.pem"
certificate_file = "no-such.pem"
private_key_file = "no-such.key"
""",
    "no file": None,
}


def as_after_a_boot():
    """The kernel has nothing that a gateway has made."""
    nft("flush", "ruleset")
    for version in ("-4", "-6"):
        ip("gw-a", version, "route", "flush", "type", "blackhole")
    assert table() == "" and "blackhole" not in ip("gw-a", "route")


def closed(what):
    """Nothing passes in either direction, IPv4 and IPv6, and the routes are there."""
    assert forge("10.2.0.10", "10.1.0.10") == 0 and forge("2001:db8:2::10", "2001:db8:1::10") == 0, what
    assert all(f"blackhole {net}" in ip("gw-a", version, "route") for version, net in (("-4", "10.2.0.0/16"), ("-6", "2001:db8:2::/48"))), what
    wire = Wire()
    send("host-a", HOST_B, 0, 50).wait(timeout=30)
    for source, destination, kind in (("10.1.0.10", "10.2.0.10", "request"), ("2001:db8:1::10", "2001:db8:2::10", "request"),
                                      ("2001:db8:1::10", "2001:db8:2::10", "")):
        subprocess.run(program("host-a", FORGE, "eth0", mac("gw-a", "lan"), source, destination, 50, kind), check=True)
    time.sleep(0.3)
    out = [packet for kind, left, packet in wire.end() if left]
    clear = [packet for packet in out if packet[12:14] == bytes([10, 1]) or packet[8:14] == bytes.fromhex("20010db80001")]
    assert not clear, f"{what}: {len(clear)} packets in the clear"


def booted():
    """The units' commands in the order of a boot: before the network is up, with it, and then the gateway."""
    def commands(unit, kind):
        path = os.path.join(os.path.dirname(__file__), "../../packaging", unit)
        with open(path, encoding="utf-8") as file:
            lines = [line.strip().split("=", 1)[1].lstrip("-") for line in file if line.startswith(f"{kind}=")]
        return [line.replace("/usr/bin/forebay", FOREBAY).replace("/etc/forebay/gateway.toml", f"{LAB}/a.toml").split() for line in lines]

    for interface in ("wan", "lan"):
        ip("gw-a", "link", "set", interface, "down")
    as_after_a_boot()
    wire = Wire()
    [load] = commands("forebay-guard.service", "ExecStart")
    subprocess.run(inside("gw-a", *load), check=True, capture_output=True)
    for interface, addresses in (("wan", ("2001:db8:f::1/64",)), ("lan", ("2001:db8:1::1/64",))):
        ip("gw-a", "link", "set", interface, "up")
        for address in addresses:
            ip("gw-a", "addr", "replace", address, "dev", interface, "nodad")
    for via in ("192.0.2.2", "2001:db8:f::2"):
        ip("gw-a", "route", "replace", "default", "via", via)
    storm = send("host-a", HOST_B, 0, 4_000, rate=1_000)
    closed("the network is up, the gateway is not")
    for command in commands("forebay.service", "ExecStartPre"):
        subprocess.run(inside("gw-a", *command), check=True, capture_output=True)
    start("a")
    storm.wait(timeout=60)
    heard = Count("host-b")
    send("host-a", HOST_B, 0, 100).wait(timeout=30)
    assert heard.end()["seen"] == 100, "the rules are in the way of the tunnel"
    clear = in_the_clear([packet for packet in wire.end() if packet[1]])
    assert not clear, f"{len(clear)} packets in the clear"
    print("guard: a boot by the commands of the units: nothing in the clear from before the network is up until the tunnel is")


def first_of_all():
    """A start that fails closes the host before it complains, as after a boot; so does `guard load`."""
    kill("a", signal.SIGTERM)
    path = f"{LAB}/a.toml"
    with open(f"{LAB}/pair.key", "w", encoding="utf-8") as file:
        file.write(os.urandom(32).hex())
    whole = lab.file_of("a")

    def run(*words, **environment):
        return subprocess.run(inside("gw-a", FOREBAY, *words, "--config", path), capture_output=True, text=True, timeout=60,
                              env={**os.environ, **environment})

    for what, broken in BROKEN.items():
        if broken:
            text = broken(whole)
            assert text != whole
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        else:
            os.remove(path)
        as_after_a_boot()
        failed = run("gateway")
        assert failed.returncode == 2, (what, failed)
        said = "rules that the last start" if what in ("an unknown key", "no TOML", "a missing key file", "no file") else "guard rules stay"
        assert said in failed.stderr, (what, failed.stderr)
        closed(what)
    as_after_a_boot()
    loaded = run("guard", "load")
    assert loaded.returncode == 0 and "2 networks have blackhole routes" in loaded.stdout, loaded
    closed("guard load")
    with open(path, "w", encoding="utf-8") as file:
        file.write(whole)
    booted()
    kill("a", signal.SIGTERM)
    # Nothing was saved: that is said, and the control.
    os.remove(path)
    as_after_a_boot()
    for words, status in (("gateway",), 2), (("guard", "load"), 0):
        done = run(*words, FOREBAY_STATE=f"{LAB}/elsewhere")
        assert done.returncode == status and "no start with this configuration file has saved rules" in done.stdout + done.stderr, done
    assert forge("10.2.0.10", "10.1.0.10") == 50, "the host drops them anyway"
    # Damaged: an error of its own. The next start saves anew.
    os.truncate(f"{os.environ['FOREBAY_STATE']}/guard-run%2Flab%2Fa.toml.rules", 100)
    damaged = run("guard", "load")
    assert damaged.returncode == 2 and "line 8" in damaged.stderr, damaged
    with open(path, "w", encoding="utf-8") as file:
        file.write(whole)
    start("a")
    # Without a wish for rules nothing is saved.
    edit("a", "[guard]\n", "[guard]\nremove = true\n")
    edit("a", "[inside]\n", "[inside]\nblackhole = \"remove\"\n")
    kill("a", signal.SIGTERM)
    start("a")
    kill("a", signal.SIGTERM)
    assert run("guard", "load").stdout.startswith("no start")
    with open(path, "w", encoding="utf-8") as file:
        file.write(whole)
    start("a")
    print(f"guard: {len(BROKEN)} starts that fail close the host first, as after a boot, and so does `guard load`; nothing passes, IPv4 and IPv6")


def before_the_daemon(mark, template):
    """A boot: the gateway is there before the IKE daemon, which took its policies with it when the host was shut down."""
    edit("a", 'routes = ["10.5.0.0/16", "10.2.0.0/16"]\n', "")
    edit("a", "policies = 2\n", "policies = 8\n")

    def begin():
        since = len(lab.log("a"))
        start("a", wait=False)
        wait_until(lambda: "gateway started" in lab.log("a")[since:], "the gateway with keys from the kernel")

    def add(network="10.5.0.0/16"):
        for way, source, destination in (("out", "10.1.0.0/16", network), ("in", network, "10.1.0.0/16")):
            xfrm("policy", "add", "src", source, "dst", destination, "dir", way, *mark, *template)
        wait_until(lambda: "10.5.0.0/16 dev fb0" in ip("gw-a", "route"), "the route of a policy")

    def passes():
        wire = Wire()
        send("host-a", "10.5.0.1", 0, 50).wait(timeout=30)
        time.sleep(0.3)
        return len([one for kind, left, one in wire.end() if left and kind == 0x0800 and one[16:18] == bytes([10, 5])])

    begin()
    add()
    # A daemon deletes its policies one by one. The networks are no neighbours, which nft would join.
    add("10.9.0.0/16")
    wait_until(lambda: "10.9.0.0/16" in table(), "the rules for both networks")
    for network in ("10.5.0.0/16", "10.9.0.0/16"):
        xfrm("policy", "delete", "src", "10.1.0.0/16", "dst", network, "dir", "out", *mark)
        xfrm("policy", "delete", "src", network, "dst", "10.1.0.0/16", "dir", "in", *mark)
        time.sleep(1)
    wait_until(lambda: "10.5.0.0/16" not in table() and "10.9.0.0/16" not in table(), "the rules to follow")
    assert passes(), "nothing leaves anyway; the test is worth nothing"
    kill("a", signal.SIGTERM)
    assert "10.5.0.0/16" in saved() and "10.9.0.0/16" in saved(), saved()
    as_after_a_boot()
    since = len(lab.log("a"))
    begin()
    wait_until(lambda: "no protecting policy yet" in lab.log("a")[since:], "the gateway to wait for the daemon")
    assert "10.5.0.0/16" in table() and "blackhole 10.5.0.0/16" in ip("gw-a", "route"), table()
    assert passes() == 0 and forge("10.5.0.1", "10.1.0.10") == 0, "open until the daemon has begun"
    add()
    assert passes() == 0
    # From then on the kernel's policies are followed, wherever they go.
    xfrm("policy", "flush")
    wait_until(lambda: "10.5.0.0/16" not in table() and "10.5.0.0/16" not in ip("gw-a", "route"), "the rules to follow")
    kill("a", signal.SIGTERM)


POLICY = ["src", "10.1.0.0/16", "dst", "10.5.0.0/16", "dir"]


def xfrm(*words, check=True):
    done = subprocess.run(["ip", "-n", "gw-a", "xfrm", *words], capture_output=True, text=True)
    assert not check or done.returncode == 0, (words, done.stderr)
    return done.returncode == 0


def kernel():
    """Policies from the kernel: the rules follow them, a refused one discards, and none is no way out either."""
    kill("a", signal.SIGTERM)
    with open(f"{LAB}/a.toml", encoding="utf-8") as file:
        text = file.read()
    kept = text
    text = text[:text.index("[[sa]]")].replace("[keys]\n", "[keys]\nsource = \"xfrm\"\nmark = 0x4642\n")
    text = text.replace("[inside]\n", "[inside]\nroutes = [\"10.5.0.0/16\", \"10.2.0.0/16\"]\n") + "\n[limits]\npolicies = 2\n"
    with open(f"{LAB}/a.toml", "w", encoding="utf-8") as file:
        file.write(text)
    before = table()
    # A mark that no packet has: the kernel does not act on its policies itself.
    mark = ["mark", "0x4642", "mask", "0xffffffff"]
    if not xfrm("policy", "list", check=False):
        print("guard: this kernel has no XFRM: policies from it are SKIPPED")
    else:
        start("a")
        template = ["tmpl", "src", "192.0.2.1", "dst", "192.0.2.2", "proto", "esp", "mode", "tunnel", "reqid", "1"]
        inner = ["tmpl", "src", "192.0.2.1", "dst", "192.0.2.2", "proto", "ah", "mode", "tunnel", "reqid", "2"]
        policies = lambda: {one["name"]: one["action"] for one in ask("a", "policies")["policies"]}
        drops = lambda reason: lab.drops("a").get(reason, 0)

        def dropped(reason, destination):
            count = drops(reason)
            send("host-a", destination, 0, 20).wait(timeout=30)
            # The host itself has a word to say to groups on the interface.
            wait_until(lambda: drops(reason) >= count + 20, f"20 drops under {reason}: {lab.drops('a')}")

        wire = Wire()
        # None at all, as after a flush: nothing goes, whatever SAs there are.
        dropped("out_no_pols", "10.5.0.1")
        xfrm("policy", "add", *POLICY, "out", *mark, "priority", "5", *template)
        xfrm("policy", "add", "src", "10.5.0.0/16", "dst", "10.1.0.0/16", "dir", "in", *mark, *template)
        wait_until(lambda: "10.5.0.0/16" in table(), "the rules of a policy")
        assert forge("10.5.0.1", "10.1.0.10") == 0
        dropped("out_no_states", "10.5.0.1")
        # Two SAs around a packet: neither alone is enough, and the broader policy is not asked.
        narrow = ["src", "10.1.0.0/16", "dst", "10.5.5.0/24", "dir", "out"]
        xfrm("policy", "add", *narrow, *mark, "priority", "1", *template, *inner)
        wait_until(lambda: "discard" in policies().values(), f"a refused policy: {policies()}")
        dropped("out_pol_block", "10.5.5.1")
        xfrm("policy", "delete", *narrow, *mark)
        wait_until(lambda: "discard" not in policies().values(), "the end of a refused policy")
        dropped("out_no_states", "10.5.5.1")
        # More than there is room for: a policy that would let packets pass in the clear discards too, until there is room.
        xfrm("policy", "add", *narrow, *mark, "priority", "1")
        wait_until(lambda: "discard" in policies().values(), f"a policy over the limit: {policies()}")
        dropped("out_pol_block", "10.5.5.1")
        xfrm("policy", "delete", "src", "10.5.0.0/16", "dst", "10.1.0.0/16", "dir", "in", *mark)
        wait_until(lambda: "bypass" in policies().values(), f"room for a policy: {policies()}")
        xfrm("policy", "flush")
        wait_until(lambda: not policies(), "the end of all policies")
        dropped("out_no_pols", "10.5.0.1")
        assert "10.5.0.0/16" not in table()
        assert not [one for one in wire.end() if one[1] and one[2][16:18] == bytes([10, 5])], "in the clear"
        # What an earlier run has left guards until the kernel's policies are known, and those are read by `check` as well.
        xfrm("policy", "add", *POLICY, "out", *mark, "priority", "5", *template)
        words = inside("gw-a", FOREBAY, "check", "--config", f"{LAB}/a.toml", "--print-rules")
        printed = subprocess.run(words, capture_output=True, text=True, check=True)
        assert "10.5.0.0" in printed.stdout, printed.stdout
        xfrm("policy", "flush")
        kill("a", signal.SIGTERM)
        before_the_daemon(mark, template)
        print("guard: the kernel's policies are followed; without any, over the limit and with two templates packets are dropped")
    assert before
    with open(f"{LAB}/a.toml", "w", encoding="utf-8") as file:
        file.write(kept)
    start("a")


def moves():
    """An on-path attacker forwards packets from two places in turn: each is accepted, and few are followed."""
    def heard_from(ports):
        return (f"add table ip elsewhere\ndelete table ip elsewhere\nadd table ip elsewhere\n"
                "add chain ip elsewhere prerouting { type filter hook prerouting priority -300; }\n"
                f"add rule ip elsewhere prerouting iif wan udp sport 4500 udp sport set {ports}\n")

    # After the kill the numbers of about a second are refused, because they may have been seen.
    send("host-b", lab.HOST_A, 0, 1_500, rate=3_000).wait(timeout=30)
    if nft("-f", "-", text=heard_from("numgen inc mod 2 map { 0 : 5001, 1 : 5002 }")).returncode != 0:
        return print("guard: SKIPPED, there is no nft that rewrites ports")
    engine = lambda: ask("a", "status")["engines"][0]
    before, lines = engine(), lab.log("a").count("peer address changed")
    heard = Count("host-a")
    send("host-b", lab.HOST_A, 0, 4_000, rate=4_000).wait(timeout=30)
    seen = heard.end()["seen"]
    assert seen == 4_000, f"packets from elsewhere are genuine: {seen}"
    after, lines = engine(), lab.log("a").count("peer address changed") - lines
    followed, limited = (after[name] - before[name] for name in ("moved_peers", "moves_limited"))
    assert 4 <= followed < 40 and limited > 1_000 and lines <= followed, (followed, limited, lines)
    # Where it stays it is followed to.
    nft("-f", "-", text=heard_from("5003"))
    time.sleep(1)
    heard = Count("host-a")
    send("host-b", lab.HOST_A, 0, 100, rate=100).wait(timeout=30)
    heard.end()
    assert "192.0.2.2:5003" in "".join(lab.log("a").splitlines()[-9:]), lab.log("a")[-3000:]
    # Unless it is not to be followed.
    edit("a", "[[sa]]\nname = \"from-peer\"\n", "[[sa]]\nname = \"from-peer\"\nfollow_peer = false\n")
    lab.reload("a")
    before = engine()["moved_peers"]
    nft("-f", "-", text=heard_from("5004"))
    heard = Count("host-a")
    send("host-b", lab.HOST_A, 0, 100).wait(timeout=30)
    assert heard.end()["seen"] == 100 and engine()["moved_peers"] == before
    nft("delete", "table", "ip", "elsewhere")
    print(f"guard: of 4000 packets that came from two places in turn {followed} moved the peer, {limited} did not, none was lost")


def main():
    both_versions()
    if told()["state"] != "on":
        print(f"guard: SKIPPED, this kernel makes no such rules: {told()}")
        return
    if nft("list", "ruleset").returncode != 0:
        sys.exit("guard: nft is missing: scripts/setup.sh test")
    forged()
    leaks()
    follows()
    exceptions()
    opened()
    reloaded()
    first_of_all()
    kernel()
    moves()


if __name__ == "__main__":
    main()
