#!/usr/bin/env python3
"""What goes wrong behind a port of DPDK: jumbo frames in pieces, runt frames, wrong checksums, a ring that nobody empties, another end
that comes and goes under load, and a guest that writes nonsense into its rings. All is counted, and what can be sent is sent.

The other end of the inside link of gateway A is this program, by memif and by vhost-user (memif.py, vhost.py). Runs in the laboratory:

    scripts/lab.sh FOREBAY run tests/gateway/port_faults.py
"""

import hashlib
import os
import struct
import subprocess
import time

import dpdk
import lab
import vhost
import xdp
from memif import Gone, Memif
from two_sites import LAB, ask, program, start

MAC, OWN = b"\x02\x00\x00\x00\x00\x10", bytes([10, 1, 0, 10])
MTU = 9000
SOCKET = f"{LAB}/port.sock"
KEYS = 'neighbours = ["10.1.0.10=02:00:00:00:00:10"]\n'


def write(device, arguments, mtu):
    """The files of both gateways; the inside of A is this device."""
    link = dpdk.device(device, arguments, ["10.1.0.1/16", "fd01::1/64"], mtu, 1) + KEYS
    sockets = '[[outside]]\nkind = "udp"\n'
    for letter, inner in (("a", link), ("b", f'name = "fb0"\nmtu = {mtu - 100}\n')):
        text = xdp.config(letter, inner, sockets, "udp", 4).replace("packet_size = 4096", "packet_size = 12000")
        with open(f"{LAB}/{letter}.toml", "w", encoding="utf-8") as file:
            file.write(text)


def checksum(data):
    words = sum(struct.unpack(f"!{len(data) // 2}H", data))
    words = (words & 0xFFFF) + (words >> 16)
    return ~(words + (words >> 16)) & 0xFFFF


def ipv4(payload, protocol=17, total=None, flags=0):
    """A packet to host B."""
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, total or 20 + len(payload), 7, flags, 64, protocol, 0, OWN, bytes([10, 2, 0, 10]))
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def datagram(data, **how):
    """One for host B's echo."""
    return ipv4(struct.pack("!HHHH", 7777, 7002, 8 + len(data), 0) + data, **how)


class Host:
    """Host A, whose interface is a memif."""

    def __init__(self, path=SOCKET):
        self.memif = self.connected(path)
        self.router = None
        end = time.monotonic() + 20
        asked = b"\xff" * 6 + MAC + b"\x08\x06" + struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + MAC + OWN + bytes(6) + bytes([10, 1, 0, 1])
        while not self.router:
            assert time.monotonic() < end, "the link does not answer ARP"
            self.memif.send(asked)
            time.sleep(0.05)
            for frame in self.memif.receive():
                if frame[12:14] == b"\x08\x06" and frame[20:22] == b"\x00\x02":
                    self.router = frame[22:28]

    @staticmethod
    def connected(path):
        """A server takes one client at a time, and needs a moment to see that the last one is gone."""
        end = time.monotonic() + 20
        while True:
            try:
                return Memif(path)
            except Gone:
                assert time.monotonic() < end, "the memif cannot be connected to"
                time.sleep(0.02)

    def send(self, packet):
        assert self.memif.send(self.router + MAC + b"\x08\x00" + packet)

    def packets(self):
        return [frame[14:] for frame in self.memif.receive() if frame[12:14] == b"\x08\x00"]

    def echo(self, size, seconds=20):
        """Whether a datagram comes back unchanged; it is sent again."""
        data = os.urandom(size)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.send(datagram(data))
            until = time.monotonic() + 0.5
            while time.monotonic() < until:
                if any(packet[9] == 17 and packet[28:] == data for packet in self.packets()):
                    return
                time.sleep(0.005)
        raise AssertionError(f"{size} bytes did not come back")


def link():
    """The inside link of gateway A."""
    return next(link for link in ask("status")["links"] if link.get("device"))


def wait_for(true, what, seconds=30):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"{what}: {link()}\n{lab.log('a')[-3000:]}"
        time.sleep(0.05)


def jumbo(host):
    """Frames of up to 9,014 bytes in buffers of 2,048."""
    for size in (0, 1, 1472, 2006, 2007, 4096, 8800, 8872):
        host.echo(size)
    found = []

    def answered():
        # The first one shows what fits.
        host.send(datagram(bytes(MTU - 28), flags=0x4000))
        found.extend(packet for packet in host.packets() if packet[9] == 1)
        return found

    wait_for(answered, "the answer to a packet that is too big")
    kind, code, mtu = found[0][20], found[0][21], struct.unpack_from("!H", found[0], 26)[0]
    assert (kind, code) == (3, 4) and 8_900 < mtu < MTU, (kind, code, mtu)
    print(f"port faults: frames of up to {MTU + 14} bytes, in buffers of 2,048; a packet that is too big is answered with {mtu} bytes", flush=True)


def chained(host):
    """Frames that are longer than the link's MTU come in several buffers of DPDK, and pass; those that no buffer holds are counted."""
    count = lab.Count("host-b")
    sizes = [2_100, 4_000, 9_000, 11_000] * 5
    for number, size in enumerate(sizes):
        number, body = number.to_bytes(8, "big"), os.urandom(size - 16)
        data = number + hashlib.blake2b(body + number, digest_size=8).digest() + body
        host.send(ipv4(struct.pack("!HHHH", 7777, 9000, 8 + len(data), 0) + data))
        time.sleep(0.01)
    said = count.end(1)
    assert said["seen"] == len(sizes) and said["twice"] == said["forged"] == 0, said
    host.send(datagram(bytes(17_000)))
    wait_for(lambda: link()["drops"].get("truncated", 0) == 1, "a frame that is too long")
    pieces = link()["device"]["linearised"]
    assert pieces == len(sizes) + 1, pieces
    print(f"port faults: {len(sizes)} frames in several buffers pass, and one that no buffer holds is counted", flush=True)


