#!/usr/bin/env python3
"""Per-CPU SAs (RFC 9611): each worker thread sends by an SPI of its own and hands nothing off; when such
SAs come and go under traffic nothing is lost, repeated, or sent in the clear.

Runs in the laboratory, with two worker threads at each gateway:

    QUEUES=2 scripts/lab.sh FOREBAY run tests/gateway/per_cpu.py
"""

import os
import time
from collections import Counter

from lab import HOST_B, Count, Wire, ask, drops, edit, esp, file_of, in_the_clear, no_offloads, reload, send

QUEUES = int(os.environ["QUEUES"])
PROPOSAL, ENCAPSULATION = os.environ.get("PROPOSAL", "aes128gcm16"), os.environ.get("ENCAPSULATION", "udp")
KEY_BYTES = {"aes128gcm16": 20, "aes256gcm16": 36}[PROPOSAL]
MARK = "# SAs of CPUs\n"
FLOWS, EACH = 12, 400
numbers = iter(range(0, 1 << 40, EACH))


def spi_of(generation, cpu):
    """One that the sockets of the receiver steer to the worker thread with the same number."""
    return (0x8000 + 0x100 * generation) * QUEUES + cpu


def sas(generation, keys, direction):
    """An SA for each worker thread, as gateway A sends or gateway B receives by it."""
    ours, theirs = (1, 2) if direction == "out" else (2, 1)
    texts = []
    for cpu, key in enumerate(keys):
        texts.append(
            f'\n[[sa]]\nname = "{direction}-{generation}-{cpu}"\ndirection = "{direction}"\n'
            f'spi = {spi_of(generation, cpu)}\ncpu = {cpu}\nkey = "{key}"\nproposal = "{PROPOSAL}"\n'
            f'encapsulation = "{ENCAPSULATION}"\nlocal = "192.0.2.{ours}"\nremote = "192.0.2.{theirs}"\n'
            f'local_ts = ["10.{ours}.0.0/16"]\nremote_ts = ["10.{theirs}.0.0/16"]\n'
            + ("" if direction == "out" else "replay_window = 4096\n")
        )
    return "".join(texts)


def put(letter, text):
    """Puts SAs in the place of those of CPUs that a gateway has."""
    before = file_of(letter)
    edit(letter, before, before.split(MARK)[0] + MARK + text)
    reload(letter)


def add(generation):
    """The receiver's side first, where the old ones stay: packets by them may be on the way."""
    keys = [os.urandom(KEY_BYTES).hex() for _ in range(QUEUES)]
    put("b", file_of("b").partition(MARK)[2] + sas(generation, keys, "in"))
    put("a", sas(generation, keys, "out"))


def talk(rate, during=lambda: None):
    """Flows from A's host to B's; asserts that each datagram arrives once, and counts packets by SPI."""
    wire, count = Wire(), Count("host-b")
    senders = [send("host-a", HOST_B, next(numbers), EACH, rate // FLOWS) for _ in range(FLOWS)]
    during()
    failed = sum(int(sender.communicate(timeout=120)[0]) for sender in senders)
    heard, packets = count.end(), wire.end()
    assert failed == 0, f"{failed} datagrams were not sent"
    assert (heard["seen"], heard["twice"], heard["forged"]) == (FLOWS * EACH, 0, 0), (
        f"{heard['seen']} of {FLOWS * EACH} datagrams, {heard['twice']} twice, {heard['forged']} forged; "
        f"A: {drops('a')}, B: {drops('b')}"
    )
    clear = in_the_clear(packets)
    assert not clear, f"{len(clear)} packets in the clear"
    sent = [(spi, sequence) for spi, sequence, _ in esp(packets)]
    assert len(sent) >= FLOWS * EACH, f"{len(sent)} packets seen for {FLOWS * EACH} datagrams"
    repeated = [pair for pair, times in Counter(sent).items() if times > 1]
    assert not repeated, f"sequence numbers are repeated: {repeated[:5]}"
    return Counter(spi for spi, _ in sent)


def main():
    # So that each packet is seen by itself.
    no_offloads("gw-a", "wan")
    fallback = talk(4_000)
    assert len(fallback) == 1, f"one SA has sent by {fallback}"
    (fallback_spi,) = fallback

    add(1)
    used = talk(4_000)
    wanted = {spi_of(1, cpu) for cpu in range(QUEUES)}
    assert set(used) == wanted, f"sent by {used}, expected all of {wanted}"
    for sa in ask("a", "status")["sas"] + ask("b", "status")["sas"]:
        if sa["spi"] in wanted:
            assert sa["packets"] >= used[sa["spi"]], sa
    print(f"per_cpu: {sum(used.values())} packets by {len(used)} SAs of worker threads")

    def come_and_go():
        for generation in range(2, 6):
            time.sleep(0.3)
            add(generation)
            time.sleep(0.3)
            put("a", "")

    used = talk(1_000, come_and_go)
    known = {spi_of(generation, cpu) for generation in range(1, 6) for cpu in range(QUEUES)}
    known.add(fallback_spi)
    assert set(used) <= known and fallback_spi in used and len(used) > QUEUES, used
    came = f"{sum(used.values())} packets by {len(used)} SAs"
    print(f"per_cpu: SAs of worker threads came and went four times under traffic, {came}")

    put("a", "")
    used = talk(4_000)
    assert set(used) == {fallback_spi}, f"without SAs of worker threads sent by {used}"
    print("per_cpu: without them the fallback SA has all packets")


if __name__ == "__main__":
    main()
