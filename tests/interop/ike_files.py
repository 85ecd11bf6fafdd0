#!/usr/bin/env python3
"""`forebay import swanctl`, `ipsec-conf` and `wireguard` on files of others, such as those of strongSwan's and libreswan's test scenarios, which their
repositories have and this one does not.

    tests/interop/ike_files.py FOREBAY DIRECTORY...

Judged by a parser of its own, which includes files and looks settings up section by section as strongSwan does: each child is served with exactly the networks
that it has, or something of its lines is listed with a reason; no message has a secret or a part of a key; nothing panics.
"""

import collections
import glob
import json
import os
import re
import subprocess
import sys
import tempfile


class Section:
    """A section of swanctl.conf; where it stands is known only in the file itself, not in included ones."""

    def __init__(self, refers=(), line=None):
        self.refers, self.line, self.last, self.settings, self.inner = list(refers), line, line, {}, {}


def swanctl_tree(path, here, secrets, depth=0, is_own=True):
    """Reads a file into the section `here`."""
    if depth > 8:
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    open_ = [here]
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*", "", line)
        for token in re.findall(r"include\s+[^\s=}][^\s}]*|[^{}=\n]+=\s*\"[^\"]*\"|[^{}=\n]+=[^{}\n]*|[^{}=\n]*\{|\}", line):
            token = token.strip()
            if token.startswith("include ") or token.startswith("include\t"):
                for other in sorted(glob.glob(os.path.join(os.path.dirname(path), token.split(None, 1)[1].strip('"')))):
                    swanctl_tree(other, open_[-1], secrets, depth + 1, False)
            elif token == "}":
                if len(open_) > 1:
                    open_.pop().last = number
            elif token.endswith("{"):
                name, _, refers = token[:-1].partition(":")
                new = open_[-1].inner.setdefault(name.strip(), Section(line=number if is_own else None))
                new.refers += [one.strip() for one in refers.split(",") if one.strip()]
                open_.append(new)
            else:
                key, _, value = token.partition("=")
                open_[-1].settings[key.strip()] = value.strip().strip('"')
                if key.strip() == "secret" and len(value.strip()) > 5:
                    secrets.append(value.strip().strip('"'))


def those(root, names, stack=()):
    """The sections that make up one by its absolute name, the one that goes first at the begin."""
    if not names:
        return [root]
    found = []
    for around in those(root, names[:-1], stack):
        one = around.inner.get(names[-1])
        if one is not None:
            found.append(one)
            for other in one.refers:
                if other not in stack:
                    found += those(root, other.split("."), (*stack, other))
    return found


def looked_up(sections):
    settings = {}
    for one in sections:
        for key, value in one.settings.items():
            settings.setdefault(key, value)
    return settings


def swanctl_children(path):
    """The children by name, each with its first and last line, or None, and its networks; and secrets."""
    root, secrets = Section(), []
    swanctl_tree(path, root, secrets)
    found = []
    names = lambda sections: list(dict.fromkeys(name for one in sections for name in one.inner))
    for connection in names(those(root, ["connections"])):
        for child in names(those(root, ["connections", connection, "children"])):
            parts = those(root, ["connections", connection, "children", child])
            settings = looked_up(parts)
            sides = [settings.get(key, "") for key in ("local_ts", "remote_ts")]
            found.append((f"{connection}/{child}", parts[0].line, parts[0].last, sides))
    return found, secrets


def conn_lines(path, depth=0):
    """The lines of an ipsec.conf with those of included files, which have no number."""
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"#.*", "", line).rstrip()
        words = line.split()
        if words[:1] == ["include"] and len(words) > 1 and depth < 8:
            for other in sorted(glob.glob(os.path.join(os.path.dirname(path), words[1].strip('"')))):
                if os.path.isfile(other):
                    yield from ((None, one) for _, one in conn_lines(other, depth + 1))
        elif line:
            yield number, line


def conns(path):
    """The connections of an ipsec.conf that name a peer, likewise."""
    all_, own = {}, None
    for number, line in conn_lines(path):
        if not line[0].isspace():
            words = line.split()
            own = None
            if words[0] == "conn" and len(words) > 1:
                own = all_.setdefault(words[1], {"line": number, "last": number, "also": [], "settings": {}})
                own["line"] = own["last"] = number
        elif own is not None and "=" in line:
            key, _, value = (part.strip() for part in line.partition("="))
            own["last"] = number
            if key.lower() == "also":
                own["also"].append(value.strip('"'))
            else:
                own["settings"][key.lower()] = value.strip('"')

    def parents(name, stack=()):
        chain = []
        for other in reversed(all_[name]["also"]):
            if other in all_ and other not in (*stack, name):
                chain += [other, *parents(other, (*stack, name))]
        return [one for at, one in enumerate(chain) if one not in chain[at + 1:]]

    found = []
    for name, one in all_.items():
        settings = {}
        for part in [name, *parents(name), "%default"]:
            for key, value in all_.get(part, {"settings": {}})["settings"].items():
                settings.setdefault(key, value)
        if name != "%default" and settings.get("right"):
            sides = [settings.get(f"{side}subnet", settings.get(f"{side}subnets", "")).strip("{}") for side in ("left", "right")]
            found.append((name, one["line"], one["last"], sides))
    return found, []


def wireguard(path):
    """The networks of each peer of a wg-quick file; and its keys."""
    found, secrets = [], []
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file.read().splitlines(), 1):
            line = line.split("#")[0].strip()
            key, _, value = (part.strip() for part in line.partition("="))
            if line.lower() == "[peer]":
                found.append([f"peer-{len(found) + 1}", number, number, []])
            elif found and key.lower() == "allowedips":
                found[-1][2] = number
                found[-1][3] += [word.strip() for word in value.split(",")]
            if key.lower() in ("privatekey", "presharedkey", "publickey") and len(value) > 20:
                secrets.append(value)
    return found, secrets


def judge(forebay, kind, path, count):
    children, secrets = {"swanctl": swanctl_children, "ipsec-conf": conns, "wireguard": wireguard}[kind](path)
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
    for name, first, last, sides in children:
        if kind == "wireguard":
            # Less only where another peer has what is taken out.
            networks = re.findall(rf'name = "{name}-in".*?remote_ts = \[(.*?)\]', written, re.S)
            is_listed = bool(listed & set(range(first, last + 1)))
            assert networks or is_listed, f"{path}: nothing is said of {name}"
            count["served" if networks else "listed"] += 1
            continue
        line = next((line for line in written.splitlines() if line.startswith(f"# {name}: ") and " here, " in line), None)
        is_listed = first is not None and bool(listed & set(range(first, last + 1))) or re.search(rf": {re.escape(name)}(:|$)", run.stderr, re.M)
        assert line or is_listed, f"{path}: nothing is said of {name} (line {first})"
        count["served" if line else "listed"] += 1
        if line:
            here, there = line.partition(": ")[2].split(" here, ", 1)
            for said_, side in ((here, sides[0]), (there.split(" behind ")[0], sides[1])):
                expected = [one.strip() for one in side.split(",") if one.strip()] or ["what IKE negotiates"]
                found = [one.strip() for one in said_.split(",")]
                assert found == expected or is_listed, f"{path}: {name} has {expected}: {line}"
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
                if re.fullmatch(r"wg\d*\.conf", name):
                    kind = "wireguard"
                if kind:
                    judge(sys.argv[1], kind, os.path.join(folder, name), count)
    print("ike_files: " + ", ".join(f"{count[key]} {key}" for key in sorted(count)))


if __name__ == "__main__":
    main()
