#!/usr/bin/env python3
"""`forebay gateway` with policies and SAs of its kernel that go, come in a bad order, or cannot be followed.

    ours 192.0.2.1 (10.1.0.1) -- tap a -- bridge in namespace "wire" -- tap b -- peer 192.0.2.2, .3 (10.2.0.1, 10.2.5.1)

Both ends are virtual machines, and `ip xfrm` is the key daemon. On ours the kernel keeps SAs and policies by a mark that
no packet has, and Forebay does the work; the peer is Linux, the reference: what it answers was sealed and opened as it
should be. Our machine has a second way to the peer's network, by which packets would leave in the clear. Under pings:
policies flushed, policies deleted before their SAs, a policy with ESP and AH, policies and SAs with selectors that cannot
be followed, more policies than there is room for, two tenants with the same selectors. Nothing may pass in the clear,
and nothing to another peer than the policy's.

    policies.py FOREBAY
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ike_gateway import start
from vm import HERE, Namespace, Vm, VmError, enter

MARK = "mark 0x4642 mask 0xffffffff"
CONFIGURATION = """
[inside]
name = "forebay0"
mtu = 1400
routes = ["10.2.0.0/16"]

[[outside]]
kind = "raw"

[keys]
source = "xfrm"
mark = 0x4642
IF_ID

[limits]
in_flight = 256
packet_size = 10240
policies = 3

