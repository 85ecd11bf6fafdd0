#!/usr/bin/env python3
"""Writes an image of the gateway in the layout of OCI, as one archive, without an engine and without root.

    image.py ARCHIVE VERSION ARCHITECTURE=PROGRAM...      image.py forebay.tar 0.1.0 amd64=target/release/forebay-gateway

`podman load -i ARCHIVE`, `skopeo copy oci-archive:ARCHIVE ...` and `ctr image import` read it; for several architectures it is one
image, of which each takes its own. The same programs give the same bytes: times are SOURCE_DATE_EPOCH or that of the last commit.

An image has the program, the libraries that the program names (the C library of this machine, or of Debian's cross compiler),
the users root and forebay, and nothing else: no shell and no package manager. Its settings are those of
packaging/container/Containerfile. An image has no capabilities; docs/containers.md says which ones to give the container.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Where the libraries of an architecture are: its own system's, or those of Debian's cross compiler.
LIBRARIES = {
    "amd64": ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/usr/x86_64-linux-gnu/lib"],
    "arm64": ["/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/aarch64-linux-gnu/lib"],
}
TRIPLES = {"amd64": "x86_64-unknown-linux-gnu", "arm64": "aarch64-unknown-linux-gnu"}
MACHINES = {"amd64": "Advanced Micro Devices X86-64", "arm64": "AArch64"}
FILES = {
    "etc/passwd": "root:x:0:0:root:/:/sbin/nologin\nforebay:x:999:999:Forebay:/nonexistent:/sbin/nologin\n",
    "etc/group": "root:x:0:\nforebay:x:999:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
FOLDERS = {"etc": 0o755, "etc/forebay": 0o755, "run": 0o755, "run/forebay": 0o755, "tmp": 0o1777, "usr": 0o755, "usr/bin": 0o755,
           "usr/share": 0o755, "usr/share/doc": 0o755, "var": 0o755, "var/lib": 0o755, "var/lib/forebay": 0o700}


def says(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def seconds():
    """The time of the sources."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or says("git", "-C", str(ROOT), "log", "-1", "--format=%ct"))


def needs(program):
    """The libraries that a program names, and its loader."""
    wanted = re.findall(r"\(NEEDED\).*\[(.*)\]", says("readelf", "--dynamic", "--wide", str(program)))
    loader = re.findall(r"program interpreter: (.*)\]", says("readelf", "--program-headers", "--wide", str(program)))
    return wanted, loader[0] if loader else None


def libraries(program, architecture):
    """Where each library that a program needs comes from and goes to."""
    wanted, loader = needs(program)
    placed = {}
    while wanted:
        name = wanted.pop()
        if loader and name == Path(loader).name or any(target.name == name for target in placed.values()):
            continue
        found = next((path for folder in LIBRARIES[architecture] if (path := Path(folder, name)).exists()), None)
        if not found:
            sys.exit(f"image: {program} needs {name}, which is in none of {', '.join(LIBRARIES[architecture])}"
                     + ("; run: scripts/setup.sh cross-arm64" if architecture == "arm64" else ""))
        placed[found] = Path(LIBRARIES[architecture][0], name)
        wanted.extend(needs(found)[0])
    if loader:
        name = Path(loader).name
        placed[next(path for folder in [*LIBRARIES[architecture], "/lib64"] if (path := Path(folder, name)).exists())] = Path(loader)
    return placed


class Layer:
    """A tar archive whose bytes depend on nothing but what is in it."""

    def __init__(self, moment):
        self.moment, self.bytes, self.folders = moment, io.BytesIO(), set()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w", format=tarfile.USTAR_FORMAT)

    def folder(self, name, mode=0o755):
        if name in self.folders or name == ".":
            return
        self.folder(str(Path(name).parent), FOLDERS.get(str(Path(name).parent), 0o755))
        self.folders.add(name)
        self.tar.addfile(self.entry(name, mode, tarfile.DIRTYPE))

    def file(self, name, data, mode=0o644):
        self.folder(str(Path(name).parent))
        entry = self.entry(name, mode, tarfile.REGTYPE)
        entry.size = len(data)
        self.tar.addfile(entry, io.BytesIO(data))

    def entry(self, name, mode, kind):
        entry = tarfile.TarInfo(name)
        entry.mode, entry.type, entry.mtime = mode, kind, self.moment
        return entry

    def close(self):
        self.tar.close()
        return self.bytes.getvalue()


