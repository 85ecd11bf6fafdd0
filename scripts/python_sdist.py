#!/usr/bin/env python3
"""Adds to a source distribution what its crates take from outside of their folders when they are compiled.

maturin takes the crates along, but no path with `..`: studies, the example of a gateway's file, licences.
"""

import gzip
import io
import subprocess
import sys
import tarfile
from pathlib import Path

EXTRA = ["packaging/gateway.toml", "studies", "LICENSE-APACHE", "LICENSE-MIT"]


def main(path: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z", *EXTRA], check=True, capture_output=True).stdout
    files = [Path(name.decode()) for name in listed.split(b"\0") if name]
    members = []
    with tarfile.open(path) as old:
        for member in old:
            content = old.extractfile(member)
            members.append((member, content.read() if content else b""))
    root, stamp = members[0][0].name.split("/")[0], members[0][0].mtime
    have = {member.name for member, _ in members}
    for file in files:
        member = tarfile.TarInfo(f"{root}/{file}")
        content = file.read_bytes() if file.is_file() else b""
        if file.is_file() and member.name not in have:
            member.size, member.mtime, member.mode = len(content), stamp, 0o644
            members.append((member, content))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member, content in members:
            new.addfile(member, io.BytesIO(content))
    # Without the time of now, so that the same sources give the same bytes.
    path.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
