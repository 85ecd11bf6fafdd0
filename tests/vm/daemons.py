"""IKE daemons of virtual machines behind one interface: strongSwan, libreswan, openiked.

Each takes a `Case` (what is to be agreed on), writes its own configuration of it, and does what an event asks for. A
method that a daemon has no command for raises `Unable`, with the reason.
"""

import re
from dataclasses import dataclass, field

from ike import MARKED
from vm import VmError

SECRET = "what both know"
# Names of a suite in each daemon's words; openiked negotiates integrity by itself.
SUITES = {
    "aes128gcm16": ("aes_gcm128", "enc aes-128-gcm"),
    "aes256gcm16": ("aes_gcm256", "enc aes-256-gcm"),
    "chacha20poly1305": ("chacha20_poly1305", "enc chacha20-poly1305"),
    "aes128-sha256": ("aes128-sha2_256", "enc aes-128 auth hmac-sha2-256"),
    "aes256-sha512": ("aes256-sha2_512", "enc aes-256 auth hmac-sha2-512"),
    "aes256ctr-sha256": ("aes_ctr256-sha2_256", "enc aes-256-ctr auth hmac-sha2-256"),
}


class Unable(Exception):
    """The daemon or its kernel cannot do that."""


@dataclass
class Case:
    """What two ends agree on; end 1 is the gateway's."""

    # A name of SUITES, or none for the first that the peer has.
    esp: str = ""
    key_exchange: str = "x25519"
    children: dict = field(default_factory=lambda: {"net": ("10.1.0.0/16", "10.2.0.0/16")})
    mode: str = "tunnel"
    outer: int = 4
    # Lines of the connection and of its children in the words of swanctl, of each end.
    connection: tuple = ("", "")
    child: tuple = ("", "")
    # Of those that have no such lines: an interval of looking for a dead peer; a lifetime; whether it calls by itself.
    dead_peer: int = 0
    lifetime: int = 0
    active: bool = False
    # A remote network that the peer has in place of the children's own.
    narrowed: str = ""
    any_address: bool = False

    def address(self, end):
        return f"192.0.2.{end}" if self.outer == 4 else f"2001:db8::{end}"

    def networks(self, child, end):
        """Of an end: its own network and that of the other."""
        one, two = self.children[child]
        return (one, two) if end == 1 else (self.narrowed or two, one)


def found(pattern, text):
    """What the pattern's group matches in what a program printed."""
    match = re.search(pattern, text)
    if not match:
        raise VmError(f"no version in: {text!r}")
    return match[1]


class Daemon:
    suites = tuple(SUITES)

    def __init__(self, vm, end):
        self.vm, self.end, self.other = vm, end, 3 - end

    def end_with(self, program):
        self.vm.sh(f"kill -9 $(pidof {program}) 2>/dev/null || true; sleep 0.3")

    def forget(self):
        """What a killed daemon left in the kernel."""
        self.vm.sh("ip xfrm state flush; ip xfrm policy flush")

    def log(self):
        return self.vm.sh("tail -c 3000 /tmp/daemon.log", check=False)[1]


