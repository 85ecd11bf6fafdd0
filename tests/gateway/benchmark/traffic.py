"""What is sent through a gateway, and what is read off while it is."""

import json
import re
import subprocess
import time

UDP_RATE, UDP_SIZE = 20_000, 200
# Of ESP in UDP and IKE, and of WireGuard.
GATEWAY_PORTS = (500, 4500, 51820)

COMMANDS = [
    "iperf3 -s                              in NAME-b, the whole time",
    "iperf3 -c OTHER -t S -J                TCP, one flow; with four ping -i 0.04 OTHER beside it",
    "iperf3 -c OTHER -t S -J -P 4           TCP, four flows; likewise",
    "iperf3 -c OTHER -t S -J --bidir        TCP, both directions at once; likewise",
    "iperf3 -c OTHER -t S -J -u -b 0 -l 64 -w 4M    UDP as fast as it can be sent: read is what its server counted,\n" + " " * 44 + "delivered that and what its socket had no room for",
    "iperf3 -c OTHER -t S -J -u -b 0 -l 1372 -w 4M",
    "ping -i 0.04 -w S OTHER                four of them, nothing else",
    f"iperf3 -c OTHER -t S -J -u -b {UDP_RATE * UDP_SIZE * 8} -l {UDP_SIZE}   with four ping -i 0.04 OTHER beside it",
]


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else None


def busy():
    """Jiffies of all cores: busy, all, and stolen by the machine's host."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = list(map(int, file.readline().split()[1:9]))
    return sum(fields) - fields[3] - fields[4], sum(fields), fields[7]


def busy_share(seconds):
    """What others have of the CPUs while nothing is measured."""
    before = busy()
    time.sleep(seconds)
    after = busy()
    return (after[0] - before[0]) / max(1, after[1] - before[1])


class Meter:
    """The time of a gateway's processes, and of the machine, over a measurement."""

    def __init__(self, peer):
        self.peer = peer
        self.cpu, self.machine, self.start = peer.cpu(), busy(), time.monotonic()

    def read(self):
        cpu, machine = self.peer.cpu(), busy()
        seconds = time.monotonic() - self.start
        total = max(1, machine[1] - self.machine[1])
        return {
            "seconds": seconds,
            "user_s": cpu[0] - self.cpu[0],
            "kernel_s": cpu[1] - self.cpu[1],
            "machine_busy": (machine[0] - self.machine[0]) / total,
            "machine_stolen": (machine[2] - self.machine[2]) / total,
        }


class Ping:
    """A hundred pings per second, for as long as something else goes on.

    Four processes send them in turn, each every 40 ms. With an interval of 10 ms ping(8) does not sleep once an answer has
    taken more than 1 ms: it asks its socket again and again, with sched_yield(2) between, until its next packet is due.
    That takes a fifth of a CPU, and the kernel then puts both gateways onto the other one.
    """

    PROCESSES, INTERVAL = 4, 0.01

    def __init__(self, peer, seconds):
        each = self.PROCESSES * self.INTERVAL
        words = peer.pair.words("a", "ping", "-i", f"{each:g}", "-w", max(1, round(seconds)), peer.target)
        self.processes = []
        for _ in range(self.PROCESSES):
            self.processes.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
            time.sleep(self.INTERVAL)

    def end(self):
        outs = [process.communicate(timeout=60)[0] for process in self.processes]
        times = [float(one) for out in outs for one in re.findall(r"time=([\d.]+) ms", out)]
        sent = [re.search(r"(\d+) packets transmitted", out) for out in outs]
        return {
            "ping_p50_ms": quantile(times, 0.50),
            "ping_p99_ms": quantile(times, 0.99),
            "ping_max_ms": max(times, default=None),
            "pings": len(times),
            "pings_lost": sum(int(one.group(1)) for one in sent) - len(times) if all(sent) else None,
        }


