#!/usr/bin/env python3
"""Keys of the gateway's file, one after the other: what a running gateway does with the key and what it does without it differ, where the table
of keys (crates/cli/tests/keys/gateway.toml) says.

Runs in the laboratory, whose namespaces the kernel takes away; names of keys, if there are some, are all that are looked at:

    scripts/lab.sh FOREBAY run tests/gateway/keys.py [KEY...]
"""

import ctypes
import glob
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import tomllib

from lab import FOREBAY, HOST_B, LAB, Wire, inside, ip, kill, pid_of, program

TABLE = os.path.join(os.path.dirname(__file__), "../../crates/cli/tests/keys/gateway.toml")
CONFIG, LOG = f"{LAB}/a.toml", f"{LAB}/a.log"
# Faster than any packet that a slow processor has delayed; of many packets without delay one at least is faster, whatever else the machine does.
SLOW_MS = 5


def edited(text, section, kind, sets):
    """The text with lines in the first section of that kind, in the place of those of the same key; a line without a value takes the key
    away. The same as the table's other tests do."""
    lines = text.strip().splitlines()
    begins = [at for at, line in enumerate(lines) if line.startswith("[")] + [len(lines)]
    at, end = 0, begins[0]
    if section:
        for begin, after in zip(begins, begins[1:]):
            kinds = [line for line in lines[begin:after] if re.match(r"(kind|source) =", line)]
            of_kind = not kind or not kinds or kinds[0].endswith(f'= "{kind}"')
            if lines[begin] in (f"[[{section}]]", f"[{section}]") and of_kind:
                at, end = begin + 1, after
                break
        else:
            lines.append(f"[{section}]")
            at = end = len(lines)
    body = lines[at:end]
    for line in sets:
        name, value = (part.strip() for part in line.split("=", 1))
        body = [one for one in body if one.split("=")[0].strip() != name]
        body += [line] if value else []
    return "\n".join(lines[:at] + body + lines[end:]) + "\n"


def start(text):
    """Starts gateway A with this file, and waits until its control socket answers."""
    if pid_of("a"):
        kill("a", signal.SIGTERM)
    for folder in glob.glob(f"{LAB}/taps*"):
        shutil.rmtree(folder)
    with open(CONFIG, "w", encoding="utf-8") as file:
        file.write(text)
    socket_path = tomllib.loads(text)["control"]["socket"]
    with open(LOG, "wb") as log:
        process = subprocess.Popen(inside("gw-a", FOREBAY, "gateway", "--config", CONFIG), stderr=log)
    for _ in range(3_000):
        try:
            return status(socket_path)
        except OSError:
            assert process.poll() is None, f"the gateway ended: {read(LOG)}\n{text}"
            time.sleep(0.02)
    process.kill()
    process.wait()
    raise AssertionError(f"the gateway does not answer: {read(LOG)}")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def settings():
    return tomllib.loads(read(CONFIG))


def status(path=None):
    with socket.socket(socket.AF_UNIX) as control:
        control.settimeout(10)
        control.connect(path or settings()["control"]["socket"])
        control.sendall(b'{"request": "status"}\n')
        return json.loads(control.makefile().readline())


def ping(count, *words, interval=0.003):
    """Round trips of packets from host A to host B, in ms."""
    words = inside("host-a", "ping", "-n", "-c", str(count), "-i", str(interval), "-W", "3", *map(str, words), HOST_B)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return [float(time_ms) for time_ms in re.findall(r"time=([\d.]+) ms", done.stdout)]


# What is looked at.


def interface(*_):
    """The TUN interface with all that the kernel says of it."""
    name = settings()["inside"].get("name", "forebay0")
    found = json.loads(ip("gw-a", "-d", "-j", "addr", "show", "dev", name, check=False) or "[{}]")[0]
    addresses = [one["local"] for one in found.get("addr_info", []) if one["scope"] == "global"]
    info = found.get("linkinfo", {}).get("info_data", {})
    return found.get("ifname"), found.get("mtu"), found.get("txqlen"), found.get("numtxqueues"), info, addresses


def routes(*_):
    return [line for line in ip("gw-a", "route").splitlines() if "fb0" in line or "blackhole" in line]


def routes_afterwards(*_):
    """Routes and rules that a gateway leaves behind."""
    kill("a", signal.SIGTERM)
    return routes(), tables()


def tables(*_):
    return subprocess.run(inside("gw-a", "nft", "list", "tables"), capture_output=True, text=True, check=True).stdout


def links(*_):
    return [(link["name"], link["side"]) for link in status()["links"]]


