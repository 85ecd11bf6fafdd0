#!/usr/bin/env python3
"""Captures of a running gateway: what is in them, how files follow each other, what a full disk does to traffic.

Runs in the laboratory, whose namespaces the kernel takes away:

    scripts/lab.sh FOREBAY run tests/gateway/taps.py
"""

import glob
import os
import shutil
import stat
import subprocess
import sys
import time

from two_sites import ASK, FOREBAY, HOST_B, LAB, SEND, SERVE, ask, gateway_of, program, run

DIRECTORY = f"{LAB}/taps"
CONFIG = f"{LAB}/a.toml"
# Where tshark finds the keys of both SAs, which the gateway writes there.
WIRESHARK = f"{LAB}/wireshark"
TSHARK = shutil.which("tshark")


def reload(taps):
    """Makes gateway A run with this `[taps]`, or without."""
    with open(CONFIG, encoding="utf-8") as file:
        before = file.read().split("\n[taps]")[0]
    with open(CONFIG, "w", encoding="utf-8") as file:
        if "esp_sa_export" not in before:
            before = f'esp_sa_export = "{WIRESHARK}/esp_sa"\n{before}'
        file.write(before + ("" if taps is None else f"\n[taps]\n{taps}"))
    subprocess.run([FOREBAY, "reload", "--socket", f"{LAB}/a.sock"], check=True, stdout=subprocess.DEVNULL)


def taps():
    found = ask("status")["taps"]
    return found, {side["side"]: side for side in found["sides"]}


def files(side):
    return sorted(glob.glob(f"{DIRECTORY}/{side}-*.pcapng"))


def fields(file, *names):
    """What tshark makes of a capture: a row for each packet."""
    words = [TSHARK, "-n", "-o", "ip.defragment:FALSE", "-o", "esp.enable_encryption_decode:TRUE", "-r", file]
    words += ["-T", "fields", "-E", "separator=|"]
    for name in names:
        words += ["-e", name]
    done = subprocess.run(words, check=True, capture_output=True, text=True, env={**os.environ, "WIRESHARK_CONFIG_DIR": WIRESHARK})
    assert "cut short" not in done.stderr, f"{file}: {done.stderr}"
    return [line.split("|") for line in done.stdout.splitlines()]


def what_is_captured():
    """The packets of the inside are those that tshark decrypts from the packets of the outside."""
    reload(f'directory = "{DIRECTORY}"')
    run("host-a", ASK, HOST_B, 0, 1, 100, 1372, 3000)
    time.sleep(1)
    found, sides = taps()
    assert found["state"] == "on" and all(side["lost"] == 0 and side["packets"] > 0 for side in sides.values()), found
    # Readers look while it is written.
    if TSHARK:
        assert len(fields(files("inside")[0], "ip.src")) == sides["inside"]["packets"]
    reload(None)
    found, sides = taps()
    assert found["state"] == "off" and "error" not in found
    packets = sides["inside"]["packets"]
    run("host-a", ASK, HOST_B, 7)
    assert taps()[1]["inside"]["packets"] == packets, "captures went on"
    for side in ["inside", "outside"]:
        assert len(files(side)) == 1
        assert stat.S_IMODE(os.stat(files(side)[0]).st_mode) == 0o600
    if TSHARK and os.environ.get("PROPOSAL", "aes128gcm16") == "aes128gcm16":
        inner = ["ip.src", "ip.dst", "ip.id", "ip.len", "ip.frag_offset", "data.data"]
        inner_packets = fields(files("inside")[0], "frame.packet_flags_direction", *inner)
        assert len(inner_packets) == packets and {row[0] for row in inner_packets} == {"0x00000001", "0x00000002"}
        # Of several layers tshark gives all values; the last is the inner packet's.
        both = fields(files("outside")[0], *inner)
        last = [[value.split(",")[-1] for value in row] for row in both]
        for one, other in zip(sorted(last), sorted(row[1:] for row in inner_packets), strict=True):
            assert one == other, f"decrypted, a packet of the outside is {one}; on the inside it is {other}"
        names = {row[0] for row in fields(files("outside")[0], "frame.interface_name")}
        assert names == {"udp-1"} or os.environ.get("ENCAPSULATION") == "none", names
        print(f"taps: tshark decrypts {len(both)} packets of the outside, which are those of the inside")


