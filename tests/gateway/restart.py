#!/usr/bin/env python3
"""A gateway is killed and restarted: meanwhile nothing leaves in the clear, no IV repeats, and the peer accepts the
first packet afterwards; expired lifetimes and missing keys let nothing out.

    scripts/lab.sh FOREBAY run tests/gateway/restart.py
"""

import os
import signal
import time

import lab
from lab import HOST_B, Count, Wire, ask, drops, edit, esp, in_the_clear, ip, kill, send, start


def deliver(first, count, settle=0.5):
    """Sends datagrams from A's host to B's, and says which arrived."""
    heard = Count("host-b", numbers=True)
    sender = send("host-a", HOST_B, first, count)
    sender.wait(timeout=30)
    return heard.end(settle)["numbers"]


def killed_and_back():
    wire = Wire()
    assert len(deliver(0, 200)) == 200
    replays = drops("b").get("in_state_seq_error", 0)
    for round_ in range(4):
        storm = send("host-a", HOST_B, 1_000_000, 4_000, rate=8_000)
        time.sleep(0.2)
        kill("a")
        storm.wait(timeout=30)
        start("a")
        # The very first packet is taken.
        first = 1_000 * (round_ + 1)
        arrived = deliver(first, 50)
        assert arrived == list(range(first, first + 50)), f"after a restart these arrived: {arrived}"
    assert drops("b").get("in_state_seq_error", 0) == replays, drops("b")
    packets = wire.end()
    clear = in_the_clear(packets)
    assert not clear, f"{len(clear)} packets in the clear, as {clear[0][:40].hex()}"
    sealed = esp(packets)
    ivs = {(spi, iv) for spi, _, iv in sealed}
    numbers = {(spi, number) for spi, number, _ in sealed}
    assert len(ivs) == len(sealed) == len(numbers) > 500, (len(ivs), len(numbers), len(sealed))
    jumps = [number for _, number, _ in sealed]
    assert jumps == sorted(jumps), "sequence numbers went back"
    print(f"restart: killed 4 times under traffic: {len(sealed)} packets sealed, no IV and no sequence number twice, "
          "the first packet of each life taken, nothing in the clear")


def blackholes():
    """A clean stop lets nothing out either, unless the file says so. The control: without blackholes packets do leave in the
    clear, so that the tests say something."""
    def there():
        return "10.2.0.0/16" in ip("gw-a", "route", "show", "type", "blackhole")

    assert there()
    wire = Wire()
    for _ in range(2):
        kill("a", signal.SIGTERM)
        assert there(), "gone after a clean stop"
        deliver(0, 20)
        start("a")
    assert not in_the_clear(wire.end())
    edit("a", "[inside]\n", "[inside]\nblackhole = \"none\"\n")
    kill("a", signal.SIGTERM)
    start("a")
    assert not there(), "left behind although the file says none"
    wire = Wire()
    kill("a")
    deliver(0, 20)
    assert in_the_clear(wire.end()), "a packet without a route does not leave; the test is worth nothing"
    edit("a", "blackhole = \"none\"\n", "blackhole = \"remove\"\n")
    start("a")
    assert there()
    kill("a", signal.SIGTERM)
    assert not there(), "left behind by a clean stop although the file says remove"
    edit("a", "blackhole = \"remove\"\n", "")
    start("a")
    print("restart: blackhole routes stand in while there is no gateway, after a clean stop too; without them packets leave in "
          "the clear")


def clean_stop():
    wire = Wire()
    deliver(0, 10)
    kill("a", signal.SIGTERM)
    start("a")
    deliver(10, 10)
    numbers = [number for spi, number, _ in esp(wire.end()) if spi == 0x1001]
    gaps = [later - number for number, later in zip(numbers, numbers[1:])]
    assert gaps and set(gaps) == {1}, f"numbers went on with gaps: {gaps}"
    print("restart: after a clean stop sequence numbers go on without a gap")


def reloads():
    """An SA whose settings change begins anew in the engine and goes on for its peer; networks come and go."""
    arrived = deliver(0, 10)
    assert len(arrived) == 10
    edit("a", "name = \"to-peer\"\n", "name = \"to-peer\"\nrekey_packets = 1000000\n")
    lab.reload("a")
    assert len(deliver(10, 10)) == 10, "the peer refuses an SA that was changed"
    edit("a", "rekey_packets = 1000000\n", "")
    lab.reload("a")
    edit("a", 'remote_ts = ["10.2.0.0/16"]', 'remote_ts = ["10.2.0.0/16", "10.77.0.0/16"]')
    lab.reload("a")
    assert "10.77.0.0/16 dev fb0" in ip("gw-a", "route"), ip("gw-a", "route")
    assert "blackhole 10.77.0.0/16" in ip("gw-a", "route")
    edit("a", 'remote_ts = ["10.2.0.0/16", "10.77.0.0/16"]', 'remote_ts = ["10.2.0.0/16"]')
    lab.reload("a")
    assert "10.77.0.0/16" not in ip("gw-a", "route"), ip("gw-a", "route")
    assert len(deliver(20, 10)) == 10
    print("restart: an SA that a reload changes goes on for its peer; routes go with their networks")


