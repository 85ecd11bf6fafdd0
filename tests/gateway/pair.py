#!/usr/bin/env python3
"""Two gateways as one: gateways 0 and 1 share addresses and SAs and face gateway B. Faults drawn from a seed strike the pair under
traffic: kill -9, a clean stop, SIGSTOP, cut links, partitions of the peer link in one direction and in both.

    tests/gateway/pair.py FOREBAY [--takeovers N] [--seed N] [--esn] [--ipv6] [--vrrp] [--partitions SECONDS]

           10.1/16                  192.0.2/24                    10.2/16
    host-a ------- gw-0 (lan, wan) -------+------- gw-b (wan, lan) ------- host-b
             |       | p0, p1             |
             +---- gw-1 (lan, wan) -------+         shared: 10.1.0.1 and 192.0.2.1

After each fault TCP, small datagrams in both directions and requests with answers have to pass again; it is measured from
the fault on, never asserted against a clock. Everything that the pair sends outside is captured and judged: no sequence number and
no IV twice for an SPI, nothing in the clear. Packets of B that were recorded before are sent again after each take-over and
none of them is delivered.

With --ipv6 the shared address outside is 2001:db8::1, which unsolicited neighbour advertisements move.

With --vrrp the gateways leave the addresses to keepalived, which follows their roles (docs/pair.md).
"""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time

if {"-h", "--help"} & set(sys.argv):
    os.environ |= {"FOREBAY": "", "LAB": ""}
elif os.environ.get("PAIR_INSIDE") != "1":
    words = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        print("pair: SKIPPED, it needs namespaces: run it as root")
        sys.exit(0)
    if "--vrrp" in sys.argv and not shutil.which("keepalived"):
        print("pair: SKIPPED, keepalived cannot be found (Debian: keepalived)")
        sys.exit(0)
    forebay = os.path.realpath(sys.argv[1])
    os.execvpe(words[0], [*words, sys.executable, __file__, forebay, *sys.argv[2:]],
               {**os.environ, "PAIR_INSIDE": "1", "FOREBAY": forebay, "LAB": "/run/lab", "FOREBAY_STATE": "/run/lab/saved"})

sys.path.insert(0, os.path.dirname(__file__))
import lab  # noqa: E402
from lab import HOST_A, HOST_B, LAB, Talker, ip, kill, program, wait_until  # noqa: E402

GATEWAYS = ("0", "1")
RATE = 1_000
VRRP = "--vrrp" in sys.argv
# Outside: the network, the shared address and that of B.
NETWORK, SHARED, PEER = ("2001:db8::%s/64", "2001:db8::1", "2001:db8::2") if "--ipv6" in sys.argv else ("192.0.2.%s/24", "192.0.2.1", "192.0.2.2")

NODAD = ("nodad",) if ":" in SHARED else ()