def files_follow_each_other():
    shutil.rmtree(DIRECTORY)
    reload(f'directory = "{DIRECTORY}"\nfile_size = 65536\nfiles = 3\nsnap = 128')
    run("host-a", SEND, HOST_B, 5_000_000)
    time.sleep(0.5)
    found, sides = taps()
    for side, counts in sides.items():
        kept = files(side)
        assert counts["files"] > 4 and len(kept) == 3 and kept[-1] == counts["file"], (counts, kept)
        assert all(os.path.getsize(file) < 70_000 for file in kept)
        if TSHARK:
            times = [float(row[0]) for file in kept for row in fields(file, "frame.time_epoch")]
            assert times == sorted(times), "packets are out of order"
    # The files are removed from outside: captures continue in another one.
    for file in files("inside"):
        os.remove(file)
    time.sleep(1.5)
    run("host-a", ASK, HOST_B, 100)
    time.sleep(0.5)
    assert len(files("inside")) == 1 and taps()[0]["state"] == "on"
    # And the directory.
    os.rename(DIRECTORY, DIRECTORY + "-moved")
    time.sleep(1.5)
    run("host-a", ASK, HOST_B, 100)
    found, _ = taps()
    assert found["state"] == "failed" and "No such file" in found["error"] and found["failures"] == 1, found
    shutil.rmtree(DIRECTORY + "-moved")
    print(f"taps: {sides['outside']['files']} files, three of which were kept; without its directory captures ended")


def a_full_disk():
    os.mkdir(DIRECTORY)
    # The gateway has mounts of its own.
    gateway = gateway_of("a")
    mount = ["nsenter", "-t", str(gateway), "-m", "mount", "-t", "tmpfs", "-o", "size=1m", "none", DIRECTORY]
    subprocess.run(mount, check=True)
    seen = f"/proc/{gateway}/root"
    reload(f'directory = "{DIRECTORY}"')
    assert taps()[0]["state"] == "on", "a reload did not begin the captures anew"
    run("host-a", SEND, HOST_B, 20_000_000)
    time.sleep(0.5)
    found, _ = taps()
    assert found["state"] == "failed" and "No space left" in found["error"] and found["failures"] == 2, found
    run("host-a", ASK, HOST_B, 0, 100, 3000)
    kept = [file for side in ["inside", "outside"] for file in glob.glob(f"{seen}{DIRECTORY}/{side}-*.pcapng")]
    assert len(kept) == 2 and sum(map(os.path.getsize, kept)) > 900_000, kept
    if TSHARK:
        read = sum(len(fields(file, "frame.number")) for file in kept)
        print(f"taps: a full disk ended the captures, not the traffic; tshark reads the {read} packets that are there")
    with open(f"{LAB}/a.log", encoding="utf-8") as log:
        lines = [line for line in log if "packet capture stopped" in line and "No space left" in line]
    assert len(lines) == 1, lines
    said = subprocess.run([FOREBAY, "status", "--socket", f"{LAB}/a.sock"], check=True, capture_output=True, text=True)
    assert "Captures are failed" in said.stdout and "No space left" in said.stdout, said.stdout
    for file in kept:
        os.remove(file)
    reload(f'directory = "{DIRECTORY}"')
    run("host-a", ASK, HOST_B, 100)
    time.sleep(0.5)
    assert taps()[0]["state"] == "on"
    # A directory that is not there cannot be made below one that is not there either.
    reload('directory = "/nowhere/at/all"')
    found, _ = taps()
    assert found["state"] == "failed" and "/nowhere/at/all" in found["error"], found
    run("host-a", ASK, HOST_B, 100)
    reload(None)


def main():
    if not TSHARK:
        print("taps: tshark is not installed, what is in the captures is not looked at", file=sys.stderr)
    servers = [subprocess.Popen(program(name, SERVE), stdout=subprocess.PIPE, text=True) for name in ("host-a", "host-b")]
    for server in servers:
        assert server.stdout.readline() == "ready\n"
    os.mkdir(WIRESHARK)
    what_is_captured()
    files_follow_each_other()
    a_full_disk()
    for server in servers:
        server.kill()


if __name__ == "__main__":
    main()
