#!/usr/bin/env python3
"""The mirror beside strongSwan: connect, rekey, volume, delete, reconnect, a trap policy's acquire.

Nothing protects packets on our side here: what charon installs must come out as events, the kernel must do nothing
with it, and charon must act on what the mirror says.
"""

import argparse
import re
from pathlib import Path

import ike
from mirror import Follow
from vm import VmError, enter


def main():
    enter()
    parser = argparse.ArgumentParser()
    parser.add_argument("follow")
    arguments = parser.parse_args()
    ours = ike.connection(1, 2, child=f"{ike.MARKED}\n rekey_bytes = 1000000\n life_bytes = 2000000\n rekey_time = 1h")
    for wire, a, b in ike.pair(ours, ike.connection(2, 1)):
        a.put(Path(arguments.follow), "/tmp/follow", 0o755)
        follow = Follow(a, f"--mark {ike.MARK:#x}")
        follow.expect("synchronised")
        a.sh("swanctl --initiate --child net --timeout 20", seconds=40)
        inbound, outbound = added(follow, "Open"), added(follow, "Seal")
        follow.expect(rf"policy added \d+ Out 10.1.0.0/16 -> 10.2.0.0/16 .*spi: Some\({int(outbound, 16)}\)")
        print("ike: connected")

        # The new inbound SA is there before the old one goes, and traffic moves with the policy.
        def rekeyed(old_in, old_out):
            new_in = added(follow, "Open")
            new_out = added(follow, "Seal")
            follow.expect(rf"policy updated \d+ Out .*spi: Some\({int(new_out, 16)}\)")
            gone(follow, old_in, old_out)
            return new_in, new_out

        a.sh("swanctl --rekey --child net")
        inbound, outbound = rekeyed(inbound, outbound)
        b.sh("swanctl --rekey --child net")
        inbound, outbound = rekeyed(inbound, outbound)
        print("ike: rekeyed by either end")

        # Volume: charon shows what was reported and rekeys when it is told to.
        follow.say(f"report {outbound} 4321 987654 4321")
        follow.expect("said report true")
        follow.say(f"report {inbound} 1234 456789 1234")
        follow.expect("said report true")
        shown = a.sh("swanctl --list-sas")
        for part in ("987654 bytes,  4321 packets", "456789 bytes,  1234 packets"):
            if part not in shown:
                raise VmError(f"no '{part}' in\n{shown}")
        follow.say(f"expire {outbound} soft")
        inbound, outbound = rekeyed(inbound, outbound)
        follow.say(f"expire {outbound} hard")
        follow.expect(f"sa expired hard esp {outbound}")
        inbound, outbound = added(follow, "Open"), added(follow, "Seal")
        print("ike: counters shown, rekeyed by volume")

        a.sh("swanctl --terminate --ike net", seconds=30)
        gone(follow, inbound, outbound)
        print("ike: deleted")

        # A trap: a policy without an SA, until a packet asks for one.
        a.sh("swanctl --install --child net")
        index = follow.expect(r"policy added \d+ Out 10.1.0.0/16 -> 10.2.0.0/16").split()[2]
        follow.say(f"acquire {index} 10.1.0.1 10.2.0.1")
        follow.expect("said acquire true")
        inbound, outbound = added(follow, "Open"), added(follow, "Seal")
        print("ike: connected by an acquire")

        # The peer starts anew and connects again.
        b.sh("kill -9 $(pidof charon-systemd); sleep 0.5; ip xfrm state flush; ip xfrm policy flush")
        ike.begin(b)
        b.sh("swanctl --initiate --child net --timeout 20", seconds=40)
        gone(follow, inbound, outbound)
        added(follow, "Open"), added(follow, "Seal")
        print("ike: peer restarted")
        errors = a.sh("grep -v ' 0$' /proc/net/xfrm_stat || true")
        follow.say("quit")
        counts = follow.expect("Counts")
        print("ike:", counts, errors)
        if "overruns: 0, malformed: 0, foreign: 0, refused: 0" not in counts:
            raise VmError(counts)
    print("ike_mirror: ok")


def gone(follow, *spis, seconds=15):
    """Both in any order."""
    at = follow.at
    ends = []
    for spi in spis:
        follow.at = at
        follow.expect(f"sa deleted esp {spi}", seconds=seconds)
        ends.append(follow.at)
    follow.at = max(ends)


def added(follow, direction):
    line = follow.expect(rf"sa added esp 0x\w+ .* {direction} ")
    return re.search(r"esp (0x\w+)", line).group(1)


if __name__ == "__main__":
    main()
