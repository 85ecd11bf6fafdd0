"""The guest's end of vhost-user, without a guest: two rings in shared memory, in which tests write what no driver would.

The protocol is that of QEMU's docs/interop/vhost-user.rst, the rings are split virtqueues (VIRTIO 1.1, 2.6)."""

import array
import mmap
import os
import random
import socket
import struct
import time

GET_FEATURES, SET_FEATURES, SET_OWNER, SET_MEM_TABLE = 1, 2, 3, 5
SET_VRING_NUM, SET_VRING_ADDR, SET_VRING_BASE, SET_VRING_KICK, SET_VRING_CALL, SET_VRING_ENABLE = 8, 9, 10, 12, 13, 18
VERSION_1, PROTOCOL_FEATURES = 1 << 32, 1 << 30
RX, TX = 0, 1
NUMBER = 256
MEMORY = 4 << 20
HERE = 1 << 32  # where this process has the memory, as it says
DESCRIPTOR = struct.Struct("<QIHH")  # address, length, flags, next
NEXT, WRITE, INDIRECT = 1, 2, 4
HEADER = 12  # struct virtio_net_hdr of VIRTIO 1
BUFFER = 2048


class Front:
    """A connection whose rings are ready; the buffers of the receive ring are given when `fill` is called."""

    def __init__(self, path):
        self.control = socket.socket(socket.AF_UNIX)
        self.control.settimeout(10)
        self.control.connect(path)
        self.file = os.memfd_create("guest")
        os.ftruncate(self.file, MEMORY)
        self.memory = mmap.mmap(self.file, MEMORY)
        self.say(SET_OWNER)
        self.say(GET_FEATURES)
        header = self.control.recv(12, socket.MSG_WAITALL)
        offered = struct.unpack("<Q", self.control.recv(struct.unpack("<III", header)[2], socket.MSG_WAITALL))[0]
        self.say(SET_FEATURES, struct.pack("<Q", offered & (VERSION_1 | PROTOCOL_FEATURES)))
        self.say(SET_MEM_TABLE, struct.pack("<IIQQQQ", 1, 0, 0, MEMORY, HERE, 0), self.file)
        self.events = []
        for ring in (RX, TX):
            desc, avail, used = self.places(ring)
            self.events.append((os.eventfd(0, os.EFD_NONBLOCK), os.eventfd(0, os.EFD_NONBLOCK)))
            self.say(SET_VRING_NUM, struct.pack("<II", ring, NUMBER))
            self.say(SET_VRING_BASE, struct.pack("<II", ring, 0))
            self.say(SET_VRING_ADDR, struct.pack("<IIQQQQ", ring, 0, HERE + desc, HERE + used, HERE + avail, 0))
            self.say(SET_VRING_CALL, struct.pack("<Q", ring), self.events[-1][1])
            self.say(SET_VRING_KICK, struct.pack("<Q", ring), self.events[-1][0])
            self.say(SET_VRING_ENABLE, struct.pack("<II", ring, 1))
        self.given, self.seen = [0, 0], [0, 0]

    def say(self, request, payload=b"", descriptor=None):
        rights = [] if descriptor is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
        self.control.sendmsg([struct.pack("<III", request, 1, len(payload)) + payload], rights)

    @staticmethod
    def places(ring):
        """Where descriptors, available and used ring are."""
        at = 0x10000 * (1 + ring)
        return at, at + 0x4000, at + 0x8000

    def describe(self, ring, slot, address, length, flags=0, following=0):
        DESCRIPTOR.pack_into(self.memory, self.places(ring)[0] + DESCRIPTOR.size * slot, address, length, flags, following)

    def offer(self, ring, slots):
        """Gives chains that begin in these slots to the other side."""
        avail = self.places(ring)[1]
        for slot in slots:
            struct.pack_into("<H", self.memory, avail + 4 + 2 * (self.given[ring] % NUMBER), slot & 0xFFFF)
            self.given[ring] += 1
        struct.pack_into("<H", self.memory, avail + 2, self.given[ring] & 0xFFFF)

    def used(self, ring):
        """What the other side is done with: pairs of slot and length."""
        at, done = self.places(ring)[2], []
        index = struct.unpack_from("<H", self.memory, at + 2)[0]
        while (index - self.seen[ring]) & 0xFFFF:
            done.append(struct.unpack_from("<II", self.memory, at + 4 + 8 * (self.seen[ring] % NUMBER)))
            self.seen[ring] += 1
        return done

    @staticmethod
    def buffer(ring, slot):
        return (1 << 20) * (1 + ring) + BUFFER * slot

    def fill(self):
        """Gives all buffers of the receive ring."""
        for slot in range(NUMBER):
            self.describe(RX, slot, self.buffer(RX, slot), BUFFER, WRITE)
        self.offer(RX, range(NUMBER))

    def send(self, frame, slot=0):
        at = self.buffer(TX, slot)
        self.memory[at:at + HEADER + len(frame)] = bytes(HEADER) + frame
        self.describe(TX, slot, at, HEADER + len(frame))
        self.offer(TX, [slot])

    def receive(self):
        """The frames that have come, whose buffers are given again."""
        frames = []
        for slot, length in self.used(RX):
            at = self.buffer(RX, slot)
            frames.append(self.memory[at + HEADER:at + length])
            self.offer(RX, [slot])
        return frames

    def resolve(self, address, mac=b"\x02\x00\x00\x00\x00\x10", own=bytes([10, 1, 0, 10]), seconds=20):
        """The Ethernet address of a neighbour, by ARP; `None` if it does not answer."""
        target = bytes(map(int, address.split(".")))
        asked = b"\xff" * 6 + mac + b"\x08\x06" + struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + mac + own + bytes(6) + target
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.send(asked)
            time.sleep(0.1)
            for frame in self.receive():
                if frame[12:14] == b"\x08\x06" and frame[20:22] == b"\x00\x02" and frame[28:32] == target:
                    return frame[22:28]
        return None

    def close(self):
        self.control.close()
        self.memory.close()
        for descriptor in (self.file, *sum(self.events, ())):
            os.close(descriptor)


def nonsense(front, seed, chains=2_000):
    """Writes descriptors that no driver would: outside of the memory, longer than it, in loops, of other directions, indirect ones,
    and slots that are not in the ring."""
    chance = random.Random(seed)
    memory = bytes(chance.randrange(256) for _ in range(4096))
    front.memory[3 << 20:(3 << 20) + 4096] = memory
    for _ in range(chains // 64):
        for ring in (TX, RX) if chance.random() < 0.2 else (TX,):
            for slot in range(NUMBER):
                address = chance.choice([chance.randrange(1 << 64), chance.randrange(MEMORY), MEMORY - 1, 0, (1 << 64) - 1, front.buffer(TX, slot)])
                length = chance.choice([chance.randrange(1 << 32), chance.randrange(70_000), 0, 1, HEADER, HEADER + 60, (1 << 32) - 1])
                front.describe(ring, slot, address, length, chance.choice([0, NEXT, NEXT, WRITE, NEXT | WRITE, INDIRECT, chance.randrange(1 << 16)]),
                               chance.choice([slot, (slot + 1) % NUMBER, chance.randrange(1 << 16)]))
            front.offer(ring, [chance.choice([chance.randrange(NUMBER), chance.randrange(1 << 16)]) for _ in range(64)])
        time.sleep(0.002)
    # Indices that have overtaken everything.
    for ring in (TX, RX):
        struct.pack_into("<H", front.memory, front.places(ring)[1] + 2, chance.randrange(1 << 16))
    time.sleep(0.2)