def layer(program, architecture, moment):
    """What the image has as files."""
    made = Layer(moment)
    for name, mode in sorted(FOLDERS.items()):
        made.folder(name, mode)
    for name, text in sorted(FILES.items()):
        made.file(name, text.encode())
    for source, target in sorted(libraries(program, architecture).items(), key=lambda pair: pair[1]):
        made.file(str(target).lstrip("/"), source.read_bytes(), 0o755)
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        made.file(f"usr/share/doc/forebay/{name}", (ROOT / name).read_bytes())
    words = [sys.executable, str(ROOT / "scripts/third_party.py"), "--no-default-features"]
    environment = os.environ | {"CARGO_BUILD_TARGET": TRIPLES[architecture]}
    made.file("usr/share/doc/forebay/third-party", subprocess.run(words, env=environment, check=True, capture_output=True).stdout)
    for package in ("libc6", "libc6-arm64-cross"):
        copyright_file = Path("/usr/share/doc", package, "copyright")
        if copyright_file.exists():
            made.file("usr/share/doc/libc6/copyright", copyright_file.read_bytes())
            break
    made.file("usr/bin/forebay", program.read_bytes(), 0o755)
    return made.close()


class Layout:
    """The blobs of an image, by their checksums."""

    def __init__(self):
        self.blobs = {}

    def add(self, data, kind):
        number = hashlib.sha256(data).hexdigest()
        self.blobs[number] = data
        return {"mediaType": kind, "digest": f"sha256:{number}", "size": len(data)}

    def json(self, value, kind):
        return self.add(json.dumps(value, sort_keys=True, separators=(",", ":")).encode(), kind)


def containerfile():
    """What packaging/container/Containerfile sets, by instruction."""
    text = (ROOT / "packaging/container/Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return dict(line.split(maxsplit=1) for line in text.splitlines() if re.match(r"(ENV|VOLUME|ENTRYPOINT|CMD) ", line))


def add_image(layout, program, architecture, moment, labels):
    """The manifest of one architecture."""
    header = says("readelf", "--file-header", str(program))
    if MACHINES[architecture] not in header:
        sys.exit(f"image: {program} is not for {architecture}: {re.search(r'Machine: *(.*)', header)[1]}")
    plain = layer(program, architecture, moment)
    packed = layout.add(gzip.compress(plain, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip")
    created = datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    given = containerfile()
    config = layout.json({
        "architecture": architecture,
        "os": "linux",
        "created": created,
        "config": {
            # The gateway drops root's rights itself, as far as its configuration allows (docs/security.md).
            "User": "0:0",
            "Env": ["PATH=/usr/bin", given["ENV"]],
            "Entrypoint": json.loads(given["ENTRYPOINT"]),
            "Cmd": json.loads(given["CMD"]),
            "Volumes": {given["VOLUME"]: {}},
            "WorkingDir": "/",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(plain).hexdigest()}"]},
        "history": [{"created": created, "created_by": "scripts/image.py"}],
    }, "application/vnd.oci.image.config.v1+json")
    manifest = layout.json({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [packed],
        "annotations": labels,
    }, "application/vnd.oci.image.manifest.v1+json")
    print(f"image: {architecture}: {len(plain) / 1e6:.1f} MB, {packed['size'] / 1e6:.1f} MB packed; user root; "
          f"libraries {' '.join(sorted(Path(one).name for one in libraries(program, architecture))) or 'none'}")
    return manifest | {"platform": {"architecture": architecture, "os": "linux"}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("version")
    parser.add_argument("programs", nargs="+", metavar="ARCHITECTURE=PROGRAM")
    arguments = parser.parse_args()
    moment, layout = seconds(), Layout()
    labels = {
        "org.opencontainers.image.title": "forebay",
        "org.opencontainers.image.description": "IPsec gateway in user space",
        "org.opencontainers.image.version": arguments.version,
        "org.opencontainers.image.licenses": "Apache-2.0 OR MIT",
        "org.opencontainers.image.revision": says("git", "-C", str(ROOT), "rev-parse", "HEAD").strip(),
    }
    manifests = []
    for given in arguments.programs:
        architecture, _, program = given.partition("=")
        if architecture not in LIBRARIES or not Path(program).is_file():
            parser.error(f"'{given}': expected amd64= or arm64= and a program")
        manifests.append(add_image(layout, Path(program), architecture, moment, labels))
    # One image for several architectures is an index of its own, to which the layout's index gives the name.
    top = manifests[0] if len(manifests) == 1 else layout.json({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": manifests,
    }, "application/vnd.oci.image.index.v1+json")
    named = top | {"annotations": {"org.opencontainers.image.ref.name": arguments.version}}
    archive = Layer(moment)
    archive.file("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
    archive.file("index.json", json.dumps({"schemaVersion": 2, "manifests": [named]}, sort_keys=True).encode())
    for number, data in sorted(layout.blobs.items()):
        archive.file(f"blobs/sha256/{number}", data)
    arguments.archive.write_bytes(archive.close())


if __name__ == "__main__":
    main()
