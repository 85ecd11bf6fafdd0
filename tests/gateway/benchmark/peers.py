"""The gateways that are compared. Each has a pair of namespaces of its own, all set up alike, and all run the whole
time: those that are not measured sleep."""

import os
import re
import secrets
import subprocess
import sys

from .namespaces import INSIDE, LAB, MTU_INSIDE, OTHER, OUTSIDE, SITES, Missing, Pair, need, run, wait_for

# Four unlike processors: the running core, a second one, and two emulated cards: requests of a few microseconds, as
# lookaside cards of today have, behind buses of 4 and of 1 GB/s.
CARDS = """
[[processor]]
kind = "core"

[[processor]]
kind = "core"
name = "second"

[[processor]]
kind = "card"
name = "fast"
init = "2 us"
block = "20 ns"
bus = "wide"

[[processor]]
kind = "card"
name = "slow"
init = "5 us"
block = "60 ns"
bus = "narrow"

[[bus]]
name = "wide"
clock = "250 MHz"
width = 16

[[bus]]
name = "narrow"
clock = "250 MHz"
width = 4
"""


class Peer:
    """A way from one namespace to the other; without a gateway it is the plain veth."""

    key, title, about = "plain", "no protection", "the veth itself"

    def __init__(self):
        self.pair = Pair(self.key)
        self.pids = []
        self.target = OUTSIDE["b"]

    @classmethod
    def is_wanted(cls, arguments):
        """Whether it takes part without having been asked for."""
        return True

    def begin(self):
        """Sets it up and waits until packets pass."""
        self.pair.start("b", "iperf3", "-s")
        for side in "ab":
            self.gateway(side)
        self.ready()

        def answers():
            words = self.pair.words("a", "ping", "-c1", "-W1", self.target)
            return subprocess.run(words, capture_output=True).returncode == 0

        wait_for(f"{self.title}: a ping through it", answers)

    def gateway(self, side):
        pass

    def ready(self):
        pass

    def version(self):
        return ""

    def cpu(self):
        """Seconds that its processes have had in user mode and in the kernel."""
        user = kernel = 0
        for pid in self.pids:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            user, kernel = user + int(fields[11]), kernel + int(fields[12])
        tick = os.sysconf("SC_CLK_TCK")
        return user / tick, kernel / tick


class Forebay(Peer):
    """Forebay, ESP in UDP, as forebay gateway is without any settings."""

    key, title, about = "forebay", "Forebay", "AES-128-GCM, ESP in UDP, one core"
    processors, plain, command = "", "", ["gateway"]

    def page(self, side):
        """Its `[page]`, if it has one."""
        return ""

    def __init__(self, program):
        need(program)
        super().__init__()
        self.program = program
        self.target = INSIDE["b"]
        self.directory = f"{LAB}/{self.key}"
        os.makedirs(self.directory)
        self.keys = {side: secrets.token_hex(20) for side in "ab"}

    def version(self):
        return run(self.program, "--version").strip()

    def sa(self, side, direction):
        of = side if direction == "out" else OTHER[side]
        return f"""
[[sa]]
name = "{direction}"
direction = "{direction}"
spi = {0x1001 if of == "a" else 0x2001}
proposal = "aes128gcm16"
key = "{self.keys[of]}"
encapsulation = "udp"
replay_window = 4096
local = "{OUTSIDE[side]}"
remote = "{OUTSIDE[OTHER[side]]}"
local_ts = ["{SITES[side]}"]
remote_ts = ["{SITES[OTHER[side]]}"]
"""

    def gateway(self, side):
        path = f"{self.directory}/{side}.toml"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"""
[inside]
name = "fb0"
addresses = ["{INSIDE[side]}/24"]
mtu = {MTU_INSIDE}
{self.plain}

[[outside]]
kind = "udp"
listen = "{OUTSIDE[side]}:4500"

[keys]
state = "state-{side}"

[control]
socket = "{self.socket(side)}"
{self.page(side)}{self.processors}{self.sa(side, "out")}{self.sa(side, "in")}""")
        words = [self.program, *self.command, "--config", path]
        process = self.pair.start(side, *words, log=f"{self.directory}/{side}.log")
        self.pids.append(process.pid)

    def ready(self):
        for side in "ab":
            def routed(side=side):
                if self.pair.processes[-1].poll() is not None:
                    with open(f"{self.directory}/{side}.log", encoding="utf-8") as file:
                        raise RuntimeError(f"{self.title}: {file.read()}")
                return "fb0" in self.pair.ip(side, "route", "show", SITES[OTHER[side]])
            wait_for(f"{self.title}: gateway {side}", routed)

    def socket(self, side):
        return f"{self.directory}/{side}.sock"

    def ask(self, side, *words):
        import json
        return json.loads(run(self.program, *words, "--socket", self.socket(side), "--json"))


