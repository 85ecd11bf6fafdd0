#!/usr/bin/env python3
"""The files of `forebay tunnel new` as they are written: both gateways start from them and packets arrive, none in the clear;
one with the capabilities that docs/containers.md gives a container. Then `forebay tunnel roll` gives them new keys, step by step, under traffic of which nothing is lost. What a gateway then answers
is what docs/schema/*.answer.json say.

    scripts/lab.sh FOREBAY run tests/gateway/tunnel_new.py
"""

import json
import pathlib
import shutil
import subprocess
import time

from lab import FOREBAY, HOST_A, HOST_B, LAB, Count, Wire, drops, esp, in_the_clear, inside, kill, pid_of, reload, send, start, wait_until

# What packaging/container/compose.yml and kubernetes.yml give: NET_ADMIN is 12, NET_RAW is 13.
CONTAINER = ["setpriv", "--bounding-set=-all,+net_admin,+net_raw", "--inh-caps=-all", "--no-new-privs"]
CAPABILITIES = 1 << 12 | 1 << 13
RATE, SECONDS = 1_000, 6
SIDES = {"a": "west=192.0.2.1,10.1.0.0/16", "b": "east=192.0.2.2,10.2.0.0/16"}
NAMES = {letter: side.partition("=")[0] for letter, side in SIDES.items()}


def install(letter, folder, file="gateway.toml"):
    """Puts a written file into the laboratory, with sockets and states apart: both hosts are this machine."""
    with open(f"{folder}/{NAMES[letter]}/{file}", encoding="utf-8") as written:
        text = written.read().replace('"forebay0"', '"fb0"')
    apart = f'\n[control]\nsocket = "{LAB}/{letter}.sock"\n\n[keys]\nstate = "{LAB}/rolled-{letter}"\n'
    with open(f"{LAB}/{letter}.toml", "w", encoding="utf-8") as file:
        file.write(text + apart)
    shutil.copytree(f"{folder}/{NAMES[letter]}/keys", f"{LAB}/keys", dirs_exist_ok=True)


def start_contained(letter):
    """Starts a gateway with a container's capabilities."""
    with open(f"{LAB}/{letter}.log", "ab") as log:
        words = inside(f"gw-{letter}", *CONTAINER, FOREBAY, "gateway", "--config", f"{LAB}/{letter}.toml")
        process = subprocess.Popen(words, stderr=log)
    # Not by its route, which may still be that of the gateway before.
    asked = [FOREBAY, "status", "--socket", f"{LAB}/{letter}.sock"]
    wait_until(lambda: subprocess.run(asked, capture_output=True).returncode == 0, f"gateway {letter}", process)
    status = pathlib.Path(f"/proc/{pid_of(letter)}/status").read_text(encoding="ascii")
    held = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapPrm"))
    assert held & ~CAPABILITIES == 0, f"{held:#x}"


def command(*words):
    subprocess.run([FOREBAY, "tunnel", *words], check=True, stdout=subprocess.DEVNULL)


def answers():
    """Compares the answers of a running gateway with their schemas."""
    try:
        import jsonschema
    except ImportError:
        return "the schemas of its answers: SKIPPED, jsonschema is not installed"
    files = sorted((pathlib.Path(__file__).parents[2] / "docs/schema").glob("*.answer.json"))
    for file in files:
        words = file.name.partition(".")[0].split("-")
        asked = subprocess.run([FOREBAY, *words, "--socket", f"{LAB}/a.sock", "--json"], check=True, capture_output=True)
        schema = json.loads(file.read_text(encoding="utf-8"))
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(schema)
        wrong = [f"{list(error.absolute_path)}: {error.message[:200]}" for error in validator.iter_errors(json.loads(asked.stdout))]
        assert not wrong, (file.name, wrong)
        assert not validator.is_valid({**json.loads(asked.stdout), "misspelt": 1}), file.name
    assert len(files) > 5, files
    return f"{len(files)} kinds of answers are what their schemas say"


def main():
    sides = [word for side in SIDES.values() for word in ("--side", side)]
    command("new", *sides, "--out", f"{LAB}/new")
    for letter in "ab":
        kill(letter)
        install(letter, f"{LAB}/new")
        (start if letter == "a" else start_contained)(letter)
    command("roll", *(f"{LAB}/new/{name}/gateway.toml" for name in NAMES.values()), "--out", f"{LAB}/next")

    wire, heard = Wire(), {"a": Count("host-a"), "b": Count("host-b")}
    count = RATE * SECONDS
    senders = [send("host-a", HOST_B, 0, count, RATE), send("host-b", HOST_A, 0, count, RATE)]
    for file in ("gateway-1-receive.toml", "gateway-2-send.toml", "gateway.toml"):
        for letter in "ab":
            time.sleep(0.4)
            install(letter, f"{LAB}/next", file)
            reload(letter)
    for sender in senders:
        sender.wait(timeout=60)
    for letter, counted in ((letter, heard[letter].end()) for letter in "ab"):
        assert counted["seen"] == count and not counted["twice"] and not counted["forged"], (letter, counted, drops("a"), drops("b"))
    packets = wire.end()
    spis = {spi for spi, _, _ in esp(packets)}
    assert not in_the_clear(packets) and len(spis) == 2, spis
    print(f"tunnel new: {2 * count} packets between gateways from written files, with new keys in three steps: none lost, none in the clear")
    print(f"tunnel new: {answers()}")


if __name__ == "__main__":
    main()
