#!/usr/bin/env python3
"""A new user's first days, in the userlands of Debian and Ubuntu as they are installed: the package is installed, two gateways are set up by the commands
of the documentation and those that the program prints, and then everything happens to them that happens to gateways. What is lost is counted.

    tests/packaging/userlands.py DIRECTORY [SUITE...]      suites: bookworm trixie jammy noble [default: those that can be had]

DIRECTORY has the package that `make deb` makes. systemd is the first process of each gateway's machine, which is a namespace of processes, mounts,
network and control groups; the kernel is this machine's.

     host-a                gw-a             r1     MTU 1300     r2            gw-b                host-b
   10.1.0.10 ---- lan 10.1.0.1  wan ------- .254 ---------- .254 ------- wan  10.2.0.1 lan ---- 10.2.0.10

Roots are made by mmdebstrap and kept in target/userlands. Packages of Ubuntu are verified with Ubuntu's keyring, which is Debian's package ubuntu-keyring:
where it is not installed, it is taken from Debian 13, whose packages are verified with Debian's keyring. When the test ends, however it ends, the kernel
takes everything away but empty control groups.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT = ROOT / "target/userlands"
INSIDE = "FOREBAY_USERLANDS_INSIDE"
SUITES = ("bookworm", "trixie", "jammy", "noble")
UBUNTU = ("jammy", "noble")
PACKAGES = "apt,systemd,systemd-sysv,dbus,adduser,iproute2,iputils-ping,nftables,procps"
KEYRING = pathlib.Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")
PATH_MTU = 1300

# The lab of tests/gateway: programs of hosts, and what passes an interface.
LAB = "/run/lab"
os.environ.update(LAB=LAB, FOREBAY="forebay")
sys.path.insert(0, str(ROOT / "tests/gateway"))
# pylint: disable=wrong-import-position
from lab import Count, Wire, inside, ip, program, send  # noqa: E402

# By letter: the name of the side, and by IP version the outer address and the router's; the hosts inside.
SIDE = {"a": "west", "b": "east"}
OUTER = {4: {"a": ("192.0.2.1", "192.0.2.254"), "b": ("192.0.2.2", "192.0.2.253")},
         6: {"a": ("2001:db8:f:1::1", "2001:db8:f:1::fe"), "b": ("2001:db8:f:2::1", "2001:db8:f:2::fe")}}
HOST = {4: {"a": "10.1.0.10", "b": "10.2.0.10"}, 6: {"a": "2001:db8:1::10", "b": "2001:db8:2::10"}}
OWN = {4: {"a": "10.1.0.1", "b": "10.2.0.1"}, 6: {"a": "2001:db8:1::1", "b": "2001:db8:2::1"}}

# How systemd becomes the first process of a machine: its root, its name.
BOOT = """
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mkdir -p proc sys dev run tmp
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
mkdir -p dev/net dev/pts dev/shm
# Nodes of its own: those of this machine would have the modes that the other system gives them.
while read -r device numbers; do mknod -m 666 dev/$device c $numbers; done <<END
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
net/tun 10 200
END
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs tmpfs tmp
exec chroot . env -i container=forebay-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=journal
"""
# Programs of hosts, for both IP versions. A server that says what it got, and gives datagrams back.
SERVE = """
import hashlib, socket, threading
server = socket.create_server(("::", 7001), family=socket.AF_INET6, dualstack_ipv6=True)
echo = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); echo.setsockopt(41, socket.IPV6_V6ONLY, 0)
echo.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE: what a busy machine is slow to take is not lost
echo.bind(("::", 7002))
def answer():
    while True:
        data, sender = echo.recvfrom(65535)
        try:
            echo.sendto(data, sender)
        except OSError:
            pass
threading.Thread(target=answer, daemon=True).start()
print("ready", flush=True)
while True:
    client, _ = server.accept()
    digest, left = hashlib.sha256(), int.from_bytes(client.recv(8, socket.MSG_WAITALL), "big")
    while left:
        data = client.recv(min(left, 1 << 16))
        if not data:
            break
        digest.update(data); left -= len(data)
    client.sendall(digest.digest())
    client.close()