class Relay(Forebay):
    """The links of the same file and nothing between them: packets are copied and get an outer header, without IPsec. No
    gateway over these links is faster."""

    key, title, about = "relay", "relay without IPsec", "TUN and UDP as Forebay's, no crypto: the limit"
    command = ["bench", "relay"]

    def version(self):
        return ""


class FourProcessors(Forebay):
    key, title, about = "forebay-4", "Forebay, four processors", "two cores and two emulated cards at each end"
    processors = CARDS


class Watched(Forebay):
    """With a live page that nobody looks at; only if `--peers` names it."""

    key, title, about = "forebay-page", "Forebay, a live page", "as Forebay, with [page]"
    browsers = 0

    @classmethod
    def is_wanted(cls, arguments):
        return arguments[0] is not None

    def page(self, side):
        return f'\n[page]\nlisten = "{self.path(side)}"\n'

    def path(self, side):
        return f"{self.directory}/{side}.page"

    def ready(self):
        super().ready()
        for side in "ab" if self.browsers else "":
            wait_for(f"{self.title}: page {side}", lambda side=side: os.path.exists(self.path(side)))
            self.pair.start(side, sys.executable, "-c", BROWSERS, self.path(side), self.browsers)


class Watched20(Watched):
    key, title, about = "forebay-page-20", "Forebay, 20 browsers", "as Forebay, with [page] and 20 browsers at each end"
    browsers = 20


# So many readers of a page's stream of events.
BROWSERS = """
import selectors, socket, sys
waiting = selectors.DefaultSelector()
for _ in range(int(sys.argv[2])):
    one = socket.socket(socket.AF_UNIX)
    one.connect(sys.argv[1])
    one.sendall(b"GET /events HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
    head = one.recv(1 << 16)
    assert head.startswith(b"HTTP/1.1 200"), head
    waiting.register(one, selectors.EVENT_READ)
while True:
    for key, _ in waiting.select():
        assert key.fileobj.recv(1 << 16)
"""


class Before(Forebay):
    key, title, about = "forebay-before", "Forebay, the other build", "as Forebay, of --before"

    @classmethod
    def is_wanted(cls, arguments):
        return arguments[0] is not None


