#!/usr/bin/env python3
"""The files of `forebay tunnel new --ike`, as they are written, between two virtual machines that both run strongSwan and Forebay:
a ping meets the trap, charon negotiates, both gateways take the keys from their kernels, a rekey loses nothing, and nothing passes
in the clear. docs/tutorial-strongswan.md shows the same files.

    tests/vm/tunnel_new.py FOREBAY [--ike psk|cert] [--link udp|raw]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from ike import begin
from ike_gateway import lost, start
from vm import HERE, Namespace, Vm, VmError, enter

SIDES = {"west": (1, 2), "east": (2, 1)}
# The daemon's own file of the distribution, which includes what is installed below strongswan.d.
STRONGSWAN = """
charon-systemd {
 plugins { include strongswan.d/charon/*.conf }
 journal { default = -1 }
 filelog { stderr { default = 1 } }
}
include strongswan.d/*.conf
"""


def files(forebay, folder, ike, link):
    """Has the command write both sides' files."""
    sides = [word for name, (own, _) in SIDES.items() for word in ("--side", f"{name}=192.0.2.{own},10.{own}.0.0/16")]
    words = [forebay, "tunnel", "new", *sides, "--ike", ike, "--link", link, "--out", folder]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    if ike == "cert":
        subprocess.run(["sh", "certificates.sh"], check=True, cwd=folder, capture_output=True)


def install(vm, forebay, folder, own, peer, peer_name):
    """What the commands that the tool prints do, where this machine has the folders of the packages."""
    vm.sh(f"""
        modprobe -a esp4 xfrm_user tun; mkdir -p /dev/net; [ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200
        ip link set eth0 up; ip addr add 192.0.2.{own}/24 dev eth0; ip addr add 10.{own}.0.1/16 dev lo
        mkdir -p /var/run /run/charon /etc/swanctl/conf.d /etc/strongswan.d /var/lib; ln -sf /run/charon.vici /var/run/charon.vici""")
    vm.put(STRONGSWAN.encode(), "/etc/strongswan.conf")
    vm.put(b"include conf.d/*.conf\n", "/etc/swanctl/swanctl.conf")
    vm.put(folder / "swanctl.conf", f"/etc/swanctl/conf.d/{peer_name}.conf", 0o600)
    vm.put(folder / "strongswan.conf", "/etc/strongswan.d/forebay.conf")
    for kind in ("x509ca", "x509", "private"):
        for path in sorted((folder / kind).glob("*")):
            vm.sh(f"mkdir -p /etc/swanctl/{kind}")
            vm.put(path, f"/etc/swanctl/{kind}/{path.name}", 0o600)
    vm.put(forebay, "/tmp/forebay", 0o755)
    # The laboratory's programs ask at this socket.
    text = (folder / "gateway.toml").read_text() + '\n[control]\nsocket = "/run/control.sock"\n'
    vm.put(text.encode(), "/tmp/gateway.toml")
    begin(vm)
    start(vm)


def main():
    enter()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("forebay", type=Path)
    parser.add_argument("--ike", choices=["psk", "cert"], default="psk")
    parser.add_argument("--link", choices=["udp", "raw"], default="udp")
    arguments = parser.parse_args()
    work = Path(tempfile.mkdtemp(dir="/run"))
    files(arguments.forebay, work / "files", arguments.ike, arguments.link)
    subprocess.run(["strip", "-o", work / "forebay", arguments.forebay], check=True)
    wire = Namespace("wire")
    wire.tap("a", "br"), wire.tap("b", "br")
    with Vm("west", [(wire, "a")], ike=True, memory=768) as west, Vm("east", [(wire, "b")], ike=True, memory=768) as east:
        west.wait(), east.wait()
        for name, vm, peer_name in (("west", west, "east"), ("east", east, "west")):
            install(vm, work / "forebay", work / "files" / name, *SIDES[name], peer_name)
        watch = wire.start([sys.executable, HERE / "watch.py", "a", "10."], stdout=subprocess.PIPE, text=True)
        watch.stdout.readline()
        west.sh("ping -c 20 -i 0.5 -W 2 -I 10.1.0.1 10.2.0.1 >/tmp/ping || { cat /tmp/ping /tmp/charon.log; tail -20 /tmp/gateway.log; "
                "swanctl --list-sas; ip xfrm state; ip route; exit 1; }", seconds=60)
        west.begin("ping -c 200 -i 0.05 -W 2 -I 10.1.0.1 10.2.0.1 >/tmp/ping; echo done")
        east.sh("sleep 2; swanctl --rekey --child west-east >/dev/null", seconds=40)
        west.end()
        missing, sent = lost(west.sh("cat /tmp/ping"))
        watch.terminate()
        seen = json.loads(watch.communicate(timeout=20)[0])
        if missing or seen["clear"] or not seen["esp"]:
            raise VmError(f"of {sent} pings {missing} were lost; {seen}\n{west.sh('tail -20 /tmp/gateway.log')}")
        print(f"tunnel new: --ike {arguments.ike} --link {arguments.link}: {sent} pings over a rekey, none lost; {seen['esp']} packets sealed, "
              "none in the clear")


if __name__ == "__main__":
    main()