class Strongswan(Daemon):
    name, image, programs = "strongSwan", "initramfs-ike", "charon-systemd"

    def __init__(self, vm, end, marked=False):
        super().__init__(vm, end)
        self.marks = MARKED if marked else ""
        vm.sh("mkdir -p /var/run /run/charon; ln -sf /run/charon.vici /var/run/charon.vici")
        vm.put(
            b"""charon-systemd {
 install_routes = no
 retransmit_tries = 3
 retransmit_timeout = 4
 retransmit_base = 1.5
 plugins { include strongswan.d/charon/*.conf }
 journal { default = -1 }
 filelog { stderr { default = 1 } }
}
""",
            "/etc/strongswan.conf",
        )

    def version(self):
        return found(r"strongSwan (?:swanctl )?([\d.]+)", self.vm.sh("swanctl --version 2>&1 || true"))

    def configure(self, case):
        own, peer = self.end, self.other
        children = ""
        for name in case.children:
            near, far = case.networks(name, own)
            selectors = f"local_ts = {near}\n remote_ts = {far}" if case.mode != "transport" else ""
            children += (
                f" {name} {{ {selectors}\n mode = {case.mode}\n esp_proposals = {case.esp}\n {self.marks}\n"
                f" {case.child[own - 1]}\n }}\n"
            )
        local = "%any" if case.any_address and own == 2 else case.address(own)
        text = f"""connections {{ net {{
 version = 2
 unique = replace
 local_addrs = {local}
 remote_addrs = {case.address(peer)}
 proposals = aes128-sha256-{case.key_exchange}
 {case.connection[own - 1]}
 local {{ auth = psk
 id = end{own} }}
 remote {{ auth = psk
 id = end{peer} }}
 children {{
{children} }}
}} }}
secrets {{ ike {{ secret = "{SECRET}" }} }}
"""
        self.vm.put(text.encode(), "/etc/swanctl/swanctl.conf")

    def start(self):
        self.vm.sh(
            "setsid /usr/sbin/charon-systemd >>/tmp/daemon.log 2>&1 &\n"
            "for try in $(seq 200); do swanctl --stats >/dev/null 2>&1 && break; usleep 100000; done\n"
            "swanctl --load-all >/tmp/load 2>&1 || { cat /tmp/load; exit 1; }",
            seconds=90,
        )

    def initiate(self, child="net"):
        self.vm.sh(f"swanctl --initiate --child {child} --timeout 50", seconds=80)

    def rekey_child(self):
        return "swanctl --rekey --child net"

    def rekey_ike(self):
        return "swanctl --rekey --ike net"

    def reauthenticate(self):
        return "swanctl --rekey --ike net --reauth"

    def delete(self):
        return "swanctl --terminate --ike net --timeout 20"


class Libreswan(Daemon):
    name, image, programs = "libreswan", "initramfs-libreswan", "pluto"

    def __init__(self, vm, end):
        super().__init__(vm, end)
        vm.sh(
            "mkdir -p /run/pluto /var/run /var/lib/ipsec/nss /etc/ipsec.d /var/lib/ipsec; ln -sfn /run/pluto /var/run/pluto\n"
            "certutil -N -d sql:/var/lib/ipsec/nss --empty-password",
            seconds=60,
        )

    def version(self):
        return found(r"[Ll]ibreswan v?(\d[\d.]*)", self.vm.sh("/usr/libexec/ipsec/pluto --version"))

    def configure(self, case):
        own, peer = self.end, self.other
        self.names = [name if len(case.children) > 1 else "net" for name in case.children]
        text = "config setup\n logfile=/tmp/daemon.log\n plutodebug=none\n uniqueids=yes\n"
        for name in case.children:
            near, far = case.networks(name, own)
            subnets = (
                f" leftsubnet={near}\n rightsubnet={far}\n type=tunnel\n"
                if case.mode == "tunnel"
                else " type=transport\n"
            )
            esp = SUITES[case.esp][0]
            text += (
                f"conn {name}\n ikev2=insist\n authby=secret\n left={case.address(own)}\n right={case.address(peer)}\n"
                f" leftid=@end{own}\n rightid=@end{peer}\n{subnets} ike=aes128-sha2_256;dh31\n esp={esp}\n"
                f" auto=add\n mobike={'yes' if case.any_address else 'no'}\n fragmentation=yes\n"
                f" leftupdown=\n pfs=no\n retransmit-timeout=10s\n"
                # A connection that may be narrowed is only a template: it takes no acquire and no command to rekey.
                + (" narrowing=yes\n" if case.narrowed else "")
                + (f" dpddelay={case.dead_peer}s\n dpdtimeout=10s\n" if case.dead_peer else "")
            )
        self.vm.put(text.encode(), "/etc/ipsec.conf")
        self.vm.put(f'@end{own} @end{peer} : PSK "{SECRET}"\n'.encode(), "/etc/ipsec.secrets", 0o600)

    def start(self):
        self.vm.sh(
            """
            setsid /usr/libexec/ipsec/pluto --config /etc/ipsec.conf --nofork >>/tmp/daemon.err 2>&1 &
            for try in $(seq 200); do [ -S /run/pluto/pluto.ctl ] && ipsec whack --status >/dev/null 2>&1 && break; usleep 100000; done
            ipsec whack --rereadsecrets; ipsec whack --listen
            for name in %s; do /usr/libexec/ipsec/addconn --ctlsocket /run/pluto/pluto.ctl --config /etc/ipsec.conf $name; done
            """
            % " ".join(self.names),
            seconds=90,
        )

    def initiate(self, child="net"):
        self.vm.sh(f"timeout 30 ipsec whack --initiate --name {child}", seconds=60)

    def rekey_child(self):
        # Releases from 5 on have the first, older ones the second.
        return "ipsec whack --rekey-child --name net || ipsec whack --rekey-ipsec --name net"

    def rekey_ike(self):
        return "ipsec whack --rekey-ike --name net"

    def reauthenticate(self):
        raise Unable("libreswan reauthenticates by a lifetime only")

    def delete(self):
        return "ipsec whack --terminate --name net"


