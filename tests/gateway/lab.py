"""What the tests in the laboratory have in common: programs in its namespaces, gateways that come and go, traffic
that is counted packet by packet, and a look at what passes between the gateways."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

FOREBAY, LAB = os.environ["FOREBAY"], os.environ["LAB"]
# Drops of a link of what it did not give.
BEFORE = ("overrun", "truncated", "malformed")
HOST_A, HOST_B = "10.1.0.10", "10.2.0.10"

# 33 is SO_RCVBUFFORCE, which Python does not name.
# Counts numbered datagrams until a line comes in: how many, how many twice, how many changed, and the first it had.
COUNT = """
import hashlib, json, select, socket, sys
taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
taken.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
taken.bind(("0.0.0.0", int(sys.argv[1])))
print("ready", flush=True)
seen, twice, forged, late, last = set(), 0, 0, 0, -1
while True:
    ready, _, _ = select.select([taken, sys.stdin], [], [])
    if taken in ready:
        data = taken.recv(65535)
        number = int.from_bytes(data[:8], "big")
        forged += hashlib.blake2b(data[16:] + data[:8], digest_size=8).digest() != data[8:16]
        twice += number in seen
        late += number < last
        last = max(last, number)
        seen.add(number)
    elif sys.stdin in ready:
        print(json.dumps({"seen": len(seen), "twice": twice, "forged": forged, "late": late,
                          "first": min(seen, default=None), "numbers": sorted(seen) if len(sys.argv) > 2 else []}), flush=True)
        break
"""
# Sends numbered datagrams: address, port, first number, how many, how many a second, and sizes to go through.
SEND = """
import hashlib, os, socket, sys, time
address, port, first, count, rate = sys.argv[1], *map(int, sys.argv[2:6])
sizes = [int(size) for size in sys.argv[6:]] or [100]
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
bodies = {size: os.urandom(max(size - 16, 0)) for size in sizes}
begin, failed = time.monotonic(), 0
for n in range(count):
    number = (first + n).to_bytes(8, "big")
    body = bodies[sizes[n % len(sizes)]]
    try:
        out.sendto(number + hashlib.blake2b(body + number, digest_size=8).digest() + body, (address, port))
    except OSError:
        failed += 1
    ahead = begin + n / rate - time.monotonic()
    if ahead > 0.002:
        time.sleep(ahead)
print(failed)
"""
# Keeps what passes an interface: each packet with whether it leaves, until a line comes in.
SEE = """
import select, socket, struct, sys
interface, path = sys.argv[1:]
tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
tap.setsockopt(socket.SOL_SOCKET, 33, 1 << 27)
tap.bind((interface, 3))
print("ready", flush=True)
with open(path, "wb") as kept:
    end = False
    while not end:
        ready, _, _ = select.select([tap, sys.stdin], [], [])
        end = sys.stdin in ready
        tap.setblocking(False)
        while True:
            try:
                packet, sender = tap.recvfrom(65535)
            except BlockingIOError:
                break
            except OSError:
                break
            kept.write(struct.pack("!HBxI", sender[1] & 0xffff, sender[2] == 4, len(packet)) + packet)
print("done", flush=True)
"""


def inside(namespace, *words):
    return ["ip", "netns", "exec", namespace, *words]


def program(namespace, text, *arguments):
    return inside(namespace, sys.executable, "-c", text, *map(str, arguments))


def ip(namespace, *words, check=True):
    return subprocess.run(["ip", "-n", namespace, *words], check=check, capture_output=True, text=True).stdout


class Talker:
    """A program that says `ready`, and its last word when a line comes in."""

    def __init__(self, namespace, text, *arguments):
        words = program(namespace, text, *arguments)
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def end(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        self.process.wait(timeout=20)
        return said


class Count(Talker):
    def __init__(self, namespace, port=9000, numbers=False):
        super().__init__(namespace, COUNT, port, *(["numbers"] if numbers else []))

    def end(self, settle=0.5):
        time.sleep(settle)
        return json.loads(super().end())


def send(namespace, address, first, count, rate=5_000, sizes=(100,), port=9000):
    words = program(namespace, SEND, address, port, first, count, rate, *sizes)
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


class Wire(Talker):
    """What passes an interface of a gateway: a list of (Ethernet type, whether it left, packet)."""

    def __init__(self, namespace="gw-a", interface="wan", name=""):
        self.path = f"{LAB}/wire-{namespace}-{interface}{name}"
        super().__init__(namespace, SEE, interface, self.path)

    def end(self):
        super().end()
        with open(self.path, "rb") as kept:
            bytes_ = kept.read()
        packets, at = [], 0
        while at < len(bytes_):
            kind, leaves, length = struct.unpack_from("!HBxI", bytes_, at)
            packets.append((kind, bool(leaves), bytes_[at + 8:at + 8 + length]))
            at += 8 + length
        return packets


def esp(packets, leaves=True):
    """SPI, sequence number and the eight bytes behind of each ESP packet over IPv4, in UDP too."""
    found = []
    for kind, left, packet in packets:
        if kind != 0x0800 or left != leaves or len(packet) < 44:
            continue
        at = (packet[0] & 15) * 4
        if packet[9] == 17 and packet[at:at + 2] == b"\x11\x94" and packet[at + 8:at + 12] != bytes(4):
            at += 8
        elif packet[9] != 50:
            continue
        if len(packet) >= at + 16:
            found.append(struct.unpack_from("!IIQ", packet, at))
    return found


def in_the_clear(packets):
    """Packets between the sites that are not ESP."""
    sites = (bytes([10, 1]), bytes([10, 2]))
    return [packet for kind, _, packet in packets if kind == 0x0800 and packet[12:14] in sites or packet[16:18] in sites and kind == 0x0800]


def pid_of(letter):
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if b"gateway" in words and f"{LAB}/{letter}.toml".encode() in words and words[0] != b"ip":
            return int(entry)
    return None


def has_ended(pid):
    """Whether all threads of a process are gone, and with them its sockets: its words go earlier."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            state = file.read().rpartition(")")[2].split()[0]
        return state in "ZX" and len(os.listdir(f"/proc/{pid}/task")) <= 1
    except (FileNotFoundError, ProcessLookupError):
        return True