def iperf(peer, seconds, *options):
    words = peer.pair.words("a", "iperf3", "-c", peer.target, "-t", seconds, "-J", *options)
    for attempt in range(5):
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds + 30)
        report = json.loads(done.stdout) if done.stdout.startswith("{") else {"error": done.stderr}
        if "error" not in report:
            return report["end"]
        time.sleep(0.5 * (attempt + 1))
    raise RuntimeError(f"{peer.title}: iperf3 {' '.join(options)}: {report['error']}")


def tcp(*options, pings=False):
    """TCP by itself, or with a hundred pings per second beside it."""
    def measure(peer, seconds):
        meter = Meter(peer)
        ping = Ping(peer, seconds) if pings else None
        end = iperf(peer, seconds, *options)
        found = meter.read() | (ping.end() if ping else {})
        streams = [end["sum_received"]]
        if "sum_received_bidir_reverse" in end:
            streams.append(end["sum_received_bidir_reverse"])
        gbits = sum(one["bytes"] for one in streams) * 8e-9
        found["gbit_per_s"] = sum(one["bits_per_second"] for one in streams) / 1e9
        found["cpu_s_per_gbit"] = (found["user_s"] + found["kernel_s"]) / max(gbits, 1e-9)
        found["retransmits"] = end["sum_sent"].get("retransmits")
        return found
    return measure


def overruns(peer):
    """Datagrams that the receiving program's socket had no room for; those of the gateway's own do not count."""
    heads = [line.split() for line in peer.pair.run("b", "cat", "/proc/net/snmp").splitlines() if line.startswith("Udp:")]
    all_sockets = int(heads[1][heads[0].index("RcvbufErrors")])
    of_gateway = 0
    for path in ("/proc/net/udp", "/proc/net/udp6"):
        for line in peer.pair.run("b", "cat", path).splitlines()[1:]:
            fields = line.split()
            if int(fields[1].rsplit(":", 1)[1], 16) in GATEWAY_PORTS:
                of_gateway += int(fields[-1])
    return all_sockets - of_gateway


def udp(size):
    def measure(peer, seconds):
        meter, overrun = Meter(peer), overruns(peer)
        end = iperf(peer, seconds, "-u", "-b", "0", "-l", str(size), "-w", "4M")
        found = meter.read()
        took = end["sum"]["seconds"]
        received = end["sum"]["packets"] - end["sum"]["lost_packets"]
        delivered = received + overruns(peer) - overrun
        found["packets_per_s"] = received / took
        found["delivered_per_s"] = delivered / took
        found["sent_per_s"] = end["sum"]["packets"] / took
        found["gbit_per_s"] = received * size * 8e-9 / took
        found["cpu_us_per_packet"] = (found["user_s"] + found["kernel_s"]) * 1e6 / max(1, delivered)
        return found
    return measure


def ping_idle(peer, seconds):
    return Ping(peer, seconds).end()


def ping_under_udp(peer, seconds):
    size = UDP_SIZE
    meter = Meter(peer)
    ping = Ping(peer, seconds)
    end = iperf(peer, seconds, "-u", "-b", str(UDP_RATE * size * 8), "-l", str(size))
    found = meter.read() | ping.end()
    received = end["sum"]["packets"] - end["sum"]["lost_packets"]
    found["packets_per_s"] = received / end["sum"]["seconds"]
    found["lost_share"] = end["sum"]["lost_packets"] / max(1, end["sum"]["packets"])
    return found


# Name, title, how, seconds in relation to the longest.
ALL = [
    ("tcp1", "TCP, one flow", tcp(), 1.0),
    ("tcp4", "TCP, four flows", tcp("-P", "4"), 0.6),
    ("both", "TCP, both directions at once", tcp("--bidir"), 0.6),
    ("tcp1ping", "ping under one TCP flow", tcp(pings=True), 1.0),
    ("udp64", "UDP, 64 bytes of payload", udp(64), 1.0),
    ("udp1372", "UDP, packets of 1400 bytes", udp(1372), 0.6),
    ("idle", "ping, nothing else", ping_idle, 0.4),
    ("udp20k", f"ping, {UDP_RATE} UDP packets a second", ping_under_udp, 0.6),
]
