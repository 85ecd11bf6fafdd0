#!/usr/bin/env python3
"""`forebay import swanctl` and `ipsec-conf` on files of others, such as those of strongSwan's test scenarios, which its repository has and this one does not.

    tests/interop/ike_files.py FOREBAY DIRECTORY...

Judged by a parser of its own: each child of a file is served with the networks that it has, or something of its lines is listed with a reason; no message has a
secret; nothing panics.
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile


def swanctl_children(text):
    """The children by name, each with its first and last line and its networks; and secrets."""
    found, open_, secrets = [], [], []
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*", "", line)
        for token in re.findall(r"[^{}=\n]+=[^{}\n]*|[^{}=\n]*\{|\}", line):
            token = token.strip()
            if token == "}":
                if open_:
                    name, first, settings = open_.pop()
                    path = [one[0] for one in open_]
                    if len(path) == 3 and path[0] == "connections" and path[2] == "children":
                        found.append((f"{path[1]}/{name}", first, number, settings))
            elif token.endswith("{"):
                open_.append((token[:-1].split(":")[0].strip(), number, {}))
            elif open_:
                key, _, value = token.partition("=")
                open_[-1][2][key.strip()] = value.strip().strip('"')
                if key.strip() == "secret" and len(value.strip()) > 5:
                    secrets.append(value.strip().strip('"'))
    return found, secrets


def conns(text):
    """The connections of an ipsec.conf that name a peer, likewise; what `also` brings is not looked at."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"#.*", "", line).rstrip()
        if line and not line[0].isspace():
            words = line.split()
            found.append((words[1] if words[0] == "conn" and len(words) > 1 else None, number, number, {}))
        elif line and found:
            key, _, value = line.partition("=")
            found[-1][3][key.strip().lower()] = value.strip()
            found[-1] = (*found[-1][:2], number, found[-1][3])
    return [one for one in found if one[0] and one[0] != "%default" and "right" in one[3]], []


def judge(forebay, kind, path, count):
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    # In strongSwan's scenarios an address is written so.
    children, secrets = (swanctl_children if kind == "swanctl" else conns)(text)
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([forebay, "import", kind, path, "-o", f"{folder}/g.toml", "--json"], capture_output=True, text=True, check=False, timeout=60)
        written = open(f"{folder}/g.toml", encoding="utf-8").read() if os.path.exists(f"{folder}/g.toml") else ""
    said = run.stdout + run.stderr + written
    assert run.returncode in (0, 1, 2) and "panicked" not in said, f"{path}: {run.returncode} {said}"
    assert not [secret for secret in secrets if secret in said], f"{path}: a secret is shown"
    listed = {int(number) for number in re.findall(r"line (\d+):", run.stderr)}
    if run.returncode < 2:
        document = json.loads(run.stdout)
        assert (run.returncode == 1) == bool(document["lost"]), path
    for name, first, last, settings in children:
        line = next((line for line in written.splitlines() if line.startswith(f"# {name}: ") and " here, " in line), None)
        is_listed = bool(listed & set(range(first, last + 1))) or f": {name}: " in run.stderr
        assert line or is_listed, f"{path}: nothing is said of {name} (line {first})"
        count["served" if line else "listed"] += 1
        for key in ("local_ts", "remote_ts", "leftsubnet", "rightsubnet"):
            for network in filter(None, map(str.strip, settings.get(key, "").split(","))):
                assert not line or network in line, f"{path}: {name} is without {network}: {line}"
    count["files"] += 1
    count[f"exit {run.returncode}"] += 1


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    count = collections.Counter()
    for directory in sys.argv[2:]:
        for folder, _, names in sorted(os.walk(directory)):
            for name in sorted(names):
                kind = {"swanctl.conf": "swanctl", "ipsec.conf": "ipsec-conf"}.get(name.split(":")[-1])
                if kind:
                    judge(sys.argv[1], kind, os.path.join(folder, name), count)
    print("ike_files: " + ", ".join(f"{count[key]} {key}" for key in sorted(count)))


if __name__ == "__main__":
    main()
