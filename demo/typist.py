#!/usr/bin/env python3
"""Runs a command on a pseudo-terminal and types at it key by key, as a person would."""

import os
import pty
import random
import select
import sys
import time

LINES = [
    "uname -sr",
    "cd /usr/share/doc && ls | head -40",
    "wc -l /etc/services /etc/protocols 2>/dev/null",
    "for i in 1 2 3; do echo round $i; sleep 0.2; done",
    "grep -c . /etc/passwd; echo $SHELL; date",
    "echo the quick brown fox jumps over the lazy dog | tr a-z A-Z",
    "seq 1 400 | paste -sd' ' | fold -w 76",
    "yes forebay | head -500",
    "exit",
]


def drain(terminal, seconds):
    """Reads what the program shows for a while; False once it has ended."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            try:
                if not os.read(terminal, 65536):
                    return False
            except OSError:
                return False
    return True


def main():
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(sys.argv[1], sys.argv[1:])
    keys = random.Random(3)
    alive = drain(terminal, 1.5)
    for line in LINES:
        for key in line + "\r":
            if alive:
                os.write(terminal, key.encode())
                alive = drain(terminal, keys.uniform(0.03, 0.09))
        alive = alive and drain(terminal, keys.uniform(0.6, 1.0))
    drain(terminal, 3)
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))


main()
