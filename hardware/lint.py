#!/usr/bin/env python3
"""Verilator's lint with all warnings, and Icarus Verilog's parser for Verilog-2005, over every core and
variant."""

import shutil
import subprocess
import sys

import cores

INSTRUCTIONS = [
    "add64",
    "fold64",
    "aes_round_instruction",
    "aes_column",
    "md5_iteration",
    "zkne_zknd",
    "zknh",
]
# Modules that no other variant has with these parameters.
MORE = [
    cores.Variant("lookaside", "engine", "lookaside", {"CIPHER": 4, "INTEGRITY": 0}),
    *[cores.Variant(name, "instructions", name) for name in INSTRUCTIONS],
    *[
        cores.Variant(f"{name}-forward", "instructions", name, {"INVERSE": 0})
        for name in ("aes_round_instruction", "aes_column", "zkne_zknd")
    ],
]


def commands(variant):
    """What looks at a variant, of the tools that are here."""
    path = cores.search_path()
    given = [f"-G{key}={value}" for key, value in variant.parameters.items()]
    if shutil.which("verilator"):
        yield [
            "verilator",
            "--lint-only",
            "-Wall",
            *path,
            *given,
            "--top-module",
            variant.module,
            str(variant.source),
        ]
    if shutil.which("iverilog"):
        given = [f"-P{variant.module}.{key}={value}" for key, value in variant.parameters.items()]
        yield [
            "iverilog",
            "-g2005",
            "-Wall",
            "-Wno-timescale",
            *path,
            *given,
            # No output: iverilog makes what `-o` names executable, and root's /dev/null would be nobody else's.
            "-tnull",
            "-s",
            variant.module,
            str(variant.source),
        ]


def main():
    """Looks at all of them; exit status 1 if anything was said."""
    for tool in ("verilator", "iverilog"):
        if not shutil.which(tool):
            print(f"lint: skipped: no {tool} (scripts/setup.sh hardware)")
    bad = 0
    for variant in cores.STREAMS + MORE:
        for command in commands(variant):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            said = (done.stdout + done.stderr).strip()
            if said or done.returncode != 0:
                print(f"{variant.name}: {command[0]}:\n{said}")
                bad += 1
    print(f"lint: {len(cores.STREAMS + MORE)} variants, {bad} with findings")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
