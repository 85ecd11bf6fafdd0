#!/usr/bin/env python3
"""Two gateways and the hosts behind them: what arrives, what is seen between them, what survives a reload.

Runs in the laboratory, whose namespaces the kernel takes away:

    scripts/lab.sh FOREBAY run tests/gateway/two_sites.py
"""

import json
import os
import signal
import subprocess
import sys
import time

FOREBAY, LAB = os.environ["FOREBAY"], os.environ["LAB"]
HOST_A, HOST_B = "10.1.0.10", "10.2.0.10"
SIZES = [0, 1, 2, 3, 100, 1371, 1372, 1373, 1400, 1472, 1473, 3000, 8972, 9000, 20000]

# Programs of the hosts, which know nothing of gateways.
SERVE = """
import hashlib, socket, sys
server = socket.create_server(("0.0.0.0", 7001))
echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); echo.bind(("0.0.0.0", 7002))
import threading
def answer():
    while True:
        data, sender = echo.recvfrom(65535)
        echo.sendto(data, sender)
threading.Thread(target=answer, daemon=True).start()
print("ready", flush=True)
while True:
    client, _ = server.accept()
    digest, length = hashlib.sha256(), 0
    want = int.from_bytes(client.recv(8, socket.MSG_WAITALL), "big")
    while length < want:
        data = client.recv(1 << 16)
        digest.update(data); length += len(data)
    client.sendall(digest.digest())
    client.close()
"""
SEND = """
import hashlib, os, socket, sys
data = os.urandom(int(sys.argv[2]))
# Times are for machines that do something else as well. The kernel tries a connection again after 1, 3, 7 and 15 s.
peer = socket.create_connection((sys.argv[1], 7001), timeout=40)
peer.settimeout(60)
peer.sendall(len(data).to_bytes(8, "big") + data)
assert peer.recv(32, socket.MSG_WAITALL) == hashlib.sha256(data).digest(), "other bytes arrived"
"""
ASK = """
import os, socket, sys
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); peer.settimeout(0.5)
for size in map(int, sys.argv[2:]):
    data = os.urandom(size)
    # After a kill the numbers of about a second are refused, because they may have been seen: many are sent.
    for attempt in range(60):
        for _ in range(1 if attempt == 0 else 50):
            peer.sendto(data, (sys.argv[1], 7002))
        try:
            # What is left of the size before is passed over.
            while len(got := peer.recv(65535)) != size:
                pass
            assert got == data, f"{size} bytes came back changed"
            break
        except TimeoutError:
            pass
    else:
        sys.exit(f"{size} bytes did not come back")
"""


def inside(namespace, *words):
    return ["ip", "netns", "exec", namespace, *words]


def program(namespace, text, *arguments):
    return inside(namespace, sys.executable, "-c", text, *map(str, arguments))


def run(*arguments, timeout=120):
    subprocess.run(program(*arguments), check=True, timeout=timeout)


