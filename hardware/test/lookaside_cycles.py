#!/usr/bin/env python3
"""Cycles of a packet in the lookaside engine with AES-CTR and HMAC-SHA-1, by length of text, as JSON: a ring that is always
full and a memory that answers at once, so that fetching and writing overlap with the engine's work."""

import json
import random
import re
import subprocess
import tempfile

import engine_cases
import run
from run import cores

TEXTS = [48, 64, 128, 256, 576, 1024, 1408, 1504]
FEW, MANY = 20, 120


def total(program, engine, text, count):
    """Cycles of so many packets and what comes before them."""
    with tempfile.NamedTemporaryFile("w", suffix=".cases") as file:
        lines = engine.key_lines()
        for _ in range(count):
            given, out = engine.packet(3, text, False)
            lines.append(f"P - 0 - {given.hex()} {out.hex()}")
        file.write("\n".join(lines) + "\n")
        file.flush()
        done = subprocess.run([program, file.name], capture_output=True, text=True, check=True)
    return int(re.search(r"stalls 0 %, (\d+) cycles", done.stdout).group(1))


def main():
    """Builds the engine and measures."""
    run.OUT.mkdir(parents=True, exist_ok=True)
    parameters = {"CIPHER": 1, "INTEGRITY": 2}
    source = cores.HERE / "engine/lookaside.v"
    program = run.build("lookaside-ctr-sha1", "lookaside", source, parameters, "lookaside.cc")
    engine = engine_cases.Engine(random.Random(1), "ctr", "sha1")
    of = {}
    for text in TEXTS:
        few, many = (total(program, engine, text, count) for count in (FEW, MANY))
        of[str(text)] = round((many - few) / (MANY - FEW))
    print(json.dumps({"suite": "aes128ctr-sha1", "cycles": of}))


if __name__ == "__main__":
    main()
