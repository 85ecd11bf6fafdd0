#!/usr/bin/env python3
"""The live page of a running gateway: who may ask, what is sent, and what clients cost that are slow, silent, broken or many.

Runs in the laboratory, whose namespaces the kernel takes away; with many SAs an event is long, so that a client that does not
read is seen soon:

    TUNNELS=50 scripts/lab.sh FOREBAY run tests/gateway/page.py [--costs [SECONDS]]

`--costs` measures only: CPU time of the gateway's threads with no page, and with 0, 1 and 20 browsers, idle and under traffic.
"""

import base64
import ctypes
import glob
import json
import os
import random
import re
import select
import socket
import subprocess
import sys
import time

from lab import HOST_B, LAB, Count, ask, file_of, log, pid_of, program, reload, send, wait_until

PORT, CLIENTS = 9465, 20
HERE = ("127.0.0.1", PORT)
TOKEN = "0123456789abcdef-of-the-page"
POLICY = """
[[policy]]
name = "sites"
direction = "out"
action = "protect"
sa = "to-peer"
local_ts = ["10.1.0.0/16"]
remote_ts = ["10.2.0.0/24"]
"""
# Everything that clients were told.
TOLD = bytearray()


def enter(namespace):
    """From now on the sockets of this process are of a namespace."""
    with open(f"/run/netns/{namespace}", "rb") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0x40000000):  # CLONE_NEWNET
            raise OSError(ctypes.get_errno(), f"setns {namespace}")


def page(lines):
    """Makes gateway A run with this `[page]`, or without."""
    before = file_of("a").split("\n[page]")[0]
    with open(f"{LAB}/a.toml", "w", encoding="utf-8") as file:
        file.write(before + ("" if lines is None else f"\n[page]\n{lines}\n"))
    return reload("a", check=False)


def connect(address=HERE, seconds=10, buffer=None):
    one = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    if buffer:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    one.settimeout(seconds)
    one.connect(address)
    return one


def get(path, *fields, address=HERE, method="GET", host="localhost"):
    """Status, head and body of an answer."""
    with connect(address) as one:
        lines = [f"{method} {path} HTTP/1.1", *([f"Host: {host}"] if host else []), *fields]
        one.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return answer(one)


def answer(one):
    text = b""
    while some := one.recv(65536):
        text += some
    TOLD.extend(text)
    head, _, body = text.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), body


class Watcher:
    """A browser that watches."""

    def __init__(self, address=HERE, buffer=None):
        self.socket = connect(address, buffer=buffer)
        self.socket.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.text, self.messages, self.ended = b"", [], False

    def status(self):
        while b"\r\n\r\n" not in self.text:
            self.read()
        head, _, self.text = self.text.partition(b"\r\n\r\n")
        return int(head.split()[1])

    def read(self):
        some = self.socket.recv(1 << 18)
        TOLD.extend(some)
        self.ended |= not some
        self.text += some
        *whole, self.text = self.text.split(b"\n\n") if b"HTTP" not in self.text[:4] else [self.text]
        for message in whole:
            event, data = message.decode().split("\n", 1)
            self.messages.append((event.removeprefix("event: "), json.loads(data.removeprefix("data: "))))

    def of(self, kind):
        return [data for event, data in self.messages if event == kind]

    def until(self, true, what, seconds=30):
        end = time.monotonic() + seconds
        while not true(self):
            assert time.monotonic() < end and not self.ended, f"{what}: {self.messages[-3:]}"
            if select.select([self.socket], [], [], 0.1)[0]:
                self.read()
        return self


def memory():
    with open(f"/proc/{pid_of('a')}/status", encoding="utf-8") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) >> 10


def threads():
    return len(os.listdir(f"/proc/{pid_of('a')}/task"))


def free():
    """Whether a place is free to watch from."""
    return get("/events", method="HEAD")[0] == 200


# ---- Checks.


