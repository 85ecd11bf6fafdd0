#!/usr/bin/python3
"""Has tshark decrypt sealed packets and check their ICVs; exit 0 only when it finds all good.

    tshark_icv.py --sealed SEALED.pcapng --esp-sa FILE     a capture, with the SAs exported for Wireshark
    tshark_icv.py --forebay BINARY                         seals packets with every suite, then checks them
    tshark_icv.py --self-test                              the same with Python's sealer: does tshark know our names?

FILE is Wireshark's `esp_sa`, one line an SA:

    "IPv4","192.0.2.1","192.0.2.2","0x00001001","AES-CBC [RFC3602]","0x…","HMAC-SHA-256-128 [RFC4868]","0x…"
     family, source,     destination, SPI,        encryption, its key,      authentication, its key

The names are ENCRYPTION and AUTHENTICATION below, found out by running tshark 4.0.17 on packets of each
suite (--self-test repeats that). Keys are `0x` and hex; the salt stays behind the key for GCM and CTR; an
AEAD has authentication "NULL" with an empty key.

tshark 4.0 knows neither ChaCha20-Poly1305, AES-CCM and AES-GMAC nor extended sequence numbers. SAs of the
former have no line, and here neither have those whose ICV it does not check: AES-XCBC, AES-CMAC, none.
One with ESN is decrypted by its usual line, but its ICV is called bad; with a separate integrity algorithm
the name in UNCHECKED avoids that, with GCM nothing does but --decrypt-only (in Wireshark: "Attempt to Check
ESP Authentication" off). Packets without a check count as unchecked and need --allow-unchecked; packets of
SPIs that FILE does not name count as missing and need --allow-missing.
"""

import argparse
import collections
import csv
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import captures
import packets

ENCRYPTION = {
    "cbc": "AES-CBC [RFC3602]",
    "ctr": "AES-CTR [RFC3686]",
    "3des": "TripleDES-CBC [RFC2451]",
    "null": "NULL",
    "gcm8": "AES-GCM with 8 octet ICV [RFC4106]",
    "gcm12": "AES-GCM with 12 octet ICV [RFC4106]",
    "gcm16": "AES-GCM with 16 octet ICV [RFC4106]",
}
AUTHENTICATION = {
    None: "NULL",
    "md5": "HMAC-MD5-96 [RFC2403]",
    "sha1": "HMAC-SHA-1-96 [RFC2404]",
    "sha256": "HMAC-SHA-256-128 [RFC4868]",
    "sha384": "HMAC-SHA-384-192 [RFC4868]",
    "sha512": "HMAC-SHA-512-256 [RFC4868]",
}
UNCHECKED = {length: f"ANY {length * 8} bit authentication [no checking]" for length in (12, 16, 24, 32)}

FIELDS = ["frame.number", "esp.spi", "esp.icv_good", "esp.icv_bad", "esp.protocol"]
SIZES = [0, 1, 2, 3, 13, 14, 15, 16, 63, 64, 576, 1400]


def esp_sa_line(source, destination, sa):
    """The line for an esp.Sa, None where tshark 4.0 cannot say anything true of it."""
    suite = sa.suite
    if suite.cipher in ("chacha20poly1305", "ccm", "gmac") or suite.cipher == "gcm" and sa.esn:
        return None
    if suite.hash in ("", "aesxcbc", "aescmac"):  # deciphered, but there is no ICV that it could check
        return None
    encryption = ENCRYPTION[suite.cipher + (str(suite.icv_len) if suite.cipher == "gcm" else "")]
    authentication = UNCHECKED[suite.icv_len] if sa.esn else AUTHENTICATION[suite.hash]
    auth_key = "0x" + sa.auth_key.hex() if sa.auth_key and not sa.esn else ""
    family = "IPv6" if ":" in source else "IPv4"
    key = "0x" + sa.key.hex() if sa.key else ""
    row = [family, source, destination, f"{sa.spi:#010x}", encryption, key, authentication, auth_key]
    return ",".join(f'"{field}"' for field in row)


def check(sealed, esp_sa, icv=True):
    """Counts of packets: in all, good, bad, unchecked, undecrypted, missing, not_esp; and SPIs of the not good."""
    named, any_spi = spis(esp_sa)
    counts = collections.Counter(dict.fromkeys(["good", "bad", "unchecked", "undecrypted", "missing", "not_esp"], 0))
    where = collections.defaultdict(collections.Counter)
    for number, spi, good, bad, protocol in tshark(sealed, esp_sa, icv):
        spi = int(spi.split(",")[0], 16) if spi else None
        if spi is None:
            verdict = "not_esp"
        elif spi not in named and not any_spi:
            verdict = "missing"
        elif bad.split(",")[0] == "1":
            verdict = "bad"
        elif not protocol:
            verdict = "undecrypted"
        elif good.split(",")[0] == "1":
            verdict = "good"
        else:
            verdict = "unchecked"
        counts[verdict] += 1
        if verdict != "good":
            where[verdict][f"{spi:#010x}" if spi is not None else f"frame {number}"] += 1
    return {"packets": sum(counts.values()), **counts}, where


def spis(esp_sa):
    """The SPIs a file names, and whether one of its lines means any SPI."""
    named, any_spi = set(), False
    with open(esp_sa) as file:
        for row in csv.reader(line for line in file if line.strip() and not line.startswith("#")):
            if "*" in row[3]:
                any_spi = True
            else:
                named.add(int(row[3], 0))
    return named, any_spi


