#!/usr/bin/python3
"""The embedded firmware against scapy, against esp.py and ah.py, and against the gateway, for all suites that it has.

    firmware_matrix.py --firmware firmware/build/ipsec-host --forebay target/release/forebay
    firmware_matrix.py --firmware 'qemu-riscv32 firmware/build/ipsec-plain.elf' --forebay …

The firmware stands in the place of `forebay` in scapy_matrix.py (ESP) and ah_matrix.py (AH): seal, open, refuse. Then one
seals what the other opens, both ways. A last run opens packets that others published (--vectors). Cells as there, but
without UDP encapsulation, which the firmware has not.
"""

import argparse
import collections
import json
import multiprocessing
import os
import shlex
import sys
import tempfile
import time

import ah
import ah_matrix
import firmware_image
import scapy_matrix
from esp_vectors import CIPHERS, HASHES
from scapy_matrix import Forebay, interleave, stamped

PEERS = ("scapy", "scapy but for the ICV", "esp.py", "ah.py")


def batches(cells):
    for at in range(0, len(cells), firmware_image.SA_MAX):
        yield cells[at : at + firmware_image.SA_MAX]


def check_esp(firmware, cells, quick, pool):
    plains = [scapy_matrix.make_packets(cell, quick) for cell in cells]
    sealed = pool.starmap(scapy_matrix.seal_here, zip(cells, plains), chunksize=8)
    firmware.cells = cells
    faults, counts = scapy_matrix.check_seal(firmware, cells, plains, pool)
    more, opened = scapy_matrix.check_open(firmware, cells, plains, sealed)
    faults += more
    more, refused, _ = scapy_matrix.check_refuse(firmware, cells)
    counts = collections.Counter({f"sealed, opened by {who}": count for who, count in counts.items() if who in PEERS})
    return faults + more, plains, counts + collections.Counter({"opened": opened.total(), "refused": refused.total()})


def check_ah(firmware, cells):
    made = [ah_matrix.make_packets(cell) for cell in cells]
    firmware.cells = [AhCell(*cell) for cell in cells]
    faults, counts = ah_matrix.check_seal(firmware, cells, made)
    more, opened, good, expected = ah_matrix.check_open(firmware, cells, made)
    faults += more
    more, refused, _ = ah_matrix.check_refuse(firmware, cells, good, expected)
    counts = collections.Counter({f"sealed, opened by {who}": count for who, count in counts.items() if who in PEERS})
    plains = [[plain for _, plain in packets] for packets in made]
    return faults + more, plains, counts + collections.Counter({"opened": opened.total(), "refused": refused.total()})


class AhCell(ah_matrix.Cell):
    def ends(self):
        return ah_matrix.GATEWAYS[self.outer] if self.mode == "tunnel" else self.hosts()


def check_pair(forebay, firmware, cells, plains):
    """What one seals the other opens."""
    faults, sent, count = [], stamped(interleave(plains)), 0
    for sender, receiver, way in (forebay, firmware, "forebay to firmware"), (firmware, forebay, "firmware to forebay"):
        _, report, between = sender.run("seal", "pair-seal", [cell.toml("out") for cell in cells], sent)
        _, report_in, received = receiver.run("open", "pair-open", [cell.toml("in") for cell in cells], between)
        if len(received) != len(sent):
            faults.append(f"{way}: {len(received)} packets of {len(sent)}; {report['drops']}, {report_in['drops']}")
            continue
        wrong = [number for number, (before, after) in enumerate(zip(sent, received)) if before != after]
        if wrong:
            faults.append(f"{way}: {len(wrong)} packets of {len(sent)} changed, the first: {sent[wrong[0]][1].hex()} became {received[wrong[0]][1].hex()}")
        count += len(sent)
    return faults, collections.Counter({"between firmware and gateway": count})