[control]
socket = "/run/control.sock"
"""
NEAR, FAR, OTHER = "192.0.2.1", "192.0.2.2", "192.0.2.3"
OURS, THEIRS = "10.1.0.0/16", "10.2.0.0/16"


def sa(source, destination, spi, more="reqid 1", words=MARK, proto="esp"):
    # Each SA has a key of its own: one that is shared is refused.
    keys = {"esp": f"mode tunnel aead 'rfc4106(gcm(aes))' 0x{spi:08x}{'1a' * 16} 128",
            "ah": f"mode transport flag align4 auth-trunc 'hmac(sha256)' 0x{spi:08x}{'2b' * 28} 128"}
    return (f"ip xfrm state add src {source} dst {destination} proto {proto} spi {spi:#x} {keys[proto]} "
            f"replay-window 64 {words} {more}")


def template(source, destination, reqid=1, proto="esp"):
    mode = "tunnel" if proto == "esp" else "transport"
    ends = f"src {source} dst {destination} " if proto == "esp" else ""
    return f"tmpl {ends}proto {proto} reqid {reqid} mode {mode}"


def policy(verb, source, destination, way, *templates, words=MARK, more="priority 100"):
    return f"ip xfrm policy {verb} src {source} dst {destination} dir {way} {words} {more} {' '.join(templates)}"


def pair(peer=FAR, spi=0x1000, reqid=1, words=MARK, priority=100):
    """SAs and policies of our side of a tunnel, the inbound SA first."""
    return "\n".join([
        sa(peer, NEAR, spi + 2, f"reqid {reqid}", words), sa(NEAR, peer, spi + 1, f"reqid {reqid}", words),
        policy("add", THEIRS, OURS, "in", template(peer, NEAR, reqid), words=words, more=f"priority {priority}"),
        policy("add", OURS, THEIRS, "out", template(NEAR, peer, reqid), words=words, more=f"priority {priority}")])


def peers(peer, spi):
    """The same as the peer has it."""
    return "\n".join([
        sa(NEAR, peer, spi + 1, words=""), sa(peer, NEAR, spi + 2, words=""),
        policy("add", OURS, THEIRS, "in", template(NEAR, peer), words=""),
        policy("add", THEIRS, OURS, "out", template(peer, NEAR), words="")])


class Watch:
    """What passes the wire while this is entered."""

    def __init__(self, wire):
        self.process = wire.start([sys.executable, HERE / "watch.py", "a", "10."], stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def end(self):
        self.process.terminate()
        return json.loads(self.process.communicate(timeout=20)[0])


class Site:
    """Our machine, the peer and the wire."""

    def __init__(self, wire, a, b):
        self.wire, self.a, self.b = wire, a, b

    def answers(self, destination="10.2.0.1", count=4):
        """Pings that are answered."""
        _, output = self.a.sh(f"ping -c {count} -i 0.2 -W 1 -I 10.1.0.1 {destination}", check=False)
        return int(re.search(r"(\d+) received", output)[1])

    def drops(self, reason):
        status = json.loads(self.a.sh("/tmp/forebay status --socket /run/control.sock --json"))
        return status["drops"].get(reason, 0)

    def passes(self, destination="10.2.0.1"):
        """Waits until pings are answered."""
        for _ in range(20):
            if self.answers(destination, 1):
                return
        shown = self.a.sh("tail -20 /tmp/gateway.log; ip xfrm policy; ip xfrm state; ip route; /tmp/forebay status --socket /run/control.sock --json")
        raise VmError(f"no answer from {destination}\n{shown}")

    def none_pass(self, what, reason, destination="10.2.0.1"):
        """Nothing leaves, in whatever form, and it is counted why."""
        time.sleep(0.5)
        before, watch = self.drops(reason), Watch(self.wire)
        answers = self.answers(destination)
        seen = watch.end()
        if answers or seen["clear"] or seen["esp"] or seen["ah"] or self.drops(reason) < before + 4:
            raise VmError(f"{what}: {answers} answers, {seen}, {reason} {before} -> {self.drops(reason)}\n"
                          + self.a.sh("tail -20 /tmp/gateway.log; ip xfrm policy"))
        print(f"policies: {what}: nothing leaves ({reason})")

    def under_traffic(self, script, settle=1.0):
        """Changes something while pings pass."""
        self.a.sh("ping -i 0.02 -w 60 -I 10.1.0.1 10.2.0.1 >/tmp/ping.out 2>&1 & echo $! >/tmp/ping.pid; sleep 0.5")
        self.a.sh(script)
        time.sleep(settle)

    def quiet(self):
        self.a.sh("kill -INT $(cat /tmp/ping.pid) || true; sleep 0.3")


def flushed(site):
    site.passes()
    site.under_traffic("ip xfrm policy flush")
    watch = Watch(site.wire)
    time.sleep(1)
    seen = watch.end()
    site.quiet()
    if seen["esp"] or seen["clear"]:
        raise VmError(f"after a flush of the policies: {seen}")
    site.none_pass("policies flushed, their SAs are there", "out_no_pols")
    # What the peer seals for us comes out of an SA that no policy is for.
    before = site.drops("in_no_pols")
    _, output = site.b.sh("ping -c 4 -i 0.2 -W 1 -I 10.2.0.1 10.1.0.1", check=False)
    if "0 received" not in output or site.drops("in_no_pols") < before + 4:
        raise VmError(f"delivered without a policy\n{output}")
    site.a.sh("ip xfrm state flush\n" + pair(spi=0x2000))
    site.b.sh("ip xfrm state flush; ip xfrm policy flush\n" + peers(FAR, 0x2000))
    site.passes()


def deleted(site):
    """Each before its SAs, as some daemons do, and then these; packets want to go all the time."""
    site.under_traffic(policy("delete", OURS, THEIRS, "out", more=""))
    watch = Watch(site.wire)
    time.sleep(1)
    site.a.sh(policy("delete", THEIRS, OURS, "in", more="") + "; ip xfrm state flush")
    time.sleep(1)
    seen = watch.end()
    site.quiet()
    if seen["clear"] or seen["to"].get(FAR):
        raise VmError(f"after a deleted policy: {seen}")
    site.none_pass("policies deleted before their SAs", "out_no_pols")
    site.a.sh(pair(spi=0x3000))
    site.b.sh("ip xfrm state flush; ip xfrm policy flush\n" + peers(FAR, 0x3000))
    site.passes()


def refused(site):
    """Narrower policies that cannot be followed discard; the broad one is not asked for their packets."""
    narrow = "10.2.5.0/24"
    both = [template(NEAR, FAR), template(NEAR, FAR, 2, "ah")]
    site.a.sh(sa(NEAR, FAR, 0x4001, "reqid 2", proto="ah"))
    site.a.sh(policy("add", OURS, narrow, "out", *both, more="priority 1"))
    site.none_pass("a policy with ESP and AH, which has both SAs", "out_pol_block", "10.2.5.1")
    site.passes()
    site.a.sh(policy("delete", OURS, narrow, "out", more=""))
    site.passes("10.2.5.1")
    site.a.sh(policy("add", OURS, narrow + " dev eth0", "out", more="priority 1"))
    site.none_pass("a policy for one interface, which lets packets pass in the clear", "out_pol_block", "10.2.5.1")
    site.passes()
    site.a.sh(policy("delete", OURS, narrow + " dev eth0", "out", more=""))
    site.passes("10.2.5.1")
    # An SA that cannot be taken over is no SA for its policy, whatever others of the tunnel there are.
    site.a.sh(policy("add", OURS, narrow, "out", template(NEAR, FAR, 7), more="priority 1"))
    site.a.sh(sa(NEAR, FAR, 0x4002, f"reqid 7 sel src {OURS} dst {narrow} dev eth0"))
    site.none_pass("an SA for one interface", "out_no_states", "10.2.5.1")
    site.a.sh(policy("delete", OURS, narrow, "out", more=""))
    site.passes("10.2.5.1")


def over_limit(site):
    """Three policies fit: the fourth would let packets pass in the clear, and discards until there is room."""
    site.a.sh(policy("add", OURS, "10.2.7.0/24", "out", more="priority 2"))
    site.a.sh(policy("add", OURS, "10.2.5.0/24", "out", more="priority 1"))
    site.none_pass("a policy over the limit", "out_pol_block", "10.2.5.1")
    site.passes()
    site.a.sh(policy("delete", OURS, "10.2.5.0/24", "out", more=""))
    site.a.sh(policy("delete", OURS, "10.2.7.0/24", "out", more=""))
    site.passes("10.2.5.1")


def tenants(site):
    """Two tenants with the same selectors and a peer each: the gateway of one knows nothing of the other."""
    a, b = site.a, site.b
    a.sh("ip xfrm state flush; ip xfrm policy flush; kill $(pidof forebay); sleep 1")
    b.sh("ip xfrm state flush; ip xfrm policy flush")
    # The second one's policies come first for a follower that takes both.
    a.sh(pair(FAR, 0x5000, 1, MARK + " if_id 1", 100) + "\n" + pair(OTHER, 0x6000, 1, MARK + " if_id 2", 1))
    for number, own, wrong, spi in [(1, FAR, OTHER, 0x5000), (2, OTHER, FAR, 0x6000)]:
        a.put(CONFIGURATION.replace("IF_ID", f"if_id = {number}").encode(), "/tmp/gateway.toml")
        start(a)
        b.sh("ip xfrm state flush; ip xfrm policy flush\n" + peers(own, spi))
        watch = Watch(site.wire)
        site.passes()
        answers = site.answers(count=20)
        seen = watch.end()
        if seen["to"].get(wrong) or seen["clear"] or answers < 20:
            raise VmError(f"tenant {number}: {answers} answers, {seen}")
        a.sh("kill $(pidof forebay); sleep 1")
    a.put(CONFIGURATION.replace("IF_ID", "").encode(), "/tmp/gateway.toml")
    start(a)
    site.none_pass("a gateway for SAs without an interface ID", "out_no_pols")
    print("policies: two tenants with the same selectors: each packet to its own peer")


def anew(site, settings, kind="raw", ours="", theirs="", spi=0x7000):
    """A gateway with other settings of [keys], and new SAs, with more words for ours and for those of the peer that send."""
    a, b = site.a, site.b
    a.sh("kill $(pidof forebay); sleep 1; ip xfrm state flush; ip xfrm policy flush")
    b.sh("ip xfrm state flush; ip xfrm policy flush")
    marked = f"{MARK} {ours}"
    a.sh("\n".join([
        sa(FAR, NEAR, spi + 2, words=marked), sa(NEAR, FAR, spi + 1, words=marked),
        policy("add", THEIRS, OURS, "in", template(FAR, NEAR)), policy("add", OURS, THEIRS, "out", template(NEAR, FAR))]))
    b.sh("\n".join([
        sa(NEAR, FAR, spi + 1, words=ours), sa(FAR, NEAR, spi + 2, words=theirs),
        policy("add", OURS, THEIRS, "in", template(NEAR, FAR), words=""),
        policy("add", THEIRS, OURS, "out", template(FAR, NEAR), words="")]))
    a.put(CONFIGURATION.replace("IF_ID", settings).replace('"raw"', f'"{kind}"').encode(), "/tmp/gateway.toml")
    start(a)


def reports(site):
    """The kernel's counters of an SA follow those of the gateway as often as `report` says, with 0 never."""
    counted = []
    for number, settings in enumerate(('report = "200 ms"', "report = 0")):
        anew(site, settings, spi=0x7000 + 0x10 * number)
        site.passes()
        site.answers(count=10)
        time.sleep(1)
        text = site.a.sh(f"ip -s xfrm state list src {NEAR} dst {FAR}")
        counted.append(int(re.search(r"lifetime current:\s+\d+\(bytes\), (\d+)\(packets\)", text)[1]))
    if counted[0] < 10 or counted[1] != 0:
        raise VmError(f"packets that the kernel counts with reports and without: {counted}")
    print(f"policies: the kernel counts {counted[0]} packets of an SA with `report`, and none without")


