#!/usr/bin/env python3
"""Several worker cores: every flow arrives whole and in order whichever worker owns its SA, through a reload under
traffic, a peer address change, and to the end.

Runs in the laboratory, with two cores at each gateway and tunnels at home in both:

    QUEUES=2 TUNNELS=4 scripts/lab.sh FOREBAY run tests/gateway/queues.py
"""

import json
import os
import signal
import subprocess
import sys
import time

from two_sites import gateway_of

FOREBAY, LAB = os.environ["FOREBAY"], os.environ["LAB"]
QUEUES, TUNNELS = int(os.environ["QUEUES"]), int(os.environ["TUNNELS"])
HOST_A = "10.1.0.10"
NEAR = [f"10.2.{n}.10" for n in range(TUNNELS)]
FLOWS = 6  # of each tunnel

# Programs of the hosts. Datagrams bear the number of their flow and their own; what is counted is told as JSON.
HEAR = """
import json, select, socket, sys
sockets = []
for address in sys.argv[1:]:
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.bind((address, 7003))
    one.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
    sockets.append(one)
print("ready", flush=True)
last, heard, late = {}, {}, 0
while True:
    readable, _, _ = select.select(sockets + [sys.stdin], [], [])
    for one in readable:
        if one is sys.stdin:
            sys.stdin.readline()
            print(json.dumps({"heard": sum(heard.values()), "flows": len(heard), "late": late}), flush=True)
            last, heard, late = {}, {}, 0
            continue
        data, sender = one.recvfrom(4096)
        if data[8:12] == b"warm":
            one.sendto(data, sender)
            continue
        number = int.from_bytes(data[:8], "big")
        flow = (sender, one.getsockname()[0])
        late += number <= last.get(flow, -1)
        last[flow] = number
        heard[flow] = heard.get(flow, 0) + 1
        if data[8:12] == b"echo":
            one.sendto(data, sender)
"""
SAY = """
import select, socket, sys, time
here, seconds, rate, flows, echo = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
pairs = []
for to in sys.argv[6:]:
    for flow in range(flows):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.bind((here or "0.0.0.0", 0)); one.connect((to, 7003))
        one.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)
        pairs.append(one)
if echo == "echo":
    # The first answer may move a flow to another queue of the TUN interface.
    for one in pairs * 2:
        for _ in range(50):
            one.send(bytes(8) + b"warm")
            one.settimeout(0.2)
            try:
                one.recv(4096)
                break
            except TimeoutError:
                pass
    time.sleep(0.3)
    for one in pairs:
        while select.select([one], [], [], 0)[0]:
            one.recv(4096)
        one.setblocking(True)
start, sent, number = time.monotonic(), 0, 0
came, late, last = 0, 0, {}
def hear():
    global came, late
    for one in pairs:
        while True:
            try:
                answer = int.from_bytes(one.recv(4096, socket.MSG_DONTWAIT)[:8], "big")
            except BlockingIOError:
                break
            came += 1
            late += answer <= last.get(one, -1)
            last[one] = answer
while time.monotonic() - start < seconds:
    while sent < (time.monotonic() - start) * rate:
        for one in pairs:
            size = 40 + (number * 97 + sent * 31) % 1100
            one.send(number.to_bytes(8, "big") + (b"echo" if echo == "echo" else b"once") + bytes(size))
            sent += 1
        number += 1
    if echo == "echo":
        hear()
    time.sleep(0.002)
if echo == "echo":
    for _ in range(100):
        hear()
        if came == sent: break
        time.sleep(0.05)
print(sent, came, late)
"""
SERVE = """
import hashlib, socket, threading
server = socket.create_server(("0.0.0.0", 7001), backlog=64)
print("ready", flush=True)
def serve(client):
    digest, length = hashlib.sha256(), 0
    want = int.from_bytes(client.recv(8, socket.MSG_WAITALL), "big")
    while length < want:
        data = client.recv(1 << 16)
        digest.update(data); length += len(data)
    client.sendall(digest.digest()); client.close()
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""
SEND = """
import hashlib, os, socket, sys
data = os.urandom(int(sys.argv[2]))
peer = socket.create_connection((sys.argv[1], 7001), timeout=60)
peer.sendall(len(data).to_bytes(8, "big") + data)
assert peer.recv(32, socket.MSG_WAITALL) == hashlib.sha256(data).digest(), "other bytes arrived"
"""


def program(namespace, text, *arguments):
    return ["ip", "netns", "exec", namespace, sys.executable, "-c", text, *map(str, arguments)]


def start(namespace, text, *arguments):
    pipe = subprocess.PIPE
    return subprocess.Popen(program(namespace, text, *arguments), stdin=pipe, stdout=pipe, text=True)


def run(*words, **more):
    return subprocess.run(words, check=True, timeout=60, **more)


def status(letter="a"):
    words = [FOREBAY, "status", "--socket", f"{LAB}/{letter}.sock", "--json"]
    return json.loads(run(*words, capture_output=True).stdout)


def sa_packets(document):
    return {(sa["direction"], sa["spi"]): sa["packets"] for sa in document["sas"]}


class Ears:
    """Counts what a host hears."""

    def __init__(self, namespace, *addresses):
        self.program = start(namespace, HEAR, *addresses)
        assert self.program.stdout.readline() == "ready\n"

    def heard(self, wanted, flows, what, lost=0):
        """Asserts that all of it comes, each flow in order."""
        total, seen, late = 0, 0, 0
        for _ in range(100):
            self.program.stdin.write("\n")
            self.program.stdin.flush()
            found = json.loads(self.program.stdout.readline())
            total, late, seen = total + found["heard"], late + found["late"], max(seen, found["flows"])
            if total >= wanted:
                break
            time.sleep(0.1)
        assert wanted - lost <= total <= wanted, f"{what}: {total} of {wanted} datagrams: {drops()}"
        assert late == 0, f"{what}: {late} of {total} datagrams came behind later ones of their flow"
        assert seen == flows or total > wanted // 2, f"{what}: {seen} of {flows} flows"


def drops():
    return {letter: (status(letter)["drops"], [link for link in status(letter)["links"]]) for letter in "ab"}


def traffic(seconds, rate, echo="once"):
    """Datagrams both ways, all flows of all tunnels."""
    there = start("host-a", SAY, "", seconds, rate, FLOWS, echo, *NEAR)
    back = [start("host-b", SAY, near, seconds, rate / TUNNELS, FLOWS, echo, HOST_A) for near in NEAR]
    return there, back


def end(said):
    words = said.communicate(timeout=60)[0].split()
    assert said.returncode == 0
    return tuple(map(int, words))


def all_arrives(ears, talk, what, lost=0):
    there, back = talk
    sent = end(there)[0]
    ears[1].heard(sent, FLOWS * TUNNELS, f"{what}, a to b", lost)
    returned = sum(end(one)[0] for one in back)
    ears[0].heard(returned, FLOWS * TUNNELS, f"{what}, b to a", lost)
    return sent + returned


def both_cores_work():
    for letter in "ab":
        document = status(letter)
        cores = [one for one in document["processors"] if one["name"] == "core"]
        assert [one["engine"] for one in cores] == list(range(QUEUES)), cores
        assert all(one["packets"] > 100 for one in cores), [one["packets"] for one in cores]
        lost = document["drops"].get("overtaken", 0)
        assert lost == 0, f"{lost} packets came too late behind others"
        yield sum(one["helped"] for one in document["engines"])


def reload_under_traffic(ears):
    talk = traffic(3, 1500)
    before = sa_packets(status())
    with open(f"{LAB}/a.toml", encoding="utf-8") as file:
        text = file.read()
    for round in range(6):
        # Another policy for the log, and an SA that comes and goes.
        more = (
            f'\n[log]\nlevel = "{"debug" if round % 2 else "info"}"\n\n[[sa]]\nname = "more"\ndirection = "out"\n'
            f'spi = {0x7000 + round}\nkey_file = "a-to-b.key"\nlocal = "192.0.2.1"\nremote = "192.0.2.9"\n'
            f'proposal = "{os.environ.get("PROPOSAL", "aes128gcm16")}"\nremote_ts = ["10.9.{round}.0/24"]\nencapsulation = "{os.environ.get("ENCAPSULATION", "udp")}"\n'
        )
        # A key that two SAs have takes IVs of its own; here it is another SA's.
        key = os.urandom(os.path.getsize(f"{LAB}/a-to-b.key") // 2).hex()
        more = more.replace('key_file = "a-to-b.key"', f'key = "{key}"')
        with open(f"{LAB}/a.toml", "w", encoding="utf-8") as file:
            file.write(text + more)
        run(FOREBAY, "reload", "--socket", f"{LAB}/a.sock", stdout=subprocess.DEVNULL)
        time.sleep(0.3)
        assert all(status()["sas"][at]["name"] for at in range(2 * TUNNELS + 1))
    # One that cannot be: nothing changes.
    with open(f"{LAB}/a.toml", "w", encoding="utf-8") as file:
        file.write(text + more + more.replace("[log]", "[nolog]"))
    refused = subprocess.run([FOREBAY, "reload", "--socket", f"{LAB}/a.sock"], capture_output=True)
    assert refused.returncode != 0, "a broken file was taken"
    with open(f"{LAB}/a.toml", "w", encoding="utf-8") as file:
        file.write(text)
    count = all_arrives(ears, talk, "while files were read")
    after = sa_packets(status())
    assert all(after[name] >= packets for name, packets in before.items()), "SAs began anew"
    return count


def a_peer_moves(ears):
    """To gateway A its peer is behind a NAT that gives it another port, and again another."""

    def nft(rules):
        words = ["ip", "netns", "exec", "gw-a", "nft", "-f", "-"]
        return subprocess.run(words, input=rules, capture_output=True, text=True)

    chains = "".join(
        f"add chain ip nat-to-be {hook} {{ type filter hook {hook} priority -300; }}\n" for hook in ("prerouting", "output")
    )
    for port in (5001, 5002):
        rules = (
            f"add table ip nat-to-be\ndelete table ip nat-to-be\nadd table ip nat-to-be\n{chains}"
            f"add rule ip nat-to-be prerouting iif wan udp sport 4500 udp sport set {port}\n"
            f"add rule ip nat-to-be output oif wan udp dport {port} udp dport set 4500\n"
        )
        talk = traffic(2.5, 1500)
        time.sleep(1)
        done = nft(rules)
        if done.returncode != 0:
            all_arrives(ears, talk, "with no peer that moves")
            return f"SKIPPED, there is no nft that rewrites ports: {done.stderr.strip()}"
        # What goes to the old port, until the first packet from the new one, is lost with it, as behind any NAT.
        all_arrives(ears, talk, "while a peer moved", lost=400)
        all_arrives(ears, traffic(0.7, 1500), "when a peer had moved")
    moves = sum(one["moved_peers"] for one in status()["engines"])
    assert moves >= 2, f"{moves} moves were seen"
    talk = traffic(2.5, 1500)
    time.sleep(1)
    nft("delete table ip nat-to-be\n")
    all_arrives(ears, talk, "while a peer moved back", lost=400)
    return f"{moves} moves seen"


def main():
    ears = [Ears("host-a", HOST_A), Ears("host-b", *NEAR)]
    count = all_arrives(ears, traffic(3, 4000), "datagrams")
    helped = sum(both_cores_work())
    print(f"queues: {count} datagrams of {2 * FLOWS * TUNNELS} flows arrived in order, {helped} taken by the other core")

    there, back = traffic(2, 2000, "echo")
    asked = [end(one) for one in (there, *back)]
    assert all(sent == came for sent, came, _ in asked), f"{asked}: {drops()}"
    for one, wanted in zip(ears, (sum(sent for sent, _, _ in asked[1:]), asked[0][0])):
        one.heard(wanted, FLOWS * TUNNELS, "questions")
    assert all(late == 0 for *_, late in asked), f"answers came late: {asked}"
    asked = sum(sent for sent, _, _ in asked)
    print(f"queues: {asked} datagrams were answered, in order")

    servers = [start(name, SERVE) for name in ("host-a", "host-b")]
    assert all(server.stdout.readline() == "ready\n" for server in servers)
    senders = [start("host-a", SEND, near, 4_000_000) for near in NEAR * 2]
    senders += [start("host-b", SEND, HOST_A, 4_000_000) for _ in range(4)]
    for sender in senders:
        assert sender.wait(timeout=60) == 0, "a TCP connection failed"
    print(f"queues: {len(senders)} TCP connections at a time, 4 MB each")

    print(f"queues: {reload_under_traffic(ears)} datagrams arrived in order while files were read")
    if os.environ.get("ENCAPSULATION", "udp") == "udp":
        print(f"queues: a peer moves under traffic: {a_peer_moves(ears)}")
    list(both_cores_work())

    # The end of one gateway, asked for and not.
    talk = traffic(2, 1000)
    time.sleep(0.5)
    for letter, how in (("b", signal.SIGTERM), ("a", signal.SIGKILL)):
        process = gateway_of(letter)
        os.kill(process, how)
        for _ in range(100):
            try:
                with open(f"/proc/{process}/stat", encoding="ascii") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                        break
            except OSError:
                break
            time.sleep(0.05)
        else:
            raise SystemExit(f"gateway {letter} does not end")
        for _ in range(100):
            links = run("ip", "-n", f"gw-{letter}", "link", "show", capture_output=True, text=True).stdout
            if "fb0" not in links:
                break
            time.sleep(0.05)
        else:
            raise SystemExit(f"gateway {letter} left its interface")
    with open(f"{LAB}/b.log", encoding="utf-8") as file:
        log = file.read()
    assert "gateway stopped" in log and "panicked" not in log, log[-2000:]
    for one in (talk[0], *talk[1]):
        one.kill()
    print("queues: both gateways ended under traffic and left nothing")
    for one in (*servers, *(ear.program for ear in ears)):
        one.kill()


if __name__ == "__main__":
    main()