"""
TRANSFER = """
import hashlib, os, socket, sys
data = os.urandom(int(sys.argv[2]))
peer = socket.create_connection((sys.argv[1], 7001), timeout=40)
peer.settimeout(120)
peer.sendall(len(data).to_bytes(8, "big") + data)
assert peer.recv(32, socket.MSG_WAITALL) == hashlib.sha256(data).digest(), "other bytes arrived"
"""
# Datagrams as QUIC sends them (RFC 9000 14): none is ever fragmented, 1200 bytes always, and larger ones as probes of the path (RFC 8899).
QUIC = """
import json, os, socket, sys, time
address = sys.argv[1]
version = 6 if ":" in address else 4
peer = socket.socket(socket.AF_INET6 if version == 6 else socket.AF_INET, socket.SOCK_DGRAM)
# IP_MTU_DISCOVER and IPV6_MTU_DISCOVER: PROBE sets DF and does not go by what the kernel knows of the path.
peer.setsockopt(*((41, 23, 3) if version == 6 else (0, 10, 3)))
peer.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
peer.connect((address, 7002))
count, size = int(sys.argv[2]), 1200
back = set()
def take(wait):
    peer.settimeout(wait)
    try:
        while True:
            back.add(peer.recv(65535)[:8])
    except OSError:
        pass
for n in range(count):
    try:
        peer.send(n.to_bytes(8, "big") + bytes(size - 8))
    except OSError:
        pass
    take(0.001)
take(1)
lost = count - len(back)
# The largest datagram that comes back.
largest, least, most, probes = 0, 1000, 1472, 0
while least <= most:
    size = (least + most) // 2
    fits = False
    for attempt in range(3):
        probe = os.urandom(8); probes += 1
        try:
            peer.send(probe + bytes(size - 8))
        except OSError:
            continue
        take(0.3)
        if probe in back:
            fits = True
            break
    if fits:
        largest, least = size, size + 1
    else:
        most = size - 1
print(json.dumps({"lost": lost, "largest": largest}))
"""


class Machine:
    """A machine whose first process is systemd."""

    def __init__(self, letter, tar):
        self.letter, self.name = letter, SIDE[letter]
        self.root = pathlib.Path(f"/run/machines/{self.name}")
        self.root.mkdir(parents=True)
        subprocess.run(["tar", "-C", self.root, "-xf", tar], check=True)
        group = f"{groups()}/forebay-userlands-{os.environ[INSIDE]}-{self.name}"
        os.makedirs(group, exist_ok=True)
        # The group is joined first: `ip netns exec` has a /sys without groups.
        words = inside(f"gw-{letter}", "unshare", "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child=KILL",
                       "sh", "-e", "-c", BOOT, "boot", str(self.root))
        joined = 'echo $$ >"$0/cgroup.procs" && exec "$@"'
        self.process = subprocess.Popen(["sh", "-e", "-c", joined, group, *words], stdin=subprocess.DEVNULL)
        self.configure_network()
        self.pid = None
        until(self.is_up, f"systemd of {self.name}", 60)

    def configure_network(self):
        """What a site's administrator has set up before: addresses and the way out, by systemd-networkd."""
        folder = self.root / "etc/systemd/network"
        lan = "".join(f"Address={OWN[version][self.letter]}/{16 if version == 4 else 48}\n" for version in (4, 6))
        (folder / "lan.network").write_text(f"[Match]\nName=lan\n[Network]\n{lan}LinkLocalAddressing=ipv6\nIPv6AcceptRA=no\n")
        wan = "".join(f"Address={OUTER[version][self.letter][0]}/{32 if version == 4 else 64}\n" for version in (4, 6))
        ways = "".join(f"[Route]\nGateway={OUTER[version][self.letter][1]}\nGatewayOnLink=yes\n" for version in (4, 6))
        (folder / "wan.network").write_text(f"[Match]\nName=wan\n[Network]\n{wan}LinkLocalAddressing=ipv6\nIPv6AcceptRA=no\n{ways}")
        (self.root / "etc/hostname").write_text(f"{self.name}\n")

    def is_up(self):
        if self.pid is None:
            children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            self.pid = int(children[0]) if children else None
        # `degraded`: there are no modules for systemd-modules-load.
        return self.pid and self.sh("systemctl is-system-running || true", check=False).strip() in ("running", "degraded")

    def words(self):
        """What runs a program in it: its words follow."""
        return ["nsenter", "-t", str(self.pid), "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w", "env", "-i", "HOME=/root", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]

    def sh(self, command, check=True, limit=120):
        """The output of a command, as root types it."""
        words = [*self.words(), "sh", "-e", "-c", f"cd /root; {command}"]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=limit, check=False)
        if check and done.returncode:
            fail(f"{self.name}: {command}: exit code {done.returncode}\n{done.stdout}\n{self.journal()}")
        return done.stdout

    def journal(self):
        return self.sh("journalctl --no-pager -u forebay | tail -60", check=False)

    def end(self):
        self.process.kill()
        self.process.wait()
        subprocess.run(["umount", "-R", self.root], check=False, capture_output=True)
        shutil.rmtree(self.root, ignore_errors=True)


