"""The namespaces of a pair, the files of its gateways, what they say of themselves, and the traffic between the hosts."""

import json
import os
import subprocess
import sys
import time

import lab
from lab import HOST_A, HOST_B, LAB, Talker, ip, program

from . import programs

GATEWAYS = ("0", "1")
RATE = 1_000
VRRP = "--vrrp" in sys.argv
# Outside: the network, the shared address and that of B.
NETWORK, SHARED, PEER = ("2001:db8::%s/64", "2001:db8::1", "2001:db8::2") if "--ipv6" in sys.argv else ("192.0.2.%s/24", "192.0.2.1", "192.0.2.2")

NODAD = ("nodad",) if ":" in SHARED else ()


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


class Traffic:
    """All that runs between the hosts."""

    def __init__(self):
        self.helpers = [Talker("host-b", programs.ANSWER)]
        self.flows = {"a to b": Asked("host-b", programs.LISTEN, 9000), "b to a": Asked("host-a", programs.LISTEN, 9000),
                      "TCP": Asked("host-b", programs.TCP_TAKE), "requests": Asked("host-a", programs.REQUEST, HOST_B)}
        self.tcp = subprocess.Popen(program("host-a", programs.TCP_SEND, HOST_B))
        self.senders = {"a to b": Talker("host-a", programs.SPEAK, HOST_B, 9000, RATE), "b to a": Talker("host-b", programs.SPEAK, HOST_A, 9000, RATE)}
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