# Counts numbered datagrams and logs the gaps in which none came; a line in asks, "end" ends.
LISTEN = """
import json, select, socket, sys, time
taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
taken.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
taken.bind(("0.0.0.0", int(sys.argv[1])))
print("ready", flush=True)
seen, twice, gaps, last = set(), 0, [], time.monotonic()
while True:
    ready, _, _ = select.select([taken, sys.stdin], [], [])
    if taken in ready:
        number, now = int.from_bytes(taken.recv(65535)[:8], "big"), time.monotonic()
        twice += number in seen
        seen.add(number)
        if now - last > 0.05:
            gaps.append((last, now))
        last = now
    if sys.stdin in ready:
        word = sys.stdin.readline()
        print(json.dumps({"seen": len(seen), "twice": twice, "gaps": gaps, "last": last}), flush=True)
        if word != "ask\\n":
            break
"""
# Sends numbered datagrams of 64 bytes (with their IP header) until a line comes in: how many.
SPEAK = """
import select, socket, sys, time
address, port, rate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print("ready", flush=True)
begin, n = time.monotonic(), 0
while True:
    try:
        out.sendto(n.to_bytes(8, "big") + bytes(28), (address, port))
    except OSError:
        pass
    n += 1
    ahead = begin + n / rate - time.monotonic()
    if n % 20 == 0 and select.select([sys.stdin], [], [], 0)[0]:
        break
    if ahead > 0.001:
        time.sleep(ahead)
print(n, flush=True)
"""
# Sends requests and logs gaps in which no answer came, like ping.
REQUEST = """
import json, select, socket, sys, time
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print("ready", flush=True)
sent = answered = 0
gaps, last = [], time.monotonic()
while True:
    peer.sendto(sent.to_bytes(8, "big"), (sys.argv[1], 7002))
    sent += 1
    end = time.monotonic() + 0.05
    while (left := end - time.monotonic()) > 0:
        ready, _, _ = select.select([peer, sys.stdin], [], [], left)
        if peer in ready:
            peer.recv(100)
            now = time.monotonic()
            answered += 1
            if now - last > 0.2:
                gaps.append((last, now))
            last = now
        if sys.stdin in ready:
            word = sys.stdin.readline()
            print(json.dumps({"sent": sent, "seen": answered, "twice": 0, "gaps": gaps, "last": last}), flush=True)
            if word != "ask\\n":
                sys.exit()
"""
ANSWER = """
import socket
echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); echo.bind(("0.0.0.0", 7002))
print("ready", flush=True)
while True:
    data, sender = echo.recvfrom(100)
    echo.sendto(data, sender)
"""
# Takes a TCP connection and logs gaps; the other end sends as fast as half a megabyte a second.
TCP_TAKE = """
import json, select, socket, sys, time
server = socket.create_server(("0.0.0.0", 7001))
print("ready", flush=True)
client, _ = server.accept()
seen, gaps, last = 0, [], time.monotonic()
while True:
    ready, _, _ = select.select([client, sys.stdin], [], [])
    if client in ready:
        data, now = client.recv(1 << 16), time.monotonic()
        if not data:
            sys.exit("the connection ended")
        seen += len(data)
        if now - last > 0.1:
            gaps.append((last, now))
        last = now
    if sys.stdin in ready:
        word = sys.stdin.readline()
        print(json.dumps({"seen": seen, "twice": 0, "gaps": gaps, "last": last}), flush=True)
        if word != "ask\\n":
            break
"""
TCP_SEND = """
import socket, sys, time
peer = socket.create_connection((sys.argv[1], 7001), timeout=60)
peer.settimeout(None)
while True:
    peer.sendall(bytes(10_000))
    time.sleep(0.02)
"""
# Judges what comes in by the ports of the switch: of the pair everything, of B the packets that are to be sent again.
JUDGE = """
import collections, json, select, socket, struct, sys
# Every protocol: what a port of a bridge receives is seen so only.
tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
tap.setsockopt(socket.SOL_SOCKET, 33, 1 << 27)
print("ready", flush=True)
numbers, ivs, packets, clear, twice = set(), set(), 0, 0, []
recorded = collections.deque(maxlen=400)
sites = (bytes([10, 1]), bytes([10, 2]))
v6 = ":" in sys.argv[2]
shared, peer = (socket.inet_pton(socket.AF_INET6 if v6 else socket.AF_INET, text) for text in sys.argv[2:4])
while True:
    ready, _, _ = select.select([tap, sys.stdin], [], [])
    if tap in ready:
        packet, (port, protocol, kind, *_) = tap.recvfrom(65535)
        if kind == 4 or port not in ("w0", "w1", "wb"):
            continue
        if protocol == 0x0800 and (packet[12:14] in sites or packet[16:18] in sites):
            clear += 1
        if protocol != (0x86dd if v6 else 0x0800):
            continue
        at, above, source = (40, packet[6], packet[8:24]) if v6 else (20, packet[9], packet[12:16])
        if above == 17 and packet[at + 2:at + 4] == b"\\x11\\x94" and len(packet) > at + 40:
            spi, number, iv = struct.unpack_from("!IIQ", packet, at + 8)
            if port == "wb":
                if source == peer:
                    recorded.append(packet)
                continue
            # A host that has lost the address forwards what still comes for it, unchanged.
            if source != shared:
                continue
            packets += 1
            for known, one in ((numbers, (spi, number)), (ivs, (spi, iv))):
                if one in known:
                    twice.append((port, spi, number, iv))
                known.add(one)
    if sys.stdin in ready:
        word = sys.stdin.readline().strip()
        if word == "record":
            with open(sys.argv[1], "wb") as file:
                for packet in recorded:
                    file.write(struct.pack("!I", len(packet)) + packet)
        print(json.dumps({"packets": packets, "clear": clear, "twice": twice[:5], "recorded": len(recorded)}), flush=True)
        if word == "end":
            break
"""
# Keeps an address and port busy with connections from 50 addresses that say a byte now and then, until a line comes in: how many there were.
STRANGERS = """
import select, socket, sys, time
print("ready", flush=True)
address, all_, made = (sys.argv[1], int(sys.argv[2])), [None] * 200, 0
while not select.select([sys.stdin], [], [], 0.02)[0]:
    for n, one in enumerate(all_):
        try:
            if one is None:
                all_[n] = one = socket.socket()
                one.setblocking(False)
                one.bind((f"10.1.9.{n % 50 + 1}", 0))
                made += 1
                one.connect(address)
            elif n % 4:
                one.send(bytes([255]))
            elif not one.recv(1):
                raise OSError
        except BlockingIOError:
            pass
        except OSError:
            one.close()
            all_[n] = None
print(made, flush=True)
"""
# Sends packets of a file again; those of IPv4 as if from elsewhere.
AGAIN = """
import socket, struct, sys
v6 = ":" in sys.argv[2]
raw = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_RAW, 255)
bytes_, at, sent = open(sys.argv[1], "rb").read(), 0, 0
while at < len(bytes_):
    length, = struct.unpack_from("!I", bytes_, at)
    packet = bytearray(bytes_[at + 4:at + 4 + length])
    at += 4 + length
    if not v6:
        packet[12:16] = socket.inet_aton("192.0.2.66")
        packet[26:28] = bytes(2)
    raw.sendto(bytes(packet), (sys.argv[2], 0))
    sent += 1
print(sent)
"""


