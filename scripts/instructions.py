"""Runs the hot path under callgrind and compares its instructions per packet: see instructions.sh."""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BASELINE = pathlib.Path("crates/dataplane/engine/benches/instructions.json")
# Ours: what is Rust, our C shim around ipsec-mb, and what they call of the C library. All else is the
# crypto library's: C and assembly, some of it without names.
OURS = re.compile(r"::|^<|^fb_|^_*(mem(cpy|move|set|cmp|chr)|bcmp|malloc|calloc|realloc|free)")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="the example hot_path")
    parser.add_argument("--update", action="store_true", help="record the counts instead of comparing them")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--top", type=int, default=0, help="show as many functions of ours per case")
    arguments = parser.parse_args()
    packets = int(os.environ.get("PACKETS", "3200"))
    tolerance = float(os.environ.get("TOLERANCE", "3")) / 100

    compiler = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    cases = subprocess.run([arguments.program], check=True, capture_output=True, text=True).stdout.split()
    recorded = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    baseline = recorded.get("ours", {})
    # Another compiler makes other code: its counts are shown, and are no ground to fail.
    is_gate = recorded.get("compiler") == compiler
    counts, worse = {}, []
    if not arguments.json:
        print(f"instructions per packet\n{'case':<22} {'cipher':>8} {'ours':>8} {'recorded':>9}")
    for case in cases:
        ours, cipher, functions = difference(arguments.program, case, packets)
        counts[case] = {"ours": round(ours, 1), "cipher": round(cipher, 1)}
        before = baseline.get(case)
        change = f"{before:>9.1f} {100 * (ours / before - 1):+6.1f} %" if before else f"{'-':>9}"
        if before and ours > before * (1 + tolerance):
            worse.append(case)
            change += "  worse"
        if not arguments.json:
            print(f"{case:<22} {cipher:>8.1f} {ours:>8.1f} {change}", flush=True)
            for name, count in functions.most_common(arguments.top):
                print(f"    {count:>8.1f}  {name}")

    if arguments.json:
        print(json.dumps({"schema": 1, "packets": packets, "cases": counts, "worse": worse}, indent=2))
    if arguments.update:
        ours = {case: count["ours"] for case, count in counts.items()}
        note = "instructions per packet outside of the crypto library; scripts/instructions.sh --update writes this"
        # What this machine cannot run keeps its record.
        BASELINE.write_text(json.dumps({"note": note, "compiler": compiler, "ours": {**baseline, **ours}}, indent=2) + "\n")
    elif worse and not is_gate:
        print(f"instructions: more than recorded, but by {recorded.get('compiler')}, and this is {compiler}: not a failure")
    elif worse:
        sys.exit(f"instructions: worse than {BASELINE} by more than {100 * tolerance:g} %: {', '.join(worse)}")


def difference(program, case, packets):
    """Instructions per packet: ours, the cipher's, and ours by function."""
    once, twice = count(program, case, packets), count(program, case, 2 * packets)
    each = collections.Counter({name: (n - once[name]) / packets for name, n in twice.items()})
    functions = collections.Counter({name: n for name, n in each.items() if OURS.search(name)})
    return functions.total(), each.total() - functions.total(), functions


def count(program, case, packets):
    """Instructions inside of the measured functions, by function."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        command = [
            "valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={out}", "--collect-atstart=no",
            "--toggle-collect=*measured_*", "--compress-strings=no", "--compress-pos=no", program, case, str(packets),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"instructions: {' '.join(command)} failed:\n{done.stderr}")
        return read(out)


def read(path):
    """Self costs of callgrind's output, as its manual's section "Callgrind Format Specification" has it."""
    costs = collections.Counter()
    name, of_call = "", False
    for line in open(path, encoding="utf-8", errors="replace"):
        if line.startswith("fn="):
            name = line[3:].strip()
        elif line.startswith("calls="):
            # The next line is what the call cost, which is counted where it arises.
            of_call = True
        elif line[0].isdigit():
            if not of_call:
                costs[name] += int(line.split()[1])
            of_call = False
    return costs


main()