def fail(words):
    sys.exit(f"userlands: {words}")


def until(condition, what, seconds=30, shown=lambda: ""):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            fail(f"{what}: not within {seconds} s\n{shown()}")
        time.sleep(0.1)


def groups():
    """Where control groups of version 2 are mounted."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        return next((line.split()[1] for line in mounts if line.split()[2] == "cgroup2"), None)


def documented(page, begin):
    """A command of a page: the line of a block that begins so."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.search(rf"^    ({re.escape(begin)}.*)$", text, re.M)
    if not found:
        fail(f"docs/{page} has no command that begins with `{begin}`")
    return found[1].strip()


def copied(folder, machines):
    """Each machine gets the folder that has its name, as by scp, for which there is no server here."""
    here = machines["a"]
    for machine in machines.values():
        packed = here.sh(f"tar -C {folder} -c {machine.name} | base64 -w0").strip()
        machine.sh(f"echo {packed} | base64 -d | tar -x")


def typed(text, machines):
    """Types the commands that the program has printed: the indented ones, each on the host that was named last."""
    machine = None
    for line in text.splitlines():
        found = re.match(r"# (\w+)\b", line)
        named = [one for one in machines.values() if found and one.name == found[1]]
        if named:
            machine = named[0]
        elif line.startswith("    "):
            machine.sh(line.strip())


def topology():
    for name in ("host-a", "gw-a", "r1", "r2", "gw-b", "host-b"):
        ip_("netns", "add", name)
        ip(name, "link", "set", "lo", "up")
    for one, its, other, their in (("host-a", "eth0", "gw-a", "lan"), ("gw-a", "wan", "r1", "in"), ("r1", "out", "r2", "out"),
                                   ("gw-b", "wan", "r2", "in"), ("gw-b", "lan", "host-b", "eth0")):
        ip_("link", "add", its, "netns", one, "type", "veth", "peer", "name", their, "netns", other)
    for letter, router in (("a", "r1"), ("b", "r2")):
        host = f"host-{letter}"
        for version, length in ((4, 16), (6, 48)):
            nodad = ["nodad"] if version == 6 else []
            ip(host, "addr", "add", f"{HOST[version][letter]}/{length}", "dev", "eth0", *nodad)
        ip(host, "link", "set", "eth0", "up")
        for version in (4, 6):
            ip(host, f"-{version}", "route", "add", "default", "via", OWN[version][letter])
        ip(router, "link", "set", "in", "up")
        ip(router, "link", "set", "out", "up", "mtu", str(PATH_MTU))
        for setting in ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"):
            subprocess.run(inside(router, "sysctl", "-qw", setting), check=True)
        for version in (4, 6):
            outer, own = OUTER[version][letter]
            nodad = ["nodad"] if version == 6 else []
            ip(router, "addr", "add", f"{own}/{32 if version == 4 else 64}", "dev", "in", *nodad)
            if version == 4:
                ip(router, "route", "add", outer, "dev", "in")
    for router, other, end in (("r1", "b", 2), ("r2", "a", 1)):
        for version, net, length in ((4, "198.51.100.", 24), (6, "2001:db8:f::", 64)):
            own = 3 - end
            nodad = ["nodad"] if version == 6 else []
            ip(router, "addr", "add", f"{net}{own}/{length}", "dev", "out", *nodad)
            ip(router, f"-{version}", "route", "add", OUTER[version][other][0], "via", f"{net}{end}")


