"""Faults that strike a pair, and what each costs."""

import os
import signal
import subprocess
import time

import lab
from lab import LAB, ip, kill, program, wait_until

from . import programs
from .world import GATEWAYS, SHARED, settle, start

# Each takes the active gateway and the one that stands by, strikes, and gives what undoes it after a while.

def kill_active(one, _other):
    kill(one)
    return lambda: start(one)


def stop_active(one, _other):
    os.kill(lab.pid_of(one), signal.SIGTERM)

    def again():
        wait_until(lambda: lab.pid_of(one) is None, "a clean stop")
        start(one)
    return again


def suspend_active(one, _other):
    pid = lab.pid_of(one)
    os.kill(pid, signal.SIGSTOP)
    return lambda: os.kill(pid, signal.SIGCONT)


def cut_active(one, _other):
    """Like a host that lost its power for its peers, or all of its cables."""
    def links(state):
        for port in (f"w{one}", f"l{one}"):
            ip("sw", "link", "set", port, state)
        for n in range(2):
            ip("gw-0", "link", "set", f"p{n}", state)
    links("down")
    return lambda: links("up")


def partition(_one, _other):
    for n in range(2):
        ip("gw-0", "link", "set", f"p{n}", "down")
    return lambda: [ip("gw-0", "link", "set", f"p{n}", "up") for n in range(2)]


def mute(letter):
    """What the gateway sends to its peer does not arrive."""
    peers = [f"10.9.{n}.{2 - int(letter)}/32" for n in range(2)]
    for peer in peers:
        ip(f"gw-{letter}", "route", "add", "blackhole", peer)
    return lambda: [ip(f"gw-{letter}", "route", "del", "blackhole", peer) for peer in peers]


def mute_active(one, _other):
    return mute(one)


def mute_standby(_one, other):
    return mute(other)


def one_link(_one, _other):
    """One of two peer links: nothing is to happen."""
    ip("gw-0", "link", "set", "p0", "down")
    return lambda: ip("gw-0", "link", "set", "p0", "up")


FAULTS = [kill_active, stop_active, suspend_active, cut_active, partition, mute_active, mute_standby, one_link]
QUICK = [kill_active, suspend_active, stop_active, partition, cut_active, one_link]


def strike(fault, traffic, judge, hold):
    """One fault, what it costs, and packets of before that are sent again."""
    one = settle()
    other = GATEWAYS[1 - GATEWAYS.index(one)]
    judge.ask("record")
    moment = time.monotonic()
    undo = fault(one, other)
    time.sleep(hold)
    middle = traffic.flows_since(moment) if fault not in (one_link,) else {}
    healed = time.monotonic()
    undo()
    settle()
    after = traffic.flows_since(healed)
    again = subprocess.run(program("gw-b", programs.AGAIN, f"{LAB}/recorded", SHARED), capture_output=True, text=True, check=True)
    now = settle()
    time.sleep(0.2)
    twice = {name: flow.ask()["twice"] for name, flow in traffic.flows.items()}
    assert not any(twice.values()), f"replayed packets were delivered: {twice}"
    if fault is one_link:
        assert now == one, "one of two links was cut, and the other gateway took over"
    return now != one, middle, after, int(again.stdout)
