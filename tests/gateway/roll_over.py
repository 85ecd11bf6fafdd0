#!/usr/bin/env python3
"""New keys for two running gateways by hand, as docs/runbooks.md says it: under traffic in both directions nothing is lost,
nothing arrives twice, and nothing leaves in the clear. The wrong order loses packets, so that the test says something.

    scripts/lab.sh FOREBAY run tests/gateway/roll_over.py
"""

import os
import re
import time

import lab
from lab import HOST_A, HOST_B, LAB, Count, Wire, drops, esp, file_of, in_the_clear, log, reload, send

RATE, SECONDS = 2_000, 6


def secret(name):
    with open(f"{LAB}/{name}", "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(os.urandom(20).hex())


def sections(letter):
    """The file in front of its SAs, and each of its SAs."""
    head, *sas = file_of(letter).split("[[sa]]\n")
    return head, sas


def write(letter, head, sas):
    with open(f"{LAB}/{letter}.toml", "w", encoding="utf-8") as file:
        file.write("[[sa]]\n".join([head, *sas]))
    reload(letter)


def renewed(sa, number):
    """The SA with the keys and the SPI of that number."""
    lines = []
    for line in sa.splitlines():
        key, _, value = line.partition(" = ")
        if key == "spi":
            value = f"{int(value, 0) + 0x100:#x}"
        if key in ("name", "key_file"):
            value = value.replace(".key", f"-{number}.key") if key == "key_file" else f'{value[:-1]}-{number}"'
        lines.append(f"{key} = {value}" if value else line)
    return "\n".join(lines) + "\n"


def receive_new(letter, number):
    """First step: the new inbound SA beside the old one."""
    head, sas = sections(letter)
    inbound = next(sa for sa in sas if 'direction = "in"' in sa)
    write(letter, head, [*sas[:-1], sas[-1] + "\n", renewed(inbound, number)])


def send_new(letter, number):
    """Second step, when both receive: the new outbound SA in the place of the old one."""
    head, sas = sections(letter)
    write(letter, head, [renewed(sa, number) if 'direction = "out"' in sa else sa for sa in sas])


def forget_old(letter, number):
    """Last step: the old inbound SA goes."""
    head, sas = sections(letter)
    write(letter, head, [sa for sa in sas if 'direction = "out"' in sa or f'-{number}"' in sa])


def under_traffic(steps):
    """Sends in both directions while `steps` are made; how many did not arrive, and what passed outside."""
    wire, heard = Wire(), {"a": Count("host-a"), "b": Count("host-b")}
    count = RATE * SECONDS
    senders = [send("host-a", HOST_B, 0, count, RATE), send("host-b", HOST_A, 0, count, RATE)]
    for step in steps:
        time.sleep(0.4)
        step()
    for sender in senders:
        sender.wait(timeout=60)
    lost = 0
    for counted in (heard[letter].end() for letter in "ab"):
        assert counted["twice"] == counted["forged"] == 0, counted
        lost += count - counted["seen"]
    packets = wire.end()
    assert not in_the_clear(packets)
    return lost, packets


def main():
    for way in ("a-to-b", "b-to-a"):
        secret(f"{way}-2.key")
        secret(f"{way}-2-3.key")  # the third, named behind the second
    steps = [lambda do=do, letter=letter: do(letter, 2) for do in (receive_new, send_new, forget_old) for letter in "ab"]
    lost, packets = under_traffic(steps)
    assert lost == 0, (lost, drops("a"), drops("b"))
    # One of these may stand for several packets, which the kernel cuts behind the socket.
    spis = [spi for spi, _, _ in esp(packets)]
    old, new = spis.count(0x1001), spis.count(0x1101)
    assert old > 100 and new > 100 and spis.index(0x1101) >= old, "the old SA was used behind the new one"
    # Who asked, and what became of it.
    asked = re.findall(r"reload requested at the control socket .*uid=(\d+) pid=\d+", log("a"))
    changed = re.findall(r"configuration reloaded added=(\S+) removed=(\S+)", log("a"))
    assert asked[:3] == [str(os.getuid())] * 3, log("a")
    assert [name.strip('"').endswith("-2") for name, _ in changed[:2]] == [True] * 2, log("a")
    print(f"roll over: {2 * RATE * SECONDS} packets while both gateways got new keys: none lost, none twice, none in the clear")

    lost, _ = under_traffic([lambda: send_new("a", 3), lambda: receive_new("b", 3)])
    unknown = drops("b").get("in_no_states", 0)
    assert 0 < lost <= unknown, (lost, unknown)
    print(f"roll over: in the wrong order {lost} packets are lost, as in_no_states")


if __name__ == "__main__":
    main()
