#!/usr/bin/env python3
"""A gateway with links of DPDK beside DPDK's own ipsec-secgw, on the same virtual devices, in turns.

    scripts/secgw.py SECGW FOREBAY [FOREBAY...] [--rounds N] [--seconds S] [--size 64,1400] [--way out,in] [--cpu N]
                                                [--before 'COMMAND']

SECGW is ipsec-secgw, which Debian does not ship as a program. It builds from the source of its own version of DPDK:

    apt-get source dpdk
    sed -i 's/.offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM,/.offloads = 0,/' dpdk-*/examples/ipsec-secgw/ipsec-secgw.c
    make -C dpdk-*/examples/ipsec-secgw shared     # build/ipsec-secgw

It refuses devices without checksum offload, which these virtual ones are, unless that is taken out.

One core, one tunnel of aes128gcm16 with sequence numbers of 32 bits and without a replay window, because what comes is one capture
again and again:

    net_pcap (rx_pcap=FILE,infinite_rx=1) --> gateway --> net_null (no-rx=1)

ipsec-secgw runs with librte_ipsec (-l) and the faster of DPDK's devices over the same library of Intel, crypto_aesni_gcm and
crypto_aesni_mb. Each run counts what the gateway has sent in some seconds, behind a warm-up. Prints millions of packets per second: the
median of the rounds, the lowest and the highest, and the ratio of the medians. `--before` is put before each measurement's wait, and has
to run `sleep`: for machines that have to be quietened. Uses no huge pages.
"""

import argparse
import json
import os
import shlex
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

KEYS = {"out": bytes(range(0x10, 0x24)), "in": bytes(range(0x40, 0x54))}
PEER = "02:00:00:00:00:10"
# What net_pcap gives the first of its devices.
PCAP_MAC = bytes([2]) + b"pcap" + bytes([0])
SPIS = {"out": 0x1001, "in": 0x2001}
PACKETS = 256


def checksum(data):
    words = sum(struct.unpack(f"!{len(data) // 2}H", data))
    words = (words & 0xFFFF) + (words >> 16)
    return ~(words + (words >> 16)) & 0xFFFF


def udp(size, source, destination, flow):
    """A packet of so many bytes, header included; without a checksum, which is optional."""
    body = struct.pack("!HHHH", 5000 + flow, 7000, size - 20, 0) + bytes(size - 28)
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, size, 7, 0, 64, 17, 0, socket.inet_aton(source), socket.inet_aton(destination))
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + body


def write_pcap(path, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for frame in frames:
            file.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)


def ethernet(packet):
    return PCAP_MAC + bytes(int(byte, 16) for byte in PEER.split(":")) + b"\x08\x00" + packet


def sa(direction, key, local, remote, nets):
    return f"""
[[sa]]
name = "{direction}"
direction = "{direction}"
spi = {SPIS[key]}
key_file = "{key}.key"
proposal = "aes128gcm16"
replay_window = 0
local = "{local}"
remote = "{remote}"
local_ts = ["{nets[0]}"]
remote_ts = ["{nets[1]}"]
"""


class Forebay:
    """A gateway."""

    def __init__(self, program, folder, way, pcap):
        self.folder = folder
        self.way = way
        pcap_device = f'device = "net_pcap0"\narguments = "rx_pcap={pcap},infinite_rx=1"'
        null_device = 'device = "net_null0"\narguments = "no-rx=1"'
        devices = (pcap_device, null_device) if way == "out" else (null_device, pcap_device)
        link = 'kind = "dpdk"\n%s\naddresses = ["%s"]\nneighbours = ["%s=' + PEER + '"]\n'
        text = "[inside]\n" + link % (devices[0], "10.1.0.1/16", "10.1.0.10")
        text += "[[outside]]\n" + link % (devices[1], "192.0.2.1/24", "192.0.2.2")
        text += f'[guard]\nmode = "off"\n[control]\nsocket = "{folder}/socket"\n[keys]\nstate = "{folder}/state"\n'
        nets = ("10.1.0.0/16", "10.2.0.0/16")
        text += sa("out", "out", "192.0.2.1", "192.0.2.2", nets) + sa("in", "in", "192.0.2.1", "192.0.2.2", nets)
        with open(f"{folder}/gateway.toml", "w", encoding="utf-8") as file:
            file.write(text)
        self.program = program
        self.words = [program, "gateway", "--config", f"{folder}/gateway.toml"]

    def sent(self):
        done = subprocess.run([self.program, "status", "--json", "--socket", f"{self.folder}/socket"],
                              capture_output=True, text=True, timeout=20, check=False)
        if done.returncode != 0:
            return None
        status = json.loads(done.stdout)
        side = "outside" if self.way == "out" else "inside"
        return sum(link["packets_out"] for link in status["links"] if link["side"] == side)


