"""The host model of the papers in salabim: a component for each processor, a resource for the bus.

python host_salabim.py SIZES.csv RATE_BPS ACCELERATORS QUEUE

Times are whole picoseconds. Prints one line of JSON.
"""

import json
import sys
import time

import salabim as sim

OVERHEAD = 40
CPU_INIT, CPU_BLOCK = 1_000_000, 1_138_636
CARD_INIT, CARD_BLOCK = 1_000_000, 440_000
BUS_HZ, BUS_WIDTH, BUS_ADDRESS = 66_000_000, 4, 1


class Packet(sim.Component):
    def setup(self, payload, sent, rate):
        self.bytes = payload + OVERHEAD
        self.blocks = (self.bytes + 15) // 16
        self.arrival = (16 * sent * 10**12 + rate) // (2 * rate)
        cycles = BUS_ADDRESS + (self.bytes + BUS_WIDTH - 1) // BUS_WIDTH
        self.transfer = (2 * cycles * 10**12 + BUS_HZ) // (2 * BUS_HZ)
        self.chosen = self.done = 0
        self.processor = 0


class Processor(sim.Component):
    def setup(self, init, block, limit):
        self.init, self.block = init, block
        self.queue = sim.Store(f"queue of {self.name()}", capacity=limit, monitor=False)
        self.waiting_cost = self.taken_at = self.taken_cost = 0

    def cost(self, packet):
        return self.init + self.block * packet.blocks

    def wait_time(self):
        return self.waiting_cost + max(0, self.taken_cost - (self.env.now() - self.taken_at))

    def take(self):
        yield self.from_store(self.queue)
        packet = self.from_store_item()
        self.taken_at, self.taken_cost = self.env.now(), self.cost(packet)
        self.waiting_cost -= self.taken_cost
        return packet


class Cpu(Processor):
    def process(self):
        while True:
            packet = yield from self.take()
            yield self.hold(self.taken_cost)
            packet.done = self.env.now()


class Card(Processor):
    def setup(self, bus, limit):
        super().setup(CARD_INIT, CARD_BLOCK, limit)
        self.bus, self.bus_time = bus, 0

    def transfer(self, packet):
        yield self.request(self.bus)
        yield self.hold(packet.transfer)
        self.release(self.bus)
        self.bus_time += packet.transfer

    def process(self):
        while True:
            packet = yield from self.take()
            yield from self.transfer(packet)
            yield self.hold(self.taken_cost)
            yield from self.transfer(packet)
            packet.done = self.env.now()


class Scheduler(sim.Component):
    """Places each packet where it is finished first; accelerators win ties."""

    def setup(self, packets, processors):
        self.packets, self.processors = packets, processors

    def process(self):
        processors = self.processors
        order = [*range(1, len(processors)), 0]
        for packet in self.packets:
            if packet.arrival > self.env.now():
                yield self.hold(packet.arrival - self.env.now())
                yield self.hold(0)  # after all else of this instant
            packet.chosen = self.env.now()
            packet.processor = min(order, key=lambda at: processors[at].wait_time() + processors[at].cost(packet))
            chosen = processors[packet.processor]
            chosen.waiting_cost += chosen.cost(packet)
            yield self.to_store(chosen.queue, packet)


def read(path, rate):
    packets, sent = [], 0
    with open(path) as file:
        next(file)
        for line in file:
            packets.append(Packet(payload=int(line), sent=sent, rate=rate))
            sent += packets[-1].bytes
    return packets


def main():
    path, rate, cards, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    sim.yieldless(False)
    env = sim.Environment(trace=False)
    packets = read(path, rate)
    begin = time.process_time()
    bus = sim.Resource("bus", capacity=1, monitor=False)
    processors = [Cpu(init=CPU_INIT, block=CPU_BLOCK, limit=limit)]
    processors += [Card(bus=bus, limit=limit) for _ in range(cards)]
    Scheduler(packets=packets, processors=processors)
    env.run()
    seconds = time.process_time() - begin
    elapsed = (max(packet.done for packet in packets) - packets[0].arrival) * 1e-12
    count = len(packets)
    print(json.dumps({
        "packets": count,
        "packets_per_s": count / seconds,
        "throughput_bps": 8 * sum(packet.bytes for packet in packets) / elapsed,
        "bus_load": sum(card.bus_time for card in processors[1:]) * 1e-12 / elapsed,
        "processing_mean_s": sum(packet.done - packet.chosen for packet in packets) * 1e-12 / count,
        "total_mean_s": sum(packet.done - packet.arrival for packet in packets) * 1e-12 / count,
        "processor_packets": [sum(packet.processor == at for packet in packets) for at in range(cards + 1)],
    }))


if __name__ == "__main__":
    main()
