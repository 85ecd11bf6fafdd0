#!/usr/bin/env python3
"""Fails if a program or library needs a newer C library than it may.

    tests/packaging/glibc.py VERSION FILE...      tests/packaging/glibc.py 2.28 forebay-0.1.0-linux-amd64.tar.gz

FILE is an ELF file, or a wheel or an archive with such files in it. What counts is the newest version GLIBC_x.y of a symbol that
`readelf --version-info` finds among those that a file takes from elsewhere.
"""

import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

NEEDED = re.compile(r"Name: GLIBC_(\d+(?:\.\d+)+)")


def number(version):
    return tuple(map(int, version.split(".")))


def newest(path):
    """The newest version that a file needs; '' if it needs none."""
    text = subprocess.run(["readelf", "--version-info", "--wide", path], check=True, capture_output=True, text=True).stdout
    return max(NEEDED.findall(text), key=number, default="")


def files(path, folder):
    """The ELF files of a file."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    elif tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            archive.extractall(folder)
    else:
        return [path]
    return [one for one in sorted(folder.rglob("*")) if one.is_file() and not one.is_symlink() and one.open("rb").read(4) == b"\x7fELF"]


def main():
    limit, wrong, seen = sys.argv[1], 0, 0
    for name in map(pathlib.Path, sys.argv[2:]):
        with tempfile.TemporaryDirectory() as folder:
            for one in files(name, pathlib.Path(folder)):
                seen += 1
                version = newest(one)
                if version and number(version) > number(limit):
                    print(f"glibc: {name.name}: {one.name} needs GLIBC_{version}; at most {limit} is expected")
                    wrong += 1
    if not seen:
        sys.exit("glibc: no ELF file among " + " ".join(sys.argv[2:]))
    print(f"glibc: {seen - wrong} of {seen} programs and libraries run with the C library {limit}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
