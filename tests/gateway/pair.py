#!/usr/bin/env python3
"""Two gateways as one: gateways 0 and 1 share addresses and SAs and face gateway B. Faults drawn from a seed strike the pair under
traffic: kill -9, a clean stop, SIGSTOP, cut links, partitions of the peer link in one direction and in both.

    tests/gateway/pair.py FOREBAY [--takeovers N] [--seed N] [--esn] [--ipv6] [--vrrp] [--partitions SECONDS]

           10.1/16                  192.0.2/24                    10.2/16
    host-a ------- gw-0 (lan, wan) -------+------- gw-b (wan, lan) ------- host-b
             |       | p0, p1             |
             +---- gw-1 (lan, wan) -------+         shared: 10.1.0.1 and 192.0.2.1

After each fault TCP, small datagrams in both directions and requests with answers have to pass again; it is measured from
the fault on, never asserted against a clock. Everything that the pair sends outside is captured and judged: no sequence number and
no IV twice for an SPI, nothing in the clear. Packets of B that were recorded before are sent again after each take-over and
none of them is delivered.

With --ipv6 the shared address outside is 2001:db8::1, which unsolicited neighbour advertisements move.

With --vrrp the gateways leave the addresses to keepalived, which follows their roles (docs/pair.md).
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

if {"-h", "--help"} & set(sys.argv):
    os.environ |= {"FOREBAY": "", "LAB": ""}
elif os.environ.get("PAIR_INSIDE") != "1":
    words = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        print("pair: SKIPPED, it needs namespaces: run it as root")
        sys.exit(0)
    if "--vrrp" in sys.argv and not shutil.which("keepalived"):
        print("pair: SKIPPED, keepalived cannot be found (Debian: keepalived)")
        sys.exit(0)
    forebay = os.path.realpath(sys.argv[1])
    os.execvpe(words[0], [*words, sys.executable, __file__, forebay, *sys.argv[2:]],
               {**os.environ, "PAIR_INSIDE": "1", "FOREBAY": forebay, "LAB": "/run/lab", "FOREBAY_STATE": "/run/lab/saved"})

sys.path.insert(0, os.path.dirname(__file__))
# pylint: disable=wrong-import-position
from lab import LAB  # noqa: E402
from paired import programs  # noqa: E402
from paired.changes import both_are_looked_after, broken_file, lacking, refusals, replaced_keys, strangers, upgrade, where_they_meet  # noqa: E402
from paired.faults import FAULTS, QUICK, mute_active, mute_standby, partition, strike  # noqa: E402
from paired.world import GATEWAYS, PEER, SHARED, VRRP, Asked, Traffic, build, keepalived, settle, start  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("forebay")
    parser.add_argument("--takeovers", type=int, default=0, help="faults until so many take-overs; without it each fault once")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--esn", action="store_true")
    parser.add_argument("--ipv6", action="store_true")
    parser.add_argument("--vrrp", action="store_true")
    parser.add_argument("--partitions", type=float, metavar="SECONDS", help="only these, in each direction and both, for so long")
    arguments = parser.parse_args()
    build(arguments.esn)
    start("b")
    for letter in GATEWAYS:
        start(letter)
        if VRRP:
            keepalived(letter)
    assert settle() == "0", "the preferred gateway is not the active one"
    judge = Asked("sw", programs.JUDGE, f"{LAB}/recorded", SHARED, PEER)
    traffic = Traffic()
    traffic.flows_since(time.monotonic())
    draw = random.Random(arguments.seed)
    took, take_overs, replayed, count = {}, 0, 0, 0
    quick = [partition, mute_active, mute_standby] if arguments.partitions else QUICK
    while count < len(quick) if not arguments.takeovers else take_overs < arguments.takeovers:
        fault = draw.choice(FAULTS) if arguments.takeovers else quick[count]
        count += 1
        moved, middle, after, again = strike(fault, traffic, judge, arguments.partitions or draw.uniform(1.0, 2.5))
        take_overs += moved
        replayed += again
        took.setdefault(fault.__name__, []).append(middle)
        print(f"pair: {count} {fault.__name__}: {'taken over' if moved else 'the same gateway is active'}; flows again after "
              + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in middle.items())
              + "; behind its end " + ", ".join(f"{seconds:.2f} s" for seconds in after.values()), flush=True)
    if not arguments.takeovers and not arguments.partitions:
        replaced_keys(traffic)
        broken_file(traffic)
        both_are_looked_after()
        strangers()
        upgrade(traffic)
    sent, said = traffic.end()
    judged = judge.ask("end")
    assert not judged["twice"], f"twice: {judged['twice']}"
    assert not judged["clear"], f"{judged['clear']} packets in the clear"
    assert judged["packets"] > 1_000 and replayed > 100, (judged, replayed)
    for name, count_ in sent.items():
        print(f"pair: {name}: {count_} datagrams sent, {count_ - said[name]['seen']} lost, none twice")
    for fault, all_ in took.items():
        for name in all_[0]:
            times = sorted(one[name] for one in all_)
            print(f"pair: {fault}, {name}: median {statistics.median(times):.2f} s, longest {times[-1]:.2f} s of {len(times)}")
    print(f"pair: {take_overs} take-overs, {judged['packets']} packets of the pair captured: no number and no IV twice, none in the "
          f"clear; {replayed} packets replayed, none delivered")
    if not arguments.takeovers and not arguments.partitions and not VRRP:
        where_they_meet()
        refusals()
        lacking()


if __name__ == "__main__":
    main()