class Asked(Talker):
    """A program that answers each line."""

    def ask(self, word="ask"):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def run(*words):
    subprocess.run(words, check=True, capture_output=True)


def build(esn):
    """The namespaces, and the files of the gateways."""
    run("mount", "-t", "tmpfs", "none", "/run")
    os.makedirs("/run/netns")
    os.makedirs(LAB, mode=0o700)
    for name in ("host-a", "host-b", "gw-0", "gw-1", "gw-b", "sw"):
        run("ip", "netns", "add", name)
        ip(name, "link", "set", "lo", "up")
        for setting in ("net.ipv4.ip_forward=1", f"net.ipv6.conf.all.disable_ipv6={int(':' not in SHARED)}", "net.ipv4.conf.all.arp_ignore=1"):
            run("ip", "netns", "exec", name, "sysctl", "-qw", setting)

    def link(space, name, other_space, other):
        run("ip", "link", "add", name, "netns", space, "type", "veth", "peer", "name", other, "netns", other_space)
        for where, one in ((space, name), (other_space, other)):
            ip(where, "link", "set", one, "up")

    for bridge in ("wan", "lan"):
        ip("sw", "link", "add", bridge, "type", "bridge")
        ip("sw", "link", "set", bridge, "up")
    ports = [("gw-0", "wan", "w0", "wan"), ("gw-1", "wan", "w1", "wan"), ("gw-b", "wan", "wb", "wan"),
             ("gw-0", "lan", "l0", "lan"), ("gw-1", "lan", "l1", "lan"), ("host-a", "eth0", "la", "lan")]
    for space, name, port, bridge in ports:
        link(space, name, "sw", port)
        ip("sw", "link", "set", port, "master", bridge)
    link("gw-b", "lan", "host-b", "eth0")
    for n in range(2):
        link("gw-0", f"p{n}", "gw-1", f"p{n}")
        for gateway in range(2):
            ip(f"gw-{gateway}", "addr", "add", f"10.9.{n}.{gateway + 1}/30", "dev", f"p{n}")
    for gateway in range(2):
        ip(f"gw-{gateway}", "addr", "add", NETWORK % f"1{gateway}", "dev", "wan", *NODAD)
        ip(f"gw-{gateway}", "addr", "add", f"10.1.0.2{gateway}/16", "dev", "lan")
    for space, address, name in (("host-a", "10.1.0.10/16", "eth0"), ("gw-b", NETWORK % 2, "wan"),
                                 ("gw-b", "10.2.0.1/16", "lan"), ("host-b", "10.2.0.10/16", "eth0")):
        ip(space, "addr", "add", address, "dev", name, *(NODAD if ":" in address else ()))
    ip("host-a", "route", "add", "default", "via", "10.1.0.1")
    ip("host-b", "route", "add", "default", "via", "10.2.0.1")
    os.umask(0o077)
    for name, length in (("a-to-b.key", 20), ("b-to-a.key", 20), ("pair.key", 32)):
        with open(f"{LAB}/{name}", "w", encoding="utf-8") as file:
            file.write(os.urandom(length).hex())
    a = (SHARED, "10.1.0.0/16", "a-to-b", 0x1001)
    b = (PEER, "10.2.0.0/16", "b-to-a", 0x2001)
    for letter, own, peer in (("0", a, b), ("1", a, b), ("b", b, a)):
        pair = f"""
[pair]
number = {letter}
listen = ["10.9.0.1:7411", "10.9.1.1:7411"]
peers = ["10.9.0.1:7411", "10.9.1.1:7411"]
key_file = "pair.key"
preferred = {str(letter == "0").lower()}
addresses = [{'' if VRRP else f'"wan {NETWORK % 1}", "lan 10.1.0.1/16"'}]
""" if letter != "b" else ""
        sas = "".join(f"""
[[sa]]
name = "{way}"
direction = "{way}"
spi = {spi:#x}
key_file = "{key}.key"
proposal = "aes128gcm16"
encapsulation = "udp"
esn = {str(esn).lower()}
{'' if way == 'out' else 'replay_window = 4096'}
local = "{own[0]}"
remote = "{peer[0]}"
local_ts = ["{own[1]}"]
remote_ts = ["{peer[1]}"]
""" for way, key, spi in (("out", own[2], own[3]), ("in", peer[2], peer[3])))
        with open(f"{LAB}/{letter}.toml", "w", encoding="utf-8") as file:
            file.write(f"""
[inside]
name = "fb0"
mtu = 1400

[[outside]]
kind = "udp"
listen = "{f'[{own[0]}]' if ':' in own[0] else own[0] if letter == 'b' or not VRRP else '0.0.0.0'}:4500"
gso = false

[keys]
state = "state-{letter}"

[control]
socket = "{LAB}/{letter}.sock"
{pair}{sas}""")


