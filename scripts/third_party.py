#!/usr/bin/env python3
"""Prints the libraries that a binary holds, each with its licence's text, as far as its package carries one.

    third_party.py [--no-default-features]      of the whole command, or of the gateway alone
    third_party.py --of-package NAME            of a package of the workspace, by itself

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
    words = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", target()]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def target():
    """The triple of the platform that the binary is for."""
    if given := os.environ.get("CARGO_BUILD_TARGET"):
        return given
    text = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return re.search(r"host: (\S+)", text)[1]


def linked(data, package="forebay-cli", features=()):
    """What a package of the workspace has in its binary, itself too: with its own features, not with those that the rest of the
    workspace asks of the same crates."""
    words = ["cargo", "tree", "--locked", "--package", package, *features, "--target", target(), "--edges", "normal,no-proc-macro",
             "--prefix", "none", "--format", "{p}"]
    lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    named = {tuple(line.split()[:2]) for line in lines if line}
    return {one["id"] for one in data["packages"] if (one["name"], "v" + one["version"]) in named}


def main():
    alone = sys.argv[1:2] == ["--of-package"]
    data = metadata()
    needed = linked(data, sys.argv[2]) if alone else linked(data, features=sys.argv[1:])
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
