"""Programs of the hosts, and of who looks on between the gateways: each is a text that a Python in its namespace runs."""

# Counts numbered datagrams and logs the gaps in which none came; a line in asks, "end" ends.
LISTEN = """
import json, select, socket, sys, time
taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
taken.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
taken.bind(("0.0.0.0", int(sys.argv[1])))
print("ready", flush=True)
seen, twice, gaps, last = set(), 0, [], time.monotonic()
while True:
    ready, _, _ = select.select([taken, sys.stdin], [], [])
    if taken in ready:
        number, now = int.from_bytes(taken.recv(65535)[:8], "big"), time.monotonic()
        twice += number in seen
        seen.add(number)
        if now - last > 0.05:
            gaps.append((last, now))
        last = now
    if sys.stdin in ready:
        word = sys.stdin.readline()
        print(json.dumps({"seen": len(seen), "twice": twice, "gaps": gaps, "last": last}), flush=True)
        if word != "ask\\n":
            break
"""
# Sends numbered datagrams of 64 bytes (with their IP header) until a line comes in: how many.
SPEAK = """
import select, socket, sys, time
address, port, rate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print("ready", flush=True)
begin, n = time.monotonic(), 0
while True:
    try:
        out.sendto(n.to_bytes(8, "big") + bytes(28), (address, port))
    except OSError:
        pass
    n += 1
    ahead = begin + n / rate - time.monotonic()
    if n % 20 == 0 and select.select([sys.stdin], [], [], 0)[0]:
        break
    if ahead > 0.001:
        time.sleep(ahead)
print(n, flush=True)
"""
# Sends requests and logs gaps in which no answer came, like ping.
REQUEST = """
import json, select, socket, sys, time
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print("ready", flush=True)
sent = answered = 0
gaps, last = [], time.monotonic()
while True:
    peer.sendto(sent.to_bytes(8, "big"), (sys.argv[1], 7002))
    sent += 1
    end = time.monotonic() + 0.05
    while (left := end - time.monotonic()) > 0:
        ready, _, _ = select.select([peer, sys.stdin], [], [], left)
        if peer in ready:
            peer.recv(100)
            now = time.monotonic()
            answered += 1
            if now - last > 0.2:
                gaps.append((last, now))
            last = now
        if sys.stdin in ready:
            word = sys.stdin.readline()
            print(json.dumps({"sent": sent, "seen": answered, "twice": 0, "gaps": gaps, "last": last}), flush=True)
            if word != "ask\\n":
                sys.exit()
"""
ANSWER = """
import socket
echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); echo.bind(("0.0.0.0", 7002))
print("ready", flush=True)
while True:
    data, sender = echo.recvfrom(100)
    echo.sendto(data, sender)
"""
# Takes a TCP connection and logs gaps; the other end sends as fast as half a megabyte a second.
TCP_TAKE = """
import json, select, socket, sys, time
server = socket.create_server(("0.0.0.0", 7001))
print("ready", flush=True)
client, _ = server.accept()
seen, gaps, last = 0, [], time.monotonic()
while True:
    ready, _, _ = select.select([client, sys.stdin], [], [])
    if client in ready:
        data, now = client.recv(1 << 16), time.monotonic()
        if not data:
            sys.exit("the connection ended")
        seen += len(data)
        if now - last > 0.1:
            gaps.append((last, now))
        last = now
    if sys.stdin in ready:
        word = sys.stdin.readline()
        print(json.dumps({"seen": seen, "twice": 0, "gaps": gaps, "last": last}), flush=True)
        if word != "ask\\n":
            break
"""
TCP_SEND = """
import socket, sys, time
peer = socket.create_connection((sys.argv[1], 7001), timeout=60)
peer.settimeout(None)
while True:
    peer.sendall(bytes(10_000))
    time.sleep(0.02)
"""
# Judges what comes in by the ports of the switch: of the pair everything, of B the packets that are to be sent again.
JUDGE = """
import collections, json, select, socket, struct, sys
# Every protocol: what a port of a bridge receives is seen so only.
tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
tap.setsockopt(socket.SOL_SOCKET, 33, 1 << 27)
print("ready", flush=True)
numbers, ivs, packets, clear, twice = set(), set(), 0, 0, []
recorded = collections.deque(maxlen=400)
sites = (bytes([10, 1]), bytes([10, 2]))
v6 = ":" in sys.argv[2]
shared, peer = (socket.inet_pton(socket.AF_INET6 if v6 else socket.AF_INET, text) for text in sys.argv[2:4])
while True:
    ready, _, _ = select.select([tap, sys.stdin], [], [])
    if tap in ready:
        packet, (port, protocol, kind, *_) = tap.recvfrom(65535)
        if kind == 4 or port not in ("w0", "w1", "wb"):
            continue
        if protocol == 0x0800 and (packet[12:14] in sites or packet[16:18] in sites):
            clear += 1
        if protocol != (0x86dd if v6 else 0x0800):
            continue
        at, above, source = (40, packet[6], packet[8:24]) if v6 else (20, packet[9], packet[12:16])
        if above == 17 and packet[at + 2:at + 4] == b"\\x11\\x94" and len(packet) > at + 40:
            spi, number, iv = struct.unpack_from("!IIQ", packet, at + 8)
            if port == "wb":
                if source == peer:
                    recorded.append(packet)
                continue
            # A host that has lost the address forwards what still comes for it, unchanged.
            if source != shared:
                continue
            packets += 1
            for known, one in ((numbers, (spi, number)), (ivs, (spi, iv))):
                if one in known:
                    twice.append((port, spi, number, iv))
                known.add(one)
    if sys.stdin in ready:
        word = sys.stdin.readline().strip()
        if word == "record":
            with open(sys.argv[1], "wb") as file:
                for packet in recorded:
                    file.write(struct.pack("!I", len(packet)) + packet)
        print(json.dumps({"packets": packets, "clear": clear, "twice": twice[:5], "recorded": len(recorded)}), flush=True)
        if word == "end":
            break
"""
# Keeps an address and port busy with connections from 50 addresses that say a byte now and then, until a line comes in: how many there were.
STRANGERS = """
import select, socket, sys, time
print("ready", flush=True)
address, all_, made = (sys.argv[1], int(sys.argv[2])), [None] * 200, 0
while not select.select([sys.stdin], [], [], 0.02)[0]:
    for n, one in enumerate(all_):
        try:
            if one is None:
                all_[n] = one = socket.socket()
                one.setblocking(False)
                one.bind((f"10.1.9.{n % 50 + 1}", 0))
                made += 1
                one.connect(address)
            elif n % 4:
                one.send(bytes([255]))
            elif not one.recv(1):
                raise OSError
        except BlockingIOError:
            pass
        except OSError:
            one.close()
            all_[n] = None
print(made, flush=True)
"""
# Sends packets of a file again; those of IPv4 as if from elsewhere.
AGAIN = """
import socket, struct, sys
v6 = ":" in sys.argv[2]
raw = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_RAW, 255)
bytes_, at, sent = open(sys.argv[1], "rb").read(), 0, 0
while at < len(bytes_):
    length, = struct.unpack_from("!I", bytes_, at)
    packet = bytearray(bytes_[at + 4:at + 4 + length])
    at += 4 + length
    if not v6:
        packet[12:16] = socket.inet_aton("192.0.2.66")
        packet[26:28] = bytes(2)
    raw.sendto(bytes(packet), (sys.argv[2], 0))
    sent += 1
print(sent)
"""
