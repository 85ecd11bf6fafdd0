#!/usr/bin/env python3
"""`forebay gateway` with keys from strongSwan, against other people's IKE daemons on several releases of Linux.

    peers.py FOREBAY [--peers all|NAME,...] [--events all|PART,...] [--rekeys N] [--json FILE] [--merge]
    peers.py --table FILE      writes the table of docs/interop.md

Both ends are virtual machines, a pair at a time. On the gateway's a strongSwan installs SAs that the kernel only keeps;
the peer's kernel does its ESP. Pings go on during each event, and whatever leaves in the clear is an error.
"""

import argparse
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peer_events
import peer_table
from daemons import Case, Libreswan, Openiked, Strongswan, Unable
from peer_events import EVENTS, Pair
from vm import HERE, IMAGE, Namespace, Vm, VmError, enter, has_release, skip

# Release and daemon of the peer, and the release of the gateway's kernel and strongSwan.
PEERS = {
    "strongswan-5.9": ("bookworm", Strongswan, "bookworm"),
    "strongswan-6.0": ("trixie", Strongswan, "trixie"),
    "strongswan-6.1": ("sid", Strongswan, "sid"),
    "libreswan-4.10": ("bookworm", Libreswan, "bookworm"),
    "libreswan-5.2": ("trixie", Libreswan, "bookworm"),
    "openiked-7.2": ("bookworm", Openiked, "bookworm"),
    "openiked-7.4": ("trixie", Openiked, "bookworm"),
    "strongswan-6.0-newest-kernel": ("trixie-backports", Strongswan, "trixie-backports"),
}
DEFAULT = "strongswan-6.0"
MODULES = "modprobe -a esp4 esp6 ah4 xfrm_user tun 2>/dev/null || true"
# With two cores and two workers, for SAs per CPU.
OF_TWO_CORES = "strongswan-6.1"
CONFIGURATION = """
[inside]
name = "forebay0"
mtu = 1400
queues = QUEUES

[[outside]]
kind = "raw"

[[outside]]
kind = "udp"
beside_ike = true

[keys]
source = "xfrm"
mark = 0x4642

[limits]
in_flight = 256
packet_size = 10240

[control]
socket = "/run/control.sock"
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("forebay", type=Path, nargs="?")
    parser.add_argument("--peers", default=DEFAULT, help=f"all, or some of {', '.join(PEERS)}")
    parser.add_argument("--events", default="all", help="all, short, or parts of their names, by commas")
    parser.add_argument(
        "--rekeys", type=int, default=0, help="in place of events: so many rekeys under pings"
    )
    parser.add_argument("--json", type=Path, help="where results are written")
    parser.add_argument(
        "--merge", action="store_true", help="keep what the file has of other peers and events"
    )
    parser.add_argument("--table", type=Path, help="writes docs/interop.md out of this result, and ends")
    arguments = parser.parse_args()
    if arguments.table:
        return peer_table.write(json.loads(arguments.table.read_text()), EVENTS)
    names = list(PEERS) if arguments.peers == "all" else arguments.peers.split(",")
    for name in names:
        if name not in PEERS:
            parser.error(f"peer '{name}' is none of {', '.join(PEERS)}")
    enter(dict.fromkeys(release for name in names for release in (PEERS[name][0], PEERS[name][2])))
    events = [
        event
        for event in EVENTS
        if arguments.events == "all" or any(part in event for part in arguments.events.split(","))
    ]
    if arguments.events == "short":
        events = peer_events.SHORT
    results = json.loads(arguments.json.read_text()) if arguments.merge and arguments.json.exists() else {}
    work = Path(tempfile.mkdtemp(dir="/run"))
    subprocess.run(["strip", "-o", work / "forebay", arguments.forebay], check=True)
    done, broken = 0, []
    for name in names:
        if not all(has_release(release) for release in (PEERS[name][0], PEERS[name][2])):
            print(f"peers: {name} SKIPPED, no image of {PEERS[name][0]}")
            continue
        done += 1
        try:
            one(name, events, arguments, work, results)
        except VmError as error:
            broken.append(f"{name}: {error}")
    if not done:
        skip("no peer can be had")
    wrong = broken + [
        f"{name}: {event}: {result['why']}"
        for name in names
        if name in results
        for event, result in results[name]["events"].items()
        if result["outcome"] == "failed" and event in events
    ]
    if wrong:
        raise SystemExit("\n".join(["peers: FAILED", *wrong]))
    print(f"peers: ok, {done} of {len(names)}")


def one(name, events, arguments, work, results):
    """All events with one peer."""
    release, daemon, release_ours = PEERS[name]
    here = Namespace(f"wire-{name}")
    here.tap("a", "br"), here.tap("b", "br")
    images = IMAGE / release_ours, IMAGE / release
    cores = 2 if name == OF_TWO_CORES else 1
    with (
        Vm("ours", [(here, "a")], memory=1024, image=images[0], initramfs=images[0] / "initramfs-ike", cores=cores) as a,
        Vm(
            "peer",
            [(here, "b")],
            memory=768,
            image=images[1],
            initramfs=images[1] / daemon.image,
            cores=cores,
        ) as b,
    ):
        a.wait(300), b.wait(300)
        for vm, end in ((a, 1), (b, 2)):
            vm.sh(
                f"{MODULES}\nip link set eth0 up; ip addr add 192.0.2.{end}/24 dev eth0; ip addr add 2001:db8::{end}/64 dev eth0 nodad\n"
                f"ip addr add 10.{end}.0.1/16 dev lo; ip addr add 10.1{end}.0.1/16 dev lo\n"
                "for all in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$all; done"
            )
        b.sh(
            "ip route add 10.1.0.0/16 via 192.0.2.1 src 10.2.0.1; ip route add 10.11.0.0/16 via 192.0.2.1 src 10.12.0.1\n"
            # What no policy protects never leaves the peer in the clear either.
            "nft add table ip guard; nft add chain ip guard out '{ type filter hook output priority 0; }'\n"
            "nft add rule ip guard out rt ipsec missing ip daddr 10.0.0.0/8 oif eth0 drop"
        )
        ours, theirs = Strongswan(a, 1, marked=True), daemon(b, 2)
        a.put(work / "forebay", "/tmp/forebay", 0o755, seconds=180)
        a.put(CONFIGURATION.replace("QUEUES", str(cores)).encode(), "/tmp/gateway.toml")
        a.sh("mkdir -p /dev/net /var/lib; [ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200")
        entry = results.setdefault(name, {"events": {}})
        entry["versions"] = {
            "daemon": f"{theirs.name} {theirs.version()}",
            "kernel": kernel(b),
            "gateway": f"strongSwan {ours.version()}, Linux {kernel(a)}",
        }
        print(f"peers: {name}: {entry['versions']}", flush=True)
        pair = Pair(a, b, ours, theirs, lambda: begin_gateway(a))
        ours.configure(Case(esp=theirs.suites[0]))
        ours.start()
        begin_gateway(a)
        if arguments.rekeys:
            with watched(here) as seen:
                entry["rekeys"] = many_rekeys(pair, arguments.rekeys)
            entry["rekeys"] |= {"sealed": seen["esp"], "clear": len(seen["clear"])}
            save(arguments, results)
            print(f"peers: {name}: {entry['rekeys']}", flush=True)
        else:
            for event in events:
                label = f"{name}: {event}"
                with watched(here) as seen:
                    result = attempt(pair, EVENTS[event], label)
                if result["outcome"] != "unable":
                    result |= {"sealed": seen["esp"], "clear": len(seen["clear"])}
                if seen["clear"]:
                    result |= {
                        "outcome": "failed",
                        "why": "in the clear: " + ", ".join(sorted(set(seen["clear"]))),
                    }
                print(f"peers: {label}: {result}", flush=True)
                entry["events"][event] = result
                save(arguments, results)


@contextlib.contextmanager
def watched(here):
    """What was sealed and what was in the clear on the wire meanwhile; it is there when this ends."""
    seen = {}
    watch = here.start(
        [sys.executable, HERE / "watch.py", "a", "10.", "192.0.2."], stdout=subprocess.PIPE, text=True
    )
    watch.stdout.readline()
    try:
        yield seen
    finally:
        watch.terminate()
        seen |= json.loads(watch.communicate(timeout=60)[0])


def attempt(pair, event, label):
    """What became of an event."""
    began = time.monotonic()
    pair.missing = pair.sent = pair.by_linux = pair.by_deletion = 0
    try:
        said = event(pair)
        result = {"outcome": "ok", **({"said": said} if said else {})}
        if pair.sent:
            result |= {"sent": pair.sent, "lost": pair.missing, "by_linux": pair.by_linux}
    except Unable as error:
        result = {"outcome": "unable", "why": str(error)}
    except VmError as error:
        # A machine that ended would answer nothing more.
        pair.a.sh("true"), pair.b.sh("true")
        result = {"outcome": "failed", "why": reason(error)}
        print(
            f"{error}\n--- ours\n{pair.ours.log()[-1500:]}\n--- theirs\n{pair.theirs.log()[-1500:]}\n--- gateway\n"
            + pair.a.sh(
                "tail -8 /tmp/gateway.log; ip xfrm state | grep -E 'src|proto|encap'; ip route; nft list ruleset | head -60",
                check=False,
            )[1],
            flush=True,
        )
    return {**result, "seconds": round(time.monotonic() - began)}


def reason(error):
    """What went wrong in a line, without the console of a machine."""
    lines = [line for line in str(error).splitlines() if line.isprintable() and not line.startswith("Booting")]
    return " ".join(" ".join(lines).split())[-200:]


def many_rekeys(pair, count):
    """Rekeys one after the other, by either end in turns, under pings that never pause."""
    pair.configure(connect=pair.ours)
    before, began = rekeyed(pair), time.monotonic()
    with pair.traffic(interval=0.02):
        for first in range(0, count, 20):
            turn = (
                (pair.a, pair.ours)
                if first // 20 % 2 == 0 or not isinstance(pair.theirs, Strongswan)
                else (pair.b, pair.theirs)
            )
            turn[0].sh(
                f"for number in $(seq {min(20, count - first)}); do {turn[1].rekey_child()} >/dev/null || true; usleep 200000; done",
                seconds=300,
            )
            print(f"peers: {rekeyed(pair) - before} rekeys", flush=True)
        time.sleep(2)
    return {
        "rekeys": rekeyed(pair) - before,
        "sent": pair.sent,
        "lost": pair.missing,
        "by_linux": pair.by_linux,
        "seconds": round(time.monotonic() - began),
    }


def rekeyed(pair):
    return int(pair.a.sh("grep -c 'outbound CHILD_SA net{.*established' /tmp/daemon.log || true"))


def kernel(vm):
    return re.match(r"[\d.]+", vm.sh("uname -r"))[0]


def save(arguments, results):
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")


def begin_gateway(a):
    count = "grep -c 'gateway started' /tmp/gateway.log || true"
    a.sh(
        f"touch /tmp/gateway.log; before=$({count})\n"
        "setsid /tmp/forebay gateway --config /tmp/gateway.toml >>/tmp/gateway.log 2>&1 &\n"
        f"for try in $(seq 300); do [ $({count}) -gt $before ] && exit 0; usleep 200000; done; "
        "tail -20 /tmp/gateway.log; exit 1",
        seconds=150,
    )


if __name__ == "__main__":
    main()
