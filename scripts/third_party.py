#!/usr/bin/env python3
"""Prints the libraries that a binary holds, each with its licence's text, as far as its package carries one.

    third_party.py [--no-default-features]      of the whole command, or of the gateway alone

The binary is the one for CARGO_BUILD_TARGET, or for this machine.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

TEXTS = re.compile(r"(?i)(licen[cs]e|copying|copyright|notice)")


def metadata():
    words = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", target(), *sys.argv[1:]]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def target():
    """The triple of the platform that the binary is for."""
    if given := os.environ.get("CARGO_BUILD_TARGET"):
        return given
    text = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return re.search(r"host: (\S+)", text)[1]


def linked(data):
    """What the commands (`forebay-cli`) need at run time, that package itself not."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    waiting = [package["id"] for package in data["packages"] if package["name"] == "forebay-cli"]
    seen = set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        for dependency in nodes[one]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return seen


def main():
    data = metadata()
    needed = linked(data)
    packages = [package for package in data["packages"] if package["id"] in needed and package["source"]]
    texts = {}  # each text once, with those whose it is
    for package in sorted(packages, key=lambda package: (package["name"], package["version"])):
        name = f"{package['name']} {package['version']}"
        print(f"{name}: {package['license'] or 'see its text'}; {package['repository'] or ''}")
        for path in sorted(Path(package["manifest_path"]).parent.iterdir()):
            if path.is_file() and TEXTS.match(path.name):
                texts.setdefault(path.read_text(errors="replace").strip(), []).append(name)
    library = Path("/usr/share/doc/libipsec-mb-dev/copyright")
    if library.exists() and target().startswith("x86_64-"):
        texts.setdefault(library.read_text().strip(), []).append("Intel IPsec multi-buffer library")
    for text, names in texts.items():
        print(f"\n{'=' * 78}\n{', '.join(names)}\n\n{text}")


if __name__ == "__main__":
    main()