class WireGuardGo(Peer):
    """wireguard-go, the newest that Go's module proxy has."""

    key, title, about = "wireguard-go", "wireguard-go", "ChaCha20-Poly1305, all cores"

    def __init__(self, program):
        if not program or not os.access(program, os.X_OK):
            raise Missing("wireguard-go (tests/gateway/wireguard-go.sh builds it)")
        need("wg")
        super().__init__()
        self.program = program
        self.target = INSIDE["b"]
        self.directory = f"{LAB}/{self.key}"
        os.makedirs(self.directory)
        for side in "ab":
            key = run("wg", "genkey")
            self.write(f"{side}.key", key)
            self.write(f"{side}.pub", run("wg", "pubkey", input=key))

    def write(self, name, text):
        with open(f"{self.directory}/{name}", "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(f"{self.directory}/{name}", encoding="utf-8") as file:
            return file.read().strip()

    def version(self):
        said = subprocess.run(["go", "version", "-m", self.program], capture_output=True, text=True).stdout
        found = re.search(r"^\s*mod\s+\S+\s+(\S+)", said, re.MULTILINE)
        return found.group(1) if found else ""

    def gateway(self, side):
        process = self.pair.start(side, self.program, "-f", f"wg-{side}", log=f"{self.directory}/{side}.log",
                                  env={**os.environ, "LOG_LEVEL": "error"})
        self.pids.append(process.pid)

    def ready(self):
        for side in "ab":
            name, other = f"wg-{side}", OTHER[side]
            path = f"/var/run/wireguard/{name}.sock"
            wait_for(f"wireguard-go {side}", lambda path=path: os.path.exists(path))
            self.pair.run(side, "wg", "set", name, "private-key", f"{self.directory}/{side}.key",
                          "listen-port", 51820, "peer", self.read(f"{other}.pub"),
                          "endpoint", f"{OUTSIDE[other]}:51820", "allowed-ips", SITES[other])
            self.pair.ip(side, "addr", "add", f"{INSIDE[side]}/24", "dev", name)
            self.pair.ip(side, "link", "set", name, "up", "mtu", MTU_INSIDE)
            self.pair.ip(side, "route", "add", SITES[other], "dev", name)


class Strongswan(Peer):
    """strongSwan's charon with its IPsec of user space, the plugin kernel-libipsec."""

    key, title, about = "libipsec", "strongSwan libipsec", "AES-128-GCM, ESP in UDP"
    charon = "/usr/lib/ipsec/charon"
    plugin = "/usr/lib/ipsec/plugins/libstrongswan-kernel-libipsec.so"
    plugins = ("random nonce aesni aes sha1 sha2 hmac kdf gcm openssl kernel-libipsec kernel-netlink "
               "socket-default vici")

    def __init__(self, directory):
        if directory and os.path.exists(f"{directory}/usr/lib/ipsec/charon"):
            lower = f"lowerdir={os.path.abspath(directory)}/usr:/usr"
            run("mount", "-t", "overlay", "strongswan", "-o", lower, "/usr")
        if not os.path.exists(self.charon) or not os.path.exists(self.plugin):
            raise Missing("charon and its plugin kernel-libipsec (tests/gateway/strongswan.sh fetches them)")
        need("swanctl")
        super().__init__()
        self.target = INSIDE["b"]
        self.secret = secrets.token_hex(32)

    def version(self):
        env = {**os.environ, "STRONGSWAN_CONF": f"{self.directory('a')}/strongswan.conf"}
        said = subprocess.run([self.charon, "--version"], capture_output=True, text=True, env=env).stdout
        return said.replace("Linux", "").strip()

    def directory(self, side):
        return f"{LAB}/{self.key}-{side}"

    def write(self, side, name, text):
        with open(f"{self.directory(side)}/{name}", "w", encoding="utf-8") as file:
            file.write(text)

    def gateway(self, side):
        os.makedirs(self.directory(side))
        self.pair.ip(side, "addr", "add", f"{INSIDE[side]}/32", "dev", "lo")
        self.write(side, "strongswan.conf", f"""
charon {{
    load = {self.plugins}
    install_virtual_ip = no
    plugins {{
        vici {{ socket = unix:///run/charon.vici }}
    }}
    filelog {{ stderr {{ default = 0 }} }}
}}
""")
        other = OTHER[side]
        self.write(side, "swanctl.conf", f"""
connections {{
    peer {{
        version = 2
        local_addrs = {OUTSIDE[side]}
        remote_addrs = {OUTSIDE[other]}
        proposals = aes128-sha256-modp2048
        encap = yes
        local {{ auth = psk
            id = {OUTSIDE[side]} }}
        remote {{ auth = psk
            id = {OUTSIDE[other]} }}
        children {{
            net {{
                local_ts = {SITES[side]}
                remote_ts = {SITES[other]}
                esp_proposals = aes128gcm16
                rekey_time = 0
            }}
        }}
    }}
}}
secrets {{
    ike-psk {{ secret = {self.secret} }}
}}
""")
        # Its process number and control socket are in /run: each charon has one of its own.
        start = f"mount --bind {self.directory(side)} /run && exec {self.charon}"
        process = self.pair.start(side, "unshare", "--mount", "sh", "-c", start,
                                  log=f"{self.directory(side)}/log",
                                  env={**os.environ, "STRONGSWAN_CONF": "/run/strongswan.conf"})
        self.pids.append(process.pid)

    def ready(self):
        uri = {side: f"unix://{self.directory(side)}/charon.vici" for side in "ab"}
        env = {**os.environ, "STRONGSWAN_CONF": f"{self.directory('a')}/strongswan.conf"}
        for side in "ab":
            path = f"{self.directory(side)}/charon.vici"
            wait_for(f"charon {side}", lambda path=path: os.path.exists(path))
            run("swanctl", "--load-all", "--file", f"{self.directory(side)}/swanctl.conf", "--uri", uri[side], env=env)
        run("swanctl", "--initiate", "--child", "net", "--timeout", "10", "--uri", uri["a"], env=env)
        for side in "ab":
            self.pair.ip(side, "link", "set", "ipsec0", "mtu", MTU_INSIDE)


class KernelEsp(Peer):
    """The kernel's own ESP, where it has it: for the scale, since it leaves user space out."""

    key, title, about = "kernel", "the kernel's ESP", "AES-128-GCM, straight in IP"

    def __init__(self):
        super().__init__()
        self.target = INSIDE["b"]
        self.keys = {side: "0x" + secrets.token_hex(20) for side in "ab"}

    def gateway(self, side):
        other = OTHER[side]
        self.pair.ip(side, "addr", "add", f"{INSIDE[side]}/32", "dev", "lo")
        self.pair.ip(side, "route", "add", SITES[other], "via", OUTSIDE[other], "src", INSIDE[side], "mtu", MTU_INSIDE)
        for sender in "ab":
            ends = ["src", OUTSIDE[sender], "dst", OUTSIDE[OTHER[sender]]]
            tunnel = ["reqid", 1, "mode", "tunnel"]
            try:
                self.pair.ip(side, "xfrm", "state", "add", *ends, "proto", "esp", "spi", 0x1001 if sender == "a" else 0x2001,
                             *tunnel, "replay-window", 32, "aead", "rfc4106(gcm(aes))", self.keys[sender], 128)
            except RuntimeError as error:
                # Without the words, in which the key stands.
                raise Missing(f"ESP in this kernel ({str(error).rsplit(': ', 1)[-1]})") from None
            self.pair.ip(side, "xfrm", "policy", "add", "src", SITES[sender], "dst", SITES[OTHER[sender]],
                         "dir", "out" if sender == side else "in", "tmpl", *ends, "proto", "esp", *tunnel)
