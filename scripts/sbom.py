#!/usr/bin/env python3
"""Prints what a binary holds as a software bill of materials: CycloneDX 1.5, JSON.

    sbom.py                                      of the whole command
    sbom.py --no-default-features [--with-libc]  of the gateway alone; with the C library, as in the image
    sbom.py --of-package forebay-python          of a package of the workspace by itself: the module of the wheel

The binary is the one for CARGO_BUILD_TARGET, or for this machine. The same lock file gives the same bytes: the document's
number comes from its contents, and its time is SOURCE_DATE_EPOCH or that of the last commit.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path

from third_party import linked, metadata, target

ROOT = Path(__file__).resolve().parent.parent


def moment():
    """The time of the sources, in UTC."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if not epoch:
        words = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
        epoch = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def checksums():
    """SHA-256 of each package of the registry, by name and version."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))
    return {(one["name"], one["version"]): one.get("checksum") for one in lock["package"]}


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, sums):
    """A crate as a component. Licences that older packages write with a stroke are expressions with OR."""
    found = {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
    }
    if package["license"]:
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum := sums.get((package["name"], package["version"])):
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return found


def installed(package):
    """The version of a package of Debian that is here, or None."""
    words = ["dpkg-query", "--show", "--showformat=${Version}", package]
    done = subprocess.run(words, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 and done.stdout else None


def of_debian(package, name, licence, architecture):
    """A library of the distribution as a component."""
    purl = f"pkg:deb/debian/{package}@{installed(package)}?arch={architecture}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": installed(package), "purl": purl, "licenses": [licence]}


def of_the_system(with_libc):
    """The libraries in C that come from packages of the distribution: linked, or beside the program in the image."""
    architecture = "amd64" if target().startswith("x86_64-") else "arm64"
    found = []
    if architecture == "amd64" and Path("/usr/share/doc/libipsec-mb-dev/copyright").exists():
        licence = {"license": {"id": "BSD-3-Clause"}}
        found.append(of_debian("libipsec-mb-dev", "Intel IPsec multi-buffer library", licence, architecture))
    if with_libc:
        package = next(one for one in ("libc6-arm64-cross", "libc6") if architecture == "arm64" or one == "libc6" if installed(one))
        found.append(of_debian(package, "GNU C library", {"expression": "LGPL-2.1-or-later"}, architecture))
    return found


def document(data, name, package, features, with_libc):
    needed = linked(data, package, features)
    packages = {package["id"]: package for package in data["packages"] if package["id"] in needed}
    main = next(one for one in packages.values() if one["name"] == package)
    sums = checksums()
    order = sorted(packages.values(), key=lambda package: (package["name"], package["version"]))
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}

    def needs(package):
        of_it = nodes[package["id"]]["deps"]
        return sorted({reference(packages[one["pkg"]]) for one in of_it if one["pkg"] in packages})

    body = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": moment(),
            "component": {
                "type": "application",
                "bom-ref": reference(main),
                "name": name,
                "version": main["version"],
                "licenses": [{"expression": main["license"]}],
                "properties": [{"name": "forebay:target", "value": target()}],
            },
        },
        "components": [component(package, sums) for package in order if package is not main] + of_the_system(with_libc),
        "dependencies": [{"ref": reference(package), "dependsOn": needs(package)} for package in order],
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return {"$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json", "serialNumber": f"urn:uuid:{number}", **body}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-default-features", action="store_true")
    parser.add_argument("--with-libc", action="store_true")
    parser.add_argument("--of-package", metavar="NAME")
    given = parser.parse_args()
    name = given.of_package or ("forebay-gateway" if given.no_default_features else "forebay")
    features = ["--no-default-features"] if given.no_default_features else []
    print(json.dumps(document(metadata(), name, given.of_package or "forebay-cli", features, given.with_libc), indent=1))


if __name__ == "__main__":
    main()
