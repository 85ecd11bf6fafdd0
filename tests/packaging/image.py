#!/usr/bin/env python3
"""The image of the gateway as scripts/image.py writes it: what is in it, and two sites whose gateways run from it.

    tests/packaging/image.py ARCHIVE          an image that is there, such as that of `make release`
    tests/packaging/image.py --of PROGRAM     makes one of PROGRAM, stripped, twice, and compares the bytes

umoci unpacks the image, crun runs each command of tests/gateway/two_sites.py in a container of its own, with the capabilities
of packaging/container/compose.yml, a root that is read-only and nothing of the host but the network, /dev/net/tun and the laboratory's
folder. Without umoci and crun, or without namespaces and TUN, this half is skipped.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

from container import CAPABILITIES

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
# crun's settings are its own file with what a command changes: one folder for each, because crun wants one.
RUN = """#!/bin/sh
bundle=$(mktemp -d {work}/run.XXXXXX)
{python} - "$bundle" "$@" <<'END'
import json, os, sys
bundle, *words = sys.argv[1:]
with open("{work}/config.json", encoding="utf-8") as file:
    config = json.load(file)
config["process"]["args"] = ["forebay", *words]
with open(bundle + "/config.json", "w", encoding="utf-8") as file:
    json.dump(config, file)
END
# `ip netns exec` mounts a /sys of its own, and crun looks for control groups even if it is told to make none.
[ -e /sys/fs/cgroup/cgroup.procs ] || mount -t cgroup2 none /sys/fs/cgroup
exec crun --root "$bundle/state" --cgroup-manager=disabled run --bundle "$bundle" "forebay-$(basename "$bundle")"
"""


def fail(text):
    sys.exit(f"image: {text}")


def inspect(layout):
    """Every blob has its checksum; every architecture the settings that docs/containers.md names. The manifests by architecture."""
    blobs = layout / "blobs/sha256"
    for blob in blobs.iterdir():
        if hashlib.sha256(blob.read_bytes()).hexdigest() != blob.name:
            fail(f"the blob {blob.name} has another checksum")

    def load(descriptor):
        data = (blobs / descriptor["digest"].removeprefix("sha256:")).read_bytes()
        if len(data) != descriptor["size"]:
            fail(f"{descriptor['digest']} has another size than its descriptor says")
        return json.loads(data)

    manifests = json.loads((layout / "index.json").read_text())["manifests"]
    if manifests[0]["mediaType"].endswith("index.v1+json"):
        manifests = load(manifests[0])["manifests"]
    for manifest in manifests:
        architecture = manifest["platform"]["architecture"]
        image = load(manifest)
        config = load(image["config"])
        if config["architecture"] != architecture:
            fail(f"{architecture}: the settings are for {config['architecture']}")
        settings = config["config"]
        if settings["Entrypoint"] != ["forebay"] or settings["Volumes"] != {"/var/lib/forebay": {}} or settings["User"] != "0:0":
            fail(f"{architecture}: other settings than docs/containers.md says: {settings}")
        with tarfile.open(blobs / image["layers"][0]["digest"].removeprefix("sha256:")) as layer:
            entries = {entry.name: entry for entry in layer}
        for name in ("usr/bin/forebay", "usr/share/doc/forebay/third-party", "usr/share/doc/libc6/copyright", "etc/passwd"):
            if name not in entries:
                fail(f"{architecture}: no /{name}")
        if wrong := [entry.name for entry in entries.values() if entry.mode & 0o6000 or entry.uid or entry.gid]:
            fail(f"{architecture}: not root's, or with rights of a user: {wrong}")
        packed = sum(one["size"] for one in image["layers"])
        print(f"image: {architecture}: {packed / 1e6:.1f} MB packed, {len(entries)} files and folders, user {settings['User']}")
    return {manifest["platform"]["architecture"]: manifest for manifest in manifests}


def settings_of(bundle, work):
    """crun's settings: those of the image, and what docs/containers.md gives a container."""
    config = json.loads((bundle / "config.json").read_text())
    held = [f"CAP_{name}" for name in sorted(CAPABILITIES)]
    process = config["process"]
    process["terminal"] = False
    process["capabilities"] = {kind: held for kind in ("bounding", "effective", "permitted")}
    process["noNewPrivileges"] = True
    process["rlimits"] = []
    # The laboratory's state is where its other files are.
    process["env"] = ["PATH=/usr/bin", "FOREBAY_STATE=/run/lab/saved"]
    bind = {"type": "bind", "options": ["bind", "rw"]}
    config["root"] = {"path": str(bundle / "rootfs"), "readonly": True}
    config["mounts"] = [one for one in config["mounts"] if one["destination"] in ("/proc", "/dev")] + [
        {"destination": "/dev/net/tun", "source": "/dev/net/tun", **bind},
        {"destination": "/run/lab", "source": "/run/lab", **bind},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev"]},
    ]
    # No network of its own: that of the laboratory's namespace, as with `--network host`.
    config["linux"] = {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]}
    config.pop("hostname", None)
    (work / "config.json").write_text(json.dumps(config))


