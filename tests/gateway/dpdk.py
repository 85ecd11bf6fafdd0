#!/usr/bin/env python3
"""A gateway whose links are network devices of DPDK, on one side or on both, against one with sockets and a TUN, or with a
device of DPDK too. Virtual devices without huge pages: AF_PACKET on the laboratory's cables, TAP, memif and vhost-user with virtio-user
between two processes.

Runs in the laboratory:

    scripts/lab.sh FOREBAY run tests/gateway/dpdk.py [CASE...]
"""

import json
import os
import signal
import subprocess
import sys
import time

import lab
import xdp
from two_sites import FOREBAY, LAB, SEND, ask, gateway_of, inside, program, run, start

# Room for what comes while the machine does something else: the driver does not count what is lost.
RING = ",blocksz=65536,framesz=2048,framecnt=8192"
# name: the inside of gateway A, the outside of both, encapsulation, outer IP version, MTU, queues.
CASES = {
    "af_packet-udp-4": ("af_packet", "af_packet", "udp", 4, 1500, 1),
    "af_packet-esp-6": ("af_packet", "af_packet", "none", 6, 1500, 1),
    "af_packet-udp-6-large": ("af_packet", "af_packet", "udp", 6, 9000, 1),
    "af_packet-esp-4-largest": ("af_packet", "af_packet", "none", 4, 16000, 1),
    "af_packet-queues": ("af_packet", "af_packet", "udp", 4, 1500, 2),
    "tap-sockets": ("tap", "sockets", "udp", 4, 1500, 1),
    "tun-af_packet": ("tun", "af_packet", "none", 4, 1500, 1),
    "memif": ("af_packet", "memif", "none", 4, 1500, 1),
    "memif-large": ("af_packet", "memif", "udp", 6, 9000, 1),
    "vhost": ("af_packet", "vhost", "udp", 4, 1500, 1),
    "vhost-large": ("af_packet", "vhost", "none", 6, 9000, 1),
}


