#!/usr/bin/env python3
"""`forebay import xfrm` on consoles of others: files with output of `ip xfrm state` and `ip xfrm policy` among much else, such as the test consoles of
libreswan and strongSwan, which their repositories have and this one does not.

    tests/interop/xfrm_consoles.py FOREBAY DIRECTORY...

Judged by a parser of its own: each SA and each policy of a file is taken over, or listed with a line of it and a reason; nothing that is taken over has wider
selectors than it had; no message has a part of a key; nothing panics. Where consoles have words in the place of numbers and keys (libreswan's), others are put there.
"""

import collections
import ipaddress
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import tomllib

KEYS = {"rfc4106(gcm(aes))": 20, "rfc4309(ccm(aes))": 19, "rfc4543(gcm(aes))": 20, "rfc7539esp(chacha20,poly1305)": 36, "cbc(aes)": 16,
        "cbc(des3_ede)": 24, "cbc(camellia)": 16, "rfc3686(ctr(aes))": 20, "hmac(sha1)": 20, "hmac(sha256)": 32, "hmac(sha512)": 64,
        "hmac(sha384)": 48, "hmac(md5)": 16, "xcbc(aes)": 16, "cmac(aes)": 16}
STATE = re.compile(r"^\s+proto (esp|ah|comp|\d+) (?:spi|reqid)")
ADDRESSES = re.compile(r"^src (\S+) dst (\S+)")


def filled(text, rng):
    """The text with numbers and keys in the place of words."""
    text = re.sub(r"0xSPISPI\w*", lambda _: f"{rng.randrange(1 << 12, 1 << 32):#010x}", text)
    text = re.sub(r"\b(REQID|PRIORITY)\b", "1", text)

    def key(found):
        return f"{found[1]} 0x{rng.randbytes(KEYS.get(found[1], 20)).hex()}"

    text = re.sub(r"(\S+) 0x(?:ENCAUTHKEY|HASHKEY|ENCKEY|AUTHKEY)\w*", key, text)
    # Of the window's bitmap the last word.
    return re.sub(r"0xX+", "0x0", re.sub(r"(?<=\s)X{8}\b", "00000000", text))


def blocks(text):
    """What `ip xfrm` printed: lines that begin with `src`, with the indented ones behind them."""
    taken, inside = [], False
    for line in text.replace("\r", "").splitlines():
        begins = bool(ADDRESSES.match(line))
        inside = begins or inside and line[:1] in ("\t", " ") and line.strip() != ""
        if inside:
            taken.append(line.rstrip())
    return taken


def entries(lines):
    """The SAs and policies in order: kind, first and last line from 1 on, and the lines."""
    found = []
    for number, line in enumerate(lines, 1):
        if ADDRESSES.match(line):
            found.append([None, number, number, [line]])
        elif found:
            found[-1][2] = number
            found[-1][3].append(line)
    for entry in found:
        body = entry[3][1:]
        is_policy = any(re.match(r"^\s+(socket )?(dir )?(in|out|fwd)\b.*(priority|action|ptype|index)|^\s+(dir (in|out|fwd)|socket (in|out)) ", line) for line in body)
        is_state = bool(body) and bool(STATE.match(body[0]))
        entry[0] = "sa" if is_state else "policy" if is_policy else "other"
    return found


def keys_of(lines):
    return {word[2:] for line in lines if re.match(r"^\s+(aead|enc|auth|auth-trunc)\s", line) for word in line.split() if re.fullmatch(r"0x[0-9a-f]{16,}", word)}


def network(text):
    return ipaddress.ip_network(text, strict=False)


def spi_of(entry):
    found = re.search(r"spi (0x[0-9a-f]+)", "\n".join(entry[3]))
    return int(found[1], 16) if found else None


def selector(entry):
    """Source and destination networks of an SA's selector, if it has one."""
    for line in entry[3]:
        found = re.match(r"^\s+sel src (\S+) dst (\S+)(.*)", line)
        if found and (found[1], found[2]) not in (("0.0.0.0/0", "0.0.0.0/0"), ("::/0", "::/0")):
            return network(found[1]), network(found[2]), found[3].strip()
    return None


def within(selectors, wanted):
    """Whether every selector lies within a network; none is any."""
    if not selectors:
        return wanted.prefixlen == 0
    parts = [re.sub(r"\[.*", "", one) for one in selectors]
    ends = [part.split("-") if "-" in part else (str(network(part)[0]), str(network(part)[-1])) for part in parts]
    return all(ipaddress.ip_address(end) in wanted for pair in ends for end in pair)


