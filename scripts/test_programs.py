#!/usr/bin/env python3
"""Builds the test programs of the workspace and runs them, several at a time: cargo runs one after the other, and many wait more
than they compute. What each says comes when it has ended.

    scripts/test_programs.py [JOBS]        3 at a time by default
"""

import json
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
CARGO = os.environ.get("CARGO", "cargo")
BUILD = [CARGO, "test", "--workspace", "--tests", "--locked", "--no-run", "--message-format", "json-render-diagnostics"]


def programs():
    """The kind of each test program (`test`, `lib` or `bin`), itself, and the folder of its package, in which cargo would run it."""
    built = subprocess.run(BUILD, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if built.returncode:
        sys.exit(built.returncode)
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            yield message["target"]["kind"][0], message["executable"], pathlib.Path(message["manifest_path"]).parent


def run(program):
    _, path, folder = program
    environment = {**os.environ, "CARGO": CARGO, "CARGO_MANIFEST_DIR": str(folder)}
    ended = subprocess.run([path], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = ended.stdout.decode(errors="replace")
    print(f"     Running {path}\n{said}", end="", flush=True)
    return ended.returncode


def main():
    # Those of a whole crate take longer than those of its parts, so they come first.
    each = sorted(programs(), key=lambda program: program[0] != "test")
    with ThreadPoolExecutor(int(sys.argv[1]) if len(sys.argv) > 1 else 3) as pool:
        failed = [path for (_, path, _), code in zip(each, pool.map(run, each)) if code]
    for path in failed:
        print(f"test_programs: failed: {path}", file=sys.stderr)
    print(f"test_programs: {len(each) - len(failed)} of {len(each)} programs passed")
    sys.exit(1 if failed or not each else 0)


if __name__ == "__main__":
    main()
