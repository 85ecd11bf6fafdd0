#!/usr/bin/env python3
"""Gateways side by side on one machine: Forebay, a relay without IPsec, wireguard-go, strongSwan's libipsec, and the
veth without any.

    tests/gateway/bench.py FOREBAY [--before FOREBAY] [--wireguard-go PROGRAM] [--strongswan DIRECTORY] [--quick]
                           [--json FILE] [--out FILE.html]

For each of them the same, and nothing between the two gateways but a veth:

       NAME-a                                  NAME-b
    +--------------------+                  +--------------------+
    | iperf3, ping       |                  | iperf3 -s          |
    | TUN 10.9.1.1       |    MTU 1500      | TUN 10.9.2.1       |
    | gateway  192.0.2.1 |--- wan    wan ---| 192.0.2.2  gateway |
    +--------------------+      veth        +--------------------+

Without hosts behind the gateways: their two more veths and ways through the kernel would cost all of them the same,
and hide what is compared. All gateways run the whole time; each measurement goes round from one to the next, so that
what else the machine does meets all alike, and all of it is done in rounds. Nothing is asserted about times.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

from benchmark import namespaces, peers, profile, reorder, report, traffic


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("forebay", help="the program: target/release/forebay")
    parser.add_argument("--before", metavar="FOREBAY", help="another build of Forebay, measured in the same rounds")
    parser.add_argument("--peers", metavar="KEYS", help="of gateways, by commas; all of them without it")
    parser.add_argument("--wireguard-go", metavar="PROGRAM", help="built by tests/gateway/wireguard-go.sh")
    parser.add_argument("--strongswan", metavar="DIRECTORY", help="unpacked there by tests/gateway/strongswan.sh")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5, help="of the longest measurement")
    parser.add_argument("--quick", action="store_true", help="one round of a second each")
    parser.add_argument("--only", metavar="NAMES", help="of measurements, by commas: "
                        + ", ".join(name for name, *_ in traffic.ALL) + ", reordering, profile")
    parser.add_argument("--json", metavar="FILE", help="all figures of all rounds")
    parser.add_argument("--out", metavar="FILE", help="the report, one HTML page")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.seconds = 1, 1
    return chosen


class Progress:
    """Shows progress in one line on a terminal, and otherwise prints a line for each step."""

    def __init__(self, steps):
        self.steps, self.step, self.start = steps, 0, time.monotonic()

    def say(self, words):
        self.step += 1
        line = f"bench-gateway: {self.step}/{self.steps}, {time.monotonic() - self.start:.0f} s: {words}"
        if sys.stderr.isatty():
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
        elif self.step == 1 or self.step % 10 == 0:
            print(line, file=sys.stderr, flush=True)

    def end(self):
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def begin(chosen):
    """The gateways that run, and which do not and why."""
    running, missing = [], []
    for kind, arguments in ((peers.Peer, []), (peers.KernelEsp, []), (peers.Forebay, [chosen.forebay]),
                            (peers.Before, [chosen.before]), (peers.Relay, [chosen.forebay]),
                            (peers.FourProcessors, [chosen.forebay]),
                            *((kind, [chosen.forebay if kind.key in (chosen.peers or "").split(",") else None])
                              for kind in (peers.Watched, peers.Watched20)),
                            (peers.WireGuardGo, [chosen.wireguard_go]),
                            (peers.Strongswan, [chosen.strongswan])):
        if not kind.is_wanted(arguments) or chosen.peers and kind.key not in ["forebay", *chosen.peers.split(",")]:
            continue
        try:
            peer = kind(*arguments)
            peer.begin()
            running.append(peer)
        except (namespaces.Missing, RuntimeError) as error:
            if kind in (peers.Peer, peers.Forebay):
                raise
            why = " ".join(str(error).split())
            missing.append({"key": kind.key, "title": kind.title, "why": why})
            print(f"bench-gateway: without {kind.title}: {why}", file=sys.stderr)
    return running, missing


def wanted(chosen, name):
    return not chosen.only or name in chosen.only.split(",")


def measure(chosen, beside, four):
    """All of it, in rounds; those that fail are named, and the others go on."""
    forebay = next(peer for peer in beside if peer.key == "forebay")
    ways = [forebay, four] if four and wanted(chosen, "reordering") else []
    profiled = [peer for peer in beside if peer.pids] if wanted(chosen, "profile") else []
    measurements = [one for one in traffic.ALL if wanted(chosen, one[0])]
    progress = Progress(chosen.rounds * (len(measurements) * len(beside) + len(ways)) + len(ways) + len(profiled))
    runs, failures, order = [], [], {way.key: [] for way in ways}
    for number in range(chosen.rounds):
        for name, title, how, share in measurements:
            for peer in beside:
                # The veth alone is only there for the scale.
                if number > 0 and not peer.pids:
                    progress.step += 1
                    continue
                progress.say(f"{title}: {peer.title}")
                try:
                    figures = how(peer, max(1, round(chosen.seconds * share)))
                    runs.append({"round": number, "peer": peer.key, "measurement": name, "figures": figures})
                except (RuntimeError, KeyError, ValueError, subprocess.TimeoutExpired) as error:
                    failures.append(f"{title}: {peer.title}: {error!r}")
        for way in ways if number % 2 == 0 else ways[::-1]:
            progress.say(f"order of packets: {way.title}")
            order[way.key].append(reorder.throughput(way, max(1, round(chosen.seconds * 0.8))))
    reordering = None
    if ways:
        quotients = [other["gbit_per_s"] / one["gbit_per_s"] for one, other in zip(*order.values())]
        reordering = {"ratio": statistics.median(quotients), "ratios": quotients, "processors": peers.CARDS.strip(),
                      "shares": reorder.shares(four), "ways": []}
        for way in ways:
            progress.say(f"order of packets, seen: {way.title}")
            reordering["ways"].append({"key": way.key, "title": way.title, "runs": order[way.key],
                                       "looked_at": reorder.looked_at(way, 1)})
    profiles = []
    for peer in profiled:
        progress.say(f"where the time goes: {peer.title}")
        found = profile.measure(peer, 2)
        if found:
            profiles.append({"key": peer.key, "title": peer.title} | found)
    progress.end()
    if profiled and not profiles:
        failures.append("perf(1) does not work here: no shares of system calls and crypto")
    return runs, reordering, profiles, failures


def machine():
    """What it was measured on."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    said = {
        "Processor": f"{model}, {len(os.sched_getaffinity(0))} CPUs here",
        "Kernel": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "iperf3": subprocess.run(["iperf3", "--version"], capture_output=True, text=True).stdout.splitlines()[0],
    }
    go = subprocess.run("go version", shell=True, capture_output=True, text=True).stdout.strip()
    return said | ({"Go": go} if go else {})


