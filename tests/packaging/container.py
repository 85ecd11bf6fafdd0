#!/usr/bin/env python3
"""The files of packaging/container agree with each other and with the documentation, are YAML, and fit the schemas of Kubernetes.

    tests/packaging/container.py

The schemas are those of kubernetes-validate, in target/python (scripts/python.sh env) or on the PATH; without it they are skipped.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "packaging/container"
CAPABILITIES = {"NET_ADMIN", "NET_RAW"}


def fits(path):
    """Whether every object of a file fits its schema, with no field that the schema does not know; and what is said."""
    search = os.pathsep.join([str(ROOT / "target/python/bin"), os.environ.get("PATH", "")])
    program = shutil.which("kubernetes-validate", path=search)
    if not program:
        print("container: SKIPPED, schemas of Kubernetes: kubernetes-validate is not installed (scripts/python.sh env)")
        return None, ""
    done = subprocess.run([program, "--strict", path], capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr


def schemas():
    """What is wrong with the manifest by its schemas; and with the check, if it lets a misspelt field pass."""
    good, said = fits(FOLDER / "kubernetes.yml")
    if good is None:
        return []
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as misspelt:
        misspelt.write((FOLDER / "kubernetes.yml").read_text().replace("hostNetwork:", "hostNetwrok:"))
        misspelt.flush()
        found = not fits(misspelt.name)[0]
    return ([] if good else [f"kubernetes.yml: {said}"]) + ([] if found else ["the schemas let a misspelt field pass"])


def main():
    try:
        import yaml
    except ImportError:
        print("container: SKIPPED, python3-yaml is not installed")
        return
    wrong = schemas()
    gateway = yaml.safe_load((FOLDER / "compose.yml").read_text())["services"]["gateway"]
    if set(gateway["cap_add"]) != CAPABILITIES or gateway["cap_drop"] != ["ALL"]:
        wrong.append("compose.yml: other capabilities than the test tries")
    documents = list(yaml.safe_load_all((FOLDER / "kubernetes.yml").read_text()))
    containers = [one for document in documents if "template" in document.get("spec", {})
                  for one in document["spec"]["template"]["spec"]["containers"] if "forebay" in one["image"]]
    for container in containers:
        context = container["securityContext"]
        if set(context["capabilities"]["add"]) != CAPABILITIES or context["capabilities"]["drop"] != ["ALL"]:
            wrong.append(f"kubernetes.yml: {container['name']}: other capabilities than the test tries")
        if {mount["mountPath"] for mount in container["volumeMounts"]} != {
                "/etc/forebay", "/var/lib/forebay", "/run/forebay", "/dev/net/tun"}:
            wrong.append(f"kubernetes.yml: {container['name']}: other volumes than docs/containers.md says")
    if len(containers) != 2:
        wrong.append(f"kubernetes.yml: {len(containers)} gateways; expected 2")
    image = (FOLDER / "Containerfile").read_text()
    rust = re.search(r'^rust-version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    if "rust:1-" not in image or not rust.startswith("1."):
        wrong.append(f"Containerfile: builds with another Rust than {rust} or newer")
    for line in wrong:
        print(f"container: {line}")
    print("container: compose.yml and kubernetes.yml, capabilities " + ", ".join(sorted(CAPABILITIES)))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