def judge(forebay, path, text, folder, totals):
    """What is wrong with the import of a console."""
    lines = blocks(text)
    found = entries(lines)
    kinds = collections.Counter(entry[0] for entry in found)
    if not kinds["sa"] and not kinds["policy"]:
        return []
    totals.update({"files": 1, **{f"{kind} in": count for kind, count in kinds.items()}})
    totals.update({"files of tests with strongSwan": "strongswan" in path.lower()})
    source, target = os.path.join(folder, "console"), os.path.join(folder, "gateway.toml")
    with open(source, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    locals_ = sorted({ADDRESSES.match(entry[3][0])[1] for entry in found if entry[0] == "sa"})[:1]
    words = [forebay, "import", "xfrm", source, "-o", target, "--inline-keys", "--force", "--json"]
    for local in locals_:
        words += ["--local", local]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})
    said = done.stdout + done.stderr
    wrong = []
    if "panicked" in said or done.returncode not in (0, 1, 2):
        wrong.append(f"{path}: rc {done.returncode}: {said[:300]}")
    wrong += [f"{path}: a part of a key is printed" for key in keys_of(lines) if key[:8] in said or key[-8:] in said]
    if done.returncode == 2:
        # Without one SA that can be taken over there is no file; each is named all the same.
        totals["files without an SA to take"] += 1
        named = {int(number) for number in re.findall(r"line (\d+)", done.stderr)}
        lost = [entry for entry in found if entry[0] == "sa" and not any(entry[1] <= line <= entry[2] for line in named)]
        return wrong + [f"{path}:{entry[1]}: an SA is lost in silence: {entry[3][:2]}" for entry in lost]
    document = json.loads(done.stdout)
    with open(target, "rb") as file:
        written = tomllib.load(file)
    sas, policies = written.get("sa", []), written.get("policy", [])
    totals.update({"sa taken": len(sas), "policy taken": len(policies), "lost": len(document["lost"]), "notes": len(document["notes"])})
    if document["lost"] and done.returncode == 0:
        wrong.append(f"{path}: something is lost, and rc is 0")
    said_of = {one["line"] for one in document["lost"] + document["notes"]}
    by_spi = {one["spi"]: one for one in sas}
    lost_policies = 0
    for entry in found:
        is_listed = any(entry[1] <= line <= entry[2] for line in said_of)
        if entry[0] == "sa":
            taken = by_spi.get(spi_of(entry))
            if not taken and not is_listed:
                wrong.append(f"{path}:{entry[1]}: an SA is lost in silence: {entry[3][:2]}")
            limits = selector(entry)
            if taken and limits:
                ends = (taken.get("local_ts"), taken.get("remote_ts"))
                ends = ends if taken["direction"] == "out" else ends[::-1]
                if not (within(ends[0], limits[0]) and within(ends[1], limits[1])) and not is_listed:
                    wrong.append(f"{path}:{entry[1]}: the selector of an SA is wider: {limits} {ends}")
        elif entry[0] == "policy" and is_listed:
            lost_policies += 1
        elif entry[0] == "other" and not is_listed:
            wrong.append(f"{path}:{entry[1]}: lines are lost in silence: {entry[3]}")
    directions = [entry for entry in found if entry[0] == "policy" and not re.search(r"\bfwd\b|socket", "\n".join(entry[3]))]
    if len(policies) + lost_policies < len(directions):
        wrong.append(f"{path}: of {len(directions)} policies {len(policies)} are taken over and {lost_policies} named")
    return wrong


def main():
    forebay, *directories = sys.argv[1:]
    totals, wrong = collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        for directory in directories:
            for root, _, names in sorted(os.walk(directory)):
                for name in sorted(names):
                    path = os.path.join(root, name)
                    if os.path.islink(path) or os.path.getsize(path) > 4 << 20:
                        continue
                    with open(path, encoding="utf-8", errors="replace") as file:
                        text = file.read()
                    if re.search(r"^\s+(proto (esp|ah|comp) (spi|reqid)|(dir )?(in|out|fwd) .*priority|dir (in|out|fwd) )", text, re.M):
                        wrong += judge(os.path.realpath(forebay), path, filled(text, random.Random(path)), folder, totals)
    print("xfrm_consoles: " + ", ".join(f"{name} {count}" for name, count in sorted(totals.items())))
    print("\n".join(wrong[:60]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
