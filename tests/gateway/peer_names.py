#!/usr/bin/env python3
"""Gateway A calls its peer by a host name: it follows another address with the numbers of its SAs, stays where it is while the order
of answers changes or there are none, and starts without an answer, with nothing in the clear.

    ENCAPSULATION=none scripts/lab.sh FOREBAY run tests/gateway/peer_names.py
"""

import json
import os
import signal
import subprocess
import time

import lab
from lab import HOST_B, Count, Talker, Wire, ask, edit, esp, in_the_clear, ip, kill, send, start, wait_until

NAME = "peer.lab.test"
ANSWERS = f"{lab.LAB}/answers"
# A name server that has one name: it answers with the addresses of a file, fails where there are none, and says nothing for "silent".
SERVER = """
import json, select, socket, struct, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
print("ready", flush=True)
while True:
    ready, _, _ = select.select([server, sys.stdin], [], [])
    if sys.stdin in ready:
        print("done", flush=True)
        break
    query, client = server.recvfrom(512)
    with open(sys.argv[1]) as file:
        answers = json.load(file)
    if answers == "silent":
        continue
    end = query.index(0, 12) + 5
    kind = struct.unpack_from("!H", query, end - 4)[0]
    found = answers if kind == 1 else []
    code = 0x8180 if answers else 0x8182
    reply = query[:2] + struct.pack("!HHHHH", code, 1, len(found), 0, 0) + query[12:end]
    for address in found:
        reply += b"\\xc0\\x0c" + struct.pack("!HHIH", 1, 1, 0, 4) + socket.inet_aton(address)
    server.sendto(reply, client)
"""


def answer(answers):
    # In one step, as the server may read it at any time.
    with open(ANSWERS + ".new", "w", encoding="ascii") as file:
        json.dump(answers, file)
    os.rename(ANSWERS + ".new", ANSWERS)