def ask(*words):
    done = subprocess.run([FOREBAY, *words, "--socket", f"{LAB}/a.sock", "--json"], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def packets(direction):
    sas = ask("show", "sas")["sas"]
    return next(sa["packets"] for sa in sas if sa["direction"] == direction)


class Wire:
    """What passes between the gateways, seen by a packet socket in gateway A's namespace."""

    SEE = """
import socket, sys
tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
tap.bind(("wan", 0x0800)); tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
print("ready", flush=True)
seen, clear = 0, 0
tap.settimeout(0.2)
import select
while not select.select([sys.stdin], [], [], 0)[0]:
    try:
        packet = tap.recv(65535)
    except TimeoutError:
        continue
    seen += 1
    esp_in_udp = packet[9] == 17 and packet[12:15] == bytes([192, 0, 2])
    esp = packet[9] == 50 and packet[12:15] == bytes([192, 0, 2])
    clear += not (esp_in_udp or esp)
print(seen, clear, flush=True)
"""

    def __init__(self):
        words = program("gw-a", self.SEE)
        self.seer = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.seer.stdout.readline() == "ready\n"

    def end(self):
        self.seer.stdin.write("\n")
        self.seer.stdin.flush()
        seen, clear = map(int, self.seer.stdout.readline().split())
        self.seer.wait()
        return seen, clear


def gateway_of(letter):
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except (OSError, NotADirectoryError):
            continue
        if b"gateway" in words and f"{LAB}/{letter}.toml".encode() in words and b"ip" != words[0]:
            return int(entry)
    raise SystemExit(f"gateway {letter} is not there")


def start(letter):
    """Starts a gateway by its file of the laboratory, and waits until it answers."""
    with open(f"{LAB}/{letter}.log", "a", encoding="utf-8") as log:
        words = inside(f"gw-{letter}", FOREBAY, "gateway", "--config", f"{LAB}/{letter}.toml")
        gateway = subprocess.Popen(words, stderr=log)
    for _ in range(100):
        asked = subprocess.run([FOREBAY, "status", "--socket", f"{LAB}/{letter}.sock"], capture_output=True)
        if asked.returncode == 0:
            return
        assert gateway.poll() is None, f"gateway {letter} did not start: " + open(f"{LAB}/{letter}.log", encoding="utf-8").read()
        time.sleep(0.1)
    raise SystemExit(f"gateway {letter} did not start")


def main():
    servers = [subprocess.Popen(program(name, SERVE), stdout=subprocess.PIPE, text=True) for name in ("host-a", "host-b")]
    for server in servers:
        assert server.stdout.readline() == "ready\n"
    wire = Wire()
    run("host-a", ASK, HOST_B, *SIZES)
    run("host-b", ASK, HOST_A, *SIZES)
    run("host-a", SEND, HOST_B, 20_000_000)
    run("host-b", SEND, HOST_A, 20_000_000)
    seen, clear = wire.end()
    assert seen > 100 and clear == 0, f"{clear} of {seen} packets between the gateways are not ESP"
    print(f"two sites: datagrams of {len(SIZES)} sizes and 20 MB by TCP, both ways; {seen} trains of packets on the wire, all ESP")

    # A reload leaves what did not change alone.
    out, into = packets("out"), packets("in")
    assert out > 1_000 and into > 1_000
    with open(f"{LAB}/a.toml", "a", encoding="utf-8") as file:
        file.write('\n[log]\nlevel = "debug"\n')
    subprocess.run([FOREBAY, "reload", "--socket", f"{LAB}/a.sock"], check=True, stdout=subprocess.DEVNULL)
    run("host-a", ASK, HOST_B, 100)
    assert packets("out") > out and packets("in") > into, "SAs began anew"
    # A broken file changes nothing.
    with open(f"{LAB}/a.toml", "a", encoding="utf-8") as file:
        file.write("replay = 5\n")
    refused = subprocess.run([FOREBAY, "reload", "--socket", f"{LAB}/a.sock"], capture_output=True)
    assert refused.returncode != 0, "a broken file was taken"
    run("host-a", ASK, HOST_B, 100)
    print("two sites: a reload kept the SAs, a broken file changed nothing")

    # Link down and up.
    subprocess.run(["ip", "-n", "gw-a", "link", "set", "wan", "down"], check=True)
    time.sleep(0.3)
    subprocess.run(["ip", "-n", "gw-a", "link", "set", "wan", "up"], check=True)
    run("host-a", ASK, HOST_B, 100, 1400)
    print("two sites: the link was down and is up again")

    # Strangers' packets between the gateways, while traffic runs.
    noise = """
import os, random, socket
random.seed(5)
raw = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); raw.bind(("192.0.2.2", 0))
for n in range(20000):
    raw.sendto(random.choice([b"", os.urandom(4), (0x2001).to_bytes(4, "big")]) + os.urandom(random.randrange(200)), ("192.0.2.1", 4500))
"""
    storm = subprocess.Popen(program("gw-b", noise))
    run("host-a", ASK, HOST_B, *SIZES)
    storm.wait(timeout=30)
    drops = ask("status")["drops"]
    assert sum(drops.values()) > 0 or os.environ.get("ENCAPSULATION") == "none", drops
    print(f"two sites: {sum(drops.values())} packets of strangers dropped, each with its reason: {drops}")

    # Without its gateway nothing leaves in the clear.
    wire = Wire()
    os.kill(gateway_of("a"), signal.SIGKILL)
    time.sleep(0.3)
    asked = subprocess.run(program("host-a", ASK, HOST_B, 100), capture_output=True)
    _, clear = wire.end()
    assert asked.returncode != 0 and clear == 0, f"{clear} packets left in the clear"
    print("two sites: a gateway that was killed lets nothing out in the clear")
    for server in servers:
        server.kill()


if __name__ == "__main__":
    main()
