"""A bulk transfer through the laboratory, as the paper's second measurement has it: iperf by TCP at the rate of a line."""

import json
import os
import subprocess
import sys
import time

from television import counters
from television.stream import HOST_B, inside

# What the paper's iperf carried on a line of 1 Gbit/s.
RATE = 989_000_000
# Seconds that are left out at both ends.
EDGE = 1.0


def transfer(seconds):
    """Sends for `seconds` at `RATE`; what arrived, and what a profile of it needs."""
    # It ends by itself after a transfer, but not without one.
    server = subprocess.Popen(inside("host-b", "iperf3", "-s", "-1"), stdout=subprocess.DEVNULL)
    try:
        return measured(seconds, server)
    finally:
        if server.poll() is None:
            server.terminate()
            server.wait(timeout=60)


def measured(seconds, server):
    time.sleep(0.5)
    words = ["iperf3", "-c", HOST_B, "-b", str(RATE), "-t", str(round(seconds + 2 * EDGE)), "-J"]
    client = subprocess.Popen(inside("host-a", *words), stdout=subprocess.PIPE, text=True)
    processes = {"sender": client.pid, "receiver": server.pid, **counters.gateways()}
    time.sleep(EDGE)
    before, started = counters.processor(processes), time.monotonic()
    time.sleep(seconds)
    after, ended = counters.processor(processes), time.monotonic()
    said, _ = client.communicate(timeout=60)
    if client.returncode != 0:
        sys.exit(f"hdtv: iperf3 ended with {client.returncode}: {said[-300:]}")
    server.wait(timeout=60)
    whole = json.loads(said)["end"]
    return {
        "seconds": seconds,
        "bits_per_second": whole["sum_received"]["bits_per_second"],
        "retransmits": whole["sum_sent"]["retransmits"],
        "window": [started, ended],
        "namespaces": {name: os.stat(f"/run/netns/{name}").st_ino for name in counters.NAMESPACES},
        "processor": counters.share(before, after, ended - started),
    }