def sockets(*_):
    """The sockets of the process, with what is set for each."""
    libc = ctypes.CDLL(None, use_errno=True)
    pid = pid_of("a")
    process = os.pidfd_open(pid)
    found = set()
    options = [(socket.SOL_SOCKET, socket.SO_MARK), (socket.SOL_SOCKET, socket.SO_RCVBUF), (socket.SOL_SOCKET, socket.SO_SNDBUF),
               (socket.SOL_SOCKET, socket.SO_REUSEPORT), (socket.IPPROTO_UDP, 104)]  # UDP_GRO
    time.sleep(0.3)
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            if not os.readlink(f"/proc/{pid}/fd/{number}").startswith("socket:"):
                continue
        except FileNotFoundError:
            continue
        copied = libc.syscall(438, process, int(number), 0)  # pidfd_getfd
        if copied < 0:
            continue
        with socket.socket(fileno=copied) as one:
            if one.family not in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_UNIX):
                continue
            values = []
            for level, option in options:
                try:
                    values.append(one.getsockopt(level, option))
                except OSError:
                    values.append(None)
            name = one.getsockname()
            name = None if one.family in (socket.AF_NETLINK, socket.AF_UNIX) else name
            found.add((int(one.family), int(one.type), one.proto, str(name), tuple(values)))
    os.close(process)
    return sorted(found, key=str)


def longest_packet(*_):
    """Whether packets leave in batches that the kernel cuts."""
    wire = Wire("gw-a", "wan")
    for _ in range(5):
        ping(200, "-s", 1000, "-l", 100, interval=0)
    return max(len(packet) for _, leaves, packet in wire.end() if leaves) > 1500


def keepalives(*_):
    wire = Wire("gw-a", "wan")
    time.sleep(3)
    return any(leaves and len(packet) == 29 and packet[28] == 0xff for _, leaves, packet in wire.end())


