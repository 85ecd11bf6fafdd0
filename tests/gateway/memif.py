#!/usr/bin/env python3
"""The client's end of a memif, without DPDK: a container's interface, and what tests write into the rings by themselves.

    memif.py SOCKET TAP [BUFFER]    frames of a TAP of this name, which is made, go by the memif and back; BUFFER is the size of
                                    a buffer in bytes (2048), and longer frames take several. A server that has gone is
                                    connected to again.

The protocol is version 2.0 of libmemif (https://s3-docs.fd.io/vpp/24.02/interfacing/libmemif/): messages of 128 bytes over a
socket of packets, and a region of memory with two rings of descriptors and their buffers.
"""

import ctypes
import fcntl
import mmap
import os
import select
import socket
import struct
import sys
import time

HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED = 2, 3, 4, 5, 6, 7
VERSION, COOKIE = 0x200, 0x3E31F20
LOG2_RING = 10
RING = 1 << LOG2_RING
HEADER, DESCRIPTOR = 128, struct.Struct("<HHIII")  # flags, region, length, offset, metadata
HEAD, TAIL = 6, 64
NEXT = 1  # flag of a descriptor: the frame goes on in the next one


class Gone(Exception):
    """The server is not there, or does not want this client."""


class Memif:
    """A connection: ring 0 is to the server, ring 1 from it."""

    def __init__(self, path, buffer=2048):
        self.buffer = buffer
        self.control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(10)
        try:
            self.control.connect(path)
            self.connect()
        except (OSError, struct.error) as error:
            raise Gone(str(error)) from None

    def connect(self):
        ring_size = HEADER + DESCRIPTOR.size * RING
        self.rings = (0, ring_size)
        buffers = 2 * ring_size
        size = buffers + 2 * RING * self.buffer
        self.region = os.memfd_create("memif", os.MFD_ALLOW_SEALING)
        os.ftruncate(self.region, size)
        fcntl.fcntl(self.region, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.memory = mmap.mmap(self.region, size)
        self.offsets = [[buffers + (ring * RING + slot) * self.buffer for slot in range(RING)] for ring in (0, 1)]
        self.events = [os.eventfd(0, os.EFD_NONBLOCK) for _ in (0, 1)]
        for at in self.rings:
            struct.pack_into("<I", self.memory, at, COOKIE)
        self.hear(HELLO)
        self.say(INIT, struct.pack("<HIB24s32s", VERSION, 0, 0, b"", b"forebay-test"))
        self.say(ADD_REGION, struct.pack("<HQ", 0, size), self.region)
        for ring, event in enumerate(self.events):
            self.say(ADD_RING, struct.pack("<HHHIBH", 1 - ring, 0, 0, self.rings[ring], LOG2_RING, 0), event)
        self.say(CONNECT, b"forebay-test")
        self.hear(CONNECTED)
        self.sent, self.seen = 0, 0
        for slot in range(RING):
            self.describe(1, slot, 0, self.buffer)
        self.put(1, HEAD, RING)

    def say(self, kind, body, descriptor=None):
        message = struct.pack("<H", kind) + body
        rights = [] if descriptor is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", descriptor))]
        self.control.sendmsg([message.ljust(128, b"\0")], rights)

    def hear(self, wanted):
        """The message of this type, behind acknowledgements."""
        while True:
            message = self.control.recv(128)
            if len(message) < 2:
                raise Gone("the server has closed the connection")
            kind = struct.unpack_from("<H", message)[0]
            if kind == wanted:
                return
            if kind != 1:
                raise Gone(f"the server's message {kind}: {message[6:].rstrip(bytes(1))}")

    def get(self, ring, field):
        return struct.unpack_from("<H", self.memory, self.rings[ring] + field)[0]

    def put(self, ring, field, value):
        struct.pack_into("<H", self.memory, self.rings[ring] + field, value & 0xFFFF)

    def describe(self, ring, slot, flags, length, region=0, offset=None):
        at = self.rings[ring] + HEADER + DESCRIPTOR.size * slot
        DESCRIPTOR.pack_into(self.memory, at, flags, region, length, self.offsets[ring][slot] if offset is None else offset, 0)

    def room(self):
        """Descriptors of the ring to the server that are free."""
        return RING - ((self.sent - self.get(0, TAIL)) & 0xFFFF)

    def send(self, frame):
        """Whether there was room for a frame."""
        parts = [frame[at:at + self.buffer] for at in range(0, len(frame), self.buffer)] or [b""]
        if self.room() < len(parts):
            return False
        for number, part in enumerate(parts):
            slot = (self.sent + number) % RING
            at = self.offsets[0][slot]
            self.memory[at:at + len(part)] = part
            self.describe(0, slot, NEXT if number + 1 < len(parts) else 0, len(part))
        self.sent += len(parts)
        self.put(0, HEAD, self.sent)
        return True

    def receive(self):
        """The frames that have come."""
        frames, parts = [], []
        tail = self.get(1, TAIL)
        while (tail - self.seen) & 0xFFFF:
            slot = self.seen % RING
            at = self.rings[1] + HEADER + DESCRIPTOR.size * slot
            flags, _, length, offset, _ = DESCRIPTOR.unpack_from(self.memory, at)
            parts.append(self.memory[offset:offset + length])
            # The server leaves the flag where it is.
            self.describe(1, slot, 0, self.buffer)
            self.seen += 1
            if not flags & NEXT:
                frames.append(b"".join(parts))
                parts = []
        self.put(1, HEAD, self.seen + RING)
        return frames

    def is_closed(self):
        """Whether the server has closed the connection."""
        try:
            return select.select([self.control], [], [], 0)[0] and not self.control.recv(128)
        except OSError:
            return True

    def close(self):
        self.control.close()
        self.memory.close()
        for descriptor in (self.region, *self.events):
            os.close(descriptor)


def open_tap(name):
    """A TAP without offloads: its frames are complete."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x0002 | 0x1000))  # TUNSETIFF; IFF_TAP | IFF_NO_PI
    return tap


def bridge(memif, tap):
    """Passes frames on, until the server has gone."""
    waiting = None
    while True:
        watched = [memif.events[1], memif.control] + ([] if waiting else [tap])
        ready = select.select(watched, [], [], 0.001 if waiting else 1)[0]
        if memif.events[1] in ready:
            os.eventfd_read(memif.events[1])
        for frame in memif.receive():
            try:
                os.write(tap, frame)
            except OSError:  # the interface is down, or its queue is full
                pass
        for _ in range(64):
            try:
                waiting = waiting or os.read(tap, 65536)
            except OSError:
                break
            if not memif.send(waiting):
                break
            waiting = None
        if memif.control in ready and memif.is_closed():
            return


def main():
    path, name, *buffer = sys.argv[1:]
    # Goes with the test that has started it (PR_SET_PDEATHSIG).
    ctypes.CDLL(None).prctl(1, 9)
    tap = open_tap(name)
    print("ready", flush=True)
    while True:
        try:
            memif = Memif(path, *map(int, buffer))
        except Gone:
            time.sleep(0.1)
            continue
        print("connected", flush=True)
        bridge(memif, tap)
        memif.close()
        print("gone", flush=True)


if __name__ == "__main__":
    main()