def large_ring(mtu):
    """Frames of whole pages, at least three (docs/links.md)."""
    size = max(12_288, -(-(mtu + 26) // 4096) * 4096)
    return f",blocksz={size},framesz={size},framecnt=1024"


def device(name, arguments, addresses, mtu, queues, gateway=()):
    """The keys of a link by DPDK."""
    several = f",qpairs={queues}" if queues > 1 and "af_packet" in name else ""
    return f"""kind = "dpdk"
device = "{name}"
arguments = "{arguments}{several}"
addresses = {json.dumps(addresses)}
gateway = {json.dumps(list(gateway))}
mtu = {mtu}
queues = {queues}
"""


def links(case, letter):
    """The `[inside]` and `[[outside]]` of a gateway's file."""
    inside_kind, outside_kind, _, _, mtu, queues = CASES[case]
    ring = large_ring(mtu) if mtu > 1500 else RING
    tun = f'name = "fb0"\nmtu = {mtu - 100}\nqueues = {queues}\n'
    sockets = '[[outside]]\nkind = "udp"\n[[outside]]\nkind = "raw"\n'
    memif = f"socket={LAB}/memif.sock,socket-abstract=no,role="
    if letter == "b":
        other = {
            "memif": ("net_memif0", memif + "client"),
            "vhost": ("net_virtio_user0", f"path={LAB}/vhost.sock"),
        }.get(outside_kind)
        return tun, "[[outside]]\n" + device(*other, ["192.0.2.2/24", "fd00::2/64"], mtu, 1) if other else sockets
    into = {
        "af_packet": lambda: device("net_af_packet0", "iface=lan" + ring, ["10.1.0.1/16", "fd01::1/64"], mtu, queues),
        # The kernel of gateway A routes between the host and the TAP.
        "tap": lambda: device("net_tap0", "iface=fbtap", ["10.9.0.2/30", "fd09::2/64"], mtu, queues, ["10.9.0.1", "fd09::1"]),
        "tun": lambda: tun,
    }[inside_kind]()
    out = {
        "af_packet": lambda: "[[outside]]\n" + device("net_af_packet1", "iface=wan" + ring, ["192.0.2.1/24", "fd00::1/64"], mtu, queues),
        "memif": lambda: "[[outside]]\n" + device("net_memif0", memif + "server", ["192.0.2.1/24", "fd00::1/64"], mtu, 1),
        "vhost": lambda: "[[outside]]\n" + device("eth_vhost0", f"iface={LAB}/vhost.sock", ["192.0.2.1/24", "fd00::1/64"], mtu, 1),
        "sockets": lambda: sockets,
    }[outside_kind]()
    return into, out


def write(case):
    _, _, encapsulation, family, mtu, _ = CASES[case]
    for letter in "ab":
        text = xdp.config(letter, *links(case, letter), encapsulation, family)
        # The driver AF_PACKET has the kernel put fragments of IPv4 together: the largest datagram has to fit.
        text = text.replace("packet_size = 4096", f"packet_size = {mtu + 3_000 if mtu > 1500 else mtu + 600}")
        if CASES[case][0] == "tap" and letter == "a":
            # The kernel routes protected packets to the TAP, which the guard has to know as a way into the gateway.
            text = '[guard]\ninterfaces = ["fbtap"]\n' + text
            # The kernel drops what comes from an address of its own.
            text = text.replace('answer = ["10.1.0.1", "fd01::1"]', 'answer = ["10.9.0.2", "fd09::2"]')
        with open(f"{LAB}/{letter}.toml", "w", encoding="utf-8") as file:
            file.write(text)


def addresses(case):
    """Takes from the kernel of gateway A the addresses that its links have, and gives it those that they have not."""
    inside_kind, outside_kind = CASES[case][:2]
    kernel = {"lan": ["10.1.0.1/16", "fd01::1/64"], "wan": ["192.0.2.1/24", "fd00::1/64"]}
    ours = {"lan": inside_kind == "af_packet", "wan": outside_kind == "af_packet"}
    for interface, all_ in kernel.items():
        for address in all_:
            word = "del" if ours[interface] else "replace"
            nodad = ["nodad"] if ":" in address and word == "replace" else []
            subprocess.run(["ip", "-n", "gw-a", "address", word, address, "dev", interface, *nodad], check=False, stderr=subprocess.DEVNULL)


def tap_interface():
    """The kernel's side of the TAP, with routes to the other site."""
    for address, network, router in [("10.9.0.1/30", "10.2.0.0/16", "10.9.0.2"), ("fd09::1/64", "fd02::/64", "fd09::2")]:
        nodad = ["nodad"] if ":" in address else []
        xdp.ip("gw-a", "address", "add", address, "dev", "fbtap", *nodad)
        xdp.ip("gw-a", "route", "add", network, "via", router)
    xdp.ip("gw-a", "link", "set", "fbtap", "up")


def too_big(mtu):
    """A packet that does not fit and may not be fragmented is answered with the size that fits."""
    for address in xdp.HOSTS[4][1], xdp.HOSTS[6][1]:
        headers = 48 if ":" in address else 28
        words = ["ping", "-c", "3", "-i", "0.3", "-W", "2", "-M", "do", "-s", str(mtu - headers), address]
        said = subprocess.run(inside("host-a", *words), capture_output=True, text=True, check=False)
        text = said.stdout + said.stderr
        assert "Frag needed" in text or "Packet too big" in text or "message too long" in text.lower(), text


def counted(case):
    """Ten thousand numbered datagrams each way, all of which arrive. On a busy machine rings and sockets overflow: then again."""
    for sender, receiver, address in [("host-a", "host-b", lab.HOST_B), ("host-b", "host-a", lab.HOST_A)]:
        for attempt in range(4):
            count = lab.Count(receiver)
            assert lab.send(sender, address, 0, 10_000, 1_500, (64, 700, 1300)).wait() == 0
            said = count.end(1)
            assert said["twice"] == said["forged"] == said["late"] == 0, (case, said)
            if said["seen"] == 10_000:
                break
            print(f"dpdk: {case}: {said['seen']} of 10,000, attempt {attempt + 1}", flush=True)
        else:
            raise AssertionError((case, said))


def wan(status):
    """The outside links by DPDK."""
    return [link for link in status["links"] if link["name"].startswith("dpdk")]


def one(case):
    inside_kind, outside_kind, _, family, mtu, queues = CASES[case]
    xdp.mtu(mtu)
    # AF_PACKET passes on no trains of packets.
    for namespace, interface in [("host-a", "eth0"), ("gw-b", "wan"), ("gw-a", "lan")]:
        xdp.trains(namespace, interface, False)
    addresses(case)
    write(case)
    # The server of memif, and of vhost-user, makes the socket.
    start("a")
    if inside_kind == "tap":
        tap_interface()
    start("b")
    between_processes = outside_kind in ("memif", "vhost")
    wire = None if between_processes else lab.Wire("gw-b", "wan")
    began = time.monotonic()
    # DPDK's driver for AF_PACKET has the kernel put fragments together, and what is longer than its frames is lost.
    large = [0, 100, 1400, mtu - 1000, mtu - 100, mtu, mtu + (2000 if mtu < 10_000 else 200)]
    fitting = [size for size in xdp.SIZES if size <= 1473] + [1900] if mtu <= 1500 else large
    xdp.traffic(fitting if "af_packet" in (inside_kind, outside_kind) else xdp.SIZES, 5)
    counted(case)
    took = time.monotonic() - began
    too_big(mtu)
    status = ask("status")
    drops = {reason: count for reason, count in status["drops"].items() if count}
    if wire:
        seen = wire.end()
        assert len(seen) > 10_000 and not lab.in_the_clear(seen), f"{len(lab.in_the_clear(seen))} packets in the clear"
        six = [packet for kind, _, packet in seen if kind == 0x86dd and (packet[8:10] in (b"\xfd\x01", b"\xfd\x02"))]
        assert not six, f"{len(six)} packets in the clear"
    if outside_kind != "sockets":
        ports = wan(status)
        assert len(ports) == queues and all(port["device"]["up"] for port in ports), ports
        assert sum(port["packets_in"] for port in ports) > 10_000 and sum(port["packets_out"] for port in ports) > 10_000, ports
        if queues > 1:
            assert sum(port["packets_in"] > 0 for port in ports) > 1 or len({port["engine"] for port in ports}) == queues, ports
    # The link itself is a host: it answers pings of its neighbours, and those that come out of the tunnel.
    pings = {"af_packet": [("host-a", "10.1.0.1"), ("host-a", "fd01::1"), ("host-b", "10.1.0.1"), ("host-b", "fd01::1")], "tap": [("gw-a", "10.9.0.2")]}
    for namespace, address in pings.get(inside_kind, []):
        words = inside(namespace, "ping", "-q", "-c", "3", "-i", "0.1", "-W", "2", address)
        said = subprocess.run(words, check=False, capture_output=True, text=True)
        assert said.returncode == 0, (case, namespace, address, said.stdout)
    if outside_kind == "af_packet":
        subprocess.run(inside("gw-b", "ping", "-q", "-c", "3", "-i", "0.1", xdp.OUTER[family][0]), check=True, capture_output=True)
    print(f"dpdk: {case}: {took:.1f} s, drops {drops}, links {[(one['name'], one['drops'], one['passed_over']) for one in status['links']]}", flush=True)
    # A neighbour with another address is found again; a gateway that was killed leaves nothing in the way of the next.
    if inside_kind == "af_packet":
        xdp.ip("host-a", "link", "set", "eth0", "address", "02:00:00:00:00:78")
        run("host-a", SEND, xdp.HOSTS[4][1], 100_000)
    down, again = "network device: link down; the device is made again", "network device made again"
    lines = lab.log("b").count(down), lab.log("b").count(again)
    xdp.end("a", signal.SIGKILL)
    if between_processes:
        # The client's device connects once, when it is made, so it is made again.
        lab.wait_until(lambda: lab.log("b").count(down) > lines[0], "the client's link to be down")
        assert not wan(lab.ask("b", "status"))[0]["device"]["up"]
    start("a")
    if between_processes:
        lab.wait_until(lambda: wan(lab.ask("b", "status"))[0]["device"]["up"], "the client's link to be up")
        port = wan(lab.ask("b", "status"))[0]["device"]
        assert port["made_again"] > 0 and lab.log("b").count(again) > lines[1], port
    if inside_kind == "tap":
        tap_interface()
    xdp.traffic([100], 0)
    xdp.end("a")
    xdp.end("b")


def checks():
    """What `forebay check` says of devices that are not there."""
    write("af_packet-udp-4")
    good = lab.file_of("a")
    for old, new, said in [
        ("net_af_packet1", "net_nothing1", "no driver for a network device `net_nothing1`"),
        ("net_af_packet1", "0000:7f:1f.6", "no device 0000:7f:1f.6 on the PCI bus"),
        ("net_af_packet1", "net_af_packet0", "two links have the network device net_af_packet0"),
    ]:
        with open(f"{LAB}/a.toml", "w", encoding="utf-8") as file:
            file.write(good.replace(old, new))
        done = subprocess.run(inside("gw-a", FOREBAY, "check", "--config", f"{LAB}/a.toml"), capture_output=True, text=True, check=False)
        text = " ".join((done.stdout + done.stderr).replace("│", " ").split())
        assert done.returncode != 0 and said in text, (said, text)
    with open(f"{LAB}/a.toml", "w", encoding="utf-8") as file:
        file.write(good.replace("iface=wan", "iface=gone"))
    done = subprocess.run(inside("gw-a", FOREBAY, "gateway", "--config", f"{LAB}/a.toml"), capture_output=True, text=True, check=False, timeout=30)
    text = " ".join((done.stdout + done.stderr).replace("│", " ").split())
    assert done.returncode != 0 and "does not make the network device `net_af_packet1`" in text, text
    print("dpdk: devices that are not there are told apart", flush=True)


def main():
    xdp.network()
    servers = [subprocess.Popen(program(name, xdp.SERVE_BOTH), stdout=subprocess.PIPE, text=True) for name in ("host-a", "host-b", "gw-b")]
    for server in servers:
        assert server.stdout.readline() == "ready\n"
    xdp.end("a")
    xdp.end("b")
    if not sys.argv[1:]:
        checks()
    for case in sys.argv[1:] or CASES:
        try:
            one(case)
        except Exception:
            xdp.tell_state()
            raise
    for server in servers:
        server.kill()


if __name__ == "__main__":
    main()