def mss(*_):
    """The segment size that a TCP connection through the tunnel has."""
    text = """
import socket
server = socket.create_server(("0.0.0.0", 7009))
print("ready", flush=True)
client, _ = server.accept()
print(client.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG), flush=True)
"""
    with subprocess.Popen(program("host-b", text), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline() == "ready\n"
        connect = f"import socket; socket.create_connection(({HOST_B!r}, 7009), timeout=10)"
        subprocess.run(program("host-a", connect), check=True)
        return server.stdout.readline()


def processors(*_):
    return [(one["name"], one["kind"]) for one in status()["processors"]]


def shares(*_):
    """The processors that small packets and large ones go to."""
    found = []
    for size in (40, 1200):
        before = {one["name"]: one["packets"] for one in status()["processors"]}
        ping(60, "-s", size)
        after = {one["name"]: one["packets"] for one in status()["processors"]}
        found.append({name for name, count in after.items() if count - before[name] > 15})
    return found


def is_slow(*words):
    """Whether every packet is delayed on its way."""
    ping(5, *words)
    return min(ping(25, "-s", 1200, *words, interval=0.03)) > SLOW_MS


def is_slow_of_class_ef(*_):
    return is_slow("-Q", 0xb8)


def bundles(*_):
    """Whether several packets are one job."""
    before = status()["processors"][0]
    ping(300, "-l", 60, interval=0)
    after = status()["processors"][0]
    return after["packets"] - before["packets"] > 1.3 * (after["jobs"] - before["jobs"])


def audits(*_):
    """How many results of another processor the running core computes again."""
    ping(100)
    return sum(engine["audits"] for engine in status()["engines"]) > 20


def late(*_):
    """Whether jobs have been late, or were taken from a processor."""
    ping(200, "-s", 400)
    return any(one["late"] or one["removals"] for one in status()["processors"]), any(engine["redone"] for engine in status()["engines"])


def link_programs(*_):
    """The programs of AF_XDP at the interfaces between the gateways and to the site."""
    shown = [json.loads(ip("gw-a", "-d", "-j", "link", "show", "dev", device))[0].get("xdp", {}) for device in ("wan", "lan")]
    return [(found.get("mode"), bool(found)) for found in shown]


def starts(*_):
    """That the gateway starts; what it says otherwise is for other tests."""
    return True


def inside_packets(*_):
    """Whether packets to the other site come in."""
    ping(3, interval=0.1)
    return sum(link["packets_in"] for link in status()["links"] if link["side"] == "inside") > 0


def taken_at_4501(*_):
    """Whether the link `card` takes what comes to port 4501."""
    text = """
import socket
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(20):
    out.sendto((0x2001).to_bytes(4, "big") + (n + 1).to_bytes(4, "big") + bytes(60), ("192.0.2.1", 4501))
"""
    subprocess.run(program("gw-b", text), check=True)
    time.sleep(0.5)
    return sum(link["packets_in"] for link in status()["links"] if link["name"].startswith("card")) > 0


def kernel_policies(*_):
    """Of policies of the kernel without a mark, with one, and with an interface ID, those that the gateway has."""
    policy = lambda number: ["src", "10.1.0.0/16", "dst", f"10.{number}.0.0/16", "dir", "out"]
    marks = (["mark", "0x42", "mask", "0xffffffff"], ["if_id", "3"], [])
    for number, mark in enumerate(marks, 100):
        ip("gw-a", "xfrm", "policy", "add", *policy(number), *mark, "action", "block")
    time.sleep(1)
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(settings()["control"]["socket"])
        control.sendall(b'{"request": "policies"}\n')
        found = json.loads(control.makefile().readline())
    ip("gw-a", "xfrm", "policy", "flush")
    return sorted(set(re.findall(r"10\.10\d\.", json.dumps(found))))


def alphas(*_):
    return [one["alpha"] for one in status()["processors"]]


def costs(*_):
    """Costs that are declared or were learnt, to one digit."""
    return [[f"{cost['init_s']:.0e} {cost['block_s']:.0e}" for cost in one["costs"]] for one in status()["processors"]]


def affinity(*_):
    time.sleep(0.3)
    found = set()
    for task in glob.glob(f"/proc/{pid_of('a')}/task/*/status"):
        try:
            found.add(re.search(r"Cpus_allowed_list:\t(.*)", read(task))[1])
        except FileNotFoundError:
            continue
    return found


def threads(*_):
    return len(status()["engines"])


def memory(*_):
    """The memory of the process, in steps of 48 MiB."""
    found = re.search(r"VmData:\s+(\d+) kB", read(f"/proc/{pid_of('a')}/status"))
    return int(found[1]) // (48 << 10)


def locked(*_):
    """Whether the memory is locked, or the log says that it cannot be."""
    time.sleep(0.3)
    return "may be swapped out" in read(LOG) or int(re.search(r"VmLck:\s+(\d+) kB", read(f"/proc/{pid_of('a')}/status"))[1]) > 0


def large_packet_arrives(*_):
    return len(ping(2, "-s", 2500, "-M", "dont")) > 0


def control(*_):
    path = settings()["control"]["socket"]
    found = os.stat(path)
    return path, oct(found.st_mode), found.st_gid


def held_connections(*_):
    """Of twelve connections to the control socket, how many the gateway keeps."""
    held = []
    for _ in range(12):
        one = socket.socket(socket.AF_UNIX)
        one.connect(settings()["control"]["socket"])
        one.settimeout(0.2)
        held.append(one)
        time.sleep(0.02)
    kept = 0
    for one in held:
        try:
            one.recv(1)
        except TimeoutError:
            kept += 1
        one.close()
    time.sleep(0.2)
    return kept


def metrics(*_):
    """What a client of the metrics gets without a token."""
    text = """
import urllib.request, urllib.error
try:
    print(urllib.request.urlopen("http://127.0.0.1:9464/metrics", timeout=3).status)
except urllib.error.HTTPError as error:
    print(error.code)
except OSError:
    print("nobody")
"""
    return subprocess.run(program("gw-a", text), capture_output=True, text=True, check=True).stdout


def live_page(*_):
    """What browsers get of the live page at its usual address: by an address, by a name, two that watch, and whether a network of
    a site is shown."""
    text = """
import socket
def ask(path, host, until):
    try:
        one = socket.create_connection(("127.0.0.1", 9465), 3)
    except OSError:
        return None, "nobody", b""
    one.settimeout(10)
    one.sendall(f"GET {path} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode())
    text = b""
    while until not in text and (some := one.recv(65536)):
        text += some
    return one, text[9:12], text
first = ask("/events", "localhost", b"event: now")
second = ask("/events", "localhost", b"event: now")
shown = first[2]
while first[0] and first[1] == b"200" and not shown.endswith(b"\\n\\n"):
    shown += first[0].recv(65536)
print(ask("/", "localhost", b"</html>")[1], ask("/", "gw.example", b"</html>")[1], first[1], second[1], b"10.1.0.0/16" in shown)
"""
    return subprocess.run(program("gw-a", text), capture_output=True, text=True, check=True).stdout


def log_lines(*_):
    """The levels of the log, and whether its lines are JSON."""
    time.sleep(0.2)
    lines = read(LOG).splitlines()
    return {level for level in ("INFO", "WARN", "DEBUG", "TRACE") if any(level in line for line in lines)}, lines and lines[0][:1] == "{"


def audit_lines(*_):
    """How many of 400 packets of an unknown SPI leave a record in the log."""
    text = """
import socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(400):
    time.sleep(0.002)
    out.sendto((0x9999).to_bytes(4, "big") + (n + 1).to_bytes(4, "big") + bytes(60), ("192.0.2.1", 4500))
"""
    subprocess.run(program("gw-b", text), check=True)
    time.sleep(0.5)
    return sum("0x00009999" in line for line in read(LOG).splitlines())


def user(*_):
    return re.search(r"Uid:.*", read(f"/proc/{pid_of('a')}/status"))[0]


def core_limit(*_):
    return re.search(r"Max core file size.*", read(f"/proc/{pid_of('a')}/limits"))[0], os.stat(f"/proc/{pid_of('a')}/mem").st_uid


def state_files(*_):
    folder = os.path.join(LAB, settings()["keys"]["state"])
    return folder, sorted(os.listdir(folder))


def reservations(*_):
    """Whether IVs are reserved anew while packets are sent."""
    folder = os.path.join(LAB, settings()["keys"]["state"])
    before = read(f"{folder}/records.log").count(" i/")
    ping(400, interval=0.001)
    time.sleep(0.5)
    return read(f"{folder}/records.log").count(" i/") != before


def exported(*_):
    return os.path.exists(f"{LAB}/esp_sa")


def captured(*_):
    """Files of captures by side, how large the largest is, and how long its longest record."""
    for _ in range(3):
        ping(100, "-s", 1200, interval=0.001)
    time.sleep(0.5)
    found = sorted(glob.glob(f"{LAB}/taps*/*"))
    sizes = [os.path.getsize(one) for one in found]
    return [re.sub(r"-\d.*", "", one) for one in found], [size // 50_000 for size in sizes]


def observe(key, row, bases, cache):
    """What is seen with the key and without it."""
    base, *sets, look = row
    section, name = key.rsplit(".", 1) if "." in key else ("", key)
    section, kind = re.fullmatch(r"([\w.]*)(?:\[([\w-]+)\])?", section).groups()
    own = [one for one in sets if one.split("=")[0].strip() == name]
    others = [one for one in sets if one not in own]
    assert own, f"the row of {key} does not set it"
    text = cache["file"]
    if base:
        if "inside" in bases[base]:
            text = bases[base]["inside"] + text[text.index("[[outside]]"):]
        text = (text.split("[[sa]]")[0] if bases[base].get("without_sas") else text) + bases[base]["lab"]
    with_others = edited(text, section, kind, others) if others else text
    looked = globals()[look]
    if (with_others, look) not in cache:
        start(with_others)
        cache[with_others, look] = looked()
    try:
        start(edited(text, section, kind, sets))
    except AssertionError:
        # A gateway that is to have what is not there.
        if look == "starts":
            return cache[with_others, look], False
        raise
    return cache[with_others, look], looked()


def prepare():
    """Files that rows name."""
    def costs(names, init_s):
        terms = {"init_s": init_s, "block_s": 1e-6, "residual_s": 0, "r_squared": 1, "points": [[64, init_s]]}
        return json.dumps({"schema": 1, "processors": [{"name": name, "proposal": "aes128gcm16", **terms} for name in names]})

    files = {"token": "0123456789abcdef01234567", "costs.json": costs(("ipsec-mb", "aws-lc"), 2e-3), "low.json": costs(("card",), 1e-3)}
    for name, text in files.items():
        with open(f"{LAB}/{name}", "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(text)


def main():
    prepare()
    with open(TABLE, "rb") as file:
        table = tomllib.load(file)
    cache, wrong, seen = {"file": read(CONFIG)}, [], 0
    for key, row in table["keys"].items():
        began = time.monotonic()
        if row[0] != "lab" or sys.argv[1:] and key not in sys.argv[1:]:
            continue
        try:
            before, after = observe(key, row[1:], table["bases"], cache)
        except (AssertionError, KeyError, OSError, subprocess.SubprocessError) as error:
            wrong.append(f"{key}: {error}")
            continue
        seen += 1
        if "VERBOSE" in os.environ:
            print(f"{key}: {time.monotonic() - began:.1f} s: {str(before)[:200]} | {str(after)[:200]}", flush=True)
        if before == after:
            wrong.append(f"{key}: {row[-1]} is {after} with it and without it")
    assert not wrong, "\n".join(wrong)
    print(f"keys: {seen} of the gateway's file change what was looked at")


if __name__ == "__main__":
    main()