def keepalived(letter):
    """Has VRRP move the addresses: they are where the gateway is active."""
    script, config = f"{LAB}/is-active-{letter}", f"{LAB}/keepalived-{letter}.conf"
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{lab.FOREBAY} status --json --socket {LAB}/{letter}.sock | grep -q '\"role\": *\"active\"'\n")
    os.chmod(script, 0o700)
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"""
global_defs {{
    script_user root
    enable_script_security
}}
vrrp_script is_active {{
    script "{script}"
    interval 1
    timeout 1
    fall 1
    rise 1
    init_fail
}}
vrrp_instance forebay {{
    state BACKUP
    interface wan
    virtual_router_id 51
    priority 100
    advert_int 0.2
    virtual_ipaddress {{
        192.0.2.1/24 dev wan
        10.1.0.1/16 dev lan
    }}
    track_script {{
        is_active
    }}
}}
""")
    with open(f"{LAB}/keepalived-{letter}.log", "wb") as log:
        words = ["keepalived", "-n", "-l", "-D", "-P", "-f", config, "-p", f"{LAB}/keepalived-{letter}.pid", "-r", f"{LAB}/vrrp-{letter}.pid"]
        return subprocess.Popen(lab.inside(f"gw-{letter}", *words), stdout=log, stderr=log)


def pair_of(letter):
    """What a gateway says of the pair; nothing if it does not answer."""
    try:
        return lab.ask(letter, "status")["pair"]
    except (OSError, ValueError, KeyError):
        return None


def active():
    return [letter for letter in GATEWAYS if (pair_of(letter) or {}).get("role") == "active"]


def settled():
    """The gateway that is active, if the other one has its records; what both say at one time."""
    pairs = {letter: pair_of(letter) for letter in GATEWAYS}
    if not all(pair and pair["in_sync"] for pair in pairs.values()):
        return None
    roles = {pair["role"]: letter for letter, pair in pairs.items()}
    return roles["active"] if len(roles) == 2 else None