def tshark(sealed, esp_sa, icv):
    """Rows of FIELDS, one a frame, from a tshark that sees no configuration but ours."""
    with tempfile.TemporaryDirectory() as private:
        shutil.copyfile(esp_sa, os.path.join(private, "esp_sa"))
        command = ["tshark", "-n", "-r", sealed, "-o", "esp.enable_encryption_decode:TRUE"]
        command += ["-o", f"esp.enable_authentication_check:{str(icv).upper()}", "-T", "fields"]
        for field in FIELDS:
            command += ["-e", field]
        # What TCP carries is not looked into: a payload that is taken for malformed HTTP, as random bytes may be, would
        # end the frame before the fields of ESP are complete.
        command += ["--disable-protocol", "tcp"]
        environment = dict(os.environ, WIRESHARK_CONFIG_DIR=private, HOME=private)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    complaints = [line for line in done.stderr.splitlines() if line and "Running as user" not in line]
    if complaints or done.returncode:
        raise SystemExit("tshark: " + "\n".join(complaints or [f"exit {done.returncode}"]))
    return [line.split("\t") for line in done.stdout.splitlines()]


def every_suite(scratch, forebay):
    """Seals packets with each suite tshark can check, families and encapsulations in turn: (capture, esp_sa)."""
    import esp  # needs python3-cryptography, which checking a capture does not

    keys, lines, plain, sealed, toml = random.Random(4303), [], [], [], []
    for number, suite in enumerate(esp.SUITES.values()):
        for family in 4, 6:
            for encapsulated in False, True:
                sa = esp.new_sa(suite, 0x1000 + len(toml), False, keys)
                source, destination = ("192.0.2.1", "192.0.2.2") if family == 4 else ("2001:db8::1", "2001:db8::2")
                line = esp_sa_line(source, destination, sa)
                if line is None:
                    continue
                lines.append(line)
                inner = [f"10.{side}.{number}.{len(toml) % 4}" for side in (1, 2)]
                toml.append(sa_toml(sa, source, destination, inner, encapsulated))
                for sequence, size in enumerate(SIZES, 1):
                    stamp = len(plain) * 1000
                    packet = packets.udp(*inner, (40000, 40002), bytes(size))
                    plain.append((stamp, packet))
                    sealed.append((stamp, packets.esp(source, destination, sa.seal(sequence, packets.IPIP, packet), encapsulated)))
    paths = {name: os.path.join(scratch, name) for name in ("sas.toml", "plain.pcap", "sealed.pcap", "esp_sa")}
    with open(paths["esp_sa"], "w") as file:
        file.write("\n".join(["# made by tshark_icv.py", *lines]) + "\n")
    if forebay:
        with open(paths["sas.toml"], "w") as file:
            file.write("\n".join(toml))
        captures.write(paths["plain.pcap"], plain)
        command = [forebay, "seal", "--sas", paths["sas.toml"], paths["plain.pcap"], "-o", paths["sealed.pcap"]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise SystemExit(f"forebay seal: exit {done.returncode}\n{done.stderr}")
    else:
        captures.write(paths["sealed.pcap"], sealed)
    return paths["sealed.pcap"], paths["esp_sa"], len(plain)


def sa_toml(sa, local, remote, inner, encapsulated):
    key = f'key = "{sa.key.hex()}"\n' if sa.key else ""
    auth_key = f'auth_key = "{sa.auth_key.hex()}"\n' if sa.auth_key else ""
    return f"""[[sa]]
name = "{sa.suite.name}-{sa.spi:x}"
direction = "out"
spi = {sa.spi:#x}
protocol = "esp"
mode = "tunnel"
proposal = "{sa.suite.name}"
{key}{auth_key}local = "{local}"
remote = "{remote}"
encapsulation = "{'udp' if encapsulated else 'none'}"
allow_weak = {str(sa.suite.hash == "md5").lower()}
local_ts = ["{inner[0]}/32"]
remote_ts = ["{inner[1]}/32"]
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forebay", metavar="BINARY")
    parser.add_argument("--sealed", metavar="CAPTURE")
    parser.add_argument("--esp-sa", metavar="FILE")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--allow-unchecked", action="store_true", help="decrypted without an ICV check is good enough")
    parser.add_argument("--decrypt-only", action="store_true", help="check no ICV at all")
    parser.add_argument("--allow-missing", action="store_true", help="packets of SPIs not in FILE are left alone")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if bool(args.sealed) != bool(args.esp_sa) or not (args.sealed or args.forebay or args.self_test):
        parser.error("--sealed with --esp-sa, or --forebay, or --self-test")
    if shutil.which("tshark") is None:
        parser.error("tshark is not installed: apt-get install tshark")

    with tempfile.TemporaryDirectory() as scratch:
        if args.sealed:
            sealed, esp_sa, expected = args.sealed, args.esp_sa, None
        else:
            sealed, esp_sa, expected = every_suite(scratch, None if args.self_test else args.forebay)
        counts, where = check(sealed, esp_sa, icv=not args.decrypt_only)
    seen = counts["good"] + (args.allow_unchecked or args.decrypt_only) * counts["unchecked"]
    fine = seen + args.allow_missing * counts["missing"]
    passed = seen > 0 and fine == counts["packets"] and expected in (None, counts["packets"])
    if args.json:
        spis_of = {verdict: dict(group) for verdict, group in where.items()}
        print(json.dumps({"schema": 1, "passed": passed, "expected": expected, **counts, "spis": spis_of}))
    else:
        print(", ".join(f"{name} {count}" for name, count in counts.items()), "-", "pass" if passed else "FAIL")
        for verdict, group in where.items():
            print(f"  {verdict}: " + ", ".join(f"{spi} ({count})" for spi, count in group.most_common(12)))
        if expected not in (None, counts["packets"]):
            print(f"  {expected} packets were expected")
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