def ip_(*words):
    subprocess.run(["ip", *words], check=True)


def ping(version, count=10, letter="a", *words):
    """How many of some pings are lost."""
    other = "ba"["ab".index(letter)]
    done = subprocess.run(inside(f"host-{letter}", "ping", f"-{version}", "-n", "-c", str(count), "-i", "0.1", "-W", "2", *words, HOST[version][other]),
                          capture_output=True, text=True, check=False)
    found = re.search(r"(\d+) received", done.stdout)
    return count - int(found[1] if found else 0), done.stdout


def comes_back(version):
    until(lambda: ping(version, 2)[0] == 0, f"IPv{version} traffic does not come back by itself", 40)


def clear(packets):
    """Packets of the sites between the gateways: those that should have been protected; and those that gateway A has opened and that, while the
    route to its LAN was gone, followed its default route."""
    bare, opened = 0, 0
    nets = {0x0800: (12, 16, bytes([10, 1]), bytes([10, 2])),
            0x86dd: (8, 24, bytes.fromhex("20010db80001"), bytes.fromhex("20010db80002"))}
    for kind, leaves, packet in packets:
        if kind not in nets:
            continue
        source, destination, a, b = nets[kind]
        source, destination = packet[source:source + len(a)], packet[destination:destination + len(a)]
        if source == b and destination == a and not leaves:
            opened += 1
        elif source in (a, b) or destination in (a, b):
            bare += 1
    return bare, opened


class Reasons:
    """What the gateways have dropped since this was made, by reason; nothing of one that does not answer or has been started since."""

    def __init__(self, machines):
        self.machines, self.before = machines, {letter: self.ask(machine) for letter, machine in machines.items()}

    @staticmethod
    def ask(machine):
        try:
            status = json.loads(machine.sh("forebay status --json 2>/dev/null", check=False))
        except ValueError:
            return {}
        found = dict(status["drops"])
        for link in status["links"]:
            for reason, count in link["drops"].items():
                found[f"{link['name']} {reason}"] = count
        return found

    def __str__(self):
        found = []
        for letter, machine in self.machines.items():
            for reason, count in self.ask(machine).items():
                if (more := count - self.before[letter].get(reason, 0)) > 0:
                    found.append(f"{machine.name} {reason} {more}")
        return f" (dropped by the gateways: {', '.join(found)})" if found else ""


RATE, SECONDS = 500, 8


def lost_during(event, seconds=SECONDS):
    """How many of numbered datagrams are lost both ways while something happens, of how many."""
    heard = {letter: Count(f"host-{letter}") for letter in "ab"}
    count = RATE * seconds
    senders = [send("host-a", HOST[4]["b"], 0, count, RATE), send("host-b", HOST[4]["a"], 0, count, RATE)]
    time.sleep(1)
    event()
    for sender in senders:
        sender.wait(timeout=120)
    seen = [heard[letter].end() for letter in "ab"]
    assert not any(one["forged"] or one["twice"] for one in seen), seen
    return 2 * count - sum(one["seen"] for one in seen), 2 * count


def next_version(package, folder):
    """The same package as a later version of itself."""
    work = folder / "next"
    subprocess.run(["dpkg-deb", "-R", package, work], check=True)
    control = work / "DEBIAN/control"
    text = control.read_text(encoding="utf-8")
    control.write_text(re.sub(r"^(Version: .*)$", r"\1+next", text, flags=re.M), encoding="utf-8")
    made = folder / re.sub(r"_(.*)_", r"_\1+next_", package.name, count=1)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-b", work, made], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(work)
    return made


def install(machine, package):
    """Installs a package as the page says."""
    target = machine.root / "root/target/debian"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    shutil.copy(package, target)
    return machine.sh(documented("operation.md", "apt-get install ./target/debian/forebay_"))