def ends():
    """Hard limits, and a policy without an SA: counted, said, and nothing leaves."""
    wire = Wire()
    for limit, reason in [("life_packets = 30", "out_state_expired"), ("life_bytes = 4000", "out_state_expired"),
                          ("life_time = \"1 s\"", "out_state_expired")]:
        edit("a", "name = \"to-peer\"\n", f"name = \"to-peer\"\n{limit}\n")
        lab.reload("a")
        before = drops("a").get(reason, 0)
        if "time" in limit:
            time.sleep(1.2)
        arrived = deliver(0, 100)
        dropped = drops("a").get(reason, 0) - before
        assert len(arrived) < 40 and len(arrived) + dropped == 100, (limit, len(arrived), dropped)
        assert "hard lifetime expired" in lab.log("a")
        edit("a", f"{limit}\n", "")
        lab.reload("a")
        assert len(deliver(0, 20)) == 20, "a new SA is a new start"
    # Only a policy is left, that protects by nothing.
    before = drops("a")
    sa = lab.file_of("a")
    edit("a", "[[sa]]\nname = \"to-peer\"", "[[policy]]\ndirection = \"out\"\nremote_ts = [\"10.2.0.0/16\"]\n"
         "action = \"discard\"\n\n[[sa]]\nname = \"to-peer\"")
    lab.reload("a")
    ip("gw-a", "route", "replace", "10.2.0.0/16", "dev", "fb0")
    assert not deliver(0, 100)
    after = drops("a")
    assert after["out_pol_block"] - before.get("out_pol_block", 0) == 100, after
    with open(f"{lab.LAB}/a.toml", "w", encoding="utf-8") as file:
        file.write(sa)
    lab.reload("a")
    assert len(deliver(0, 20)) == 20
    packets = wire.end()
    assert not in_the_clear(packets), "in the clear"
    print("restart: hard limits of packets, bytes and time, and a policy that discards: each packet counted, none in the clear")


def lives():
    """Lifetimes are limits of keys: they go on over restarts and reloads, and new keys begin anew."""
    def rekey():
        with open(f"{lab.LAB}/a-to-b.key", "r+", encoding="utf-8") as file:
            length = len(file.read()) // 2
            file.seek(0)
            file.write(os.urandom(length).hex())
        for letter in "ba":
            lab.reload(letter)

    edit("a", "name = \"to-peer\"\n", "name = \"to-peer\"\nlife_packets = 50\n")
    rekey()
    assert len(deliver(0, 30)) == 30
    kill("a", signal.SIGTERM)
    start("a")
    assert len(deliver(0, 40)) == 20, "a restart is no new life"
    edit("a", "life_packets = 50\n", "life_packets = 50\nrekey_packets = 40\n")
    lab.reload("a")
    assert not deliver(0, 20), "a reload is no new life"
    rekey()
    assert len(deliver(0, 40)) == 40, "new keys are a new life"
    edit("a", "life_packets = 50\nrekey_packets = 40\n", "life_time = \"4 s\"\n")
    rekey()
    began = time.monotonic()
    assert len(deliver(0, 20)) == 20
    kill("a")
    start("a")
    time.sleep(max(0, began + 4.5 - time.monotonic()))
    assert not deliver(0, 20), "a killed gateway has forgotten when its SA began"
    edit("a", "life_time = \"4 s\"\n", "")
    rekey()
    assert len(deliver(0, 20)) == 20
    print("restart: lifetimes go on over a clean stop, a kill and a reload; new keys begin anew")


def main():
    # A way for what is not routed to the gateway: the one by which it would leak.
    ip("gw-a", "route", "add", "default", "via", "192.0.2.2")
    edit("a", "listen = \"192.0.2.1:4500\"\n", "listen = \"192.0.2.1:4500\"\ngso = false\n")
    # What the routes do is seen without the guard, which has a test of its own.
    edit("a", "[keys]\n", "[guard]\nmode = \"off\"\n\n[keys]\n")
    kill("a", signal.SIGTERM)
    start("a")
    killed_and_back()
    blackholes()
    clean_stop()
    reloads()
    ends()
    lives()


if __name__ == "__main__":
    main()
