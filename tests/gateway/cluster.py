#!/usr/bin/env python3
"""Many gateways that share SAs by etcd: five gateways, three servers of etcd with TLS, ten tunnels to gateway B. Faults drawn from a
seed strike gateways, links and etcd under traffic.

    tests/gateway/cluster.py FOREBAY [--takeovers N] [--seed N] [--gateways N] [--bgp]

           10.1/16                  192.0.2/24                 10.2.k/24
    host-a ------- gw-1 (lan, wan) -------+------- gw-b (wan, lan) ------- host-b
             |       | mgmt               |
             +---- gw-n (lan, wan) -------+     tunnel k: 192.0.2.(100+k) outside, 10.1.0.(100+k) inside
                     | mgmt
                    etcd (10.9.0.11, .12, .13)

After each fault datagrams have to pass again in both directions of every tunnel; it is measured from the fault on, never asserted
against a clock. Everything that the gateways send outside is captured and judged: no sequence number and no IV twice for an SPI,
nothing in the clear. Packets of B that were recorded before are sent again after each fault and none of them is delivered.

With --bgp no address is announced by ARP: the outside addresses are on the gateways' TUN interfaces, and FRR on each gateway tells a router
outside of them and a router inside of the routes to the protected networks (docs/many-gateways.md).
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
elif os.environ.get("CLUSTER_INSIDE") != "1":
    words = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        print("cluster: SKIPPED, it needs namespaces: run it as root")
        sys.exit(0)
    missing = [word for word in ("etcd", "etcdctl", "openssl") if not shutil.which(word)]
    if "--bgp" in sys.argv and not os.path.exists("/usr/lib/frr/bgpd"):
        missing.append("FRR")
    if missing:
        print(f"cluster: SKIPPED, {', '.join(missing)} cannot be found (Debian: etcd-server, etcd-client, openssl, frr)")
        sys.exit(0)
    forebay = os.path.realpath(sys.argv[1])
    os.execvpe(words[0], [*words, sys.executable, __file__, forebay, *sys.argv[2:]],
               {**os.environ, "CLUSTER_INSIDE": "1", "FOREBAY": forebay, "LAB": "/run/lab", "FOREBAY_STATE": "/run/lab/saved"})

sys.path.insert(0, os.path.dirname(__file__))
import flows  # noqa: E402
import lab  # noqa: E402
from lab import LAB, inside, ip, kill, wait_until  # noqa: E402

TUNNELS = range(1, 11)
SERVERS = range(3)
RATE = 100
LEASE = "2 s"
BGP = "--bgp" in sys.argv


def vip(k):
    """The outside address of a tunnel."""
    return f"203.0.113.{100 + k}" if BGP else f"192.0.2.{100 + k}"


def run(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, **more).stdout


def certificates():
    """An authority, and certificates of the servers and of the gateways."""
    def openssl(*words):
        run("openssl", *words, cwd=LAB)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
            "-days", "2", "-subj", "/CN=forebay test")
    for name in ("server", "gateway", "other"):
        # The JSON gateway of etcd is a client of its own server, so that its certificate is for both.
        names = ",".join(f"IP:10.9.0.{11 + n}" for n in SERVERS) if name == "server" else "DNS:gateway"
        with open(f"{LAB}/{name}.cnf", "w", encoding="utf-8") as file:
            file.write(f"subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr",
                "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", f"{name}.cnf", "-out", f"{name}.pem")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "other-ca.key", "-out",
            "other-ca.pem", "-days", "2", "-subj", "/CN=another")


class Etcd:
    """Three servers; each may be killed, suspended and started again."""

    def __init__(self):
        self.processes = {}
        self.quota = None
        for n in SERVERS:
            self.start(n, new=True)

    def start(self, n, new=False):
        url = lambda m, port: f"https://10.9.0.{11 + m}:{port}"
        words = ["etcd", "--name", f"n{n}", "--data-dir", f"{LAB}/etcd-{n}", "--listen-client-urls", url(n, 2379),
                 "--advertise-client-urls", url(n, 2379), "--listen-peer-urls", url(n, 2380),
                 "--initial-advertise-peer-urls", url(n, 2380), "--initial-cluster-state", "new" if new else "existing",
                 "--initial-cluster", ",".join(f"n{m}={url(m, 2380)}" for m in SERVERS), "--client-cert-auth",
                 "--trusted-ca-file", f"{LAB}/ca.pem", "--cert-file", f"{LAB}/server.pem", "--key-file", f"{LAB}/server.key",
                 "--peer-client-cert-auth", "--peer-trusted-ca-file", f"{LAB}/ca.pem", "--peer-cert-file", f"{LAB}/server.pem",
                 "--peer-key-file", f"{LAB}/server.key"]
        if self.quota:
            words += ["--quota-backend-bytes", str(self.quota)]
        with open(f"{LAB}/etcd-{n}.log", "ab") as log:
            self.processes[n] = subprocess.Popen(inside("etcd", *words), stdout=log, stderr=log)

    def control(self, *words, check=True):
        endpoints = ",".join(f"https://10.9.0.{11 + n}:2379" for n in SERVERS)
        return subprocess.run(inside("etcd", "etcdctl", "--endpoints", endpoints, "--cacert", f"{LAB}/ca.pem", "--cert",
                                     f"{LAB}/gateway.pem", "--key", f"{LAB}/gateway.key", *words),
                              check=check, capture_output=True, text=True, env={**os.environ, "ETCDCTL_API": "3"}).stdout

    def leader(self):
        for status in json.loads(self.control("endpoint", "status", "-w", "json", check=False) or "[]"):
            if status["Status"]["header"]["member_id"] == status["Status"]["leader"]:
                return int(status["Endpoint"].split(":")[1].rsplit(".", 1)[1]) - 11
        return None

    def wait(self):
        wait_until(lambda: self.leader() is not None, "a leader of etcd")

    def kill(self, n):
        self.processes[n].kill()
        self.processes[n].wait()


def build(count):
    """The namespaces, and the files of the gateways."""
    run("mount", "-t", "tmpfs", "none", "/run")
    os.makedirs("/run/netns")
    os.makedirs(LAB, mode=0o700)
    names = [f"gw-{n}" for n in range(1, count + 1)]
    routers = ("router-wan", "router-lan") if BGP else ()
    for name in ("host-a", "host-b", "gw-b", "sw", "etcd", *routers, *names):
        run("ip", "netns", "add", name)
        ip(name, "link", "set", "lo", "up")
        for setting in ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv4.conf.all.arp_ignore=1",
                        "net.ipv4.conf.all.promote_secondaries=1", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0",
                        "net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf.default.send_redirects=0"):
            run("ip", "netns", "exec", name, "sysctl", "-qw", setting)

    def link(space, name, other_space, other):
        run("ip", "link", "add", name, "netns", space, "type", "veth", "peer", "name", other, "netns", other_space)
        for where, one in ((space, name), (other_space, other)):
            ip(where, "link", "set", one, "up")

    for bridge in ("wan", "lan", "mgmt"):
        ip("sw", "link", "add", bridge, "type", "bridge")
        ip("sw", "link", "set", bridge, "up")
    ports = [("gw-b", "wan", "wb", "wan"), ("host-a", "eth0", "la", "lan"), ("etcd", "mgmt", "me", "mgmt")]
    for n in range(1, count + 1):
        ports += [(f"gw-{n}", bridge, f"{bridge[0]}{n}", bridge) for bridge in ("wan", "lan", "mgmt")]
    ports += [(router, router[-3:], f"{router[-3]}r", router[-3:]) for router in routers]
    for space, name, port, bridge in ports:
        link(space, name, "sw", port)
        ip("sw", "link", "set", port, "master", bridge)
    link("gw-b", "lan", "host-b", "eth0")
    for n in range(1, count + 1):
        for address, name in ((f"192.0.2.{10 + n}/24", "wan"), (f"10.1.0.{20 + n}/16", "lan"), (f"10.9.0.{20 + n}/24", "mgmt")):
            ip(f"gw-{n}", "addr", "add", address, "dev", name)
    for n in SERVERS:
        ip("etcd", "addr", "add", f"10.9.0.{11 + n}/24", "dev", "mgmt")
    ip("host-a", "addr", "add", "10.1.0.10/16", "dev", "eth0")
    ip("gw-b", "addr", "add", "192.0.2.2/24", "dev", "wan")
    for k in TUNNELS:
        if not BGP:
            ip("host-a", "route", "add", f"10.2.{k}.0/24", "via", f"10.1.0.{100 + k}")
        ip("gw-b", "addr", "add", f"10.2.{k}.1/24", "dev", "lan")
        ip("host-b", "addr", "add", f"10.2.{k}.10/24", "dev", "eth0")
    ip("host-b", "route", "add", "10.1.0.0/16", "via", "10.2.1.1")
    if BGP:
        route(count)
    os.umask(0o077)
    for k in TUNNELS:
        for way in "ab":
            with open(f"{LAB}/{way}-{k}.key", "w", encoding="utf-8") as file:
                file.write(os.urandom(20).hex())
    certificates()
    for letter in [*(str(n) for n in range(1, count + 1)), "b"]:
        write(letter)


def frr(space, text):
    """zebra, bfdd and bgpd of a namespace, by a configuration."""
    folder = f"/run/frr-{space}"
    run("install", "-d", "-o", "frr", "-g", "frr", folder)
    with open(f"{folder}/frr.conf", "w", encoding="utf-8") as file:
        file.write(text)
    run("chown", "frr:frr", f"{folder}/frr.conf")
    for daemon, more in (("zebra", []), ("bfdd", ["--bfdctl", f"{folder}/bfdd.sock"]), ("bgpd", [])):
        run(*inside(space, f"/usr/lib/frr/{daemon}", "-d", "-f", f"{folder}/frr.conf", "-i", f"{folder}/{daemon}.pid", "-z",
                    f"{folder}/zserv.api", "--vty_socket", folder, "-P", "0", *more))


def route(count):
    """Two routers, which learn from the gateways where the outside addresses and the protected networks are."""
    gateways = range(1, count + 1)
    for router, own, accepted, neighbours in (
            ("router-wan", "192.0.2.254/24", "203.0.113.0/24 le 32", [f"192.0.2.{10 + n}" for n in gateways]),
            ("router-lan", "10.1.0.254/16", "10.2.0.0/16 le 24", [f"10.1.0.{20 + n}" for n in gateways])):
        ip(router, "addr", "add", own, "dev", router[-3:])
        frr(router, f"""
