"""What operators and others do to a pair: new keys, files with errors, another program, strangers, other settings, lost records."""

import os
import shutil
import signal
import subprocess
import time

import lab
from lab import LAB, Talker, ip, kill, wait_until

from . import programs
from .faults import suspend_active
from .world import GATEWAYS, RATE, active, pair_of, settle, start

def new_keys(generation):
    """Other SAs in all files."""
    last = generation - 1
    for way, spi in (("a-to-b", 0x1001), ("b-to-a", 0x2001)):
        with open(f"{LAB}/{way}-{generation}.key", "w", encoding="utf-8") as file:
            file.write(os.urandom(20).hex())
        for letter in ("0", "1", "b"):
            lab.edit(letter, f"spi = {spi + 16 * last:#x}", f"spi = {spi + 16 * generation:#x}")
            lab.edit(letter, f'"{way}-{last}.key"' if last else f'"{way}.key"', f'"{way}-{generation}.key"')


def replaced_keys(traffic):
    """SAs are replaced while a gateway stands by: it takes over with the new ones, whether it was told of them or not."""
    for generation in (1, 2):
        one = settle()
        other = GATEWAYS[1 - GATEWAYS.index(one)]
        if generation == 2:
            whole = lab.file_of(other)
            lab.edit(other, "[inside]", "[inside]\nno_such_key = 1")
            said = lab.ask(other, "reload")
            assert not said["ok"] and "no_such_key" in str(said["errors"]), said
            with open(f"{LAB}/{other}.toml", "w", encoding="utf-8") as file:
                file.write(whole)
        new_keys(generation)
        if generation == 2:
            said = lab.ask(other, "reload")
            assert said["ok"] and (said["added"], said["removed"], said["restart"]) == (2, 2, []), said
        for letter in (one, "b"):
            assert lab.ask(letter, "reload")["ok"]
        traffic.flows_since(time.monotonic())
        settle()
        moment = time.monotonic()
        kill(one)
        took = max(traffic.flows_since(moment).values())
        start(one)
        assert settle() == other, "the other gateway did not take over"
        print(f"pair: SAs replaced, the standby {'reloaded' if generation == 2 else 'not told'}, take-over: flows again after "
              f"{took:.2f} s", flush=True)


def broken_file(traffic):
    """A gateway whose file has an error when it stands down stands by with what it had."""
    one = settle()
    whole = lab.file_of(one)
    lab.edit(one, "[inside]", "[inside]\nno_such_key = 1")
    undo, moment = suspend_active(one, None), time.monotonic()
    traffic.flows_since(moment)
    undo()
    assert settle() != one, "the other gateway did not take over"
    assert "no_such_key" in lab.log(one)
    with open(f"{LAB}/{one}.toml", "w", encoding="utf-8") as file:
        file.write(whole)
    print("pair: a gateway whose file has an error stands by with the last one", flush=True)


def upgrade(traffic):
    """Both gateways get another program under traffic, as the runbook says: first the one that stands by. What that costs."""
    one = settle()
    other = GATEWAYS[1 - GATEWAYS.index(one)]
    traffic.flows_since(time.monotonic())
    before = {name: flow.ask() for name, flow in traffic.flows.items()}
    began, first = time.monotonic(), lab.FOREBAY
    lab.FOREBAY = shutil.copy(first, f"{LAB}/forebay-new")
    pauses = []
    for letter in (other, one):
        moment = time.monotonic()
        kill(letter, signal.SIGTERM)
        pauses.append(max(traffic.flows_since(moment).values()))
        start(letter)
        settle()
    assert all(os.readlink(f"/proc/{lab.pid_of(letter)}/exe") == lab.FOREBAY for letter in GATEWAYS)
    time.sleep(0.5)
    after = {name: flow.ask() for name, flow in traffic.flows.items()}
    took = time.monotonic() - began
    lost = sum(round(RATE * took) - (after[name]["seen"] - before[name]["seen"]) for name in ("a to b", "b to a"))
    print(f"pair: both gateways upgraded one after the other in {took:.1f} s: pauses of {pauses[0]:.2f} s (standby) and {pauses[1]:.2f} s "
          f"(active), about {max(lost, 0)} of {2 * round(RATE * took)} datagrams lost", flush=True)


def strangers():
    """Connections that say little, from many addresses, keep the gateways of a pair from nothing, and fill no log."""
    settle()
    for n in range(50):
        ip("host-a", "addr", "add", f"10.1.9.{n + 1}/16", "dev", "eth0")
    flood = Talker("host-a", programs.STRANGERS, "10.9.0.1", 7411)
    time.sleep(1)
    took = []
    for cut in (lambda: [ip("gw-0", "link", "set", f"p{n}", "down") for n in range(2)], lambda: kill("1")):
        cut()
        time.sleep(1)
        began = time.monotonic()
        for n in range(2):
            ip("gw-0", "link", "set", f"p{n}", "up")
        if lab.pid_of("1") is None:
            start("1")
        settle()
        took.append(time.monotonic() - began)
    said = lab.log("0").count("10.1.9.")
    print(f"pair: {flood.end().strip()} connections of strangers: the gateways agreed again within {max(took):.2f} s of a cut link and of a "
          f"start; {said} lines about them in the log", flush=True)
    assert 0 < said < 10, lab.log("0")[-4000:]


