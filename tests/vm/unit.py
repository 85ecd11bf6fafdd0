#!/usr/bin/env python3
"""The Debian package in a virtual machine that systemd boots: installed, started, reloaded, killed, hung, removed.

    unit.py FOREBAY.DEB       needs root and debootstrap besides what the other machines need
"""

import os
import re
import shutil
import subprocess
import sys
import time

from vm import HERE, IMAGE, INSIDE, Namespace, Vm, VmError, enter, make_image, shell, skip

PACKAGES = "systemd,systemd-sysv,adduser,iproute2,kmod,procps"
ROOT = IMAGE / "unit-root"
INITRAMFS = IMAGE / "initramfs-unit"
AGENT = """
[Unit]
Description=Does what the host asks for
DefaultDependencies=no
After=sysinit.target
[Service]
ExecStart=/bin/sh /agent
StandardOutput=null
[Install]
WantedBy=sysinit.target
"""

CONFIG = """
[inside]
name = "forebay0"
addresses = ["10.1.0.1/32"]
[[outside]]
kind = "udp"
[metrics]
listen = "127.0.0.1:9464"
"""
SA = """
[[sa]]
name = "{name}"
direction = "{direction}"
spi = {spi}
proposal = "aes128gcm16"
key_file = "keys/{name}.key"
encapsulation = "udp"
local = "127.0.0.1"
remote = "127.0.0.2"
local_ts = ["10.1.0.0/24"]
remote_ts = ["{network}"]
"""


def make_root():
    """Debian with systemd, the modules of the other machines, and the agent that does what the host asks for."""
    if INITRAMFS.exists():
        return
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        skip("a root of Debian cannot be made here (root, and scripts/setup.sh vm)")
    print("unit: making a root of Debian", flush=True)
    shutil.rmtree(ROOT, ignore_errors=True)
    done = subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", ROOT],
                          stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        skip("debootstrap has failed")
    # What is the machine's own in the other machines' init: all behind its mounts.
    init = (HERE / "init").read_text()
    (ROOT / "agent").write_text("modprobe -a virtio_console virtio_net\n" + init[init.index("port() {"):].replace("usleep 10000", "sleep 0.05"))
    (ROOT / "etc/systemd/system/agent.service").write_text(AGENT)
    (ROOT / "init").unlink(missing_ok=True)
    shell(f"""
        cd {ROOT}
        rm -rf usr/share/doc/* usr/share/locale usr/share/man/* var/cache/apt/archives/*.deb var/lib/apt/lists/*
        (cpio -idm --quiet 'lib/modules/*' <{IMAGE}/initramfs) && depmod -b . "$(ls lib/modules)"
        mkdir -p etc/systemd/system/sysinit.target.wants
        ln -sf ../agent.service etc/systemd/system/sysinit.target.wants/
        ln -sf /lib/systemd/systemd init
        echo forebay-test >etc/hostname
        find . -print0 | cpio -0o --quiet -H newc >{INITRAMFS}.new && mv {INITRAMFS}.new {INITRAMFS}
        rm -rf {ROOT}""", timeout=300)