ip prefix-list shares permit {accepted}
router bgp 65000
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor gateways peer-group
 neighbor gateways remote-as 65001
 neighbor gateways timers 1 3
 neighbor gateways bfd
""" + "".join(f" neighbor {one} peer-group gateways\n" for one in neighbours) + """ address-family ipv4 unicast
  neighbor gateways prefix-list shares in
 exit-address-family
""")
    for n in gateways:
        frr(f"gw-{n}", f"""
route-map forebay permit 10
 match interface fb0
router bgp 65001
 bgp router-id 192.0.2.{10 + n}
 no bgp ebgp-requires-policy
 neighbor routers peer-group
 neighbor routers remote-as 65000
 neighbor routers timers 1 3
 neighbor routers bfd
 neighbor 192.0.2.254 peer-group routers
 neighbor 10.1.0.254 peer-group routers
 address-family ipv4 unicast
  redistribute connected route-map forebay
  redistribute kernel route-map forebay
 exit-address-family
""")
    ip("gw-b", "route", "add", "203.0.113.0/24", "via", "192.0.2.254")
    ip("host-a", "route", "add", "10.2.0.0/16", "via", "10.1.0.254")


def write(letter):
    """The file of a gateway."""
    is_b = letter == "b"
    cluster = f"""
[cluster]
name = "gw-{letter}"
endpoints = [{', '.join(f'"https://10.9.0.{11 + n}:2379"' for n in SERVERS)}]
ca_file = "ca.pem"
certificate_file = "gateway.pem"
private_key_file = "gateway.key"
lease = "{LEASE}"
addresses = [{', '.join(f'"fb0 {vip(k)}/32"' if BGP else f'"wan {vip(k)}/24", "lan 10.1.0.{100 + k}/16 {vip(k)}"' for k in TUNNELS)}]
{'alone = "stop"' if BGP else ''}
"""
    sas = ""
    for k in TUNNELS:
        near, far = (vip(k), "10.1.0.0/16"), ("192.0.2.2", f"10.2.{k}.0/24")
        own, peer = (far, near) if is_b else (near, far)
        for way, key in (("out", "b" if is_b else "a"), ("in", "a" if is_b else "b")):
            sas += f"""