def both_are_looked_after():
    """Rules and routes that another program deletes are back within about a second, on the gateway that stands by as well."""
    one = settle()
    for letter in (one, GATEWAYS[1 - GATEWAYS.index(one)]):
        role = pair_of(letter)["role"]
        took = lab.looked_after(letter)
        print(f"pair: rules and routes of the {role} gateway that were deleted are back within {took:.2f} s", flush=True)


def refusals():
    """Another key, equal numbers, other addresses: refused, and named in the log of both."""
    for what, (old, new), words in (
            ("key", ('key_file = "pair.key"', 'key_file = "other.key"'), ("key",)),
            ("number", ("number = 1", "number = 0"), ("number",)),
            ("addresses", ("lan 10.1.0.1/16", "lan 10.1.0.2/16"), ("addresses",))):
        settle()
        before = len(lab.log("1"))
        standby = GATEWAYS[1 - GATEWAYS.index(active()[0])]
        assert standby in GATEWAYS
        kill("1", signal.SIGTERM)
        text = lab.file_of("1")
        with open(f"{LAB}/other.key", "w", encoding="utf-8") as file:
            file.write(os.urandom(32).hex())
        lab.edit("1", old, new)
        if what == "number":
            # The state directory of gateway 1 is refused with `number = 0`.
            lab.edit("1", 'listen = ["10.9.0.1:7411", "10.9.1.1:7411"]', 'listen = ["10.9.0.2:7411"]')
            process = lab.start("1", wait=False)
            wait_until(lambda: process.poll() is not None, "the refusal of another gateway's state")
            assert "state directory is of gateway 1" in lab.log("1")[before:], lab.log("1")[before:]
        else:
            start("1")
            wait_until(lambda: "refused the connection" in lab.log("1")[before:], f"the refusal of another {what}")
            said = lab.log("1")[before:]
            assert all(word in said for word in words), said
            assert "refused the connection" in lab.log("0"), lab.log("0")[-2000:]
            kill("1")
        with open(f"{LAB}/1.toml", "w", encoding="utf-8") as file:
            file.write(text)
        start("1")
    settle()
    print("pair: a peer with another key, another gateway's state or other shared addresses is refused and named")


def where_they_meet():
    """Gateway 0 takes its peer's connections at the addresses of `listen`, gateway 1 makes one to each of `peers`."""
    listens = lambda: sockets("0", "listening", 3)
    connects = lambda: sockets("1", "established", 4)
    both = {"10.9.0.1:7411", "10.9.1.1:7411"}
    settle()
    wait_until(lambda: listens() == both and connects() == both, "connections at all addresses")
    for letter, key, seen in (("0", "listen", listens), ("1", "peers", connects)):
        text = lab.file_of(letter)
        kill(letter, signal.SIGTERM)
        lab.edit(letter, f'{key} = ["10.9.0.1:7411", "10.9.1.1:7411"]', f'{key} = ["10.9.1.1:7411"]')
        start(letter)
        settle()
        wait_until(lambda: seen() == {"10.9.1.1:7411"}, f"one address of `{key}` alone")
        kill(letter, signal.SIGTERM)
        with open(f"{LAB}/{letter}.toml", "w", encoding="utf-8") as file:
            file.write(text)
        start(letter)
        settle()
    print("pair: connections are taken at the addresses of `listen` and made to those of `peers`")


def sockets(letter, state, column):
    """The addresses of a gateway's TCP sockets at the pair's port, of this side or of the other."""
    said = subprocess.run(lab.inside(f"gw-{letter}", "ss", "-Htn", "state", state), stdout=subprocess.PIPE, text=True, check=True).stdout
    # Without a column for the state: queues, this side, the other.
    return {words[column - 1] for words in map(str.split, said.splitlines()) if len(words) > 3 and words[column - 1].endswith(":7411")}


def lacking():
    """A gateway that may lack records is not active without its peer: one that stood by and was stopped while its peer went on, and one
    whose directory is empty. The first goes on when an operator says so, the second when its peer is there."""
    def waits(letter):
        wait_until(lambda: (pair_of(letter) or {}).get("waits"), f"gateway {letter} to say that it waits")
        time.sleep(3)
        assert not active(), "it is active without its peer"
        said = subprocess.run([lab.FOREBAY, "status", "--socket", f"{LAB}/{letter}.sock"], stdout=subprocess.PIPE, text=True, check=True)
        assert "it may lack records" in said.stdout and "forebay state accept" in lab.log(letter), said.stdout

    def state(letter, *words):
        return subprocess.run([lab.FOREBAY, "state", *words, "--state", f"{LAB}/state-{letter}"], stdout=subprocess.PIPE, text=True, check=True).stdout

    one = settle()
    other = GATEWAYS[1 - GATEWAYS.index(one)]
    kill(other, signal.SIGTERM)
    time.sleep(1)
    kill(one)
    start(other)
    waits(other)
    assert "waits for its peer" in state(other), state(other)
    state(other, "accept")
    wait_until(lambda: active() == [other], "the operator's acceptance to be read")
    start(one)
    assert settle() == other
    # Its peer is stopped first, so that nobody has all for certain.
    kill(one, signal.SIGTERM)
    kill(other)
    shutil.rmtree(f"{LAB}/state-{other}")
    start(other)
    waits(other)
    # Together they lack what the other one has used since: an operator has to accept that this is all there is.
    start(one)
    time.sleep(4)
    assert not active(), "a stale and an empty gateway are active"
    assert "has an empty state directory" in lab.log(one), lab.log(one)[-2000:]
    state(one, "accept")
    settle()
    print("pair: gateways with stale and with empty records are active only behind a peer that has all, or if an operator has accepted their records")
