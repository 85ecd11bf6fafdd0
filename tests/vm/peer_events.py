"""Events between a gateway with keys from its strongSwan and a peer with its own daemon and Linux's ESP.

Each is a function of a `Pair` that says what it saw, raises `Unable` where one of both cannot do it, and `VmError` where
it went wrong. `Pair.traffic` pings through the tunnel meanwhile and notes what was lost.
"""

import contextlib
import json
import re
import time

from daemons import Case, Unable
from vm import VmError

RULES = """
    for what in "ipproto 255" esp udp; do ip rule add ipproto ${what#ipproto } table 100 2>/dev/null || true; done
    ip route replace 192.0.2.0/24 dev eth0 table 100"""


def until(test, seconds=20, what="that"):
    """Waits for it; the value."""
    deadline = time.monotonic() + seconds
    while not (value := test()):
        if time.monotonic() > deadline:
            raise VmError(f"{what} did not happen in {seconds} s")
        time.sleep(0.3)
    return value


class Pair:
    """Both ends: machines `a` (the gateway's) and `b`, and their daemons."""

    def __init__(self, a, b, ours, theirs, begin_gateway):
        self.a, self.b, self.ours, self.theirs, self.begin_gateway = a, b, ours, theirs, begin_gateway
        self.missing = self.sent = self.by_linux = self.by_deletion = 0

    def configure(self, case=None, connect=None):
        """Both daemons from the start with what is to be agreed on; the end that connects, if any."""
        for daemon in (self.ours, self.theirs):
            daemon.end_with(daemon.programs)
            daemon.forget()
        case = case or Case()
        case.esp = case.esp or self.theirs.suites[0]
        self.missing = self.sent = self.by_linux = self.by_deletion = 0
        for daemon in (self.ours, self.theirs):
            daemon.configure(case)
            daemon.start()
        if connect:
            connect.initiate()
            until(self.spis, what="a child SA")
            self.ping()

    def spis(self, vm=None):
        """Of ESP SAs in the kernel that have keys, both ways."""
        return set(re.findall(r"proto esp spi (0x(?!0{8})\w+)", (vm or self.a).sh("ip xfrm state")))

    def ike(self):
        """SPIs of the IKE SA."""
        return re.findall(r"(\w+)_i\*? (\w+)_r", self.a.sh("swanctl --list-sas"))

    def ping(self, seconds=20, source="10.2.0.1", target="10.1.0.1"):
        """Until one goes through from the peer."""
        self.goes_through(self.b, "peer", seconds, source, target)

    def reach(self, seconds=20, source="10.1.0.1", target="10.2.0.1"):
        """Until one goes through from the gateway."""
        self.goes_through(self.a, "gateway", seconds, source, target)

    @staticmethod
    def goes_through(vm, end, seconds, source, target):
        tries = f"for try in $(seq {seconds}); do ping -c 1 -W 1 -I {source} {target} >/dev/null && exit 0; done; exit 1"
        if vm.sh(tries, check=False, seconds=2 * seconds + 10)[0]:
            raise VmError(f"{seconds} pings of the {end}, from {source} to {target}, had no answer")

    @contextlib.contextmanager
    def traffic(self, source="10.2.0.1", target="10.1.0.1", interval=0.05):
        """Pings from the peer; of all that were sent until the last that came back, `missing` did not come back,
        `by_linux` were dropped before they were sealed, and `by_deletion` came back under an SA that the peer has no more."""
        before = self.of_linux(), self.of_linux("XfrmInNoStates")
        process = self.b.sh(
            f"ping -i {interval} -w 900 -I {source} {target} >/tmp/ping.out & echo $!"
        ).strip()
        try:
            time.sleep(0.5)
            yield
            time.sleep(1)
        finally:
            self.b.sh(f"kill -INT {process} 2>/dev/null || true; sleep 0.5")
        output = self.b.sh("cat /tmp/ping.out")
        back = [int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", output)]
        if not back or len(back) != len(set(back)):
            raise VmError(f"nothing came back, or something twice\n{output[-800:]}")
        self.sent, self.missing = max(back), max(back) - len(back)
        self.by_linux = self.of_linux() - before[0]
        self.by_deletion = self.of_linux("XfrmInNoStates") - before[1]

    def of_linux(self, counters=r"XfrmOut\w+"):
        """Packets that the peer's kernel dropped, by default before it sealed them."""
        return sum(
            int(count) for count in re.findall(rf"{counters}\s+(\d+)", self.b.sh("cat /proc/net/xfrm_stat"))
        )

    def nothing_lost(self):
        if self.missing > self.by_linux:
            raise VmError(
                f"{self.missing} of {self.sent} pings lost, {self.by_linux} of them by Linux itself"
            )

    def status(self):
        return json.loads(self.a.sh("/tmp/forebay status --socket /run/control.sock --json"))


def ends(pair, end):
    return {"gateway": (pair.ours, pair.a), "peer": (pair.theirs, pair.b)}[end]


def connect(end):
    def event(pair):
        pair.configure(connect=ends(pair, end)[0])
        pair.reach()

    return event


def acquire_gateway(pair):
    pair.configure(Case(child=("start_action = trap", "")))
    pair.reach(30)


def acquire_peer(pair):
    if pair.theirs.name == "openiked":
        raise Unable("openiked does not react to acquires of Linux")
    pair.configure(Case(child=("", "start_action = trap")))
    if pair.theirs.name == "libreswan":
        pair.b.sh("ipsec whack --route --name net || true")
    pair.ping(30)


def rekey(what, *who):
    def event(pair):
        lifetime = 0
        if pair.theirs.name == "openiked" and "peer" in who:
            if what == "ike" or len(who) > 1:
                raise Unable("openiked has no command to rekey, only a lifetime of child SAs")
            lifetime = 20
        pair.configure(Case(lifetime=lifetime), connect=pair.ours)
        before = pair.ike() if what == "ike" else pair.spis()
        with pair.traffic():
            started = []
            for end in who:
                daemon, vm = ends(pair, end)
                if lifetime and end == "peer":
                    continue
                vm.begin((daemon.rekey_child if what == "child" else daemon.rekey_ike)(), 40)
                started.append(vm)
            for vm in started:
                vm.end(check=False)  # of two at once one may lose by right (RFC 7296 2.8.1)
            if what == "ike":
                until(lambda: pair.ike() and pair.ike() != before, what="another IKE SA")
            else:
                until(
                    lambda: len(pair.spis() - before) >= 2 and not pair.spis() & before,
                    60,
                    "a child SA in place of the old one",
                )
        if lifetime and 0 < pair.missing - pair.by_linux <= pair.by_deletion:
            # It deletes both old SAs as it sends its DELETE (ikev2_init_create_child_sa). What the gateway seals until it has
            # processed that finds no SA (XfrmInNoStates).
            return "openiked deletes the old SAs before the gateway knows"
        pair.nothing_lost()

    return event


def reauthenticate(end):
    def event(pair):
        daemon, vm = ends(pair, end)
        command = daemon.reauthenticate()
        pair.configure(Case(connection=("", "")), connect=daemon)
        before = pair.ike()
        with pair.traffic():
            vm.sh(command, check=False, seconds=40)
            until(
                lambda: (
                    pair.ike() and not {tuple(one) for one in pair.ike()} & {tuple(one) for one in before}
                ),
                30,
                "another IKE SA",
            )
            pair.ping()
        return "break before make" if pair.missing else None

    return event


def delete(end):
    def event(pair):
        pair.configure(connect=pair.ours)
        daemon, vm = ends(pair, end)
        vm.sh(daemon.delete(), seconds=40, check=False)
        until(lambda: not pair.spis(), what="deletion at the gateway")
        until(lambda: not pair.spis(pair.b), what="deletion at the peer")
        if pair.b.sh("ping -c 3 -i 0.2 -W 1 -I 10.2.0.1 10.1.0.1 >/dev/null", check=False)[0] == 0:
            raise VmError("a ping came through after the deletion")
        pair.ours.initiate()
        pair.ping()

    return event


def dead_peer(pair):
    pair.configure(
        Case(connection=("dpd_delay = 2s", "dpd_delay = 2s"), dead_peer=2, child=("dpd_action = trap", "")),
        connect=pair.ours,
    )
    with pair.traffic():
        pair.b.sh("ip link set eth0 down")
        until(lambda: not pair.spis(), 60, "the end of the SAs at the gateway")
        pair.b.sh(BACK)
        pair.reach(60)
        pair.ping(60)


# An interface that was down has lost its routes.
BACK = (
    "ip link set eth0 up; ip addr show dev eth0 | grep -q 2001:db8::2 || ip addr add 2001:db8::2/64 dev eth0 nodad\n"
    "ip route replace 10.1.0.0/16 via 192.0.2.1 src 10.2.0.1; ip route replace 10.11.0.0/16 via 192.0.2.1 src 10.12.0.1"
)


def restart(end):
    def event(pair):
        pair.configure(Case(child=("start_action = trap", "")), connect=pair.ours)
        daemon, _ = ends(pair, end)
        with pair.traffic():
            daemon.end_with(daemon.programs)
            # What a killed daemon left in the kernel goes with the restart of its service.
            daemon.forget()
            daemon.start()
            daemon.initiate()  # the other end still has the old IKE SA
            pair.ping(40)

    return event


def kill_gateway(pair):
    pair.configure(connect=pair.ours)
    with pair.traffic():
        pair.a.sh("kill -9 $(pidof forebay); sleep 0.5")
        pair.begin_gateway()
        pair.ping(40)


def move(pair):
    if pair.theirs.name == "openiked":
        raise Unable("openiked's MOBIKE responds to an address change, it does not announce one")
    pair.configure(Case(any_address=True, connection=("mobike = yes", "mobike = yes")), connect=pair.theirs)
    if pair.theirs.name == "libreswan":
        raise Unable(
            "libreswan changes its address only with left=%defaultroute and a default route, which these machines do not have"
        )
    try:
        with pair.traffic():
            pair.b.sh(
                "sysctl -w net.ipv4.conf.all.promote_secondaries=1 >/dev/null; ip addr add 192.0.2.3/24 dev eth0; "
                "ip addr del 192.0.2.2/24 dev eth0; ip route replace 10.1.0.0/16 via 192.0.2.1 src 10.2.0.1"
            )
            until(lambda: "192.0.2.3" in pair.a.sh("ip xfrm state"), 40, "the move in the gateway's kernel")
            pair.ping(30)
    finally:
        pair.b.sh(
            "ip addr add 192.0.2.2/24 dev eth0 2>/dev/null || true; ip addr del 192.0.2.3/24 dev eth0 2>/dev/null || true; "
            + BACK
        )


def nat(pair):
    """The NAT is in the peer's own machine, behind its daemon and its ESP."""

    def ports(ike, esp):
        pair.b.sh(f"""
            nft delete table ip behind 2>/dev/null || true
            nft add table ip behind; nft add chain ip behind post '{{ type nat hook postrouting priority 100; }}'
            nft add rule ip behind post oif eth0 udp sport 500 counter snat to 192.0.2.2:{ike}
            nft add rule ip behind post oif eth0 udp sport 4500 counter snat to 192.0.2.2:{esp}
            conntrack -F 2>/dev/null || true""")

    try:
        ports(60500, 61000)
        pair.configure(
            Case(connection=("", "dpd_delay = 3s\n encap = yes"), dead_peer=3), connect=pair.theirs
        )
        if "dport 61000" not in pair.a.sh("ip xfrm state"):
            raise VmError(
                "no SA to the NAT's port\n" + pair.a.sh("ip xfrm state | grep -v auth | grep -v enc\\ ")
            )
        with pair.traffic():
            ports(60501, 62000)
            pair.ping(40)
        return "in UDP" + ("; charon followed" if "dport 62000" in pair.a.sh("ip xfrm state") else "")
    finally:
        pair.b.sh("nft delete table ip behind 2>/dev/null || true; conntrack -F 2>/dev/null || true")


def ipv6(pair):
    if pair.theirs.name == "openiked":
        return ipv6_inside(pair)
    pair.configure(Case(outer=6), connect=pair.ours)
    if "2001:db8::2" not in pair.a.sh("ip xfrm state"):
        raise VmError("no SA between IPv6 addresses")
    with pair.traffic():
        time.sleep(1)
    pair.nothing_lost()


def ipv6_inside(pair):
    """Of a daemon with PF_KEY, by which Linux gives an SA that names no selector one of its own outer family (`sel src ::/0`,
    no flag `af-unspec`): it is never found for packets of the other, and every packet asks for another SA."""
    ends = {"source": "fd02::1", "target": "fd01::1"}
    for end, vm in ((1, pair.a), (2, pair.b)):
        vm.sh(f"ip addr replace fd0{end}::1/16 dev lo nodad")
    pair.b.sh(
        "ip route replace fd01::/16 via 2001:db8::1 src fd02::1\n"
        "nft list table ip6 guard >/dev/null 2>&1 && exit 0\n"
        "nft add table ip6 guard; nft add chain ip6 guard out '{ type filter hook output priority 0; }'\n"
        "nft add rule ip6 guard out rt ipsec missing ip6 daddr fd00::/8 oif eth0 drop"
    )
    pair.configure(Case(outer=6, children={"net": ("fd01::/16", "fd02::/16")}))
    pair.ours.initiate()
    until(pair.spis, what="a child SA")
    if "2001:db8::2" not in pair.a.sh("ip xfrm state"):
        raise VmError("no SA between IPv6 addresses")
    pair.ping(**ends)
    with pair.traffic(**ends):
        time.sleep(1)
    pair.nothing_lost()
    return "IPv6 inside"


def transport(pair):
    pair.a.sh(RULES)
    try:
        pair.configure(Case(mode="transport"))
        pair.ours.initiate()
        until(pair.spis, what="a child SA")
        pair.ping(source="192.0.2.2", target="192.0.2.1")
        if "mode transport" not in pair.a.sh("ip xfrm state"):
            raise VmError("no SA in transport mode")
        with pair.traffic(source="192.0.2.2", target="192.0.2.1"):
            time.sleep(1)
        pair.nothing_lost()
    finally:
        pair.ours.end_with(pair.ours.programs)
        pair.ours.forget()


def children(pair):
    if pair.theirs.name == "openiked":
        # A connection's networks are one child SA to it, whatever is asked for. Its policies in Linux have reqid 0 and its SAs no
        # selector, so the newest SA seals all of them, which the gateway refuses (in_tmpl_mismatch, RFC 4301 5.2).
        raise Unable(
            "openiked answers a request for any child SA with the networks of all children, and Linux encrypts all packets with the newest SA"
        )
    networks = {
        "net": ("10.1.0.0/16", "10.2.0.0/16"),
        "two": ("10.11.0.0/16", "10.12.0.0/16"),
        "three": ("10.11.0.0/16", "10.2.0.0/16"),
    }
    pair.configure(Case(children=networks))
    for child in networks:
        pair.ours.initiate(child)
    until(lambda: len(pair.spis()) >= 2, what="child SAs")
    for near, far in networks.values():
        pair.ping(source=far.replace("0.0/16", "0.1"), target=near.replace("0.0/16", "0.1"))
    return f"{len(pair.spis()) // 2} pairs of SAs"


def narrowed(pair):
    pair.configure(Case(narrowed="10.2.0.0/24"))
    pair.ours.initiate()
    until(pair.spis, what="a child SA")
    pair.ping()
    if "dst 10.2.0.0/24" not in pair.a.sh("ip xfrm policy"):
        raise VmError("the selectors were not narrowed")
    if pair.a.sh("ping -c 2 -i 0.2 -W 1 -I 10.1.0.1 10.2.9.1", check=False)[0] == 0:
        raise VmError("a packet beyond the narrowed selectors went through")


def suites(pair):
    wrong = []
    for suite in pair.theirs.suites:
        try:
            pair.configure(Case(esp=suite), connect=pair.ours)
            for size in (1, 1300, 4000):
                pair.a.sh(f"ping -c 2 -W 3 -i 0.2 -s {size} -I 10.1.0.1 10.2.0.1 >/dev/null")
        except VmError as error:
            wrong.append(f"{suite}: {str(error).splitlines()[0]}")
    if wrong:
        raise VmError("; ".join(wrong))
    count = len(pair.theirs.suites)
    return f"{count} suite{'s' if count > 1 else ''}"


def ml_kem(pair):
    if pair.theirs.name != "strongSwan":
        raise Unable("the daemon has no ML-KEM")
    pair.configure()
    for vm in (pair.a, pair.b):
        if "ML_KEM_768" not in vm.sh("swanctl --list-algs"):
            raise Unable("Debian's daemon has no ML-KEM")
    pair.configure(Case(key_exchange="x25519-ke1_mlkem768"), connect=pair.ours)
    if "ML_KEM_768" not in pair.a.sh("swanctl --list-sas"):
        raise VmError("agreed on without ML-KEM\n" + pair.a.sh("swanctl --list-sas"))
    with pair.traffic():
        before = pair.ike()
        pair.a.sh(pair.ours.rekey_ike(), seconds=40)
        until(lambda: pair.ike() and pair.ike() != before, what="another IKE SA")
    pair.nothing_lost()


def per_cpu(pair):
    if pair.theirs.name != "strongSwan" or pair.theirs.version() < "6.0.2":
        raise Unable("the daemon has none")
    lines = "per_cpu_sas = yes\n start_action = trap"
    pair.configure(Case(child=(lines.splitlines()[0], lines)), connect=pair.theirs)
    pair.b.sh(
        "for cpu in 0 1; do taskset $((1 << cpu)) ping -c 5 -i 0.3 -W 1 -I 10.2.0.1 10.1.0.1 >/dev/null || true; done",
        seconds=40,
    )
    pair.ping()
    shown = pair.b.sh("ip -d xfrm state")
    numbers = set(re.findall(r"pcpu-num (\w+)", shown))
    if not numbers:
        raise Unable("the daemon agreed on them, this kernel's SAs have no number of a CPU")
    asked = per_cpu_by_gateway(pair, lines)
    return f"{len(pair.spis(pair.b)) // 2} pairs of SAs, for {len(numbers)} CPUs; the gateway's workers asked for {asked}"


def per_cpu_by_gateway(pair, lines):
    """The gateway's workers ask its daemon for SAs of their own while the fallback SA carries what they send: for how many CPUs
    it has outbound SAs then. Nothing that is sent meanwhile is lost."""
    pair.configure(Case(child=(lines, lines.splitlines()[0])))
    hosts = [f"10.2.0.{host}" for host in range(1, 9)]
    pair.b.sh("for host in 2 3 4 5 6 7 8; do ip addr add 10.2.0.$host/16 dev lo 2>/dev/null || true; done")
    pair.reach(30)
    # Flows of several addresses, for they are distributed over the queues of the gateway's interface.
    pings = " ".join(hosts)
    pair.a.sh(
        f"for host in {pings}; do ping -i 0.1 -c 100 -W 2 -I 10.1.0.1 $host >/tmp/ping-$host & done; wait", seconds=60
    )
    lost = {host: re.search(r"(\d+) packets transmitted, (\d+) received", pair.a.sh(f"cat /tmp/ping-{host}")) for host in hosts}
    wrong = {host: one[0] for host, one in lost.items() if one is None or one[1] != one[2]}
    if wrong:
        raise VmError(f"lost while SAs of single CPUs were asked for: {wrong}")
    sas = [sa for sa in pair.status()["sas"] if sa["direction"] == "out"]
    own = {sa["cpu"] for sa in sas if sa.get("cpu") is not None and sa["packets"] > 0}
    if not own or not any(sa.get("cpu") is None for sa in sas):
        raise VmError(f"no SA of a CPU in use beside the fallback: {[(sa['spi'], sa.get('cpu'), sa['packets']) for sa in sas]}")
    return f"{len(own)}, while the fallback SA carried all"


def iptfs(pair):
    for name, vm in (("peer's", pair.b), ("gateway's", pair.a)):
        if vm.sh("modprobe xfrm_iptfs", check=False)[0]:
            raise Unable(f"the {name} kernel has no CONFIG_XFRM_IPTFS")
    pair.configure(Case(mode="iptfs"), connect=pair.theirs)


EVENTS = {
    "gateway connects": connect("gateway"),
    "peer connects": connect("peer"),
    "acquire by the gateway": acquire_gateway,
    "acquire by the peer": acquire_peer,
    "child SA rekeyed by the gateway": rekey("child", "gateway"),
    "child SA rekeyed by the peer": rekey("child", "peer"),
    "child SA rekeyed by both at once": rekey("child", "gateway", "peer"),
    "IKE SA rekeyed by the gateway": rekey("ike", "gateway"),
    "IKE SA rekeyed by the peer": rekey("ike", "peer"),
    "IKE SA rekeyed by both at once": rekey("ike", "gateway", "peer"),
    "reauthentication by the gateway": reauthenticate("gateway"),
    "reauthentication by the peer": reauthenticate("peer"),
    "deletion by the gateway": delete("gateway"),
    "deletion by the peer": delete("peer"),
    "dead peer": dead_peer,
    "gateway's daemon restarts": restart("gateway"),
    "peer's daemon restarts": restart("peer"),
    "gateway killed": kill_gateway,
    "peer's address changes (MOBIKE)": move,
    "NAT rebinds": nat,
    "IPv6 outside": ipv6,
    "several children": children,
    "narrowed selectors": narrowed,
    "every suite": suites,
    "ML-KEM-768 (RFC 9370)": ml_kem,
    "per-CPU SAs (RFC 9611)": per_cpu,
    "IP-TFS (RFC 9347)": iptfs,
    "transport mode": transport,
}
SHORT = ["acquire by the gateway", "child SA rekeyed by both at once", "peer's daemon restarts"]