[[sa]]
name = "{key}-{k}"
direction = "{way}"
spi = {(0x1000 if key == 'a' else 0x2000) + k:#x}
key_file = "{key}-{k}.key"
proposal = "aes128gcm16"
encapsulation = "udp"
{'' if way == 'out' else 'replay_window = 4096'}
local = "{own[0]}"
remote = "{peer[0]}"
local_ts = ["{own[1]}"]
remote_ts = ["{peer[1]}"]
"""
    with open(f"{LAB}/{letter}.toml", "w", encoding="utf-8") as file:
        file.write(f"""
[inside]
name = "fb0"
mtu = 1400

[[outside]]
kind = "udp"
listen = "{'192.0.2.2' if is_b else '0.0.0.0'}:4500"
gso = false

[keys]
state = "state-{letter}"

[control]
socket = "{LAB}/{letter}.sock"
{'' if is_b else cluster}{sas}""")


def cluster_of(letter):
    """What a gateway says of the cluster; nothing if it does not answer."""
    try:
        return lab.ask(letter, "status")["cluster"]
    except (OSError, ValueError, KeyError):
        return None


class World:
    """The gateways that are to run, and what strikes them."""

    def __init__(self, count):
        self.all = [str(n) for n in range(1, count + 1)]
        self.etcd = Etcd()
        self.etcd.wait()
        self.judge = flows.Asked("sw", flows.JUDGE, f"{LAB}/recorded", ",".join(f"w{letter}" for letter in self.all), "wb",
                                 ",".join(map(vip, TUNNELS)))

    def traffic(self):
        a = [(f"a{k}", "10.1.0.10", f"10.2.{k}.10", 9000) for k in TUNNELS]
        b = [(f"b{k}", f"10.2.{k}.10", "10.1.0.10", 9000 + k) for k in TUNNELS]
        self.listen = [flows.flows("host-b", flows.LISTEN, [(name, to, port) for name, _, to, port in a]),
                       flows.flows("host-a", flows.LISTEN, [(name, to, port) for name, _, to, port in b])]
        self.speak = [flows.flows("host-a", flows.SPEAK, a, RATE), flows.flows("host-b", flows.SPEAK, b, RATE)]

    def told(self):
        return {name: one for listen in self.listen for name, one in listen.ask().items()}

    def settle(self, until=None, limit=40):
        """Waits until those that run serve all shares, and as `until` says."""
        end = time.monotonic() + limit
        while True:
            told = {letter: cluster_of(letter) for letter in self.all if lab.pid_of(letter)}
            names = {f"gw-{letter}" for letter in told}
            if told and all(one and one["connected"] and set(one["members"]) == names and not one["unowned"] and not one.get("trouble")
                            for one in told.values()):
                served = [share for one in told.values() for share in one["serves"]]
                shares = {letter: set(one["serves"]) for letter, one in told.items()}
                if sorted(served) == list(range(256)) and until in (None, shares):
                    return shares
            if time.monotonic() > end:
                for letter in told:
                    print(letter, {k: v for k, v in (told[letter] or {}).items() if k != "serves"}, lab.log(letter)[-3000:])
                sys.exit("cluster: the gateways do not agree")
            time.sleep(0.05)

    def with_tunnels(self):
        """The gateways that have an address of a tunnel."""
        addresses = {letter: ip(f"gw-{letter}", "addr") for letter in self.all}
        return [letter for letter, told in addresses.items() if any(f" {vip(k)}/" in told for k in TUNNELS)]

    def flows_since(self, moment, limit=60, why=""):
        """Waits until every flow has come again some while behind a moment; how long the longest gap since then took."""
        end = time.monotonic() + limit
        while True:
            told = self.told()
            late = [name for name, one in told.items() if one["last"] < moment + 0.3]
            if not late:
                break
            if time.monotonic() > end:
                for letter in self.all:
                    print(letter, {k: v for k, v in (cluster_of(letter) or {}).items() if k != "serves"})
                    print(lab.log(letter)[-1500:])
                print("b", lab.ask("b", "status")["drops"])
                sys.exit(f"cluster: no traffic: {late} {why}")
            time.sleep(0.05)
        return {name: max((end - max(begin, moment) for begin, end in one["gaps"] if end > moment), default=0) for name, one in told.items()}

    def replayed(self):
        """Sends again what was recorded: nothing of it is delivered. How many packets."""
        count = flows.again("gw-b", f"{LAB}/recorded")
        time.sleep(0.3)
        twice = {name: one["twice"] for name, one in self.told().items() if one["twice"]}
        assert not twice, f"replayed packets were delivered: {twice}"
        return count

    def port(self, letter, state, *kinds):
        for kind in kinds:
            ip("sw", "link", "set", f"{kind}{letter}", state)


# Each strikes one gateway, or etcd, and gives what undoes it after a while.

def kill_one(world, one):
    kill(one)
    return lambda: lab.start(one, wait=False)


def stop_one(world, one):
    os.kill(lab.pid_of(one), signal.SIGTERM)

    def again():
        wait_until(lambda: lab.pid_of(one) is None, "a clean stop")
        lab.start(one, wait=False)
    return again


def suspend_one(world, one):
    pid = lab.pid_of(one)
    os.kill(pid, signal.SIGSTOP)
    return lambda: os.kill(pid, signal.SIGCONT)


def cut_one(world, one):
    """Like a host that lost its power for the others, or all of its cables."""
    world.port(one, "down", "w", "l", "m")
    return lambda: world.port(one, "up", "w", "l", "m")


def isolate_one(world, one):
    """It serves on, and cannot reach etcd."""
    world.port(one, "down", "m")
    return lambda: world.port(one, "up", "m")


def kill_leader(world, _one):
    """A new leader is found in a second or two; nothing is taken over."""
    leader = world.etcd.leader()
    world.etcd.kill(leader)
    return lambda: world.etcd.start(leader)


FAULTS = [kill_one, stop_one, suspend_one, cut_one, isolate_one, kill_leader]
if BGP:
    # A suspended gateway's interface stays, and its routes: systemd's watchdog is what ends it.
    FAULTS.remove(suspend_one)


def strike(world, fault, one, hold):
    """One fault, what it costs, and packets of before that are sent again."""
    before = world.settle()
    world.flows_since(time.monotonic())
    world.judge.ask("record")
    moment = time.monotonic()
    undo = fault(world, one)
    time.sleep(hold)
    gaps = world.flows_since(moment, why=fault.__name__)
    undo()
    # A gateway that was away has its own shares again, and no others.
    world.settle(before)
    world.flows_since(time.monotonic())
    count = world.replayed()
    return max(gaps.values()), sum(gap > 0 for gap in gaps.values()), count


def moves(world):
    """A gateway that comes or goes moves its share, about one in five, and the others keep theirs."""
    before = world.settle()
    last = world.all[-1]
    moment = time.monotonic()
    os.kill(lab.pid_of(last), signal.SIGTERM)
    wait_until(lambda: lab.pid_of(last) is None, "a clean stop")
    without = world.settle()
    assert len(without) == len(before) - 1
    gone = max(world.flows_since(moment).values())
    for letter in without:
        assert without[letter] >= before[letter], "a gateway that stayed has lost a share"
    moment = time.monotonic()
    lab.start(last, wait=False)
    world.settle(before)
    came = max(world.flows_since(moment).values())
    print(f"cluster: gw-{last} with {len(before[last])} of 256 shares leaves and comes back, the others keep theirs; longest gap of a flow "
          f"{gone:.2f} s and {came:.2f} s")


def upgrade(world):
    """Every gateway gets another program under traffic, one after the other. What that costs."""
    before = world.settle()
    world.flows_since(time.monotonic())
    told, began = world.told(), time.monotonic()
    lab.FOREBAY = shutil.copy(lab.FOREBAY, f"{LAB}/forebay-new")
    pauses = []
    for letter in world.all:
        moment = time.monotonic()
        kill(letter, signal.SIGTERM)
        lab.start(letter, wait=False)
        world.settle(before)
        pauses.append(max(world.flows_since(moment).values()))
    assert all(os.readlink(f"/proc/{lab.pid_of(letter)}/exe") == lab.FOREBAY for letter in world.all)
    took = time.monotonic() - began
    sent = round(2 * len(TUNNELS) * RATE * took)
    lost = sent - sum(one["seen"] - told[name]["seen"] for name, one in world.told().items())
    print(f"cluster: {len(world.all)} gateways upgraded one after the other in {took:.1f} s: longest gap of a flow {max(pauses):.2f} s, about "
          f"{max(lost, 0)} of {sent} datagrams lost", flush=True)


def troubles(world):
    """etcd slow, full, without a majority: traffic goes on until what is reserved ends, then stops, and goes on by itself."""
    # All of its servers are suspended for 100 ms again and again: a kernel need not have netem.
    told = world.settle()
    moment = time.monotonic()
    while time.monotonic() - moment < 8:
        for one in world.etcd.processes.values():
            one.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        for one in world.etcd.processes.values():
            one.send_signal(signal.SIGCONT)
        time.sleep(0.02)
    lag = max(cluster_of(letter)["lag_s"] for letter in told)
    gap = max(world.flows_since(moment).values())
    assert world.settle() == told
    print(f"cluster: etcd slow (suspended for 100 ms again and again, transactions take {lag * 1e3:.0f} ms) for 8 s: longest gap of a flow {gap:.2f} s")
    # No majority.
    world.settle()
    logged = {letter: len(lab.log(letter)) for letter in world.all}
    moment = time.monotonic()
    for n in (0, 1):
        world.etcd.kill(n)
    wait_until(lambda: not any(cluster_of(letter)["connected"] for letter in world.all), "the loss of the majority")
    for letter in world.all:
        wait_until(lambda: "traffic goes on until what is reserved ends" in lab.log(letter)[logged[letter]:], "a warning")
    time.sleep(6)
    told = world.told()
    stopped = {name: one["last"] - moment for name, one in told.items() if time.monotonic() - one["last"] > 1}
    a = [at for name, at in stopped.items() if name[0] == "a"]
    b = [at for name, at in stopped.items() if name[0] == "b"]
    assert len(b) == len(TUNNELS), f"received without a record: {stopped}"
    says = f"inbound traffic stops {min(b):.1f} to {max(b):.1f} s later, "
    says += f"outbound after {min(a):.1f} s" if a else "outbound goes on by its block of 2^20 numbers"
    undone = time.monotonic()
    for n in (0, 1):
        world.etcd.start(n)
    world.etcd.wait()
    world.settle()
    back = max(world.flows_since(undone).values())
    print(f"cluster: majority of etcd lost: {says}; all flows {back:.1f} s after two servers were started")
    released = [letter for letter in world.all if "shares released" in lab.log(letter)[logged[letter]:]]
    assert not released, f"{released} have released shares, and all gateways lived"
    # Full.
    world.settle()
    logged = {letter: len(lab.log(letter)) for letter in world.all}
    size = max(status["Status"]["dbSize"] for status in json.loads(world.etcd.control("endpoint", "status", "-w", "json")))
    world.etcd.quota = size + (1 << 20)
    for n in SERVERS:
        world.etcd.kill(n)
        world.etcd.start(n)
        world.etcd.wait()
    world.settle()
    # What was held while the servers were started again counts as a higher rate for two seconds.
    world.flows_since(time.monotonic())
    time.sleep(4)
    for n in range(40):
        subprocess.run(inside("etcd", "etcdctl", "--endpoints", "https://10.9.0.11:2379", "--cacert", f"{LAB}/ca.pem", "--cert",
                              f"{LAB}/gateway.pem", "--key", f"{LAB}/gateway.key", "put", "/filler"), input="x" * 500_000, text=True,
                       capture_output=True, check=False, env={**os.environ, "ETCDCTL_API": "3"})
        if "NOSPACE" in world.etcd.control("alarm", "list"):
            break
    assert "NOSPACE" in world.etcd.control("alarm", "list"), "etcd is not full"
    full = time.monotonic()
    time.sleep(6)
    told = world.told()
    stopped = [one["last"] - full for name, one in told.items() if name[0] == "b"]
    assert max(stopped) < 5, f"received without a record: {stopped}"
    for letter in world.with_tunnels():
        assert "database space exceeded" in lab.log(letter)[logged[letter]:], f"gw-{letter} does not say that etcd is full"
    world.etcd.control("del", "/filler")
    revision = json.loads(world.etcd.control("endpoint", "status", "-w", "json"))[0]["Status"]["header"]["revision"]
    world.etcd.control("compact", str(revision))
    world.etcd.control("defrag")
    world.etcd.control("alarm", "disarm")
    undone = time.monotonic()
    world.settle()
    back = max(world.flows_since(undone).values())
    print(f"cluster: etcd full: inbound traffic stops {min(stopped):.1f} to {max(stopped):.1f} s later; all flows {back:.1f} s after it has "
          "space again")


def back(world, last):
    """Starts a gateway again, and waits until all serve."""
    lab.start(last, wait=False)
    # Until it is there the others serve all shares.
    wait_until(lambda: lab.pid_of(last), f"gateway {last}")
    world.settle()


def refusals(world):
    """Two with one name, other settings, another authority, another etcd: refused, and named in the log."""
    world.settle()
    last, other = world.all[-1], world.all[0]
    text = lab.file_of(last)
    for what, changes, words in (
            ("name", [(f'name = "gw-{last}"', f'name = "gw-{other}"'), (f'state = "state-{last}"', 'state = "state-x"')],
             "another gateway called"),
            ("number of shares", [('ca_file = "ca.pem"', 'ca_file = "ca.pem"\nshares = 128')], "the cluster's gateways have"),
            ("division", [('ca_file = "ca.pem"', 'ca_file = "ca.pem"\nshare_by = "spi"'), *[
                (line, "") for line in text.splitlines() if line.startswith("addresses")]], "the cluster's gateways have")):
        kill(last, signal.SIGTERM)
        before = len(lab.log(last))
        for old, new in changes:
            lab.edit(last, old, new)
        process = lab.start(last, wait=False)
        wait_until(lambda: process.poll() is not None, f"the refusal of another {what}")
        assert process.returncode == 2 and words in lab.log(last)[before:], lab.log(last)[before:]
        with open(f"{LAB}/{last}.toml", "w", encoding="utf-8") as file:
            file.write(text)
        back(world, last)
    # Who signs the servers' certificates is not known: nothing is served, and the log says why.
    kill(last, signal.SIGTERM)
    before = len(lab.log(last))
    lab.edit(last, 'ca_file = "ca.pem"', 'ca_file = "other-ca.pem"')
    lab.start(last, wait=False)
    wait_until(lambda: "UnknownIssuer" in lab.log(last)[before:], "the refusal of another authority")
    kill(last, signal.SIGTERM)
    with open(f"{LAB}/{last}.toml", "w", encoding="utf-8") as file:
        file.write(text)
    # Another etcd than before.
    with open(f"{LAB}/state-{last}/manifest.json", encoding="utf-8") as file:
        note = json.load(file)
    with open(f"{LAB}/state-{last}/manifest.json", "w", encoding="utf-8") as file:
        json.dump({**note, "cluster": {**note["cluster"], "store": "0" * 16}}, file)
    before = len(lab.log(last))
    process = lab.start(last, wait=False)
    wait_until(lambda: process.poll() is not None, "the refusal of another etcd")
    assert "this is another etcd" in lab.log(last)[before:], lab.log(last)[before:]
    # Until an operator says that it is the right one.
    subprocess.run([lab.FOREBAY, "state", "accept", "--state", f"{LAB}/state-{last}"], check=True, stdout=subprocess.DEVNULL)
    back(world, last)
    print("cluster: a second gateway of one name, other settings, another authority and another etcd are refused and named")


def restarted(last, *changes):
    """Starts a gateway again with lines of its file changed; what its log said before is as long as this says."""
    kill(last, signal.SIGTERM)
    for old, new in changes:
        lab.edit(last, old, new)
    before = len(lab.log(last))
    process = lab.start(last, wait=False)
    wait_until(lambda: lab.pid_of(last) or process.poll() is not None, f"gateway {last}")
    return process, before


def otherwise(world):
    """One gateway with other settings of its way to etcd: it reaches nothing, or etcd shows what it has set."""
    world.settle()
    last = world.all[-1]
    text = lab.file_of(last)
    endpoints = next(line for line in text.splitlines() if line.startswith("endpoints = "))
    addresses = next(line for line in text.splitlines() if line.startswith("addresses = "))
    for what, *changes in (
            ("server", (endpoints, 'endpoints = ["https://10.9.0.11:2999"]')),
            ("certificate", ('certificate_file = "gateway.pem"', 'certificate_file = "other-ca.pem"'),
             ('private_key_file = "gateway.key"', 'private_key_file = "other-ca.key"')),
            ("key", ('private_key_file = "gateway.key"', 'private_key_file = "other.key"'))):
        process, before = restarted(last, *changes)
        tried = lambda: process.poll() is not None or (cluster_of(last) or {}).get("connected") is False and "etcd" in lab.log(last)[before:]
        wait_until(tried, f"the refusal of another {what}")
        assert not (cluster_of(last) or {}).get("serves"), f"it serves with another {what}"
        if process.poll() is None:
            kill(last, signal.SIGTERM)
        with open(f"{LAB}/{last}.toml", "w", encoding="utf-8") as file:
            file.write(text)
        back(world, last)
    # How long etcd keeps the claims of one that is silent: the lease that each gateway has.
    restarted(last, (f'lease = "{LEASE}"', 'lease = "7 s"'))
    world.settle()
    ids = [lease["id"] for lease in json.loads(world.etcd.control("lease", "list", "-w", "json"))["leases"]]
    ttls = sorted(json.loads(world.etcd.control("lease", "timetolive", f"{one:x}", "-w", "json"))["granted-ttl"] for one in ids)
    assert ttls[-1] == 7 and set(ttls[:-1]) == {int(LEASE.split()[0])}, ttls
    # Keys with another prefix are another cluster's.
    restarted(last, ('lease = "7 s"', 'prefix = "/elsewhere/"'), (addresses, ""), (f'state = "state-{last}"', 'state = "state-elsewhere"'))
    wait_until(lambda: (cluster_of(last) or {}).get("members") == [f"gw-{last}"], "a gateway with another prefix to be alone")
    assert "/elsewhere/" in world.etcd.control("get", "/elsewhere/", "--prefix", "--keys-only")
    assert all(f"gw-{last}" not in cluster_of(letter)["members"] for letter in world.all[:-1])
    # One whose way to etcd is cut leaves its addresses where they are, or takes them away.
    for word in ("continue", "stop"):
        kill(last, signal.SIGTERM)
        with open(f"{LAB}/{last}.toml", "w", encoding="utf-8") as file:
            file.write(text.replace(f'lease = "{LEASE}"', f'lease = "{LEASE}"\nalone = "{word}"'))
        back(world, last)
        assert last in world.with_tunnels(), "the gateway has no address of a tunnel"
        undo = isolate_one(world, last)
        wait_until(lambda: cluster_of(last)["connected"] is False, "the loss of etcd")
        if word == "stop":
            wait_until(lambda: last not in world.with_tunnels(), "a gateway alone to take its addresses away")
        else:
            assert last in world.with_tunnels(), "a gateway alone takes its addresses away at once"
        undo()
        world.settle()
    kill(last, signal.SIGTERM)
    with open(f"{LAB}/{last}.toml", "w", encoding="utf-8") as file:
        file.write(text)
    back(world, last)
    print("cluster: another server, certificate, key: nothing is served; leases, prefixes and what one does alone are as they are set")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("forebay")
    parser.add_argument("--takeovers", type=int, default=0, help="faults; without it each once, slow, full and lost etcd, and refusals")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gateways", type=int, default=5)
    parser.add_argument("--bgp", action="store_true")
    arguments = parser.parse_args()
    build(arguments.gateways)
    world = World(arguments.gateways)
    lab.start("b")
    for letter in world.all:
        lab.start(letter, wait=False)
    served = world.settle()
    print("cluster: shares " + ", ".join(f"gw-{letter} {len(shares)}" for letter, shares in served.items()), flush=True)
    back = max(lab.looked_after(letter) for letter in world.all)
    print(f"cluster: rules and routes that were deleted are back within {back:.2f} s on each gateway", flush=True)
    world.traffic()
    world.flows_since(time.monotonic())
    draw = random.Random(arguments.seed)
    took, replayed = {}, 0
    for number in range(arguments.takeovers or len(FAULTS)):
        fault = draw.choice(FAULTS) if arguments.takeovers else FAULTS[number]
        one = draw.choice(world.with_tunnels())
        longest, struck, count = strike(world, fault, one, draw.uniform(3.0, 5.0))
        replayed += count
        took.setdefault(fault.__name__, []).append(longest)
        print(f"cluster: {number + 1} {fault.__name__} gw-{one}: {struck} of {2 * len(TUNNELS)} flows had a gap, the longest {longest:.2f} s",
              flush=True)
    if not arguments.takeovers:
        moves(world)
        upgrade(world)
        if not BGP:
            troubles(world)
            refusals(world)
            otherwise(world)
    sent = [int(speak.end()) for speak in world.speak]
    time.sleep(0.5)
    told = {name: one for listen in world.listen for name, one in listen.ask("end").items()}
    judged = world.judge.ask("end")
    assert not judged["twice"], f"twice: {judged['twice']}"
    assert not judged["clear"], f"{judged['clear']} packets in the clear"
    assert judged["packets"] > 1_000 and replayed > 100, (judged, replayed)
    for fault, all_ in took.items():
        print(f"cluster: {fault}: longest gap of a flow, median {statistics.median(all_):.2f} s, most {max(all_):.2f} s of {len(all_)}")
    lost = sum(sent[name[0] == "b"] - one["seen"] for name, one in told.items())
    print(f"cluster: {len(TUNNELS) * sum(sent)} datagrams sent, {lost} lost, none twice; {judged['packets']} packets of the gateways captured: "
          f"no number and no IV twice, none in the clear; {replayed} packets replayed, none delivered")
    records = [cluster_of(letter) for letter in world.all]
    print(f"cluster: {sum(one['transactions'] for one in records)} transactions with {sum(one['records'] for one in records)} records by the "
          "gateways that run now")


if __name__ == "__main__":
    main()
