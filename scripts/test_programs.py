#!/usr/bin/env python3
"""Builds the test programs of the workspace and runs them, several at a time: cargo runs one after the other, and many wait more
than they compute. What each says comes when it has ended; one that runs for more than half an hour is ended, and has failed.

    scripts/test_programs.py [JOBS]        3 at a time by default
"""

import contextlib
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
CARGO = shlex.split(os.environ.get("CARGO", "cargo"))
BUILD = [*CARGO, "test", "--workspace", "--tests", "--locked", "--no-run", "--message-format", "json-render-diagnostics"]
PIPES = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
TIMEOUT = 1800
# The programs that run; the lock under which they begin, so that a signal finds them all; whether no more may begin.
running, begins, stopped = set(), threading.Lock(), threading.Event()


def programs():
    """The kind of each test program (`test`, `lib` or `bin`), itself, and the folder of its package, in which cargo would run it."""
    built = subprocess.run(BUILD, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    built.returncode and sys.exit(built.returncode)
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            yield message["target"]["kind"][0], message["executable"], pathlib.Path(message["manifest_path"]).parent


def run(program):
    """Why the program failed, if it did."""
    _, path, folder = program
    environment = {**os.environ, "CARGO": CARGO[0], "CARGO_MANIFEST_DIR": str(folder)}
    with begins:
        if stopped.is_set():
            return "not run"
        child = subprocess.Popen([path], cwd=folder, env=environment, start_new_session=True, **PIPES)
        running.add(child)
    print(f"     Started {pathlib.Path(path).name}", file=sys.stderr, flush=True)
    try:
        said, late = child.communicate(timeout=TIMEOUT)[0], False
    except subprocess.TimeoutExpired:
        end(child, signal.SIGKILL)
        said, late = child.communicate()[0], True
    running.discard(child)
    print(f"     Running {path}\n{said.decode(errors='replace')}", end="", flush=True)
    code = child.returncode
    why = f"ended by {signal.Signals(-code).name}" if code < 0 else code and f"exit code {code}"
    return f"ran for more than {TIMEOUT} s" if late else why


def end(child, number):
    # And what it has started, which may hold its output open.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def stop(number, _):
    stopped.set()
    with begins:
        [end(child, signal.SIGTERM) for child in running.copy()]
    sys.exit(128 + number)


def main():
    jobs = sys.argv[1] if len(sys.argv) > 1 else "3"
    if len(sys.argv) > 2 or not jobs.isdecimal() or int(jobs) < 1:
        sys.exit(print("usage: scripts/test_programs.py [JOBS], a number from 1 on", file=sys.stderr) or 2)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    # Those of a whole crate take longer than those of its parts, so they come first.
    each = sorted(programs(), key=lambda program: program[0] != "test")
    with ThreadPoolExecutor(int(jobs)) as pool:
        failed = [(path, why) for (_, path, _), why in zip(each, pool.map(run, each)) if why]
    for path, why in failed:
        print(f"test_programs: failed: {path}: {why}", file=sys.stderr)
    print(f"test_programs: {len(each) - len(failed)} of {len(each)} programs passed")
    sys.exit(1 if failed or not each else 0)


if __name__ == "__main__":
    main()