def who_may_ask():
    """On loopback a browser that asks for this host; beyond it only with the token."""
    done = page('listen = "0.0.0.0:9465"')
    assert done.returncode == 2 and "every host that can reach 0.0.0.0:9465 could read the live page" in done.stdout + done.stderr, done
    assert page('listen = "127.0.0.1:9465"').returncode == 0
    assert get("/")[0] == 200 and get("/page.js")[0] == 200 and get("/nothing")[0] == 404 and get("/", method="PUT")[0] == 405
    assert get("/", host="evil.example")[0] == get("/events", host=f"evil.example:{PORT}")[0] == get("/", host=None)[0] == 421
    assert get("/events", "Sec-Fetch-Site: cross-site")[0] == 403
    # A Unix socket, with the permissions of the control socket.
    path = f"{LAB}/page.sock"
    assert page(f'listen = "{path}"').returncode == 0
    wait_until(lambda: os.path.exists(path), "the socket of the page")
    assert get("/", address=path)[0] == 200 and os.stat(path).st_mode & 0o777 == 0o600
    with socket.socket() as nobody:
        assert nobody.connect_ex(HERE) != 0, "the old address still listens"
    # From host A, beyond loopback.
    with open(f"{LAB}/page.token", "w", encoding="utf-8") as file:
        file.write(TOKEN)
    assert page(f'listen = "10.1.0.1:{PORT}"\ntoken_file = "{LAB}/page.token"').returncode == 0
    assert not os.path.exists(path)
    text = f"""
import base64, http.client, sys
def get(path, **fields):
    one = http.client.HTTPConnection("10.1.0.1", {PORT}, timeout=10)
    one.request("GET", path, headers=fields)
    answer = one.getresponse()
    return answer.status, answer.getheaders(), answer.read()
for path in ("/", "/page.js", "/page.css", "/plot.js", "/events", "/metrics", "/../etc/passwd"):
    for shown in ({{}}, {{"Authorization": "Bearer {TOKEN[:-1]}"}}, {{"Authorization": "Basic e30="}}, {{"Cookie": "token={TOKEN}"}}):
        status, fields, body = get(path, **shown)
        assert status == 401 and body == b"the token of `token_file` is required\\n", (path, status, body)
for shown in ("Bearer {TOKEN}", "Basic " + base64.b64encode(b"me:{TOKEN}").decode()):
    assert get("/", Authorization=shown)[0] == 200
assert get("/", Authorization="Bearer {TOKEN}", Host="evil.example")[0] == 421
print("right")
"""
    done = subprocess.run(program("host-a", text), capture_output=True, text=True)
    assert done.stdout == "right\n", done
    # Without the section there is nothing.
    assert page(None).returncode == 0
    assert subprocess.run(program("host-a", f"import socket; socket.create_connection(('10.1.0.1', {PORT}), 3)"), capture_output=True).returncode
    assert page('listen = "127.0.0.1:9465"').returncode == 0