def set_up(version, machines):
    """Both gateways by the page's command, whose addresses are those of its IP version, and what that prints."""
    command = documented("operation.md", "forebay tunnel new --side")
    if version == 6:
        for letter in "ab":
            command = command.replace(OUTER[4][letter][0], OUTER[6][letter][0])
    for letter, network in (("a", "2001:db8:1::/48"), ("b", "2001:db8:2::/48")):
        command = re.sub(rf"(10\.{'ab'.index(letter) + 1}\.0\.0/16)", rf"\1,{network}", command)
    said = machines["a"].sh(f"rm -rf west east next; {command}")
    copied(".", machines)
    typed(said, machines)
    for machine in machines.values():
        until(lambda machine=machine: machine.sh("systemctl is-active forebay", check=False).strip() == "active", f"the gateway {machine.name}")
    return command


def day(suite, version, machines, package, folder):
    """What happens to the two gateways; the lines of the table."""
    west, east = machines["a"], machines["b"]
    rows = []
    for machine in machines.values():
        said = install(machine, package)
        assert "forebay" in machine.sh("forebay --version"), said
    set_up(version, machines)
    comes_back(4)
    comes_back(6)
    wire = Wire("r1", "in")

    # What hosts and routers remember of the paths of another gateway.
    for space in ("host-a", "host-b", "r1", "r2"):
        for inner in (4, 6):
            ip(space, f"-{inner}", "route", "flush", "cache")
    for inner in (4, 6):
        lost, said = ping(inner, 20)
        assert lost == 0, said
        # The path's MTU, found by what is too big for it, in both directions; and then what fits.
        told = {}
        for letter in "ab":
            _, said = ping(inner, 4, letter, "-M", "do", "-s", "1350")
            told[letter] = re.search(r"mtu ?= ?(\d+)", said)
            assert told[letter] and 1000 < int(told[letter][1]) < PATH_MTU, f"IPv{inner}: no word of the path MTU:\n{said}"
        mtu = min(int(one[1]) for one in told.values())
        fits = mtu - (28 if inner == 4 else 48)
        for letter in "ab":
            lost, said = ping(inner, 5, letter, "-M", "do", "-s", str(fits))
            assert lost == 0, said
        subprocess.run(program("host-a", TRANSFER, HOST[inner]["b"], 20_000_000), check=True, timeout=180)
        subprocess.run(program("host-b", TRANSFER, HOST[inner]["a"], 20_000_000), check=True, timeout=180)
        reasons = Reasons(machines)
        done = subprocess.run(program("host-a", QUIC, HOST[inner]["b"], 1000), capture_output=True, text=True, check=True, timeout=120)
        quic = json.loads(done.stdout)
        # QUIC needs a path for 1200 bytes, which one of 1300 is not for every suite and version (RFC 9000 14).
        assert quic["lost"] == (0 if fits >= 1200 else 1000) and quic["largest"] == fits, (quic, fits, str(reasons))
        rows.append(f"inner IPv{inner}: 20 pings, 2 x 20 MB by TCP: 0 lost; 1,000 datagrams of 1,200 bytes with DF: {quic['lost']} lost{reasons if quic['lost'] else ''}; told path MTU {mtu}, "
                    f"largest datagram that came back {quic['largest']} bytes")
        hops = traceroute(inner)
        # Whatever rp_filter is; Ubuntu has 2.
        assert hops == [OWN[inner]["a"], OWN[inner]["b"], HOST[inner]["b"]], hops
        rows.append(f"inner IPv{inner}: traceroute shows {' '.join(hops)}")

    def flap():
        west.sh("ip link set lan down; sleep 1; ip link set lan up")

    def flush():
        west.sh("systemctl restart systemd-networkd; ip route flush dev forebay0; ip -6 route flush dev forebay0; ip route flush type blackhole")

    def reload():
        for machine in machines.values():
            machine.sh("systemctl reload forebay")

    def roll():
        # The configurations of both are on the first machine, where the command has been typed that made them.
        command = documented("runbooks.md", "forebay tunnel roll ")
        said = west.sh(f"rm -rf next; {command}")
        copied("next", machines)
        typed(said, machines)

    later = next_version(package, folder)

    def upgrade():
        install(west, later)

    def crash():
        west.sh("systemctl kill -s KILL forebay")

    events = [("nothing", lambda: None, 0), ("reload of both", reload, 0), ("new keys in three steps", roll, 0), ("LAN down and up", flap, None),
              ("network manager restarted, routes flushed", flush, None), ("upgrade of one", upgrade, None), ("SIGKILL of one", crash, None)]
    for what, event, most in events:
        reasons, between = Reasons(machines), Wire("r1", "in", "event")
        lost, count = lost_during(event, 16 if event in (roll, upgrade) else SECONDS)
        why = reasons if lost else ""
        if most is not None and lost > most:
            fail(f"{suite} IPv{version}: {what}: {lost} of {count} packets lost{why}\n{west.journal()}\n{east.journal()}")
        _, opened = clear(between.end())
        assert not opened, f"{what}: {opened} opened packets followed the default route"
        for inner in (4, 6):
            comes_back(inner)
        quiet, _ = lost_during(lambda: None, 3)
        assert quiet == 0, f"{what}: {quiet} packets lost afterwards\n{west.journal()}"
        rows.append(f"{what}: {lost} of {count} packets lost{why}")
    assert west.sh("dpkg-query -W -f '${Version}' forebay").endswith("+next")

    def purge():
        west.sh("apt-get purge -y forebay")

    lost, count = lost_during(purge, 6)
    left = west.sh("ls -A /etc/forebay /etc/forebay/keys /var/lib/forebay 2>/dev/null | wc -l; ip -o link show dev forebay0 2>/dev/null | wc -l; "
                   "systemctl list-unit-files 'forebay*' --no-legend | wc -l; command -v forebay | wc -l", check=False).split()
    assert left[1:] == ["0", "0", "0"], f"left after a purge: {left}"
    rows.append(f"purge of one while the keys are there: {lost} of {count} packets lost, none by another way")
    packets = wire.end()
    bare, _ = clear(packets)
    assert bare == 0, f"{suite} IPv{version}: {bare} packets of the sites are seen between the gateways"
    rows.append(f"{len(packets)} packets seen between the gateways, none of the sites unprotected")
    west.sh("rm -rf /etc/forebay /var/lib/forebay; nft delete table inet forebay_forebay0; ip route flush type blackhole; ip -6 route flush type blackhole || true", check=False)
    east.sh("apt-get purge -y forebay; rm -rf /etc/forebay /var/lib/forebay; nft delete table inet forebay_forebay0; ip route flush type blackhole; ip -6 route flush type blackhole || true",
            check=False)
    return rows