def settle():
    """Waits until one is active and the other has its records."""
    end = time.monotonic() + 60
    while (one := settled()) is None:
        if time.monotonic() > end:
            for letter in GATEWAYS:
                print(letter, pair_of(letter), lab.log(letter)[-4000:])
            sys.exit("pair: the gateways do not agree")
        time.sleep(0.02)
    return one


def start(letter):
    lab.start(letter, wait=False)


# Each takes the active gateway and the one that stands by, strikes, and gives what undoes it after a while.

def kill_active(one, _other):
    kill(one)
    return lambda: start(one)


def stop_active(one, _other):
    os.kill(lab.pid_of(one), signal.SIGTERM)

    def again():
        wait_until(lambda: lab.pid_of(one) is None, "a clean stop")
        start(one)
    return again


def suspend_active(one, _other):
    pid = lab.pid_of(one)
    os.kill(pid, signal.SIGSTOP)
    return lambda: os.kill(pid, signal.SIGCONT)


def cut_active(one, _other):
    """Like a host that lost its power for its peers, or all of its cables."""
    def links(state):
        for port in (f"w{one}", f"l{one}"):
            ip("sw", "link", "set", port, state)
        for n in range(2):
            ip("gw-0", "link", "set", f"p{n}", state)
    links("down")
    return lambda: links("up")


def partition(_one, _other):
    for n in range(2):
        ip("gw-0", "link", "set", f"p{n}", "down")
    return lambda: [ip("gw-0", "link", "set", f"p{n}", "up") for n in range(2)]


def mute(letter):
    """What the gateway sends to its peer does not arrive."""
    peers = [f"10.9.{n}.{2 - int(letter)}/32" for n in range(2)]
    for peer in peers:
        ip(f"gw-{letter}", "route", "add", "blackhole", peer)
    return lambda: [ip(f"gw-{letter}", "route", "del", "blackhole", peer) for peer in peers]


def mute_active(one, _other):
    return mute(one)


def mute_standby(_one, other):
    return mute(other)


def one_link(_one, _other):
    """One of two peer links: nothing is to happen."""
    ip("gw-0", "link", "set", "p0", "down")
    return lambda: ip("gw-0", "link", "set", "p0", "up")


FAULTS = [kill_active, stop_active, suspend_active, cut_active, partition, mute_active, mute_standby, one_link]
QUICK = [kill_active, suspend_active, stop_active, partition, cut_active, one_link]


class Traffic:
    """All that runs between the hosts."""

    def __init__(self):
        self.helpers = [Talker("host-b", ANSWER)]
        self.flows = {"a to b": Asked("host-b", LISTEN, 9000), "b to a": Asked("host-a", LISTEN, 9000),
                      "TCP": Asked("host-b", TCP_TAKE), "requests": Asked("host-a", REQUEST, HOST_B)}
        self.tcp = subprocess.Popen(program("host-a", TCP_SEND, HOST_B))
        self.senders = {"a to b": Talker("host-a", SPEAK, HOST_B, 9000, RATE), "b to a": Talker("host-b", SPEAK, HOST_A, 9000, RATE)}
        self.began = time.monotonic()

    def flows_since(self, moment, timeout=60):
        """Waits until every flow has come again some while behind a moment; how long each took."""
        end = time.monotonic() + timeout
        while True:
            said = {name: flow.ask() for name, flow in self.flows.items()}
            late = [name for name, one in said.items() if one["last"] < moment + 0.3]
            if not late:
                break
            if time.monotonic() > end:
                for letter in GATEWAYS:
                    print(letter, pair_of(letter), lab.log(letter)[-3000:])
                print(lab.ask("b", "status")["drops"], {x: lab.ask(x, "status")["drops"] for x in active()})
                sys.exit(f"pair: no traffic: {late}")
            time.sleep(0.05)
        took = {}
        for name, one in said.items():
            ends = [end - moment for begin, end in one["gaps"] if end > moment and begin < moment + 3]
            took[name] = max(ends, default=0)
        return took

    def end(self):
        sent = {name: int(sender.end()) for name, sender in self.senders.items()}
        time.sleep(0.5)
        said = {name: flow.ask("end") for name, flow in self.flows.items()}
        self.tcp.kill()
        for helper in self.helpers:
            helper.process.kill()
        return sent, said