def malformed(host):
    """Runt frames, and headers that are wrong."""
    good = datagram(b"good")
    bad = [b"", b"\x02", host.router, host.router + MAC, host.router + MAC + b"\x08", host.router + MAC + b"\x08\x00"]
    bad += [host.router + MAC + b"\x08\x00" + packet for packet in (
        good[:1], good[:19], good[:-1], b"\x65" + good[1:], b"\x44" + good[1:], good[:10] + bytes([good[10] ^ 1]) + good[11:],
        ipv4(b"", total=19), ipv4(b"12345678", total=29))]
    bad += [host.router + MAC + b"\x86\xdd" + packet for packet in (b"\x60", b"\x60" + bytes(38), b"\x45" + bytes(39))]
    before = link()
    for frame in bad:
        assert host.memif.send(frame)
    count = lambda: link()["drops"].get("malformed", 0) - before["drops"].get("malformed", 0)
    wait_for(lambda: count() == len(bad), f"{len(bad)} malformed frames")
    host.echo(100)
    print(f"port faults: {len(bad)} runt frames and wrong headers, each counted", flush=True)


def full(host):
    """The host takes nothing for a while: its ring is full, and then the gateway's queue."""
    host.packets()
    came = lambda: sum(link["packets_in"] for link in ask("status")["links"] if link["side"] == "outside")
    lost_of = lambda: sum(link()["drops"].values())
    before, lost_before = came(), lost_of()
    sent = lab.send("host-b", "10.1.0.10", 0, 8_000, rate=4_000)
    assert sent.wait() == 0
    time.sleep(1)
    waits, lost = link()["queue"], lost_of() - lost_before
    assert waits > 3_000 and lost > 1_000, link()
    into, out = lab.balance("a")
    assert into == out, f"{into} packets came in, {out} are accounted for"
    seen = []

    def drained():
        seen.extend(struct.unpack_from("!Q", packet, 28)[0] for packet in host.packets() if packet[9] == 17 and len(packet) == 128)
        return len(seen) + lost == took

    took = came() - before
    wait_for(drained, f"{took} packets, of which {lost} are lost")
    assert seen == sorted(set(seen)) and took > 7_500, (len(seen), lost, took)
    host.echo(100)
    print(f"port faults: of {took} packets to a host that takes none for seconds, {len(seen)} come when it does, {lost} are dropped and counted", flush=True)


def comes_and_goes(host, times=20):
    """The other end goes while it is sent to, without a word, and comes again."""
    sent = lab.send("host-b", "10.1.0.10", 0, 1_000_000, rate=4_000)
    for _ in range(times):
        host.memif.close()
        wait_for(lambda: not link()["device"]["up"], "the link to be down")
        host = Host()
        wait_for(lambda: link()["device"]["up"], "the link to be up")
        time.sleep(0.1)
    sent.kill()
    sent.wait()
    host.echo(1000)
    assert link()["drops"].get("down", 0) > 0, link()
    # The log has what lasts for a second.
    time.sleep(1.5)
    for state in ("down", "up"):
        said = lambda: lab.log("a").count(f"network device: link {state}")
        before = said()
        if state == "down":
            host.memif.close()
        else:
            host = Host()
        wait_for(lambda: said() > before, f"a line that the link is {state}")
    print(f"port faults: the other end has gone {times} times under load, and come again; {link()['drops']}", flush=True)
    return host


def guest_of_nonsense():
    """A guest that writes nonsense into its rings, and one that does not after it."""
    for seed in range(10):
        front = vhost.Front(SOCKET)
        if seed % 2:
            front.fill()
            assert front.resolve("10.1.0.1"), "the link does not answer ARP"
        vhost.nonsense(front, seed)
        assert ask("status")["links"], "the gateway answers"
        front.close()
    front = vhost.Front(SOCKET)
    front.fill()
    assert front.resolve("10.1.0.1"), "a sound guest is not served after the others"
    wait_for(lambda: link()["device"]["up"], "the link to be up")
    passed = link()
    front.close()
    print(f"port faults: ten guests of nonsense, and a sound one is served: {passed['drops']}, {passed['passed_over']}", flush=True)


def main():
    xdp.network()
    xdp.mtu(MTU)
    server = subprocess.Popen(program("host-b", xdp.SERVE_BOTH), stdout=subprocess.PIPE, text=True)
    assert server.stdout.readline() == "ready\n"
    xdp.end("a")
    xdp.end("b")
    for address in ("10.1.0.1/16", "fd01::1/64"):
        subprocess.run(["ip", "-n", "gw-a", "address", "del", address, "dev", "lan"], check=True)
    memif = f"role=server,socket={SOCKET},socket-abstract=no"
    write("net_memif0", memif, MTU)
    start("b")
    start("a")
    try:
        host = Host()
        jumbo(host)
        malformed(host)
        full(host)
        host = comes_and_goes(host)
        host.memif.close()
        xdp.end("a")
        write("net_memif0", memif, 1500)
        start("a")
        chained(Host())
        xdp.end("a")
        write("eth_vhost0", f"iface={SOCKET}", 1500)
        start("a")
        guest_of_nonsense()
    except Exception:
        xdp.tell_state()
        raise
    xdp.end("a")
    xdp.end("b")
    server.kill()


if __name__ == "__main__":
    main()
