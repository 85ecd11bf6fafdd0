"""The host model of the papers in SimPy: a process for each processor, a resource for the bus.

python host_simpy.py SIZES.csv RATE_BPS ACCELERATORS QUEUE

Times are whole picoseconds. Prints one line of JSON.
"""

import json
import sys
import time

import simpy

OVERHEAD = 40
CPU_INIT, CPU_BLOCK = 1_000_000, 1_138_636
CARD_INIT, CARD_BLOCK = 1_000_000, 440_000
BUS_HZ, BUS_WIDTH, BUS_ADDRESS = 66_000_000, 4, 1


class Packet:
    def __init__(self, payload, sent, rate):
        self.bytes = payload + OVERHEAD
        self.blocks = (self.bytes + 15) // 16
        self.arrival = (16 * sent * 10**12 + rate) // (2 * rate)
        cycles = BUS_ADDRESS + (self.bytes + BUS_WIDTH - 1) // BUS_WIDTH
        self.transfer = (2 * cycles * 10**12 + BUS_HZ) // (2 * BUS_HZ)
        self.chosen = self.done = 0
        self.processor = 0


class Processor:
    def __init__(self, env, init, block, limit):
        self.env, self.init, self.block = env, init, block
        self.queue = simpy.Store(env, capacity=limit)
        self.waiting_cost = self.taken_at = self.taken_cost = 0

    def cost(self, packet):
        return self.init + self.block * packet.blocks

    def wait(self):
        return self.waiting_cost + max(0, self.taken_cost - (self.env.now - self.taken_at))

    def take(self):
        packet = yield self.queue.get()
        self.taken_at, self.taken_cost = self.env.now, self.cost(packet)
        self.waiting_cost -= self.taken_cost
        return packet


class Cpu(Processor):
    def run(self):
        while True:
            packet = yield from self.take()
            yield self.env.timeout(self.taken_cost)
            packet.done = self.env.now


class Card(Processor):
    def __init__(self, env, bus, limit):
        super().__init__(env, CARD_INIT, CARD_BLOCK, limit)
        self.bus = bus

    def transfer(self, packet):
        with self.bus.resource.request() as request:
            yield request
            yield self.env.timeout(packet.transfer)
        self.bus.busy += packet.transfer

    def run(self):
        while True:
            packet = yield from self.take()
            yield from self.transfer(packet)
            yield self.env.timeout(self.taken_cost)
            yield from self.transfer(packet)
            packet.done = self.env.now


class Bus:
    def __init__(self, env):
        self.resource = simpy.Resource(env, capacity=1)
        self.busy = 0


def schedule(env, packets, processors):
    """Places each packet where it is finished first; accelerators win ties."""
    order = [*range(1, len(processors)), 0]
    for packet in packets:
        if packet.arrival > env.now:
            yield env.timeout(packet.arrival - env.now)
            yield env.timeout(0)  # after all else of this instant
        packet.chosen = env.now
        packet.processor = min(order, key=lambda at: processors[at].wait() + processors[at].cost(packet))
        chosen = processors[packet.processor]
        chosen.waiting_cost += chosen.cost(packet)
        yield chosen.queue.put(packet)


def read(path, rate):
    packets, sent = [], 0
    with open(path) as file:
        next(file)
        for line in file:
            packets.append(Packet(int(line), sent, rate))
            sent += packets[-1].bytes
    return packets


def main():
    path, rate, cards, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    packets = read(path, rate)
    begin = time.process_time()
    env = simpy.Environment(initial_time=0)
    bus = Bus(env)
    processors = [Cpu(env, CPU_INIT, CPU_BLOCK, limit), *(Card(env, bus, limit) for _ in range(cards))]
    for processor in processors:
        env.process(processor.run())
    env.process(schedule(env, packets, processors))
    env.run()
    seconds = time.process_time() - begin
    elapsed = (max(packet.done for packet in packets) - packets[0].arrival) * 1e-12
    count = len(packets)
    print(json.dumps({
        "packets": count,
        "packets_per_s": count / seconds,
        "throughput_bps": 8 * sum(packet.bytes for packet in packets) / elapsed,
        "bus_load": bus.busy * 1e-12 / elapsed,
        "processing_mean_s": sum(packet.done - packet.chosen for packet in packets) * 1e-12 / count,
        "total_mean_s": sum(packet.done - packet.arrival for packet in packets) * 1e-12 / count,
        "processor_packets": [sum(packet.processor == at for packet in packets) for at in range(cards + 1)],
    }))


if __name__ == "__main__":
    main()