def main():
    chosen = arguments()
    try:
        namespaces.enter()
        namespaces.need("ip", "iperf3", "ping", "sysctl")
        before, others = machine(), traffic.busy_share(1.0)
        running, missing = begin(chosen)
    except namespaces.Missing as error:
        if os.environ.get("LAB_OPTIONAL") == "1":
            print(f"bench-gateway: SKIPPED, it needs {error}")
            return 0
        print(f"bench-gateway: it needs {error}", file=sys.stderr)
        return 2
    four = next((peer for peer in running if peer.key == "forebay-4"), None)
    beside = [peer for peer in running if peer is not four]
    runs, reordering, profiles, failures = measure(chosen, beside, four)
    busy = [run["figures"].get("machine_stolen", 0) for run in runs]
    result = {
        "schema": 1,
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": before | {"CPUs busy before": f"{others:.0%}", "Taken from the CPUs by the host": f"{statistics.mean(busy or [0]):.1%}"},
        "cpus": len(os.sched_getaffinity(0)),
        "busy_before": others,
        "rounds": chosen.rounds,
        "seconds": chosen.seconds,
        "peers": [{"key": peer.key, "title": peer.title, "about": peer.about, "version": peer.version()}
                  for peer in beside],
        "missing": missing + [{"key": "", "title": "A measurement", "why": why} for why in failures],
        "commands": traffic.COMMANDS,
        "runs": runs,
        "ratios": report.ratios(runs),
        "reordering": reordering,
        "profiles": profiles,
    }
    for peer in running:
        peer.pair.stop()
    print(report.terminal(result))
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    if chosen.out:
        with open(chosen.out, "w", encoding="utf-8") as file:
            file.write(report.html(result))
        print(f"\nreport: {chosen.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
