#!/usr/bin/env python3
"""Interfaces that go down and come up under traffic, lose their addresses and their routes, and are deleted: what is
lost meanwhile is counted, and packets pass again without anybody starting anything anew.

    scripts/lab.sh FOREBAY run tests/gateway/links.py
"""

import subprocess
import time

import lab
from lab import HOST_A, HOST_B, Count, ask, ip, kill, send, start, wait_until


def lost(letter):
    """Packets that links of a gateway did not send, by reason."""
    found = {}
    for link in ask(letter, "status")["links"]:
        for reason, count in link["drops"].items():
            found[reason] = found.get(reason, 0) + count
    return found


def pings():
    words = lab.inside("host-a", "ping", "-c1", "-W1", HOST_B)
    return subprocess.run(words, capture_output=True).returncode == 0


def through(what, down, up, counted=()):
    """Traffic both ways while a link or address is removed and restored; afterwards all traffic passes again."""
    before, pid = lost("a"), lab.pid_of("a")
    senders = [send("host-a", HOST_B, 0, 3_000, 2_000), send("host-b", HOST_A, 0, 3_000, 2_000)]
    time.sleep(0.3)
    down()
    time.sleep(0.7)
    up()
    [sender.wait(timeout=30) for sender in senders]
    wait_until(pings, f"{what}: a ping afterwards")
    heard = [Count("host-b"), Count("host-a")]
    senders = [send("host-a", HOST_B, 0, 2_000, 2_000), send("host-b", HOST_A, 0, 2_000, 2_000)]
    assert all(sender.communicate(timeout=30)[0] == "0\n" for sender in senders), what
    seen = [one.end()["seen"] for one in heard]
    assert seen == [2_000, 2_000], (what, seen, ask("a", "status"))
    after = lost("a")
    more = {reason: count - before.get(reason, 0) for reason, count in after.items() if count > before.get(reason, 0)}
    assert not counted or any(more.get(reason) for reason in counted), (what, more)
    assert lab.pid_of("a") == pid, f"{what}: another gateway runs"
    print(f"links: {what}: lost meanwhile {more or 'nothing that the gateway had'}; everything passes again")


def main():
    link = lambda name, state: lambda: ip("gw-a", "link", "set", name, state)
    through("wan down", link("wan", "down"), link("wan", "up"), ("down", "unreachable", "failed"))
    through("the peer's wan down", lambda: ip("gw-b", "link", "set", "wan", "down"), lambda: ip("gw-b", "link", "set", "wan", "up"))
    through("the address taken away", lambda: ip("gw-a", "addr", "del", "192.0.2.1/24", "dev", "wan"),
            lambda: ip("gw-a", "addr", "add", "192.0.2.1/24", "dev", "wan"), ("refused", "unreachable", "unfit", "failed"))

    def recreate():
        subprocess.run(["ip", "link", "add", "wan", "netns", "gw-a", "type", "veth", "peer", "name", "wan", "netns", "gw-b"], check=True)
        for letter, number in (("a", 1), ("b", 2)):
            ip(f"gw-{letter}", "addr", "add", f"192.0.2.{number}/24", "dev", "wan")
            ip(f"gw-{letter}", "link", "set", "wan", "up")

    through("wan deleted and made anew", lambda: ip("gw-a", "link", "del", "wan"), recreate)

    def tun_up():
        ip("gw-a", "link", "set", "fb0", "up")
        # Its routes went when it did; a reload puts them back.
        lab.reload("a")

    through("the TUN down", link("fb0", "down"), tun_up, ("down", "failed"))

    # It cannot come back: an end with a reason is better than a gateway that does nothing.
    # Who deletes it takes it from under the process; by netlink that is `ip link del`.
    wire = lab.Wire()
    process = lab.pid_of("a")
    ip("gw-a", "route", "add", "default", "via", "192.0.2.2")
    sender = send("host-a", HOST_B, 0, 1_000, 2_000)
    time.sleep(0.1)
    ip("gw-a", "link", "del", "fb0")
    wait_until(lambda: lab.has_ended(process), f"the end of gateway {process}", limit=5)
    sender.wait(timeout=20)
    assert "the interface fb0 was deleted" in lab.log("a"), lab.log("a")[-2000:]
    assert not lab.in_the_clear(wire.end()), "in the clear"
    process = start("a")
    # What was received is saved as at a clean stop: the peer's next packets are taken from the first on.
    heard = Count("host-a")
    assert send("host-b", HOST_A, 0, 100, 1_000).communicate(timeout=30)[0] == "0\n"
    assert heard.end()["seen"] == 100, lab.drops("a")
    assert pings()
    ip("gw-a", "link", "del", "fb0")
    assert process.wait(timeout=5) == 2, process.returncode
    print("links: without its TUN a gateway ends with an error (2) and says why; nothing leaves in the clear")


if __name__ == "__main__":
    main()