class Openiked(Daemon):
    name, image, programs = "openiked", "initramfs-openiked", "iked"
    # By Linux's PF_KEY it has neither AEADs nor HMAC-SHA-256 of 128 bits.
    suites = ("aes256-sha512",)

    def __init__(self, vm, end):
        super().__init__(vm, end)
        vm.sh(
            """
            modprobe af_key; mkdir -p /etc/iked/private /etc/iked/certs /etc/iked/ca /etc/iked/crls /etc/iked/pubkeys/ipv4 \
                /var/run /var/empty; chmod 755 /var/empty
            for kind in ipv4 ipv6 fqdn ufqdn; do mkdir -p /etc/iked/pubkeys/$kind; done
            openssl ecparam -name prime256v1 -genkey -noout -out /etc/iked/private/local.key
            openssl ec -in /etc/iked/private/local.key -pubout -out /etc/iked/local.pub; chmod 600 /etc/iked/private/local.key""",
            seconds=60,
        )

    def version(self):
        return found(r"(\d+\.\d+)", self.vm.sh("iked -V 2>&1"))

    def configure(self, case):
        own, peer = self.end, self.other
        if case.mode == "transport":
            flows = f"from {case.address(own)} to {case.address(peer)}"
        else:
            flows = " ".join("from {} to {}".format(*case.networks(name, own)) for name in case.children)
        lifetime = f"lifetime {case.lifetime} bytes 4G" if case.lifetime else ""
        mode = "transport " if case.mode == "transport" else ""
        text = (
            ("set dpd_check_interval %d\n" % case.dead_peer if case.dead_peer else "")
            + f'ikev2 "net" {"active" if case.active else "passive"} {mode}esp {flows} local {case.address(own)} '
            f"peer {case.address(peer)} ikesa enc aes-128 auth hmac-sha2-256 prf hmac-sha2-256 group curve25519 "
            f'childsa {SUITES[case.esp][1]} srcid end{own} dstid end{peer} {lifetime} psk "{SECRET}"\n'
        )
        self.case = case
        self.vm.put(text.encode(), "/etc/iked.conf", 0o600)

    def start(self):
        self.vm.sh(
            # Before release 7.4 it takes packets while its parent still hands it the configuration, whose last message makes it
            # forget IKE SAs that are not established yet ("sa_free: reload"). That message comes with what is looked for here.
            "touch /tmp/daemon.log; before=$(grep -c config_getstatic /tmp/daemon.log || true)\n"
            "setsid iked -d -vv >>/tmp/daemon.log 2>&1 &\n"
            "for try in $(seq 200); do [ $(grep -c config_getstatic /tmp/daemon.log) -gt $before ] && break; usleep 100000; done\n"
            "for try in $(seq 100); do ikectl show sa >/dev/null 2>&1 && exit 0; usleep 200000; done; tail -20 /tmp/daemon.log; exit 1",
            seconds=60,
        )

    def initiate(self, child="net"):
        self.case.active = True
        self.configure(self.case)
        self.vm.sh("ikectl reload", seconds=30)

    def rekey_child(self):
        raise Unable("openiked has no command to rekey, only lifetimes")

    rekey_ike = reauthenticate = rekey_child

    def delete(self):
        # It compares with the name that it prints, kind and all.
        return "ikectl reset id FQDN/end%d" % self.other


DAEMONS = {"strongswan": Strongswan, "libreswan": Libreswan, "openiked": Openiked}
