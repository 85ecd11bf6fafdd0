#!/usr/bin/env python3
"""Offloads of the host's interfaces: the gateway switches them on, on again when another program switches them off, and back when it
ends; `[offloads]` leaves them alone. UDP then passes in batches, and every packet of every flow arrives as it was sent.

    scripts/lab.sh FOREBAY run tests/gateway/offloads.py
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

from lab import FOREBAY, HOST_B, LAB, Count, Wire, ask, edit, inside, ip, kill, log, program, reload, start, wait_until

FORWARDING, SEGMENTATION = "rx-udp-gro-forwarding", "tx-udp-segmentation"
SECTION = '[offloads]\n%s\n\n[keys]'
# Sends numbered datagrams of several flows, a port each, in turns: of each flow a batch that the kernel cuts (UDP_SEGMENT),
# whose last datagram is shorter. A flow without checksums is sent datagram by datagram.
SEND = """
import hashlib, os, socket, sys
address, first_port, flows, batches, size, tail, each = sys.argv[1], *map(int, sys.argv[2:])
def datagram(number, size):
    number, body = number.to_bytes(8, "big"), os.urandom(size - 16)
    return number + hashlib.blake2b(body + number, digest_size=8).digest() + body
outs = []
for flow in range(flows):
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.connect((address, first_port + flow))
    out.setsockopt(socket.SOL_SOCKET, 32, 1 << 24)  # SO_SNDBUFFORCE
    if flow == 0:
        out.setsockopt(socket.SOL_SOCKET, 11, 1)  # SO_NO_CHECK
    outs.append(out)
for batch in range(batches):
    for flow, out in enumerate(outs):
        numbers = range(batch * each, (batch + 1) * each)
        datagrams = [datagram(number, tail if number == numbers[-1] else size) for number in numbers]
        if flow == 0:
            for one in datagrams:
                out.send(one)
        else:
            out.sendmsg([b"".join(datagrams)], [(socket.IPPROTO_UDP, 103, size.to_bytes(2, sys.byteorder))])
"""


def ethtool(interface, *words, namespace="gw-a"):
    subprocess.run(inside(namespace, "ethtool", "-K", interface, *words), check=True, capture_output=True)


def is_on(interface, feature):
    said = subprocess.run(inside("gw-a", "ethtool", "-k", interface), check=True, capture_output=True, text=True).stdout
    line = next(line.strip() for line in said.splitlines() if line.strip().startswith(f"{feature}:"))
    return line.split()[1] == "on"


def told():
    """What gateway A says of its offloads."""
    return {(one["interface"], one["offload"]): (one["state"], one["switched"]) for one in ask("a", "status")["offloads"]["offloads"]}


def restored():
    return ask("a", "status")["offloads"]["restored"]


def off():
    """Everything as on a host whose administrator has switched segmentation off."""
    ethtool("lan", "gro", "on", FORWARDING, "off", SEGMENTATION, "off")
    ethtool("wan", SEGMENTATION, "off")


def all_on():
    return is_on("lan", FORWARDING) and is_on("lan", SEGMENTATION) and is_on("wan", SEGMENTATION)


def all_off():
    return not any((is_on("lan", FORWARDING), is_on("lan", SEGMENTATION), is_on("wan", SEGMENTATION)))


def check(*words):
    done = subprocess.run(inside("gw-a", FOREBAY, "check", "--config", f"{LAB}/a.toml", "--json", *words), capture_output=True, text=True)
    return json.loads(done.stdout)["advice"]


def switched_and_back():
    kill("a", signal.SIGTERM)
    off()
    advice = check()
    assert len(advice) == 1 and "will switch on" in advice[0]["message"], advice
    for words in (f"{FORWARDING} of lan", f"{SEGMENTATION} of lan", f"{SEGMENTATION} of wan"):
        assert words in advice[0]["message"], advice
    assert check("--offline") == []
    start("a")
    wait_until(lambda: os.path.exists(f"{LAB}/a.sock"), "the control socket")
    assert all_on(), "offloads are on before the gateway says that it has started"
    expected = {("lan", FORWARDING): ("on", True), ("lan", SEGMENTATION): ("on", True), ("wan", SEGMENTATION): ("on", True)}
    wait_until(lambda: told() == expected, f"the status of offloads: {told()}")
    assert check() == [], "there is nothing to say of what is on"
    for interface, feature in (("lan", FORWARDING), ("wan", SEGMENTATION)):
        lines, times, began = log("a").count("switched off by another program"), restored(), time.monotonic()
        ethtool(interface, feature, "off")
        wait_until(lambda: is_on(interface, feature), f"{feature} of {interface} on again")
        took = time.monotonic() - began
        wait_until(lambda: restored() == times + 1, "the count of restored offloads")
        assert log("a").count("switched off by another program") == lines + 1, "one line each"
    # Without GRO nothing is joined, and the status says so.
    ethtool("lan", "gro", "off")
    wait_until(lambda: told()[("lan", FORWARDING)] == ("without rx-gro", True), f"the status without GRO: {told()}")
    assert any("without rx-gro" in one["message"] for one in check()), check()
    ethtool("lan", "gro", "on")
    wait_until(lambda: told() == expected, f"the status with GRO: {told()}")
    # In front of a receiver that takes no batches, segmentation is switched off as a whole, and stays so.
    ethtool("wan", "gso", "off", SEGMENTATION, "off")
    wait_until(lambda: told()[("wan", SEGMENTATION)][0] == "without tx-generic-segmentation", f"the status without GSO: {told()}")
    assert not is_on("wan", SEGMENTATION)
    ethtool("wan", "gso", "on")
    wait_until(lambda: told() == expected, f"the status with GSO: {told()}")
    kill("a", signal.SIGTERM)
    assert all_off(), "they were not given back"
    return took


def left_alone():
    """By the key: at a start, and when a reload says so."""
    edit("a", "[keys]", SECTION % 'mode = "keep"')
    start("a")
    time.sleep(1.5)
    assert all_off() and told() == {} and check() == [], told()
    edit("a", 'mode = "keep"', 'mode = "auto"')
    reload("a")
    assert all_on(), "offloads are on behind a reload"
    # Interfaces that the file names.
    ip("gw-a", "link", "add", "other", "type", "veth", "peer", "name", "others-end")
    ethtool("other", "gro", "on", FORWARDING, "off")
    edit("a", 'mode = "auto"', 'inside = ["other"]')
    reload("a")
    wait_until(lambda: is_on("other", FORWARDING) and not is_on("lan", FORWARDING), "the offloads of the named interface")
    # One that is gone and comes back.
    ip("gw-a", "link", "del", "other")
    wait_until(lambda: told()[("other", FORWARDING)] == ("no such interface", False), "the end of an interface")
    assert any("no such interface" in one["message"] for one in check()), check()
    ip("gw-a", "link", "add", "other", "type", "veth", "peer", "name", "others-end")
    ethtool("other", "gro", "on")
    wait_until(lambda: is_on("other", FORWARDING), "the offloads of an interface that came back")
    edit("a", 'inside = ["other"]', 'mode = "keep"')
    reload("a")
    wait_until(lambda: not is_on("other", FORWARDING) and all_off(), "offloads off after a reload")
    # What was on before the gateway stays on behind it.
    ethtool("lan", FORWARDING, "on")
    edit("a", 'mode = "keep"', 'mode = "auto"')
    reload("a")
    wait_until(lambda: told().get(("lan", FORWARDING)) == ("on", False), f"an offload that was on: {told()}")
    kill("a", signal.SIGTERM)
    assert is_on("lan", FORWARDING) and not is_on("wan", SEGMENTATION)
    ethtool("lan", FORWARDING, "off")


def batches():
    """Packets of the inside since the gateway's start, and the reads of the TUN interface that brought them."""
    packets = sum(link["packets_in"] for link in ask("a", "status")["links"] if link["side"] == "inside")
    reads = json.loads(ip("gw-a", "-s", "-j", "link", "show", "fb0"))[0]["stats64"]["tx"]["packets"]
    return packets, reads


