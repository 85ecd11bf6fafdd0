"""Images for the firmware (firmware/include/image.h), and the firmware as a process: built for this machine, or the
core's own program under qemu-riscv32."""

import ipaddress
import re
import struct
import subprocess
from pathlib import Path

INPUT, OUTPUT = 0x4E494246, 0x554F4246
PROTECT, INBOUND = 2, 1
ESN, NO_REPLAY_CHECK = 1, 2
SA_MAX = 64  # firmware/include/sa.h
CIPHERS = {"null": 0, "cbc": 1, "ctr": 2, "gcm": 3}
SALTS = {"null": 0, "cbc": 0, "ctr": 4, "gcm": 4}  # bytes behind the key
AUTHS = {None: 0, "": 0, "md5": 1, "sha1": 2, "sha256": 3}
DROP_H = Path(__file__).resolve().parents[2] / "firmware/include/drop.h"
DROPS = re.findall(r'drop\([A-Z_]+, "(\w+)"\)', DROP_H.read_text())


def address(text):
    return ipaddress.ip_address(text).packed.ljust(16, b"\0")


def sa_record(spi, inbound, protocol, transport, cipher, auth, icv_len, key, auth_key, ends, esn=False, sequence=0, flags=0):
    """`ends` are the outer addresses, sender first."""
    head = struct.pack(
        "<I10BH", spi, inbound, protocol, transport, CIPHERS[cipher], AUTHS[auth], icv_len, len(key) - SALTS[cipher], len(auth_key),
        flags | (ESN if esn else 0), ipaddress.ip_address(ends[0]).version, 0)  # fmt: skip
    return head + struct.pack("<Q", sequence) + address(ends[0]) + address(ends[1]) + key.ljust(36, b"\0") + auth_key.ljust(64, b"\0") + bytes(4)


def policy_record(inbound, sa, hosts, bits=None):
    """One that protects what goes between two hosts, or between all of their family with bits = 0."""
    version = ipaddress.ip_address(hosts[0]).version
    bits = (32 if version == 4 else 128) if bits is None else bits
    head = struct.pack("<4BH2B4H", inbound, PROTECT, version, 0, sa, bits, bits, 0, 65535, 0, 65535)
    return head + address(hosts[0]) + address(hosts[1])


def sample(inbound):
    """SAs and policies without packets: AH for IPv4, ESP for IPv6, for all hosts."""
    ends = {4: ("192.0.2.1", "192.0.2.2"), 6: ("2001:db8::1", "2001:db8::2")}
    sas = [
        sa_record(0x1001, inbound, 51, False, "null", "md5", 12, b"", bytes(16), ends[4]),
        sa_record(0x1002, inbound, 50, False, "cbc", "sha1", 12, bytes(16), bytes(20), ends[6]),
    ]
    return image(sas, [policy_record(inbound, at, any_host, 0) for at, any_host in enumerate((("0.0.0.0",) * 2, ("::",) * 2))], [], inbound)


def image(sas, policies, packets, inbound, flags=0):
    data = struct.pack("<8I", INPUT, 1, flags, len(sas), len(policies), len(packets), 0, 0) + b"".join(sas) + b"".join(policies)
    return data + b"".join(struct.pack("<2I", len(packet), INBOUND * inbound) + packet + bytes(-len(packet) % 4) for packet in packets)


def results(data):
    """[(status, packet)] of an output image."""
    magic, version, count, size = struct.unpack_from("<4I", data)
    if (magic, version, size) != (OUTPUT, 1, len(data)):
        raise ValueError(f"not an output image: {data[:16].hex()}, {len(data)} bytes")
    at, found = 16, []
    for _ in range(count):
        status, length = struct.unpack_from("<2I", data, at)
        found.append((status, data[at + 8 : at + 8 + length]))
        at += 8 + (length + 3) // 4 * 4
    return found


class Firmware:
    """Stands where scapy_matrix.Forebay does. It does not read SA files: `cells` is what it is to know."""

    def __init__(self, command):
        self.command, self.cells = command, []

    def records(self, inbound):
        sas, policies = [], []
        for cell in self.cells:
            cipher, auth, icv_len, key, auth_key, protocol = algorithms(cell.sa)
            ends = cell.ends()
            policies.append(policy_record(inbound, len(sas), cell.hosts()))
            sas.append(sa_record(cell.sa.spi, inbound, protocol, cell.mode == "transport", cipher, auth, icv_len, key, auth_key, ends, cell.sa.esn))
        return sas, policies

    def run(self, verb, name, sas, packets):
        inbound = verb == "open"
        data = image(*self.records(inbound), [packet for _, packet in packets], inbound)
        done = subprocess.run(self.command, input=data, capture_output=True, timeout=300)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(self.command)}: exit {done.returncode} {done.stderr.decode()[-500:]}")
        found = results(done.stdout)
        received = [(stamp, packet) for (stamp, _), (status, packet) in zip(packets, found) if status == 0]
        drops = {}
        for status, _ in found:
            if status:
                drops[DROPS[status]] = drops.get(DROPS[status], 0) + 1
        report = {
            "schema": 1, "packets_in": len(packets), "packets_out": len(received), "drops": drops, "processors": [],
            "bytes_in": sum(len(packet) for _, packet in packets), "bytes_out": sum(len(packet) for _, packet in received),
        }  # fmt: skip
        return (1 if drops else 0), report, received


def algorithms(sa):
    """Of an SA of esp.py or of ah.py."""
    if hasattr(sa, "suite"):
        suite = sa.suite
        return suite.cipher, suite.hash, suite.icv_len, sa.key, sa.auth_key, 50
    return "null", sa.name, 16 if sa.name == "sha256" else 12, b"", sa.key, 51


def knows(sa):
    if not hasattr(sa, "suite"):
        return sa.name in AUTHS
    suite = sa.suite
    return suite.cipher in CIPHERS and suite.hash in AUTHS and (suite.hash != "" or suite.cipher == "cbc")
