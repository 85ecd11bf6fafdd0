#!/usr/bin/env python3
"""One end of a video call's media: RTP audio and video, with RTCP reports (RFC 3550).

Audio is G.711's pace (50 packets/s of 160 bytes), video 30 frames/s cut into packets of at most
1200 bytes, a large key frame every two seconds. Both ends send and receive; media is random bytes.
"""

import argparse
import asyncio
import random
import socket
import struct
import time

AUDIO_PORT, VIDEO_PORT = 40000, 40002
PIECE = 1188  # bytes of video a packet, 1200 with the RTP header
EF, AF41 = 46 << 2, 34 << 2  # DSCP of voice and of interactive video (RFC 4594)


class Stream:
    def __init__(self, args, port, payload_type, tos, clock_hz):
        self.random = random.Random(args.seed * 1000 + port)
        self.payload_type, self.clock_hz = payload_type, clock_hz
        self.ssrc, self.sequence = self.random.getrandbits(32), self.random.getrandbits(16)
        self.packets = self.octets = self.received = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        self.socket.setblocking(False)
        self.socket.bind((args.local, port))
        self.peer = (args.remote, port)

    def send(self, timestamp, size, marker):
        media = self.random.randbytes(size)
        header = struct.pack("!BBHII", 0x80, marker << 7 | self.payload_type, self.sequence, timestamp & 0xFFFFFFFF, self.ssrc)
        self.sequence = self.sequence + 1 & 0xFFFF
        self.packets, self.octets = self.packets + 1, self.octets + size
        self.socket.sendto(header + media, self.peer)

    def report(self, timestamp):
        """A sender report and the source's name, on the same port (RFC 5761)."""
        seconds = time.time() + 2208988800
        ntp = int(seconds) << 32 | int(seconds % 1 * 2**32)
        sender = struct.pack("!BBHIQIII", 0x80, 200, 6, self.ssrc, ntp, timestamp & 0xFFFFFFFF, self.packets, self.octets)
        name = b"caller@example"
        item = struct.pack("!BB", 1, len(name)) + name
        item += bytes(4 - len(item) % 4)
        source = struct.pack("!BBHI", 0x81, 202, (4 + len(item)) // 4, self.ssrc) + item
        self.socket.sendto(sender + source, self.peer)

    async def receive(self, loop):
        while True:
            await loop.sock_recv(self.socket, 2048)
            self.received += 1


async def audio(stream, start, seconds):
    for n in range(int(seconds * 50)):
        await until(start + n / 50)
        stream.send(n * 160, 160, n == 0)
        if n % 100 == 50:
            stream.report(n * 160)


async def video(stream, start, seconds):
    for n in range(int(seconds * 30)):
        await until(start + 0.007 + n / 30)
        size = stream.random.randint(9_000, 13_000) if n % 60 == 0 else int(stream.random.lognormvariate(7.6, 0.45))
        while size > 0:
            stream.send(n * 3000, min(size, PIECE), size <= PIECE)
            size -= PIECE
            await asyncio.sleep(0.0008)
        if n % 60 == 30:
            stream.report(n * 3000)


async def until(moment):
    await asyncio.sleep(max(0.0, moment - time.monotonic()))


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("local")
    parser.add_argument("remote")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    streams = [Stream(args, AUDIO_PORT, 0, EF, 8000), Stream(args, VIDEO_PORT, 96, AF41, 90000)]
    loop = asyncio.get_running_loop()
    ears = [loop.create_task(stream.receive(loop)) for stream in streams]
    start = time.monotonic() + 1  # both ends' ports are open by then
    await asyncio.gather(audio(streams[0], start, args.seconds), video(streams[1], start, args.seconds))
    await asyncio.sleep(0.5)
    for ear in ears:
        ear.cancel()
    lost = [stream.packets for stream in streams if stream.received == 0]
    if lost:
        raise SystemExit("nothing heard from the other end")


asyncio.run(main())