def traffic(size, tail, each, flows=4, count=40):
    """Flows in turns; all packets arrive, once, unchanged, in order. Packets per read of those."""
    counts = [Count("host-b", 9100 + flow) for flow in range(flows)]
    before = batches()
    wire = Wire("gw-a", "wan")
    subprocess.run(program("host-a", SEND, HOST_B, 9100, flows, count, size, tail, each), check=True)
    for flow, heard in enumerate(counts):
        heard = heard.end()
        assert heard["seen"] == each * count and not heard["twice"] and not heard["forged"] and not heard["late"], (flow, heard)
    longest = max(len(packet) for _, leaves, packet in wire.end() if leaves)
    packets, reads = (after - one for after, one in zip(batches(), before))
    return packets / reads, longest


def whole():
    """Batches pass as such, and without the offloads packet by packet: so the first says something."""
    # Hosts hand over datagrams, as a wire does.
    ethtool("eth0", SEGMENTATION, "off", namespace="host-a")
    found = {}
    for mode in ("auto", "keep"):
        edit("a", 'mode = "auto"', f'mode = "{mode}"')
        off()
        start("a")
        if mode == "auto":
            wait_until(all_on, "offloads on")
        found[mode] = [traffic(*sizes) for sizes in ((64, 20, 20), (1200, 17, 20), (1372, 1371, 16), (333, 333, 31))]
        kill("a", signal.SIGTERM)
    joined, single = ([mean for mean, _ in found[mode]] for mode in ("auto", "keep"))
    # One flow of the four has no checksums, and the kernel joins none of those.
    assert min(joined) > 1.5 and max(single) < 1.2, found
    assert all(longest > 1500 for _, longest in found["auto"][1:]), found
    return joined, single


def main():
    if not shutil.which("ethtool"):
        sys.exit("offloads: it needs ethtool")
    took = switched_and_back()
    left_alone()
    joined, single = whole()
    figures = lambda means: ", ".join(f"{mean:.1f}" for mean in means)
    print(f"offloads: on again within {took:.2f} s; packets per read of the TUN interface: {figures(joined)}; without offloads {figures(single)}")


if __name__ == "__main__":
    main()