def traceroute(version):
    """The hops to the other host, as traceroute finds them: datagrams with small TTLs, and who answers."""
    hops = []
    for ttl in range(1, 5):
        for _ in range(5):
            done = subprocess.run(inside("host-a", "ping", f"-{version}", "-n", "-c", "1", "-W", "2", "-t", str(ttl), HOST[version]["b"]),
                                  capture_output=True, text=True, check=False)
            found = re.search(r"(?:From|bytes from) ([0-9a-f.:]+?):? icmp_seq", done.stdout)
            if found:
                break
            time.sleep(0.5)
        hops.append(found and found[1])
        if found and found[1] == HOST[version]["b"]:
            break
    return hops


def root(suite, packages=PACKAGES):
    """Where the root of a suite is kept, and why it cannot be had if it cannot. It is made anew when what is in it changes."""
    tar = KEPT / f"{suite}-{hashlib.sha256(packages.encode()).hexdigest()[:8]}.tar"
    return tar, None if tar.exists() else os.environ.get(f"{INSIDE}_{suite}", "it was not made")


def mmdebstrap(*words):
    """Why it failed, if it did."""
    done = subprocess.run(["mmdebstrap", "--quiet", *words], capture_output=True, text=True, check=False)
    return f"mmdebstrap: {done.stderr.strip()[-300:]}" if done.returncode else None


def keyring():
    """Ubuntu's keyring, and why it cannot be had."""
    if KEYRING.exists():
        return KEYRING, None
    kept = KEPT / KEYRING.name
    if not kept.exists():
        tar = KEPT / "ubuntu-keyring.tar"
        why = mmdebstrap("--variant=extract", "--include=ubuntu-keyring", "trixie", str(tar))
        if why:
            return kept, f"ubuntu-keyring is neither installed nor can it be had from Debian 13, and without it packages are not verified: {why}"
        found = subprocess.run(["tar", "-xOf", tar, f".{KEYRING}"], capture_output=True, check=True)
        kept.write_bytes(found.stdout)
        tar.unlink()
    return kept, None


