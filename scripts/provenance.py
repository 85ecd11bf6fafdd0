#!/usr/bin/env python3
"""Prints what the files of a release were made from: an in-toto statement with the provenance of SLSA 1, not signed.

    provenance.py DIRECTORY [PARAMETER=VALUE...]

Its subjects are the files below DIRECTORY with their SHA-256. It names the commit, the lock file, the compilers by version, and the
parameters of scripts/release.sh. It has no time of building and no name of a machine, so that the same sources give the same bytes.
"""

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def says(*words):
    try:
        return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip().splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return ""


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main():
    directory, parameters = Path(sys.argv[1]), dict(word.split("=", 1) for word in sys.argv[2:])
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    tools = {"rustc": says("rustc", "--version"), "cargo": says("cargo", "--version"), "cc": says("cc", "--version")}
    for name, words in {"zig": ["python", "-m", "ziglang", "version"], "maturin": ["maturin", "--version"],
                        "cargo-zigbuild": ["cargo-zigbuild", "--version"]}.items():
        tools[name] = says(str(ROOT / "target/python/bin" / words[0]), *words[1:])
    system = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    repository = tomllib.loads((ROOT / "project.toml").read_text(encoding="utf-8"))["repository"]
    sources = {"uri": f"git+{repository}" if repository else "git", "digest": {"gitCommit": says("git", "rev-parse", "HEAD")}}
    print(json.dumps({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": path.relative_to(directory).as_posix(), "digest": {"sha256": sha256(path)}} for path in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{repository}/scripts/release.sh" if repository else "urn:forebay:scripts/release.sh",
                "externalParameters": parameters | {"SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", "")},
                "resolvedDependencies": [sources, {"name": "Cargo.lock", "digest": {"sha256": sha256(ROOT / "Cargo.lock")}}],
            },
            "runDetails": {
                # Whoever runs the script: the statement is theirs, and nothing in it proves that it is true until they sign it.
                "builder": {"id": "urn:forebay:maintainer", "version": {**tools, "system": system.get("PRETTY_NAME", "").strip('"')}},
            },
        },
    }, indent=1))


if __name__ == "__main__":
    main()
