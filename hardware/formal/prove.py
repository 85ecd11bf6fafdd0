#!/usr/bin/env python3
"""Proofs by yosys: combinational modules against formal/semantics.v, and the handshakes of the streams.

    formal/prove.py [NAME...]     all, or those named; SECONDS=1200 for each

A handshake is proved by induction from any state, with simple functions in the places of rounds, under
the assumption that the other sides keep the protocol and that no key is written in the packet: what is
offered and not taken is offered unchanged in the next cycle.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import cores  # noqa: E402

SECONDS = int(os.environ.get("SECONDS", "1200"))
EQUAL = ["aes_sbox", "aes_mix_column", "add64", "fold64", "zkne_zknd", "zknh", "md5_iteration"]
# Not decided within some minutes, so only by name: yosys's solver is slow with sums of many bits.
HARD = ["aes_column"]
PORT = re.compile(r"^\s*(input|output)\s+(?:wire|reg)\s*(\[[^\]]+\])?\s*(\w+)", re.M)


def equal(module):
    """The script that proves a module equal to its semantics for all inputs."""
    files = [str(path) for path in cores.closure(module)]
    if module == "aes_sbox":
        return (
            f"read_verilog -formal {files[0]} {HERE}/semantics.v; prep -flatten -top aes_sbox_property; "
            "opt -full; "
            "sat -verify -prove-asserts -set-assumes aes_sbox_property"
        )
    files = [str(HERE / "open_sbox.v") if "aes_sbox" in path else path for path in files]
    # Of a column sixteen small proofs instead of a large one.
    constants = [f"-set in_kind {kind} -set in_column {column}" for kind in range(4) for column in range(4)]
    constants = constants if module == "aes_column" else [""]
    return (
        f"read_verilog {' '.join(files)}; "
        f"prep -flatten -top {module}; design -stash gate; "
        f"read_verilog -formal {HERE}/open_sbox.v {HERE}/semantics.v; "
        f"prep -flatten -top {module}_semantics; design -stash gold; "
        f"design -copy-from gold -as gold {module}_semantics; design -copy-from gate -as gate {module}; "
        "miter -equiv -make_assert -flatten gold gate miter; hierarchy -top miter; memory_map; opt -full; "
        # Sums of many bits are made alike first.
        + ("techmap; opt -full; abc -g AND,XOR,MUX; opt_merge; " if module.startswith("aes_") else "")
        + "; ".join(f"sat -verify -prove-asserts {case} miter" for case in constants)
    )


def stream(variant, folder):
    """The script that proves the handshake of a stream core."""
    ports = PORT.findall(variant.source.read_text())
    parameters = dict(re.findall(r"parameter (\w+) = (\w+)", variant.source.read_text()))
    parameters.update({key: str(value) for key, value in variant.parameters.items()})
    names = [name for _, _, name in ports]
    held_in = [
        name for name in names if name.startswith(("s_t", "cmd_")) and name not in ("s_tready", "cmd_ready")
    ]
    held_out = [name for name in names if name.startswith("m_t") and name != "m_tready"]

    def size(bits):
        return re.sub(r"\b[A-Z_]+\b", lambda word: parameters[word.group()], bits) if bits else ""

    lines = ["module handshake("]
    lines.append(",\n".join(f"  input {size(bits)} {name}" for way, bits, name in ports if way == "input"))
    lines.append(");")
    lines += [f"wire {size(bits)} {name};" for way, bits, name in ports if way == "output"]
    given = ", ".join(f".{key}({value})" for key, value in variant.parameters.items())
    lines.append(
        f"{variant.module} #({given}) dut (" + ", ".join(f".{name}({name})" for name in names) + ");"
    )
    everything = {
        "s": [n for n in held_in if n.startswith("s_t")],
        "cmd": [n for n in held_in if n[0] == "c"],
    }
    lines.append("reg known = 0; always @(posedge clk) known <= 1;")
    quiet = [name for name in ("rst", "key_we", "key_clear") if name in names]
    for name in quiet:
        lines.append(f"always @* assume (!{name});")
    for side, held in {**everything, "m": held_out}.items():
        if not held:
            continue
        bits = {name: size(bits) for _, bits, name in ports}
        valid, ready = ("cmd_valid", "cmd_ready") if side == "cmd" else (f"{side}_tvalid", f"{side}_tready")
        word = "{" + ", ".join(held) + "}"
        verb = "assert" if side == "m" else "assume"
        width = sum(bits_of(bits[name]) for name in held)
        lines.append(f"reg [{width - 1}:0] last_{side}; reg waits_{side} = 0;")
        lines.append(
            f"always @(posedge clk) begin last_{side} <= {word}; waits_{side} <= {valid} & !{ready}; end"
        )
        lines.append(f"always @* if (known & waits_{side}) {verb} ({valid} & {word} == last_{side});")
    lines.append("endmodule\n")
    wrapper = folder / "handshake.v"
    wrapper.write_text("\n".join(lines))
    opened = set(re.findall(r"^module (\w+)", (HERE / "open_rounds.v").read_text(), re.M))
    files = " ".join(str(path) for path in cores.closure(variant.module) if path.stem not in opened)
    files += f" {HERE}/open_rounds.v"
    # Two steps before the one that is proved: what a key's writing leaves behind is over by then.
    return (
        f"read_verilog -formal {files} {wrapper}; prep -flatten -top handshake; memory_map; "
        "dffunmap; opt -full; "
        "sat -verify -tempinduct -tempinduct-inductonly -maxsteps 6 -prove-asserts -set-assumes handshake"
    )


def bits_of(range_text):
    """The width of `[8*16-1:0]`; products, sums and differences of numbers only."""
    if not range_text:
        return 1
    high = range_text[1:].split(":")[0]
    if not re.fullmatch(r"[\d+*-]+", high):
        sys.exit(f"cannot read the width `{range_text}`")
    total = 0
    for term in re.findall(r"[+-]?[\d*]+", high):
        product = -1 if term[0] == "-" else 1
        for factor in term.strip("+-").split("*"):
            product *= int(factor)
        total += product
    return total + 1


def prove(name, script):
    """Runs a proof; whether it holds."""
    begun = time.monotonic()
    try:
        done = subprocess.run(
            ["yosys", "-q", "-p", script], capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        print(f"  {name}: not decided within {SECONDS} s")
        return False
    took = time.monotonic() - begun
    if done.returncode != 0:
        print(f"  {name}: FAILED after {took:.0f} s")
        print((done.stdout + done.stderr)[-3000:])
        return False
    print(f"  {name}: proved in {took:.1f} s", flush=True)
    return True


def main():
    """Proves what is asked for."""
    if not shutil.which("yosys"):
        print("formal: skipped: no yosys (scripts/setup.sh hardware)")
        return
    # Engines have too much state for an induction from any of it; their tests look at every handshake.
    small = [one for one in cores.STREAMS if "pipelined" not in one.name and one.folder != "engine"]
    streams = {f"{one.name}-stream": one for one in small}
    named = sys.argv[1:] or EQUAL + list(streams)
    good = True
    for name in named:
        if name not in EQUAL + HARD and name not in streams:
            sys.exit(f"unknown proof `{name}`; known: {', '.join(EQUAL + HARD + list(streams))}")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            good &= prove(name, equal(name) if name not in streams else stream(streams[name], folder))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