def strike(fault, traffic, judge, hold):
    """One fault, what it costs, and packets of before that are sent again."""
    one = settle()
    other = GATEWAYS[1 - GATEWAYS.index(one)]
    judge.ask("record")
    moment = time.monotonic()
    undo = fault(one, other)
    time.sleep(hold)
    middle = traffic.flows_since(moment) if fault not in (one_link,) else {}
    healed = time.monotonic()
    undo()
    settle()
    after = traffic.flows_since(healed)
    again = subprocess.run(program("gw-b", AGAIN, f"{LAB}/recorded", SHARED), capture_output=True, text=True, check=True)
    now = settle()
    time.sleep(0.2)
    twice = {name: flow.ask()["twice"] for name, flow in traffic.flows.items()}
    assert not any(twice.values()), f"replayed packets were delivered: {twice}"
    if fault is one_link:
        assert now == one, "one of two links was cut, and the other gateway took over"
    return now != one, middle, after, int(again.stdout)


def new_keys(generation):
    """Other SAs in all files."""
    last = generation - 1
    for way, spi in (("a-to-b", 0x1001), ("b-to-a", 0x2001)):
        with open(f"{LAB}/{way}-{generation}.key", "w", encoding="utf-8") as file:
            file.write(os.urandom(20).hex())
        for letter in ("0", "1", "b"):
            lab.edit(letter, f"spi = {spi + 16 * last:#x}", f"spi = {spi + 16 * generation:#x}")
            lab.edit(letter, f'"{way}-{last}.key"' if last else f'"{way}.key"', f'"{way}-{generation}.key"')


def replaced_keys(traffic):
    """SAs are replaced while a gateway stands by: it takes over with the new ones, whether it was told of them or not."""
    for generation in (1, 2):
        one = settle()
        other = GATEWAYS[1 - GATEWAYS.index(one)]
        if generation == 2:
            whole = lab.file_of(other)
            lab.edit(other, "[inside]", "[inside]\nno_such_key = 1")
            said = lab.ask(other, "reload")
            assert not said["ok"] and "no_such_key" in str(said["errors"]), said
            with open(f"{LAB}/{other}.toml", "w", encoding="utf-8") as file:
                file.write(whole)
        new_keys(generation)
        if generation == 2:
            said = lab.ask(other, "reload")
            assert said["ok"] and (said["added"], said["removed"], said["restart"]) == (2, 2, []), said
        for letter in (one, "b"):
            assert lab.ask(letter, "reload")["ok"]
        traffic.flows_since(time.monotonic())
        settle()
        moment = time.monotonic()
        kill(one)
        took = max(traffic.flows_since(moment).values())
        start(one)
        assert settle() == other, "the other gateway did not take over"
        print(f"pair: SAs replaced, the standby {'reloaded' if generation == 2 else 'not told'}, take-over: flows again after "
              f"{took:.2f} s", flush=True)


def broken_file(traffic):
    """A gateway whose file has an error when it stands down stands by with what it had."""
    one = settle()
    whole = lab.file_of(one)
    lab.edit(one, "[inside]", "[inside]\nno_such_key = 1")
    undo, moment = suspend_active(one, None), time.monotonic()
    traffic.flows_since(moment)
    undo()
    assert settle() != one, "the other gateway did not take over"
    assert "no_such_key" in lab.log(one)
    with open(f"{LAB}/{one}.toml", "w", encoding="utf-8") as file:
        file.write(whole)
    print("pair: a gateway whose file has an error stands by with the last one", flush=True)


def upgrade(traffic):
    """Both gateways get another program under traffic, as the runbook says: first the one that stands by. What that costs."""
    one = settle()
    other = GATEWAYS[1 - GATEWAYS.index(one)]
    traffic.flows_since(time.monotonic())
    before = {name: flow.ask() for name, flow in traffic.flows.items()}
    began, first = time.monotonic(), lab.FOREBAY
    lab.FOREBAY = shutil.copy(first, f"{LAB}/forebay-new")
    pauses = []
    for letter in (other, one):
        moment = time.monotonic()
        kill(letter, signal.SIGTERM)
        pauses.append(max(traffic.flows_since(moment).values()))
        start(letter)
        settle()
    assert all(os.readlink(f"/proc/{lab.pid_of(letter)}/exe") == lab.FOREBAY for letter in GATEWAYS)
    time.sleep(0.5)
    after = {name: flow.ask() for name, flow in traffic.flows.items()}
    took = time.monotonic() - began
    lost = sum(round(RATE * took) - (after[name]["seen"] - before[name]["seen"]) for name in ("a to b", "b to a"))
    print(f"pair: both gateways upgraded one after the other in {took:.1f} s: pauses of {pauses[0]:.2f} s (standby) and {pauses[1]:.2f} s "
          f"(active), about {max(lost, 0)} of {2 * round(RATE * took)} datagrams lost", flush=True)