def kill(letter, number=signal.SIGKILL):
    """Ends a gateway, and waits until it has."""
    pid = pid_of(letter)
    assert pid, f"gateway {letter} is not there"
    os.kill(pid, number)
    wait_until(lambda: has_ended(pid), f"the end of gateway {letter}")


def start(letter, wait=True):
    """Starts a gateway again; its log goes on."""
    with open(f"{LAB}/{letter}.log", "ab") as log:
        words = inside(f"gw-{letter}", FOREBAY, "gateway", "--config", f"{LAB}/{letter}.toml")
        process = subprocess.Popen(words, stderr=log)
    if wait:
        wait_until(lambda: "dev fb0" in ip(f"gw-{letter}", "route", "show"), f"gateway {letter}", process)
    return process


def wait_until(true, what, process=None, limit=20):
    end = time.monotonic() + limit
    while not true():
        if time.monotonic() > end or process and process.poll() is not None:
            sys.exit(f"{what}: not in time; the logs say\n{log('a')[-3000:]}\n{log('b')[-3000:]}")
        time.sleep(0.02)


def log(letter):
    with open(f"{LAB}/{letter}.log", encoding="utf-8", errors="replace") as file:
        return file.read()


def ask(letter, *words):
    """What a gateway says over its control socket."""
    try:
        control = socket.socket(socket.AF_UNIX)
        control.settimeout(10)
        control.connect(f"{LAB}/{letter}.sock")
        control.sendall(json.dumps({"request": words[0]}).encode() + b"\n")
        return json.loads(control.makefile().readline())
    finally:
        control.close()


def drops(letter):
    return ask(letter, "status")["drops"]


def reload(letter, check=True):
    words = [FOREBAY, "reload", "--socket", f"{LAB}/{letter}.sock"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def edit(letter, old, new):
    path = f"{LAB}/{letter}.toml"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert old in text, f"{old!r} is not in {path}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))


def file_of(letter):
    with open(f"{LAB}/{letter}.toml", encoding="utf-8") as file:
        return file.read()


def looked_after(letter):
    """Has another program delete a gateway's rules and routes: they are back, with a line of log each. The longest that
    it took."""
    space, took = f"gw-{letter}", []
    nft = lambda *words: subprocess.run(inside(space, "nft", *words), capture_output=True, text=True, check=False)
    guard = ask(letter, "status")["guard"]
    assert guard["state"] == "on" and guard["blackholes"] > 0, guard
    rules = lambda: [line for line in nft("list", "table", "inet", "forebay_fb0").stdout.splitlines() if "packets" not in line]
    holes = lambda: [line for line in ip(space, "route").splitlines() if "blackhole" in line]
    wanted = (rules(), holes())
    assert wanted[0] and len(wanted[1]) == guard["blackholes"], wanted
    for what in (["flush", "ruleset"], ["flush", "set", "inet", "forebay_fb0", "remote4"], None):
        lines, began = log(letter).count("installed again"), time.monotonic()
        if what:
            assert nft(*what).returncode == 0, what
        else:
            ip(space, "route", "flush", "type", "blackhole")
        wait_until(lambda: (rules(), holes()) == wanted, f"rules and routes of gateway {letter} after {what}")
        took.append(time.monotonic() - began)
        wait_until(lambda: log(letter).count("installed again") == lines + 1, "a line in the log")
    now = ask(letter, "status")["guard"]
    assert now["restored"] == guard["restored"] + 2 and now["routes_restored"] >= guard["routes_restored"] + len(wanted[1]), now
    return max(took)


def no_offloads(namespace, interface):
    """Has an interface carry packets as they are on a wire: with checksums, none of them a train."""
    text = """
import array, fcntl, socket, struct, sys
control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for command in (0x17, 0x1f, 0x24):  # ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO
    value = array.array("B", struct.pack("II", command, 0))
    try:
        fcntl.ioctl(control, 0x8946, struct.pack("16sP", sys.argv[1].encode(), value.buffer_info()[0]))
    except OSError:
        pass
"""
    subprocess.run(program(namespace, text, interface), check=True)


def balance(letter):
    """Packets that a gateway received and what became of them: the two sums are equal when no packet is in flight."""
    status = ask(letter, "status")
    links, engines = status["links"], status["engines"]
    assert all(engine["in_flight"] == 0 for engine in engines), engines
    into = sum(link["packets_in"] for link in links)
    own = sum(engine["answers"] + engine["keepalives"] for engine in engines)
    # What was lost before it was taken is not among what came.
    sent_not = lambda link: sum(count for reason, count in link["drops"].items() if reason not in BEFORE)
    out = sum(link["packets_out"] + sent_not(link) + link["queue"] for link in links)
    return into + own, out + sum(status["drops"].values())
