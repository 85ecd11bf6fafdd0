"""Two ends with strongSwan (IKEv2, a shared secret): one whose SAs Forebay takes over, one that is plain Linux.

    ours 192.0.2.1 (10.1.0.1) -- tap a -- bridge in namespace "wire" -- tap b -- peer 192.0.2.2 (10.2.0.1)
"""

from vm import Namespace, Vm

MARK = 0x4642
# What makes SAs and policies of our side a database that the kernel does not act on.
MARKED = f"mark_in = {MARK:#x}\n mark_in_sa = yes\n mark_out = {MARK:#x}"


def connection(own, peer, child="", esp="aes128gcm16", extra="", mode="tunnel"):
    """swanctl.conf of one end."""
    selectors = f"local_ts = 10.{own}.0.0/16\n remote_ts = 10.{peer}.0.0/16" if mode == "tunnel" else ""
    return f"""
connections {{ net {{
 version = 2
 unique = replace
 local_addrs = 192.0.2.{own}
 remote_addrs = 192.0.2.{peer}
 proposals = aes128-sha256-x25519
 {extra}
 local {{ auth = psk
 id = end{own} }}
 remote {{ auth = psk
 id = end{peer} }}
 children {{ net {{
 {selectors}
 mode = {mode}
 esp_proposals = {esp}
 {child}
 }} }}
}} }}
secrets {{ ike {{ secret = "what both know" }} }}
"""


def start(vm, own, peer, configuration, modules="esp4 ah4 xfrm_user"):
    """Addresses, charon and its connection."""
    vm.sh(f"""
        modprobe -a {modules}; ip link set eth0 up; ip addr add 192.0.2.{own}/24 dev eth0; ip addr add 10.{own}.0.1/16 dev lo
        mkdir -p /var/run /run/charon; ln -sf /run/charon.vici /var/run/charon.vici""")
    vm.put(STRONGSWAN.encode(), "/etc/strongswan.conf")
    vm.put(configuration.encode(), "/etc/swanctl/swanctl.conf")
    begin(vm)


def begin(vm):
    """Starts charon with what is configured."""
    vm.sh("setsid /usr/sbin/charon-systemd >/tmp/charon.log 2>&1 &\n"
          "for try in $(seq 100); do swanctl --stats >/dev/null 2>&1 && break; usleep 100000; done\n"
          "swanctl --load-all || { cat /tmp/charon.log; exit 1; }", seconds=60)


STRONGSWAN = """
charon-systemd {
 install_routes = no
 plugins { include strongswan.d/charon/*.conf }
 journal { default = -1 }
 filelog { stderr { default = 1 } }
}
"""


def pair(ours, theirs, memory=256):
    """Both machines with charon running; a generator, so that they end with the test."""
    wire = Namespace("wire")
    wire.tap("a", "br"), wire.tap("b", "br")
    with Vm("ours", [(wire, "a")], ike=True, memory=memory) as a, Vm("peer", [(wire, "b")], ike=True) as b:
        a.wait(), b.wait()
        start(a, 1, 2, ours)
        start(b, 2, 1, theirs)
        yield wire, a, b