def strangers():
    """Connections that say little, from many addresses, keep the gateways of a pair from nothing, and fill no log."""
    settle()
    for n in range(50):
        ip("host-a", "addr", "add", f"10.1.9.{n + 1}/16", "dev", "eth0")
    flood = Talker("host-a", STRANGERS, "10.9.0.1", 7411)
    time.sleep(1)
    took = []
    for cut in (lambda: [ip("gw-0", "link", "set", f"p{n}", "down") for n in range(2)], lambda: kill("1")):
        cut()
        time.sleep(1)
        began = time.monotonic()
        for n in range(2):
            ip("gw-0", "link", "set", f"p{n}", "up")
        if lab.pid_of("1") is None:
            start("1")
        settle()
        took.append(time.monotonic() - began)
    said = lab.log("0").count("10.1.9.")
    print(f"pair: {flood.end().strip()} connections of strangers: the gateways agreed again within {max(took):.2f} s of a cut link and of a "
          f"start; {said} lines about them in the log", flush=True)
    assert 0 < said < 10, lab.log("0")[-4000:]


def both_are_looked_after():
    """Rules and routes that another program deletes are back within about a second, on the gateway that stands by as well."""
    one = settle()
    for letter in (one, GATEWAYS[1 - GATEWAYS.index(one)]):
        role = pair_of(letter)["role"]
        took = lab.looked_after(letter)
        print(f"pair: rules and routes of the {role} gateway that were deleted are back within {took:.2f} s", flush=True)


def refusals():
    """Another key, equal numbers, other addresses: refused, and named in the log of both."""
    for what, (old, new), words in (
            ("key", ("pair.key", "other.key"), ("key",)),
            ("number", ("number = 1", "number = 0"), ("number",)),
            ("addresses", ("lan 10.1.0.1/16", "lan 10.1.0.2/16"), ("addresses",))):
        settle()
        before = len(lab.log("1"))
        standby = GATEWAYS[1 - GATEWAYS.index(active()[0])]
        assert standby in GATEWAYS
        kill("1", signal.SIGTERM)
        text = lab.file_of("1")
        with open(f"{LAB}/other.key", "w", encoding="utf-8") as file:
            file.write(os.urandom(32).hex())
        lab.edit("1", old, new)
        if what == "number":
            # The state directory of gateway 1 is refused with `number = 0`.
            lab.edit("1", 'listen = ["10.9.0.1:7411", "10.9.1.1:7411"]', 'listen = ["10.9.0.2:7411"]')
            process = lab.start("1", wait=False)
            wait_until(lambda: process.poll() is not None, "the refusal of another gateway's state")
            assert "state directory is of gateway 1" in lab.log("1")[before:], lab.log("1")[before:]
        else:
            start("1")
            wait_until(lambda: "refused the connection" in lab.log("1")[before:], f"the refusal of another {what}")
            said = lab.log("1")[before:]
            assert all(word in said for word in words), said
            assert "refused the connection" in lab.log("0"), lab.log("0")[-2000:]
            kill("1")
        with open(f"{LAB}/1.toml", "w", encoding="utf-8") as file:
            file.write(text)
        start("1")
    settle()
    print("pair: a peer with another key, another gateway's state or other shared addresses is refused and named")