class Unit:
    """The gateway's unit in the machine."""

    def __init__(self, vm):
        self.vm = vm

    def show(self, name):
        return self.vm.sh(f"systemctl show -P {name} forebay").strip()

    def journal(self):
        return self.vm.sh("journalctl --no-pager -o short-monotonic -u forebay")

    def until(self, condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise VmError(f"{what}\n{self.journal()}")
            time.sleep(0.3)

    def configure(self, *networks):
        """A pair of SAs to each network."""
        text = CONFIG
        for number, network in enumerate(networks, 1):
            for direction, spi in (("out", 0x1000 + number), ("in", 0x2000 + number)):
                name = f"{direction}-{number}"
                text += SA.format(name=name, direction=direction, spi=spi, network=network)
                self.vm.sh(f"[ -e /etc/forebay/keys/{name}.key ] || {{ install -m 0640 -g forebay /dev/null /etc/forebay/keys/{name}.key; "
                           f"head -c 20 /dev/urandom | od -An -tx1 | tr -d ' \\n' >/etc/forebay/keys/{name}.key; }}")
        self.vm.put(text.encode(), "/etc/forebay/gateway.toml")


def threads(vm, pid):
    """User, capabilities and name of each thread."""
    text = vm.sh(f"grep -hE '^(Name|Uid|CapPrm|CapEff|CapBnd|NoNewPrivs)' /proc/{pid}/task/*/status")
    keys = re.findall(r"^(\w+):\t(\S+)", text, re.M)
    return [dict(keys[at:at + 6]) for at in range(0, len(keys), 6)]


def expect(condition, what):
    if not condition:
        raise VmError(what)


def checks(vm, deb):
    unit = Unit(vm)
    vm.put(deb, "/tmp/forebay.deb", seconds=120)
    vm.sh("dpkg -i /tmp/forebay.deb", seconds=120)
    expect(vm.sh("stat -c '%a %U %G' /etc/forebay /etc/forebay/keys").split() == ["750", "root", "forebay"] * 2, "/etc/forebay")
    expect(unit.show("UnitFileState") == "disabled" and unit.show("ActiveState") == "inactive", "it started by itself")
    status, _ = vm.sh("systemctl start forebay", check=False, seconds=60)
    expect(status != 0 and "gateway.toml" in unit.journal(), "it started without a file")
    vm.sh("systemctl stop forebay")
    print("unit:", vm.sh("forebay --version").strip(), "installed; not started before it has a file")

    # As udev does, which this machine does not have.
    vm.sh("chmod 666 /dev/net/tun")
    unit.configure("10.2.0.0/24")
    vm.sh("forebay check --config /etc/forebay/gateway.toml")
    vm.sh("systemctl start forebay", seconds=90)
    pid = unit.show("MainPID")
    expect(unit.show("SubState") == "running" and unit.show("Type") == "notify", unit.journal())
    uid = vm.sh("id -u forebay").strip()
    seen = threads(vm, pid)
    for thread in seen:
        kept = 1 << 12 if thread["Name"] in ("forebay", "forebay-host") else 0
        expect(thread["Uid"] == uid and thread["NoNewPrivs"] == "1", thread)
        expect(int(thread["CapPrm"], 16) == int(thread["CapEff"], 16) == kept, thread)
    expect("forebay-watchdog" in [thread["Name"] for thread in seen][1:] or any(t["Name"].startswith("forebay-watch") for t in seen), seen)
    expect("10.2.0.0/24" in vm.sh("ip route show dev forebay0"), "no route")
    expect(vm.sh("stat -c '%a %U' /run/forebay /var/lib/forebay /run/forebay/control.sock").split()
           == ["711", "forebay", "700", "forebay", "600", "forebay"], vm.sh("ls -la /run/forebay /var/lib/forebay"))
    print(f"unit: runs as user forebay, {len(seen)} threads, CAP_NET_ADMIN in the first and in the caretaker of the host")

    unit.configure("10.2.0.0/24", "10.3.0.0/24")
    vm.sh("systemctl reload forebay", seconds=60)
    expect("10.3.0.0/24" in vm.sh("ip route show dev forebay0"), "no route after a reload")
    expect(unit.show("MainPID") == pid, "a reload started it anew")
    vm.sh("echo 'nonsense = 1' >>/etc/forebay/gateway.toml")
    status, _ = vm.sh("systemctl reload forebay", check=False, seconds=60)
    expect(status != 0 and unit.show("ActiveState") == "active" and unit.show("MainPID") == pid, "a broken file")
    expect(vm.sh("forebay show sas --json").count('"out-') == 2, "SAs after a broken file")
    unit.configure("10.2.0.0/24", "10.3.0.0/24")
    print("unit: a reload added SAs and a route; one of a broken file failed and changed nothing")

    def another():
        return unit.show("ActiveState") == "active" and unit.show("MainPID") not in ("0", pid)

    vm.sh(f"kill -KILL {pid}")
    unit.until(another, "not started anew after SIGKILL")
    expect(unit.show("NRestarts") == "1" and "10.2.0.0/24" in vm.sh("ip route show dev forebay0"), unit.journal())
    pid = unit.show("MainPID")
    vm.sh(f"kill -STOP {pid}")
    began = time.monotonic()
    unit.until(another, "not started anew by the watchdog")
    expect("watchdog" in unit.journal().lower(), unit.journal())
    print(f"unit: started anew after SIGKILL, and {time.monotonic() - began:.0f} s after it had hung")

    vm.sh("systemctl stop forebay", seconds=60)
    expect(unit.show("Result") == "success" and "forebay0" not in vm.sh("ip link"), unit.journal())
    # As after a boot, by the unit of before the network and by a start that fails.
    holes = "ip route show type blackhole"
    vm.sh("ip route flush type blackhole; systemctl start forebay-guard", seconds=60)
    expect("10.2.0.0/24" in vm.sh(holes) and "10.3.0.0/24" in vm.sh(holes), vm.sh("journalctl --no-pager -u forebay-guard"))
    vm.sh("systemctl stop forebay-guard; ip route flush type blackhole; echo 'nonsense = 1' >>/etc/forebay/gateway.toml")
    status, _ = vm.sh("systemctl start forebay", check=False, seconds=60)
    expect(status != 0 and "10.2.0.0/24" in vm.sh(holes), unit.journal())
    vm.sh("systemctl stop forebay")
    print("unit: the host is closed before the network comes up, and by a start with a broken file")

    exposure = vm.sh("systemd-analyze security forebay --no-pager | tail -1", seconds=60).strip()
    print("unit:", exposure.encode("ascii", "ignore").decode().strip())
    print(unit.journal())

    vm.sh("dpkg --remove forebay", seconds=60)
    expect(vm.sh("ls /etc/forebay/keys | wc -l").strip() == "4", "removal took keys")
    vm.sh("rm -r /etc/forebay/*; dpkg --purge forebay", seconds=60)
    left = vm.sh("find / -xdev -iname '*forebay*' -not -path '/proc/*' -not -path '/sys/*' -not -path '/tmp/*' "
                 "-not -path '/var/log/*' -not -path '/var/lib/dpkg/*'; getent passwd forebay || true")
    expect(not left.strip(), f"left after a purge:\n{left}")
    print("unit: removal leaves keys, a purge without keys leaves nothing")


def main():
    deb = os.path.realpath(sys.argv[1])
    if os.environ.get(INSIDE) != "1":
        make_image()
        make_root()
    enter()
    began = time.monotonic()
    here = Namespace()
    here.tap("wire")
    with Vm("unit", [(here, "wire")], memory=1536, initramfs=INITRAMFS) as vm:
        uptime = vm.wait(180)
        print(f"unit: systemd has started in {uptime} s of its time, {time.monotonic() - began:.1f} s of ours")
        try:
            checks(vm, deb)
        except VmError:
            print(vm.sh("journalctl --no-pager -b -t forebay -t systemd -u forebay | tail -40", check=False)[1])
            raise
    print(f"unit: ok, {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
