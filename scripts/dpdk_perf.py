#!/usr/bin/env python3
"""Throughput of a software device of DPDK through Forebay and by DPDK's own dpdk-test-crypto-perf, in turns.

    scripts/dpdk_perf.py PERF [DEVICE] [ROUNDS]     PERF: the example `perf` of forebay-crypto-dpdk (make bench-dpdk)

Both seal by AES-128-GCM on one core in bursts of 32. Prints the medians of all rounds in millions of operations per second,
their ratio to DPDK's program, and the best of each. Needs the Debian package dpdk-dev (scripts/setup.sh dpdk-bench).
"""

import statistics
import subprocess
import sys

LENGTHS = (64, 1408)
OPERATIONS = 300_000
TARGET = 0.85
CORE = "1"


def of_dpdk(device, length):
    """Millions of operations per second of DPDK's program, which moves its own main thread to another core."""
    words = ["dpdk-test-crypto-perf", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "-m", "512",
             "-l", f"0,{CORE}", "--vdev", device, "--", "--ptest", "throughput", "--devtype", device.rstrip("0123456789"),
             "--optype", "aead", "--aead-algo", "aes-gcm", "--aead-op", "encrypt", "--aead-key-sz", "16",
             "--aead-iv-sz", "12", "--aead-aad-sz", "8", "--digest-sz", "16", "--buffer-sz", str(length),
             "--burst-sz", "32", "--total-ops", str(OPERATIONS), "--silent"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    for line in done.stdout.splitlines():
        fields = line.split()
        if len(fields) == 10 and fields[1] == str(length):
            return float(fields[7])
    sys.exit(f"dpdk_perf: no figures in what dpdk-test-crypto-perf said:\n{done.stdout}{done.stderr}")


def of_forebay(perf, device, length, *more):
    words = ["taskset", "-c", CORE, perf, device, str(length), str(OPERATIONS), *more]
    return float(subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout.split()[1])


def main(perf, device="crypto_aesni_mb0", rounds="12"):
    ways = {"dpdk-test-crypto-perf": lambda length: of_dpdk(device, length),
            "Forebay": lambda length: of_forebay(perf, device, length),
            "Forebay, copying": lambda length: of_forebay(perf, device, length, "copies")}
    rates = {(length, way): [] for length in LENGTHS for way in ways}
    for _ in range(int(rounds)):
        for length, way in rates:
            rates[length, way].append(ways[way](length))
    print(f"{device}, AES-128-GCM, {rounds} rounds in turns, million operations per second")
    print(f"{'bytes':>5}  {'program':<22} {'median':>7} {'ratio':>6} {'best':>7} {'ratio':>6}")
    is_reached = True
    for (length, way), all_of_it in rates.items():
        theirs = rates[length, "dpdk-test-crypto-perf"]
        median, best = statistics.median(all_of_it), max(all_of_it)
        ratio = median / statistics.median(theirs)
        is_reached &= way != "Forebay" or ratio >= TARGET
        print(f"{length:>5}  {way:<22} {median:7.2f} {ratio:6.2f} {best:7.2f} {best / max(theirs):6.2f}")
    print(f"target {TARGET} of the median: {'reached' if is_reached else 'missed'}")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