def resolver():
    """Has the gateways that start from now on ask the name server in their own namespace."""
    for name, text in (("resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"), ("nsswitch.conf", "hosts: files dns\n")):
        with open(f"{lab.LAB}/{name}", "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(f"{lab.LAB}/{name}", 0o644)
        if not os.path.exists(f"/etc/{name}"):
            return False
        subprocess.run(["mount", "--bind", f"{lab.LAB}/{name}", f"/etc/{name}"], check=True)
    return True


def deliver(first, count, rate=5_000):
    heard = Count("host-b", numbers=True)
    send("host-a", HOST_B, first, count, rate).wait(timeout=60)
    return heard.end()["numbers"]


def peers():
    """Where gateway A sends to, and by which name."""
    status = ask("a", "status")
    found = {(sa["remote"], sa["remote_name"]) for sa in status["sas"]}
    names = {one["name"]: one.get("address") for one in status["names"]}
    assert list(names) == [NAME], names
    return found, names[NAME]


def destinations(packets):
    return [".".join(map(str, packet[16:20])) for kind, leaves, packet in packets if kind == 0x0800 and leaves and packet[9] in (17, 50)]


def peer_has(address, before):
    """The peer has another address from now on."""
    edit("b", f'local = "{before}"', f'local = "{address}"')
    lab.reload("b")


def moved():
    wire = Wire()
    assert len(deliver(0, 200)) == 200
    assert peers() == ({("192.0.2.2", NAME)}, "192.0.2.2"), peers()
    # Under traffic, of which what is on its way to the old address is lost.
    heard = Count("host-b", numbers=True)
    storm = send("host-a", HOST_B, 1_000, 15_000, rate=5_000)
    time.sleep(1)
    peer_has("192.0.2.3", "192.0.2.2")
    answer(["192.0.2.3"])
    os.kill(lab.pid_of("a"), signal.SIGHUP)
    wait_until(lambda: peers()[1] == "192.0.2.3", "the new address")
    storm.wait(timeout=60)
    numbers = heard.end()["numbers"]
    late = [number for number in range(9_000, 16_000) if number not in set(numbers)]
    assert not late, f"{len(late)} packets lost behind the move"
    assert peers() == ({("192.0.2.3", NAME)}, "192.0.2.3"), peers()
    assert len(deliver(20_000, 200)) == 200
    packets = wire.end()
    assert not in_the_clear(packets)
    sent = esp(packets)
    sequence = [number for _, number, _ in sent]
    assert len(set(sequence)) == len(sequence) > 15_000, (len(set(sequence)), len(sequence))
    gaps = {later - number for number, later in zip(sequence, sequence[1:])}
    assert gaps == {1}, f"numbers went on with gaps: {gaps}"
    assert len({iv for _, _, iv in sent}) == len(sent)
    to = destinations(packets)
    assert set(to) == {"192.0.2.2", "192.0.2.3"} and to == sorted(to), "it went back"
    says = f"peer's host name has another address name={NAME} from=192.0.2.2 to=192.0.2.3"
    assert says in lab.log("a"), lab.log("a")[-2000:]
    print(f"peer_names: another address was followed under traffic, {len(sent)} packets without a gap in their numbers, nothing in the clear")


def unmoved():
    wire = Wire()
    heard = Count("host-b")
    storm = send("host-a", HOST_B, 0, 20_000, rate=2_500)
    for answers in (["192.0.2.2", "192.0.2.3"], ["192.0.2.3", "192.0.2.2"], [], "silent"):
        answer(answers)
        lab.reload("a")
    assert peers() == ({("192.0.2.3", NAME)}, "192.0.2.3"), peers()
    storm.wait(timeout=60)
    told = heard.end()
    assert told["seen"] == 20_000 and not told["twice"], told
    assert set(destinations(wire.end())) == {"192.0.2.3"}
    assert lab.log("a").count("its last address stays in use") == 1, "each failure is said, and once"
    print("peer_names: other orders of the answers, a failure and a name server that is silent lost none of 20000 packets")


def without_an_answer():
    """A boot without a network: the gateway starts, and lets nothing out until the name resolves."""
    kill("a", signal.SIGTERM)
    wire = Wire()
    start("a", wait=False)
    wait_until(lambda: "gateway started" in lab.log("a").rpartition("gateway stopped")[2], "gateway a")
    status = ask("a", "status")
    assert status["sas"] == [], status["sas"]
    (name,) = status["names"]
    assert "address" not in name and len(name["left_out"]) == 2, name
    assert deliver(0, 50) == []
    assert "10.2.0.0/16" in ip("gw-a", "route", "show", "type", "blackhole")
    packets = wire.end()
    assert not esp(packets) and not in_the_clear(packets)
    shown = subprocess.run([lab.FOREBAY, "status", "--socket", f"{lab.LAB}/a.sock"], capture_output=True, text=True, check=True)
    assert f"Peer {NAME}: NO ADDRESS; 2 SAs LEFT OUT" in shown.stdout, shown.stdout
    answer(["192.0.2.3"])
    wait_until(lambda: len(ask("a", "status")["sas"]) == 2, "an answer, without a reload")
    assert deliver(100, 200) == list(range(100, 300))
    print("peer_names: without an answer the gateway starts and drops; with one, without a reload, every packet arrives")


def main():
    answer(["192.0.2.2"])
    if not resolver():
        print("peer_names: SKIPPED, this machine has no /etc/resolv.conf or nsswitch.conf")
        return
    ip("gw-b", "addr", "add", "192.0.2.3/24", "dev", "wan")
    server = Talker("gw-a", SERVER, ANSWERS)
    kill("a", signal.SIGTERM)
    edit("a", 'remote = "192.0.2.2"', f'remote = "{NAME}"')
    start("a")
    assert "whoever answers the DNS query decides where the packets go" in lab.log("a")
    moved()
    unmoved()
    without_an_answer()
    server.end()


if __name__ == "__main__":
    main()