def lacking():
    """A gateway that may lack records is not active without its peer: one that stood by and was stopped while its peer went on, and one
    whose directory is empty. The first goes on when an operator says so, the second when its peer is there."""
    def waits(letter):
        wait_until(lambda: (pair_of(letter) or {}).get("waits"), f"gateway {letter} to say that it waits")
        time.sleep(3)
        assert not active(), "it is active without its peer"
        said = subprocess.run([lab.FOREBAY, "status", "--socket", f"{LAB}/{letter}.sock"], stdout=subprocess.PIPE, text=True, check=True)
        assert "it may lack records" in said.stdout and "forebay state accept" in lab.log(letter), said.stdout

    def state(letter, *words):
        return subprocess.run([lab.FOREBAY, "state", *words, "--state", f"{LAB}/state-{letter}"], stdout=subprocess.PIPE, text=True, check=True).stdout

    one = settle()
    other = GATEWAYS[1 - GATEWAYS.index(one)]
    kill(other, signal.SIGTERM)
    time.sleep(1)
    kill(one)
    start(other)
    waits(other)
    assert "waits for its peer" in state(other), state(other)
    state(other, "accept")
    wait_until(lambda: active() == [other], "an operator's word to be heard")
    start(one)
    assert settle() == other
    # Its peer is stopped first, so that nobody has all for certain.
    kill(one, signal.SIGTERM)
    kill(other)
    shutil.rmtree(f"{LAB}/state-{other}")
    start(other)
    waits(other)
    # Together they lack what the other one has used since: it takes an operator's word that this is all there is.
    start(one)
    time.sleep(4)
    assert not active(), "a stale and an empty gateway are active"
    assert "has an empty state directory" in lab.log(one), lab.log(one)[-2000:]
    state(one, "accept")
    settle()
    print("pair: gateways with stale and with empty records are active only behind a peer that has all, or by an operator's word")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("forebay")
    parser.add_argument("--takeovers", type=int, default=0, help="faults until so many take-overs; without it each fault once")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--esn", action="store_true")
    parser.add_argument("--ipv6", action="store_true")
    parser.add_argument("--vrrp", action="store_true")
    parser.add_argument("--partitions", type=float, metavar="SECONDS", help="only these, in each direction and both, for so long")
    arguments = parser.parse_args()
    build(arguments.esn)
    start("b")
    for letter in GATEWAYS:
        start(letter)
        if VRRP:
            keepalived(letter)
    assert settle() == "0", "the preferred gateway is not the active one"
    judge = Asked("sw", JUDGE, f"{LAB}/recorded", SHARED, PEER)
    traffic = Traffic()
    traffic.flows_since(time.monotonic())
    draw = random.Random(arguments.seed)
    took, take_overs, replayed, count = {}, 0, 0, 0
    quick = [partition, mute_active, mute_standby] if arguments.partitions else QUICK
    while count < len(quick) if not arguments.takeovers else take_overs < arguments.takeovers:
        fault = draw.choice(FAULTS) if arguments.takeovers else quick[count]
        count += 1
        moved, middle, after, again = strike(fault, traffic, judge, arguments.partitions or draw.uniform(1.0, 2.5))
        take_overs += moved
        replayed += again
        took.setdefault(fault.__name__, []).append(middle)
        print(f"pair: {count} {fault.__name__}: {'taken over' if moved else 'the same gateway is active'}; flows again after "
              + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in middle.items())
              + "; behind its end " + ", ".join(f"{seconds:.2f} s" for seconds in after.values()), flush=True)
    if not arguments.takeovers and not arguments.partitions:
        replaced_keys(traffic)
        broken_file(traffic)
        both_are_looked_after()
        strangers()
        upgrade(traffic)
    sent, said = traffic.end()
    judged = judge.ask("end")
    assert not judged["twice"], f"twice: {judged['twice']}"
    assert not judged["clear"], f"{judged['clear']} packets in the clear"
    assert judged["packets"] > 1_000 and replayed > 100, (judged, replayed)
    for name, count_ in sent.items():
        print(f"pair: {name}: {count_} datagrams sent, {count_ - said[name]['seen']} lost, none twice")
    for fault, all_ in took.items():
        for name in all_[0]:
            times = sorted(one[name] for one in all_)
            print(f"pair: {fault}, {name}: median {statistics.median(times):.2f} s, longest {times[-1]:.2f} s of {len(times)}")
    print(f"pair: {take_overs} take-overs, {judged['packets']} packets of the pair captured: no number and no IV twice, none in the "
          f"clear; {replayed} packets replayed, none delivered")
    if not arguments.takeovers and not arguments.partitions and not VRRP:
        refusals()
        lacking()


if __name__ == "__main__":
    main()