def odd_clients():
    """Garbage, silence and drops of bytes keep nobody out, and the gateway as it was."""
    pid, before, chance = pid_of("a"), memory(), random.Random(1)
    kept = []
    for number in range(300):
        one = connect()
        kinds = [b"", b"GET / HT", b"GET / HTTP/1.1\r\n" * 3, b"\x16\x03\x01\x02\x00\x01", b"GET /" + b"a" * 20_000, chance.randbytes(200), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
        try:
            one.sendall(kinds[number % len(kinds)])
        except OSError:
            pass
        kept.append(one)
    slow = connect()
    for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 40:
        try:
            slow.sendall(bytes([byte]))
        except OSError:
            break
        time.sleep(0.1)
        if byte == ord("y"):
            assert get("/")[0] == 200
    slow.settimeout(10)
    try:
        assert not slow.recv(100).startswith(b"HTTP/1.1 200"), "a request that takes longer than its time"
    except OSError:
        pass
    assert get("/")[0] == 200 and pid_of("a") == pid
    for one in kept:
        one.close()
    grown = memory() - before
    assert grown < 16, f"{grown} MiB more after clients that were odd"
    print(f"page: 300 odd clients; memory grew by {grown} MiB")


def many_watch():
    """Twenty browsers see the traffic, the next is told why it does not, and one that comes later sees what was."""
    tasks = threads()
    watchers = [Watcher() for _ in range(CLIENTS)]
    assert [one.status() for one in watchers] == [200] * CLIENTS
    status, head, body = get("/events")
    assert status == 503 and b"20 browsers watch already" in body and "Retry-After" in head, body
    assert get("/")[0] == 200
    counter, sender = Count("host-b"), send("host-a", HOST_B, 0, 12_000, 2_000)
    for one in watchers:
        one.until(lambda one: any(max(link["received"][0] for link in now["links"]) > 500 for now in one.of("now")), "traffic")
    sender.wait()
    assert counter.end()["seen"] == 12_000
    for one in watchers:
        one.until(lambda one: any(point["links"]["fb0"][0] > 0 for point in one.of("point")), "a point")
    now = watchers[0].of("now")[-1]
    tunnels = len(ask("a", "status")["sas"])
    assert now["all_sas"] == tunnels and len(now["sas"]) == min(100, tunnels) and now["processors"] and now["guard"]["state"], now
    assert reload("a").returncode == 0
    watchers[0].until(lambda one: any("reloaded" in event["text"] for event in one.of("happened")), "the reload")
    text = file_of("a")
    with open(f"{LAB}/a.toml", "a", encoding="utf-8") as file:
        file.write("nonsense = 1\n")
    assert reload("a", check=False).returncode == 2
    with open(f"{LAB}/a.toml", "w", encoding="utf-8") as file:
        file.write(text)
    watchers[1].until(lambda one: any(event["bad"] and "refused" in event["text"] for event in one.of("happened")), "the refused reload")
    watchers.pop().socket.close()
    wait_until(free, "a place")
    later = Watcher()
    assert later.status() == 200
    later.until(lambda one: one.of("now") and one.of("point") and len(one.of("happened")) >= 2, "what was before")
    for one in [*watchers, later]:
        one.socket.close()
    wait_until(lambda: threads() <= tasks, "the end of those that watched")
    seen = sum(len(one.messages) for one in watchers)
    print(f"page: {CLIENTS} browsers were told {seen} messages; the next was refused")


def deafen(deaf):
    """One more browser that reads the first words of an answer, if it gets a place."""
    one = connect(buffer=4096)
    one.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    if one.recv(12) == b"HTTP/1.1 200":
        deaf.append(one)


def who_does_not_read():
    """Browsers that take nothing lose their places, and the gateway keeps nothing for them."""
    before, tasks = memory(), threads()
    deaf = []
    wait_until(lambda: len(deaf) == CLIENTS or deafen(deaf), "places for browsers that do not read")
    assert not free(), "who does not read has a place at first"
    began = time.monotonic()
    wait_until(free, "a place of a browser that does not read", limit=120)
    took = time.monotonic() - began
    wait_until(lambda: threads() <= tasks, "the threads of browsers that do not read", limit=120)
    grown = memory() - before
    assert grown < 16, f"{grown} MiB more for browsers that do not read"
    for one in deaf:
        one.close()
    print(f"page: browsers that do not read have lost their places after {took:.0f} s; memory grew by {grown} MiB")


def no_secrets():
    """No key in any form, and no address of the sites, in all that was told; with `addresses` the networks of policies are."""
    keys = glob.glob(f"{LAB}/*.key")
    # A remedy has an example.
    told = bytes(TOLD).lower().replace(b"10.2.0.0/16[icmp]", b"")
    assert len(keys) > 1 and len(told) > 100_000
    for path in sorted(keys)[:20]:
        with open(path, encoding="utf-8") as file:
            text = file.read().strip()
        raw = bytes.fromhex(text)
        for part in (raw[:8], raw[-8:], text[:12].encode(), text[-12:].encode(), base64.b64encode(raw[:12])[:14].lower()):
            assert part.lower() not in told, path
    assert TOKEN.encode() not in told
    found = re.search(rb"\b10\.[12]\.\d+\.\d+", told)
    assert not found, f"an address of a site: {told[found.start() - 60:found.end() + 20]}"
    page(f'listen = "127.0.0.1:9465"\naddresses = true\n{POLICY}')
    one = Watcher()
    assert one.status() == 200
    networks = [network for now in one.until(lambda one: one.of("now"), "now").of("now")[:1] for policy in now["policies"] for network in policy["local"]]
    assert networks == ["10.1.0.0/16"], networks
    one.socket.close()


# ---- Costs.


def cpu():
    """CPU time of the gateway's threads in seconds, those of the page and all others."""
    of_page = others = 0.0
    for path in glob.glob(f"/proc/{pid_of('a')}/task/*/stat"):
        try:
            with open(path, encoding="utf-8") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(") ")
            with open(path.replace("/stat", "/schedstat"), encoding="utf-8") as file:
                took = int(file.read().split()[0]) / 1e9
        except OSError:
            continue
        if name in ("forebay-look", "forebay-page"):
            of_page += took
        else:
            others += took
    return of_page, others


def drain(watchers, end):
    while time.monotonic() < end:
        for one in select.select(watchers, [], [], 0.2)[0]:
            one.recv(1 << 20)


def costs(seconds):
    print(f"{'':24} {'page, % of a core':>18} {'others, % of a core':>20} {'packets/s':>12}")
    for traffic in (False, True):
        for clients in (None, 0, 1, CLIENTS):
            page(None if clients is None else 'listen = "127.0.0.1:9465"')
            watchers = [Watcher() for _ in range(clients or 0)]
            assert all(one.status() == 200 for one in watchers)
            flood = None
            if traffic:
                text = f"import socket\nout = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nwhile True: out.sendto(bytes(400), ('{HOST_B}', 9))"
                flood = subprocess.Popen(program("host-a", text))
                time.sleep(1)
            packets = lambda: sum(link["packets_in"] for link in ask("a", "status")["links"] if link["side"] == "inside")
            (page_before, before), sent, began = cpu(), packets(), time.monotonic()
            drain([one.socket for one in watchers], began + seconds)
            (page_after, after), took = cpu(), time.monotonic() - began
            rate = (packets() - sent) / took
            name = f"{'traffic' if traffic else 'idle'}, " + ("no page" if clients is None else f"{clients} browsers")
            print(f"{name:24} {100 * (page_after - page_before) / took:18.3f} {100 * (after - before) / took:20.2f} {rate:12,.0f}", flush=True)
            if flood:
                flood.kill()
                flood.wait()
            for one in watchers:
                one.socket.close()
            time.sleep(1.5)


def main():
    enter("gw-a")
    if "--costs" in sys.argv:
        return costs(float(sys.argv[-1]) if sys.argv[-1] != "--costs" else 20)
    for check in (who_may_ask, odd_clients, many_watch, who_does_not_read, no_secrets):
        check()
    assert "panicked" not in log("a"), log("a")
    print("page: right")


if __name__ == "__main__":
    main()