def make_root(suite, packages):
    """Makes the root of a suite where there is none; why it cannot be had."""
    tar, why = root(suite, packages)
    if not why:
        return None
    KEPT.mkdir(parents=True, exist_ok=True)
    words = ["--variant=minbase", f"--include={packages}"]
    if suite in UBUNTU:
        path, why = keyring()
        if why:
            return why
        words.append(f"--keyring={path}")
    print(f"userlands: making the root of {suite}", flush=True)
    new = tar.with_suffix(".new.tar")
    why = mmdebstrap(*words, suite, str(new))
    if why:
        return why
    new.rename(tar)
    return None


def enter(suites, packages=PACKAGES):
    """Makes the roots of suites, and goes on in namespaces that end with it, in which there is no network."""
    words = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    if os.geteuid() != 0 or not shutil.which("mmdebstrap") or not groups() or subprocess.run([*words, "true"], check=False).returncode:
        print("userlands: SKIPPED, it needs root, namespaces, control groups of version 2 and mmdebstrap")
        sys.exit(0)
    for suite in suites:
        os.environ[f"{INSIDE}_{suite}"] = make_root(suite, packages) or ""
    done = subprocess.run([*words, sys.executable, *sys.argv], env={**os.environ, INSIDE: str(os.getpid())}, check=False)
    for name in SIDE.values():
        group = pathlib.Path(f"{groups()}/forebay-userlands-{os.getpid()}-{name}")
        for folder in sorted(group.rglob("*"), reverse=True):
            if folder.is_dir():
                folder.rmdir()
        if group.exists():
            group.rmdir()
    sys.exit(done.returncode)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    packages = sorted(pathlib.Path(sys.argv[1]).glob("forebay_*.deb"))
    if len(packages) != 1:
        fail(f"{sys.argv[1]} has {len(packages)} packages forebay_*.deb; expected 1, as `make deb` leaves there")
    wanted = sys.argv[2:] or SUITES
    if INSIDE not in os.environ:
        enter(wanted)
    package = packages[0].resolve()
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    for folder in ("/run/netns", LAB, "/run/machines"):
        os.makedirs(folder)
    topology()
    servers = [subprocess.Popen(program(f"host-{letter}", SERVE), stdout=subprocess.PIPE, text=True) for letter in "ab"]
    for server in servers:
        assert server.stdout.readline() == "ready\n"
    tried = 0
    for suite in wanted:
        tar, why = root(suite)
        if why:
            print(f"userlands: {suite}: SKIPPED: {why}")
            if sys.argv[2:]:
                sys.exit(1)
            continue
        began = time.monotonic()
        machines = {letter: Machine(letter, tar) for letter in "ab"}
        for machine in machines.values():
            machine.sh("systemctl enable --now systemd-networkd")
        for version in (4, 6):
            reaches = lambda version=version: "1 received" in machines["a"].sh(f"ping -c1 -W1 {OUTER[version]['b'][0]}", check=False)
            shown = lambda version=version: machines["a"].sh(
                f"ping -c1 -W1 {OUTER[version]['b'][0]} || true; ip addr; ip route; journalctl --no-pager -u systemd-networkd | tail -20", check=False)
            until(reaches, f"{suite}: the way between the gateways, IPv{version}", 40, shown)
        for version in (4, 6):
            for row in day(suite, version, machines, package, pathlib.Path(LAB)):
                print(f"userlands: {suite}, peers by IPv{version}: {row}", flush=True)
        release = machines["a"].sh(". /etc/os-release; echo $PRETTY_NAME, $(systemctl --version | head -1)").strip()
        for machine in machines.values():
            machine.end()
        tried += 1
        print(f"userlands: {suite}: {release}: ok, {time.monotonic() - began:.0f} s", flush=True)
    for server in servers:
        server.kill()
    print(f"userlands: {tried} of {len(wanted)} userlands")


if __name__ == "__main__":
    main()
