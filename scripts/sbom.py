#!/usr/bin/env python3
"""Prints what a binary holds as a software bill of materials: CycloneDX 1.5, JSON.

    sbom.py [--no-default-features]      of the whole command, or of the gateway alone

The binary is the one for CARGO_BUILD_TARGET, or for this machine. The same lock file gives the same bytes: the document's
number comes from its contents, and its time is SOURCE_DATE_EPOCH or that of the last commit.
"""

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


def of_the_system():
    """The library in C that is linked from a package of the distribution."""
    if not (Path("/usr/share/doc/libipsec-mb-dev/copyright").exists() and target().startswith("x86_64-")):
        return []
    words = ["dpkg-query", "--show", "--showformat=${Version}", "libipsec-mb-dev"]
    version = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    purl = f"pkg:deb/debian/libipsec-mb-dev@{version}?arch=amd64"
    licence = [{"license": {"id": "BSD-3-Clause"}}]
    name = "Intel IPsec multi-buffer library"
    return [{"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, "licenses": licence}]


def document(data, gateway_alone):
    needed = linked(data)
    packages = {package["id"]: package for package in data["packages"] if package["id"] in needed}
    main = next(package for package in packages.values() if package["name"] == "forebay-cli")
    sums = checksums()
    order = sorted(packages.values(), key=lambda package: (package["name"], package["version"]))
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}

    def needs(package):
        of_it = nodes[package["id"]]["deps"]
        return sorted({reference(packages[one["pkg"]]) for one in of_it if one["pkg"] in packages})

    name = "forebay-gateway" if gateway_alone else "forebay"
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
        "components": [component(package, sums) for package in order if package is not main] + of_the_system(),
        "dependencies": [{"ref": reference(package), "dependsOn": needs(package)} for package in order],
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return {"$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json", "serialNumber": f"urn:uuid:{number}", **body}


if __name__ == "__main__":
    print(json.dumps(document(metadata(sys.argv[1:]), "--no-default-features" in sys.argv[1:]), indent=1))
