"""The host model of the papers in Ciw, as far as a network of queues can say it.

python host_ciw.py SIZES.csv RATE_BPS ACCELERATORS QUEUE

A packet is a customer; node 1 is the scheduler, which takes no time and is blocked while the chosen queue is full
(type I blocking); the other nodes are the processors. A customer of Ciw holds one server at a time, so an
accelerator cannot keep its job while it waits for the bus: both transfers are part of its service time here, and
accelerators do not wait for each other. Times are seconds. Prints one line of JSON.
"""

import json
import sys
import time

import ciw

OVERHEAD = 40
CPU_INIT, CPU_BLOCK = 1e-6, 1.138636e-6
CARD_INIT, CARD_BLOCK = 1e-6, 0.44e-6
BUS_HZ, BUS_WIDTH, BUS_ADDRESS = 66e6, 4, 1


class Service(ciw.dists.Distribution):
    """The time of a processor; `sample` is called when a service begins."""

    def __init__(self, packets, init, block, has_bus):
        self.packets, self.init, self.block, self.has_bus = packets, init, block, has_bus
        self.waiting_cost = self.taken_at = self.taken_cost = 0.0

    def cost(self, size):
        return self.init + self.block * ((size + 15) // 16)

    def wait(self, now):
        return self.waiting_cost + max(0.0, self.taken_cost - (now - self.taken_at))

    def sample(self, t=None, ind=None):
        size = self.packets[ind.id_number - 1]
        self.taken_at, self.taken_cost = t, self.cost(size)
        self.waiting_cost -= self.taken_cost
        return self.taken_cost + (2 * transfer(size) if self.has_bus else 0.0)


class FirstDone(ciw.routing.NodeRouting):
    """To the processor that finishes the packet first; accelerators win ties."""

    def __init__(self, packets, processors):
        self.packets, self.order, self.chosen = packets, [*range(1, processors), 0], {}

    def next_node(self, ind):
        now, size = self.simulation.current_time, self.packets[ind.id_number - 1]
        # The simulation's own copies of the distributions.
        services = {at: self.simulation.service_times[at + 2][ind.customer_class] for at in self.order}
        at = min(self.order, key=lambda at: services[at].wait(now) + services[at].cost(size))
        services[at].waiting_cost += services[at].cost(size)
        self.chosen[ind.id_number] = (now, at)
        return self.simulation.nodes[at + 2]


def transfer(size):
    return (BUS_ADDRESS + (size + BUS_WIDTH - 1) // BUS_WIDTH) / BUS_HZ


def main():
    path, rate, cards, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    with open(path) as file:
        next(file)
        packets = [int(line) + OVERHEAD for line in file]
    begin = time.process_time()
    services = [Service(packets, CPU_INIT, CPU_BLOCK, False)]
    services += [Service(packets, CARD_INIT, CARD_BLOCK, True) for _ in range(cards)]
    router = FirstDone(packets, cards + 1)
    # The first packet at 0, each behind the one before; nothing comes after the last.
    gaps = [0.0] + [8 * size / rate for size in packets[:-1]] + [float("inf")]
    nodes = cards + 2
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential(gaps)] + [None] * (nodes - 1),
        service_distributions=[ciw.dists.Deterministic(0.0), *services],
        number_of_servers=[1] * nodes,
        queue_capacities=[float("inf")] + [limit] * (nodes - 1),
        routing=ciw.routing.NetworkRouting([router] + [ciw.routing.Leave() for _ in range(nodes - 1)]),
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(len(packets), method="Finish")
    seconds = time.process_time() - begin
    done = [record for record in simulation.get_all_records() if record.node > 1]
    elapsed = max(record.exit_date for record in done)
    arrivals, now = {}, 0.0
    for number, gap in enumerate(gaps[:-1], 1):
        now += gap
        arrivals[number] = now
    count = len(done)
    print(json.dumps({
        "packets": count,
        "packets_per_s": count / seconds,
        "throughput_bps": 8 * sum(packets[record.id_number - 1] for record in done) / elapsed,
        "bus_load": None,
        "processing_mean_s": sum(r.exit_date - router.chosen[r.id_number][0] for r in done) / count,
        "total_mean_s": sum(r.exit_date - arrivals[r.id_number] for r in done) / count,
        "processor_packets": [sum(record.node == at + 2 for record in done) for at in range(cards + 1)],
    }))


if __name__ == "__main__":
    main()