def check_vectors(firmware, path):
    """Packets that others published, each by itself."""
    faults, counts = [], collections.Counter()
    with open(path) as file:
        vectors = [json.loads(line) for line in file]
    for vector in vectors:
        cipher, auth = CIPHERS.get(vector["enc"]), HASHES.get(vector["auth"], "other")
        packet = bytes.fromhex(vector["packet"] or "")
        known = cipher in firmware_image.CIPHERS and auth in firmware_image.AUTHS and packet and not vector.get("udp_encap")
        if known and not auth and cipher not in ("gcm", "cbc"):
            known = False  # what the firmware refuses: no ICV
        at = 20 if packet and packet[0] >> 4 == 4 else 40
        if not known or at == 20 and (packet[0] != 0x45 or packet[6] & 0x20) or packet[9 if at == 20 else 6] not in (50, 51):
            counts["vectors passed over"] += 1
            continue
        packet = ah.relength(packet)  # one has a wrong IPv4 checksum, which the firmware refuses
        protocol = packet[9 if at == 20 else 6]
        hosts = [packet[12:16], packet[16:20]] if at == 20 else [packet[8:24], packet[24:40]]
        hosts = [str(firmware_image.ipaddress.ip_address(host)) for host in hosts]
        spi_at = at + (0 if protocol == 50 else 4)
        inner = vector.get("next_header") or packet[at]
        transport = inner not in (4, 41)
        spi = int.from_bytes(packet[spi_at : spi_at + 4], "big")
        if spi == 0:  # RFC 4303 2.1: not to be sent
            counts["vectors passed over"] += 1
            continue
        icv_len = (vector["icv_len"] or 16) if cipher == "gcm" else {"": 0, "md5": 12, "sha1": 12, "sha256": 16}[auth]
        key = bytes.fromhex((vector["enc_key"] or "") + (vector["salt"] or ""))
        sa = firmware_image.sa_record(
            spi, True, protocol, transport, cipher, auth if cipher != "gcm" else None,
            icv_len, key, bytes.fromhex(vector["auth_key"] or ""), hosts, flags=firmware_image.NO_REPLAY_CHECK)  # fmt: skip
        any_host = {4: ["0.0.0.0"] * 2, 6: ["::"] * 2}
        policies = [firmware_image.policy_record(True, 0, any_host[version], 0) for version in (4, 6)]
        done = firmware_image.subprocess.run(firmware.command, input=firmware_image.image([sa], policies, [packet], True), capture_output=True)
        if done.returncode:
            faults.append(f"{vector['id']}: exit {done.returncode}")
            continue
        [(status, opened)] = firmware_image.results(done.stdout)
        dummy = inner == 59 and firmware_image.DROPS[status] == "in_dummy"  # RFC 4303 2.6
        if (status == 0 or dummy) != (vector["expect"] == "accept"):
            faults.append(f"{vector['id']}: {firmware_image.DROPS[status]}, expected {vector['expect']}")
        decapsulated = vector.get("decapsulated")
        if status == 0 and decapsulated and not transport and opened.hex() != decapsulated:
            faults.append(f"{vector['id']}: opened to {opened.hex()}, expected {decapsulated}")
        counts["vectors"] += 1
    return faults, counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--firmware", required=True, metavar="COMMAND", help="reads an input image, writes an output image")
    parser.add_argument("--forebay", metavar="BINARY", help="the gateway, as a peer")
    parser.add_argument("--vectors", metavar="FILE", help="../shared/corpora/esp-ah/vectors.jsonl")
    parser.add_argument("--quick", action="store_true", help="all settings of two suites, some of each other")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    start, firmware = time.monotonic(), firmware_image.Firmware(shlex.split(args.firmware))
    esp_cells = [cell for cell in scapy_matrix.all_cells(args.quick) if firmware_image.knows(cell.sa) and not cell.udp]
    ah_cells = [cell for cell in ah_matrix.all_cells() if firmware_image.knows(cell.sa)]
    wrong, counts = [], collections.Counter()
    with tempfile.TemporaryDirectory() as scratch, multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
        forebay = args.forebay and Forebay(args.forebay, scratch)
        for cells, check in [*((part, "esp") for part in batches(esp_cells)), *((part, "ah") for part in batches(ah_cells))]:
            faults, plains, by = check_esp(firmware, cells, args.quick, pool) if check == "esp" else check_ah(firmware, cells)
            wrong, counts = wrong + faults, counts + by
            if forebay:
                faults, by = check_pair(forebay, firmware, cells, plains)
                wrong, counts = wrong + faults, counts + by
        if args.vectors and os.path.exists(args.vectors):
            faults, by = check_vectors(firmware, args.vectors)
            wrong, counts = wrong + faults, counts + by
    result = {"schema": 1, "passed": not wrong, "cells": len(esp_cells) + len(ah_cells), "counts": dict(counts),
              "seconds": round(time.monotonic() - start, 1), "failures": wrong}  # fmt: skip
    if args.json:
        print(json.dumps(result))
    else:
        print(f"firmware: {result['cells']} cells, {result['seconds']} s")
        print("  " + ", ".join(f"{word} {count}" for word, count in sorted(counts.items())))
        for fault in wrong[:40]:
            print("  FAIL " + fault)
        print("pass" if not wrong else f"FAIL: {len(wrong)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