class Secgw:
    """ipsec-secgw; port 0 is where packets come from."""

    def __init__(self, program, folder, way, pcap, crypto, cpu):
        key = {name: ":".join(f"{byte:02x}" for byte in one) for name, one in KEYS.items()}
        lines = ["sp ipv4 out esp protect 5 pri 1 dst 10.2.0.0/16 sport 0:65535 dport 0:65535",
                 f"sp ipv4 in esp protect {SPIS['in']} pri 1 dst 10.1.0.0/16 sport 0:65535 dport 0:65535",
                 f"sa out 5 aead_algo aes-128-gcm aead_key {key['out']} mode ipv4-tunnel src 192.0.2.1 dst 192.0.2.2",
                 f"sa in {SPIS['in']} aead_algo aes-128-gcm aead_key {key['in']} mode ipv4-tunnel src 192.0.2.2 dst 192.0.2.1",
                 "rt ipv4 dst 192.0.2.2/32 port 1" if way == "out" else "rt ipv4 dst 10.1.0.0/16 port 1"]
        lines += [f"neigh port 1 {PEER}", f"neigh port 0 {PEER}"]
        with open(f"{folder}/secgw.cfg", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        self.prefix = f"secgw{os.getpid()}"
        # Ports of the outside.
        unprotected = "0x1" if way == "in" else "0x2"
        self.words = [program, "-l", str(cpu), "--no-huge", "-m", "1024", "--no-pci", "--file-prefix", self.prefix,
                      "--vdev", f"net_pcap0,rx_pcap={pcap},infinite_rx=1", "--vdev", "net_null0,no-rx=1", "--vdev", f"{crypto}0",
                      "--log-level=4", "--", "-p", "0x3", "-P", "-u", unprotected,
                      "-l", "-w", "0", "--rxoffload", "0", "--txoffload", "0", "--config", f"(0,0,{cpu}),(1,0,{cpu})", "-f", f"{folder}/secgw.cfg"]

    def sent(self):
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as telemetry:
                telemetry.settimeout(10)
                telemetry.connect(f"/var/run/dpdk/{self.prefix}/dpdk_telemetry.v2")
                telemetry.recv(4096)
                telemetry.send(b"/ethdev/stats,1")
                return json.loads(telemetry.recv(16384))["/ethdev/stats"]["opackets"]
        except (OSError, KeyError, ValueError):
            return None


def measure(gateway, cpu, seconds, before, log):
    """Millions of packets per second that it sends."""
    with open(log, "wb") as output:
        process = subprocess.Popen(["taskset", "-c", str(cpu), *gateway.words], stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while not gateway.sent():
            if process.poll() is not None or time.monotonic() > end:
                with open(log, encoding="utf-8", errors="replace") as file:
                    sys.exit(f"secgw: nothing was sent by {' '.join(gateway.words)}\n{file.read()[-4000:]}")
            time.sleep(0.2)
        time.sleep(1)
        first, began = gateway.sent(), time.monotonic()
        subprocess.run([*shlex.split(before), "sleep", str(seconds)], check=True)
        last, ended = gateway.sent(), time.monotonic()
        return (last - first) / (ended - began) / 1e6
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def captures(forebay, folder, sizes):
    """What comes, by direction and size: plain packets, and the same sealed by the other end of the tunnel."""
    for name, key in KEYS.items():
        with open(f"{folder}/{name}.key", "w", encoding="utf-8") as file:
            file.write(key.hex() + "\n")
        os.chmod(f"{folder}/{name}.key", 0o600)
    with open(f"{folder}/peer.toml", "w", encoding="utf-8") as file:
        file.write(sa("out", "in", "192.0.2.2", "192.0.2.1", ("10.2.0.0/16", "10.1.0.0/16")))
    paths = {}
    for size in sizes:
        paths["out", size] = f"{folder}/out-{size}.pcap"
        write_pcap(paths["out", size], [ethernet(udp(size, "10.1.0.10", "10.2.0.10", flow)) for flow in range(PACKETS)])
        write_pcap(f"{folder}/plain.pcap", [ethernet(udp(size, "10.2.0.10", "10.1.0.10", flow)) for flow in range(PACKETS)])
        paths["in", size] = f"{folder}/in-{size}.pcap"
        subprocess.run([forebay, "seal", "--sas", f"{folder}/peer.toml", "--state", f"{folder}/seal-{size}", "-o", paths["in", size],
                        f"{folder}/plain.pcap"], check=True, capture_output=True)
    return paths


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("secgw")
    words.add_argument("forebay", nargs="+")
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--seconds", type=float, default=4)
    words.add_argument("--size", default="64,1400")
    words.add_argument("--way", default="out,in")
    words.add_argument("--cpu", type=int, default=1)
    words.add_argument("--crypto", default="crypto_aesni_gcm,crypto_aesni_mb")
    words.add_argument("--before", default="")
    options = words.parse_args()
    sizes, ways = [int(size) for size in options.size.split(",")], options.way.split(",")
    with tempfile.TemporaryDirectory(prefix="forebay-secgw-") as folder:
        paths = captures(options.forebay[0], folder, sizes)
        print(f"{'':5} {'bytes':>5}  {'gateway':<40} {'M/s':>6} {'lowest':>6} {'highest':>7} {'ratio':>6}", flush=True)
        for way, size in [(way, size) for way in ways for size in sizes]:
            made = {os.path.basename(program): lambda program=program: Forebay(program, folder, way, paths[way, size]) for program in options.forebay}
            for crypto in filter(None, options.crypto.split(",")):
                made[f"ipsec-secgw, {crypto}"] = lambda crypto=crypto: Secgw(options.secgw, folder, way, paths[way, size], crypto, options.cpu)
            rates = {name: [] for name in made}
            for _ in range(options.rounds):
                for name, make in made.items():
                    rates[name].append(measure(make(), options.cpu, options.seconds, options.before, f"{folder}/log"))
            theirs = max((statistics.median(all_of_it) for name, all_of_it in rates.items() if "secgw" in name), default=0)
            for name, all_of_it in rates.items():
                median = statistics.median(all_of_it)
                ratio = f"{median / theirs:6.2f}" if theirs else ""
                print(f"{way:5} {size:>5}  {name:<40} {median:6.2f} {min(all_of_it):6.2f} {max(all_of_it):7.2f} {ratio}", flush=True)


if __name__ == "__main__":
    main()
