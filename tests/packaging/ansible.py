#!/usr/bin/env python3
"""The Ansible role of packaging/ansible, from installation to removal, on a machine of Debian or Ubuntu whose first process is systemd.

    tests/packaging/ansible.py DIRECTORY [SUITE]      suite: that of this machine by default

DIRECTORY has the package of the gateway, as `make deb` or scripts/deb.sh leaves it there. The machine is one of tests/packaging/userlands.py
and has Python besides; Ansible runs on this side of its namespaces, and reaches it by nsenter in the place of ssh. ansible-core and
ansible-lint are those of packaging/ansible/requirements.txt, in target/ansible.
"""

import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

import userlands
from userlands import LAB, OUTER, ROOT, SUITES, Machine, ip, ip_

PACKAGES = userlands.PACKAGES + ",python3,python3-apt"
FOLDER = ROOT / "packaging/ansible"
TOOLS = ROOT / "target/ansible"
WORK = pathlib.Path(LAB, "ansible")


def fail(words):
    sys.exit(f"ansible: {words}")


def environment():
    """Whether target/ansible has the versions of the requirements; it is made where it has others."""
    stamp, wanted = TOOLS / "requirements", (FOLDER / "requirements.txt").read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return True
    shutil.rmtree(TOOLS, ignore_errors=True)
    pip = [TOOLS / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", FOLDER / "requirements.txt"]
    if any(subprocess.run(words, check=False).returncode for words in ([sys.executable, "-m", "venv", TOOLS], pip)):
        return False
    stamp.write_text(wanted, encoding="utf-8")
    return True


def lint():
    words = [TOOLS / "bin/ansible-lint", "--offline", "--profile", "production", "--nocolor", "."]
    path = f"{TOOLS}/bin:{os.environ['PATH']}"
    done = subprocess.run(words, cwd=FOLDER, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"ansible-lint: {done.stdout}{done.stderr}")
    print("ansible: ansible-lint, profile production: clean")


class Controller:
    """Where Ansible runs: a copy of the playbook and its role beside the folder of each gateway."""

    def __init__(self, machine, package):
        self.machine, self.said = machine, ""
        shutil.copytree(FOLDER, WORK)
        subprocess.run(["dpkg-deb", "--extract", package, WORK / "extracted"], check=True)
        sides = [word for side, network in (("a", "10.1.0.0/16"), ("b", "10.2.0.0/16"))
                 for word in ("--side", f"{userlands.SIDE[side]}={OUTER[4][side][0]},{network}")]
        forebay = WORK / "extracted/usr/bin/forebay"
        subprocess.run([forebay, "tunnel", "new", *sides], cwd=WORK, check=True, stdout=subprocess.DEVNULL)
        both = [f"{name}/gateway.toml" for name in userlands.SIDE.values()]
        subprocess.run([forebay, "tunnel", "roll", *both, "--out", "next"], cwd=WORK, check=True, stdout=subprocess.DEVNULL)
        self.keys = [path.read_text(encoding="utf-8").strip() for path in sorted(WORK.glob(f"**/{machine.name}/keys/*"))]
        # One of the keys as it may lie in a repository.
        (WORK / "password").write_text("of the vault\n", encoding="utf-8")
        self.run("ansible-vault", "encrypt", "--vault-password-file", "password", next((WORK / machine.name / "keys").iterdir()))
        into = " ".join(machine.words())
        (WORK / "ssh").write_text(f'#!/bin/bash\nexec {into} sh -c "${{@: -1}}"\n', encoding="utf-8")
        (WORK / "ssh").chmod(0o755)
        (WORK / "hosts").write_text(
            f"[gateways]\n{machine.name} ansible_user=root ansible_ssh_executable={WORK}/ssh ansible_pipelining=true "
            f"ansible_ssh_transfer_method=piped ansible_python_interpreter=/usr/bin/python3 forebay_package={package}\n", encoding="utf-8")

    @staticmethod
    def run(program, *words):
        env = {"PATH": f"{TOOLS}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(WORK), "LANG": "C.UTF-8", "ANSIBLE_NOCOLOR": "1"}
        return subprocess.run(["timeout", "--kill-after=9", "300", TOOLS / "bin" / program, *words], cwd=WORK, env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    def play(self, what, *words, changed, fails=None, book="site.yml"):
        """Runs a playbook; it has to change so many things (None: some), or to fail with such words. What it said."""
        done = self.run("ansible-playbook", "-vvv", "--diff", "--inventory", "hosts", "--vault-password-file", "password", book, *words)
        self.said += done.stdout
        recap = re.search(r"ok=(\d+) +changed=(\d+) +unreachable=(\d+) +failed=(\d+)", done.stdout)
        if not recap or (done.returncode != 0) != bool(fails) or (fails and not re.search(fails, done.stdout)):
            fail(f"{what}: exit code {done.returncode}, expected {fails or 0}\n{done.stdout}\n{self.machine.journal()}")
        if int(recap[2]) != changed if changed is not None else recap[2] == "0":
            fail(f"{what}: {recap[2]} changes, expected {'some' if changed is None else changed}\n{done.stdout}")
        print(f"ansible: {what}: {recap[0]}", flush=True)
        return done.stdout


def observed(machine):
    """What the role may change: the installed files, the state of the unit, and which start and reload of the gateway it is."""
    return machine.sh("find /etc/forebay -printf '%p %u:%g %m\\n' 2>/dev/null | sort; find /etc/forebay -type f -exec sha256sum {} + 2>/dev/null | sort; "
                      "systemctl is-enabled forebay forebay-guard; systemctl show -p MainPID,ActiveState forebay; "
                      "journalctl --no-pager -u forebay -o cat | grep -c ^Reloaded; ls -d /tmp/forebay.* 2>/dev/null", check=False)


def spis(machine):
    return {one["spi"] for one in json.loads(machine.sh("forebay show sas --json"))["sas"]}


def day(machine, package):
    """What happens to the gateway."""
    controller = Controller(machine, package)
    play, fresh = controller.play, observed(machine)

    def unchanged(before, what):
        if (after := observed(machine)) != before:
            fail(f"{what} has changed something:\n{before}\nnow:\n{after}")

    play("check mode on a fresh machine", "--check", changed=None)
    unchanged(fresh, "check mode")
    play("without a package", "-e", "forebay_package=", changed=0, fails="set forebay_package to the path")
    unchanged(fresh, "a play without a package")
    play("installation", changed=None)
    installed = observed(machine)
    for line in ("/etc/forebay/gateway.toml root:forebay 640", "/etc/forebay/keys/west-to-east.key root:forebay 640", "ActiveState=active"):
        if line not in installed:
            fail(f"after the installation: no {line}\n{installed}\n{machine.journal()}")
    if installed.count("enabled\n") != 2 or "/tmp/forebay." in installed:
        fail(f"after the installation:\n{installed}")
    if len(spis(machine)) != 2:
        fail(f"the gateway has other SAs than the two of its file:\n{machine.sh('forebay show sas')}")
    play("once more", changed=0)
    unchanged(installed, "a second play")
    play("once more, check mode", "--check", changed=0)

    config = WORK / machine.name / "gateway.toml"
    good = config.read_text(encoding="utf-8")
    key = next(path for path in sorted((WORK / machine.name / "keys").iterdir()) if "VAULT" not in path.read_text(encoding="utf-8"))
    good_key = key.read_text(encoding="utf-8")
    config.write_text(good.replace("direction =", "directoin =", 1), encoding="utf-8")
    play("a misspelt key", changed=0, fails="gateway.toml:12:1[^$]*did you mean `direction`")
    unchanged(installed, "a file with an error")
    config.write_text(good.replace('name = "east-out"', 'name = "east-out"\nlife_packets = 123456789', 1), encoding="utf-8")
    key.write_text("0123\n", encoding="utf-8")
    play("a changed file, and a key that is too short", changed=0, fails=re.escape(key.name))
    unchanged(installed, "a key that is too short")
    key.write_text(good_key, encoding="utf-8")
    said = play("a changed file, check mode", "--check", changed=2)
    unchanged(installed, "check mode")
    if "Reload the gateway" not in said:
        fail(f"no word of the reload\n{said}")
    play("a changed file", changed=2)
    changed, pid = observed(machine), re.search("MainPID=.*", installed)[0]
    if pid not in changed or "123456789" not in machine.sh("forebay show sas --json"):
        fail(f"the changed file has no effect:\n{installed}\nnow:\n{changed}\n{machine.journal()}")
    play("a changed file, once more", changed=0)
    old = spis(machine)
    play("new keys", changed=6, book="roll.yml")
    if len(new := spis(machine)) != 2 or new & old or pid not in observed(machine):
        fail(f"SAs {old} before, {new} after\n{machine.journal()}")

    play("removal", "-e", "forebay_state=absent", changed=1)
    kept = observed(machine)
    if "/etc/forebay/keys/west-to-east.key" not in kept or "ActiveState=active" in kept or machine.sh("command -v forebay || true"):
        fail(f"after the removal:\n{kept}")
    play("removal, once more", "-e", "forebay_state=absent", changed=0)
    purge = ["-e", "forebay_state=absent", "-e", "forebay_purge=true"]
    play("purge", *purge, changed=2)
    left = machine.sh("ls -d /etc/forebay /var/lib/forebay 2>/dev/null; getent passwd forebay", check=False)
    if left:
        fail(f"after the purge: {left}")
    play("purge, once more", *purge, changed=0)

    journal = machine.sh("journalctl --no-pager")
    if leaked := [key for key in controller.keys if key.removeprefix("0x") in controller.said + journal]:
        fail(f"{len(leaked)} of {len(controller.keys)} keys are in what Ansible said or in the journal")
    if "ansible" not in journal:
        fail("the journal has nothing of Ansible's modules")
    print(f"ansible: none of {len(controller.keys)} keys is in {len(controller.said.splitlines())} lines of ansible-playbook -vvv --diff, nor in the journal")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    package, = sorted(pathlib.Path(sys.argv[1]).resolve().glob("forebay_*.deb")) or [fail(f"{sys.argv[1]} has no forebay_*.deb; make deb")]
    suite = sys.argv[2] if len(sys.argv) == 3 else platform.freedesktop_os_release().get("VERSION_CODENAME")
    if suite not in SUITES:
        print(f"ansible: SKIPPED, {suite}: expected one of {', '.join(SUITES)}")
        return
    if userlands.INSIDE not in os.environ:
        if not environment():
            print("ansible: SKIPPED, the packages of packaging/ansible/requirements.txt cannot be installed in target/ansible")
            return
        lint()
        userlands.enter([suite], PACKAGES)
    tar, why = userlands.root(suite, PACKAGES)
    if why:
        print(f"ansible: SKIPPED, {suite}: {why}")
        return
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    for folder in ("/run/netns", LAB, "/run/machines"):
        os.makedirs(folder)
    ip_("netns", "add", "gw-a")
    ip("gw-a", "link", "set", "lo", "up")
    ip("gw-a", "link", "add", "wan", "type", "veth", "peer", "name", "far")
    ip("gw-a", "addr", "add", f"{OUTER[4]['a'][0]}/24", "dev", "wan")
    for name in ("wan", "far"):
        ip("gw-a", "link", "set", name, "up")
    machine = Machine("a", tar)
    day(machine, package)
    machine.end()
    print(f"ansible: ok, {suite}")


if __name__ == "__main__":
    main()
