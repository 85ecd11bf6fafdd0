#!/usr/bin/env python3
"""Builds the stream cores by Verilator and runs their cases.

    test/run.py [NAME...]     all of them, or those named in cores.py

Variables: COUNT=200 random packets each, SEED=1, FULL=1 all published vectors, WAVE=1 a waveform of the run
without stalls, OPERANDS=10000 of each instruction.
"""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

TEST = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TEST.parent))
import cores  # noqa: E402

OUT = TEST.parents[1] / "target/hardware"
COUNT = os.environ.get("COUNT", "100")


def call(what, command):
    """Runs a command, silent unless it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{what}: {command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def runtime(wave):
    """Verilator's own part of every program, compiled once; the options for what is compiled with it."""
    root = pathlib.Path(call("verilator", ["verilator", "--getenv", "VERILATOR_ROOT"]).strip()) / "include"
    flags = [
        "-std=c++20",
        "-O1",
        "-faligned-new",
        f"-I{root}",
        f"-I{root}/vltstd",
        "-DVM_COVERAGE=0",
        "-DVM_SC=0",
    ]
    flags += [f"-DVM_TRACE={int(wave)}", f"-DVM_TRACE_FST={int(wave)}", "-DVM_TRACE_VCD=0", "-w"]
    sources = ["verilated.cpp", "verilated_threads.cpp"] + ["verilated_fst_c.cpp"] * wave
    objects = []
    for source in sources:
        target = OUT / f"{'wave-' if wave else ''}{source}.o"
        if not target.exists():
            call(source, ["g++", *flags, "-c", str(root / source), "-o", str(target)])
        objects.append(str(target))
    return flags, objects


def build(name, module, source, parameters, program, wave=False):
    """The test program of a module: `program` is C++ that includes Dut.h."""
    folder = OUT / ("wave-" + name if wave else name)
    shutil.rmtree(folder, ignore_errors=True)
    command = [
        "verilator",
        "--cc",
        "-Wall",
        "--x-assign",
        "unique",
        "--x-initial",
        "unique",
        "--prefix",
        "Dut",
    ]
    command += ["-O3", "--output-split-cfuncs", "500", "-Mdir", str(folder), "--top-module", module] + [
        "--trace-fst"
    ] * wave
    command += [f"-G{key}={value}" for key, value in parameters.items()]
    call(name, command + cores.search_path() + [str(source)])
    flags, objects = runtime(wave)
    whole = folder / "whole.cc"
    parts = sorted(path.name for path in folder.glob("Dut*.cpp"))
    whole.write_text("".join(f'#include "{part}"\n' for part in [*parts, str(TEST / program)]))
    libraries = ["-lz"] * wave + ["-pthread"]
    call(name, ["g++", *flags, f"-I{folder}", str(whole), *objects, "-o", str(folder / "test"), *libraries])
    return folder / "test"


def instructions():
    """The custom instructions against the simulator, whose example writes operands and results."""
    if not shutil.which("cargo"):
        print("  skipped: no cargo")
        return
    count = os.environ.get("OPERANDS", "10000")
    program = build("instructions", "instructions_top", TEST / "instructions_top.v", {}, "instructions.cc")
    example = [
        "-q",
        "--profile",
        os.environ.get("CARGO_PROFILE", "dev"),
        # Without a package, so that its dependencies have the features of the whole workspace and are those of `make test`.
        "--example",
        "operands",
    ]
    cargo = ["cargo", "run", "--locked", *example, "--", count, os.environ.get("SEED", "1")]
    with subprocess.Popen(cargo, stdout=subprocess.PIPE, cwd=TEST.parents[1]) as writer:
        done = subprocess.run([program], stdin=writer.stdout, check=False)
    if done.returncode != 0 or writer.returncode != 0:
        sys.exit("instructions: failed")


def cases_of(name):
    """The case file of a core."""
    cases = OUT / f"{name}.cases"
    with open(cases, "w", encoding="ascii") as file:
        subprocess.run([sys.executable, TEST / "cases.py", name, COUNT], stdout=file, check=True)
    return cases


def lookaside():
    """The lookaside engine behind a ring and a memory."""
    parameters = {"CIPHER": 1, "INTEGRITY": 3}
    program = build("lookaside", "lookaside", cores.HERE / "engine/lookaside.v", parameters, "lookaside.cc")
    if subprocess.run([program, cases_of("esp-ctr-sha256")], check=False).returncode != 0:
        sys.exit("lookaside: failed")


def main():
    """Builds and runs."""
    if not shutil.which("verilator"):
        print("hardware: skipped: no verilator (scripts/setup.sh hardware)")
        return
    if not importlib.util.find_spec("cryptography"):
        print("hardware: skipped: no Python package `cryptography` (scripts/setup.sh hardware)")
        return
    named = sys.argv[1:]
    others = {"lookaside": lookaside, "instructions": instructions}
    known = [variant.name for variant in cores.STREAMS] + list(others)
    for name in named:
        if name not in known:
            sys.exit(f"unknown core `{name}`; known: {', '.join(known)}")
    wave = bool(os.environ.get("WAVE"))
    OUT.mkdir(parents=True, exist_ok=True)
    for variant in cores.STREAMS:
        if named and variant.name not in named:
            continue
        print(f"{variant.name}:", flush=True)
        program = build(variant.name, variant.module, variant.source, variant.parameters, "stream.cc", wave)
        cases = cases_of(variant.cases)
        waves = [str(OUT / f"{variant.name}.fst")] if wave else []
        if subprocess.run([program, cases, *waves], check=False).returncode != 0:
            sys.exit(f"{variant.name}: failed")
    for name, test in others.items():
        if not named or name in named:
            print(f"{name}:", flush=True)
            test()


if __name__ == "__main__":
    main()