def two_sites(layout, manifest, work):
    """Whether two sites work with gateways that run from the image."""
    # umoci unpacks no image of several architectures: it gets the one of this machine by a name of its own.
    name = "own"
    named = manifest | {"annotations": {"org.opencontainers.image.ref.name": name}}
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [named]}))
    bundle = work / "bundle"
    rootless = [] if os.geteuid() == 0 else ["--rootless"]
    subprocess.run(["umoci", "unpack", *rootless, "--image", f"{layout}:{name}", bundle], check=True, stdout=subprocess.DEVNULL)
    # crun makes what is mounted on, and fails where another container of the same root has just made it.
    for folder in ("proc", "dev", "tmp", "run/lab"):
        (bundle / "rootfs" / folder).mkdir(parents=True, exist_ok=True)
    settings_of(bundle, work)
    program = work / "forebay"
    program.write_text(RUN.format(work=work, python=sys.executable))
    program.chmod(0o755)
    words = [ROOT / "scripts/lab.sh", program, "run", ROOT / "tests/gateway/two_sites.py"]
    done = subprocess.run(words, env=os.environ | {"LAB_OPTIONAL": "1"}, stdout=subprocess.PIPE, text=True, timeout=300)
    print(done.stdout, end="", flush=True)
    if done.returncode:
        fail("two sites do not work with gateways from it")
    return "SKIPPED" not in done.stdout


def make(program, work):
    """An image of a program, with the same bytes the second time."""
    stripped = work / "forebay-gateway"
    subprocess.run(["strip", "--strip-unneeded", "-o", stripped, program], check=True)
    made = [work / "one.tar", work / "two.tar"]
    for archive in made:
        subprocess.run([ROOT / "scripts/image.py", archive, "0", f"{ARCHITECTURE}={stripped}"], check=True, stdout=subprocess.DEVNULL)
    if made[0].read_bytes() != made[1].read_bytes():
        fail("made twice, it has other bytes")
    return made[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=pathlib.Path, nargs="?")
    parser.add_argument("--of", type=pathlib.Path, metavar="PROGRAM")
    arguments = parser.parse_args()
    if (arguments.archive is None) == (arguments.of is None):
        parser.error("expected an archive, or --of PROGRAM")
    with tempfile.TemporaryDirectory(prefix="forebay-image-") as folder:
        work = pathlib.Path(folder)
        archive = arguments.archive or make(arguments.of, work)
        layout = work / "layout"
        with tarfile.open(archive) as tar:
            tar.extractall(layout)
        architectures = inspect(layout)
        missing = [name for name in ("umoci", "crun") if not shutil.which(name)]
        if missing or ARCHITECTURE not in architectures:
            print(f"image: SKIPPED, two sites: {', '.join(missing) + ' (scripts/setup.sh lab)' if missing else f'none of {ARCHITECTURE}'}")
            return
        if two_sites(layout, architectures[ARCHITECTURE], work):
            print(f"image: two sites, capabilities {', '.join(sorted(CAPABILITIES))}, a root that is read-only")


if __name__ == "__main__":
    main()