def follows(site):
    """A peer that sends from another port is followed, unless `follow_peer` says no."""
    moved = []
    for number, word in enumerate(("true", "false")):
        encap = "encap espinudp {} 4500 0.0.0.0"
        anew(site, f"follow_peer = {word}", "udp", encap.format(4500), encap.format(4501), 0x7100 + 0x10 * number)
        site.b.sh("ping -c 4 -i 0.2 -W 1 -I 10.2.0.1 10.1.0.1", check=False)
        status = json.loads(site.a.sh("/tmp/forebay status --socket /run/control.sock --json"))
        if not sum(link["packets_in"] for link in status["links"] if link["side"] == "outside"):
            raise VmError(f"nothing arrives: {status['links']}")
        moved.append(sum(engine["moved_peers"] for engine in status["engines"]))
    if not moved[0] or moved[1]:
        raise VmError(f"peers that moved, followed and not: {moved}")
    print("policies: a peer that sends from another port is followed, and with `follow_peer = false` it is not")


def main():
    enter()
    parser = argparse.ArgumentParser()
    parser.add_argument("forebay", type=Path)
    arguments = parser.parse_args()
    work = Path(tempfile.mkdtemp(dir="/run"))
    subprocess.run(["strip", "-o", work / "forebay", arguments.forebay], check=True)
    wire = Namespace("wire")
    wire.tap("a", "br"), wire.tap("b", "br")
    with Vm("ours", [(wire, "a")], memory=768) as a, Vm("peer", [(wire, "b")]) as b:
        a.wait(), b.wait()
        for vm, own in ((a, 1), (b, 2)):
            vm.sh(f"modprobe -a esp4 ah4 xfrm_user; ip link set eth0 up; ip addr add 192.0.2.{own}/24 dev eth0; ip addr add 10.{own}.0.1/16 dev lo")
        b.sh(f"ip addr add {OTHER}/24 dev eth0; ip addr add 10.2.5.1/16 dev lo; ip route add {OURS} via {NEAR} src 10.2.0.1")
        # By this one packets leave where the gateway's route is gone.
        a.sh(f"ip route add {THEIRS} via {FAR} metric 1000; modprobe tun; mkdir -p /dev/net; [ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200")
        site, watch = Site(wire, a, b), Watch(wire)
        if site.answers() == 0 or not watch.end()["clear"]:
            raise VmError("without a gateway nothing is seen in the clear: the test is worth nothing")
        a.put(work / "forebay", "/tmp/forebay", 0o755)
        a.put(CONFIGURATION.replace("IF_ID", "").encode(), "/tmp/gateway.toml")
        a.sh(pair())
        b.sh(peers(FAR, 0x1000))
        start(a)
        watch = Watch(wire)
        for part in (flushed, deleted, refused, over_limit, tenants, reports, follows):
            part(site)
        seen = watch.end()
        if seen["clear"] or seen["ah"] or not seen["esp"]:
            raise VmError(f"on the wire: {seen}")
        print(f"policies: ok; {seen['esp']} packets sealed, none in the clear")


if __name__ == "__main__":
    main()
