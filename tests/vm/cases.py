"""Pairs of SAs in the words of both sides: `ip xfrm` for Linux, TOML for Forebay."""

import hashlib
from typing import NamedTuple

#        our word            the kernel's name            key and salt  ICV in bits
AEADS = {f"aes{bits}gcm{icv}": ("rfc4106(gcm(aes))", bits // 8 + 4, 8 * icv) for bits in (128, 192, 256) for icv in (8, 12, 16)}
AEADS |= {f"aes{bits}ccm{icv}": ("rfc4309(ccm(aes))", bits // 8 + 3, 8 * icv) for bits in (128, 256) for icv in (8, 16)}
AEADS |= {f"aes{bits}gmac": ("rfc4543(gcm(aes))", bits // 8 + 4, 128) for bits in (128, 256)}
AEADS |= {"chacha20poly1305": ("rfc7539esp(chacha20,poly1305)", 36, 128)}
CIPHERS = {
    "aes128": ("cbc(aes)", 16), "aes192": ("cbc(aes)", 24), "aes256": ("cbc(aes)", 32),
    "aes128ctr": ("rfc3686(ctr(aes))", 20), "aes256ctr": ("rfc3686(ctr(aes))", 36),
    "3des": ("cbc(des3_ede)", 24), "null": ("ecb(cipher_null)", 0),
}  # fmt: skip
AUTHS = {
    "sha1": ("hmac(sha1)", 20, 96), "sha256": ("hmac(sha256)", 32, 128), "sha384": ("hmac(sha384)", 48, 192),
    "sha512": ("hmac(sha512)", 64, 256), "aesxcbc": ("xcbc(aes)", 16, 96), "aescmac": ("cmac(aes)", 16, 96),
}  # fmt: skip
SEPARATE = [("aes128", "sha256"), ("aes256", "sha512"), ("aes192", "sha384"), ("aes128", "sha1"), ("aes128", "aesxcbc"),
            ("aes256", "aescmac"), ("aes128ctr", "sha256"), ("aes256ctr", "sha1"), ("3des", "sha1"), ("null", "sha256")]  # fmt: skip
ESP = [*AEADS, *("-".join(pair) for pair in SEPARATE)]
AH = list(AUTHS)
FOREBAY = {4: "192.0.2.1", 6: "2001:db8::1"}
LINUX = {4: "192.0.2.2", 6: "2001:db8::2"}


class Case(NamedTuple):
    """A pair of SAs with hosts of its own. `sent` is what Forebay sends, the rest what it receives."""

    number: int
    protocol: str
    suite: str
    mode: str
    outer: int
    inner: int
    esn: bool
    udp: bool

    def __str__(self):
        ways = f"{self.inner}in{self.outer}" if self.mode == "tunnel" else f"v{self.outer}"
        return "-".join([self.protocol, self.suite, self.mode, ways] + ["esn"] * self.esn + ["udp"] * self.udp)

    def hosts(self, family=None):
        """Of Forebay's side, of Linux's."""
        high, low = divmod(self.number + 1, 250)
        if (family or self.inner) == 4:
            return f"10.1.{high}.{low}", f"10.2.{high}.{low}"
        return f"fd00:1::{self.number + 1:x}", f"fd00:2::{self.number + 1:x}"

    def ends(self):
        """Outer addresses, Forebay's first."""
        return (FOREBAY[self.outer], LINUX[self.outer]) if self.mode == "tunnel" else self.hosts()

    def spi(self, sent):
        return (0x10000 if sent else 0x20000) + self.number

    def keys(self, sent):
        """Key with salt, integrity key."""
        name, _, auth = self.suite.rpartition("-")
        cipher_len, auth_len = 0, 0
        if self.protocol == "ah":
            auth_len = AUTHS[self.suite][1]
        elif self.suite in AEADS:
            cipher_len = AEADS[self.suite][1]
        else:
            cipher_len, auth_len = CIPHERS[name][1], AUTHS[auth][1]
        stream = hashlib.shake_128(f"{self}{sent}".encode()).digest(cipher_len + auth_len)
        return stream[:cipher_len], stream[cipher_len:]

    def xfrm(self, sent, limits=""):
        """One SA and its policies for `ip -batch` on Linux's side."""
        ends, hosts = self.ends(), self.hosts()
        source, destination = ends if sent else ends[::-1]
        key, auth_key = self.keys(sent)
        if self.protocol == "ah":
            name, _, icv = AUTHS[self.suite]
            words = f"auth-trunc {name} 0x{auth_key.hex()} {icv}"
        elif self.suite in AEADS:
            name, _, icv = AEADS[self.suite]
            words = f"aead {name} 0x{key.hex()} {icv}"
        else:
            cipher, _, auth = self.suite.rpartition("-")
            name, _, icv = AUTHS[auth]
            key = "0x" + key.hex() if key else '""'
            words = f"enc {CIPHERS[cipher][0]} {key} auth-trunc {name} 0x{auth_key.hex()} {icv}"
        encap = " encap espinudp 4500 4500 0.0.0.0" if self.udp else ""
        flags = ["esn"] * self.esn + ["af-unspec"] * (self.inner != self.outer)
        # Linux pads AH to 8 bytes in IPv4 too, unless told to follow RFC 4302 3.3.3.2.1.
        flags += ["align4"] * (self.protocol == "ah" and self.outer == 4)
        flags = f"flag {' '.join(flags)}" if flags else ""
        window = 128 if self.esn else 32
        reqid = self.number + 1
        state = (f"xfrm state add src {source} dst {destination} proto {self.protocol} spi {self.spi(sent):#x} reqid {reqid} "
                 f"mode {self.mode} replay-window {window} {flags} {words}{encap} {limits}")
        near, far = hosts if sent else hosts[::-1]
        template = f"tmpl src {source} dst {destination} proto {self.protocol} reqid {reqid} mode {self.mode}"
        ways = ["in", "fwd"] if sent else ["out"]
        policies = [f"xfrm policy add src {near} dst {far} dir {way} {template}" for way in ways]
        return "\n".join([state, *policies]) + "\n"

    def toml(self, sent, extra=""):
        """One SA for Forebay."""
        near, far = self.ends()
        (local_ts, remote_ts) = self.hosts()
        key, auth_key = self.keys(sent)
        lines = [
            f'name = "{self}-{"out" if sent else "in"}"', f'direction = "{"out" if sent else "in"}"',
            f"spi = {self.spi(sent):#x}", f'protocol = "{self.protocol}"', f'mode = "{self.mode}"', f'proposal = "{self.suite}"',
            f'local = "{near}"', f'remote = "{far}"', f'local_ts = ["{local_ts}"]', f'remote_ts = ["{remote_ts}"]',
            f"esn = {str(self.esn).lower()}", "allow_weak = false",
        ]  # fmt: skip
        lines += [f'key = "{key.hex()}"'] if key else []
        lines += [f'auth_key = "{auth_key.hex()}"'] if auth_key else []
        lines += ['encapsulation = "udp"'] if self.udp else []
        lines += [] if sent else ["replay_window = 128"]
        return "[[sa]]\n" + "\n".join(lines) + f"\n{extra}\n"


def matrix(quick):
    """Every suite that the kernel has, in every setting; quick: every suite and every setting at least once."""
    settings = [("tunnel", outer, inner) for outer in (4, 6) for inner in (4, 6)] + [("transport", 4, 4), ("transport", 6, 6)]
    rows = []
    for index, (protocol, suite) in enumerate([("esp", suite) for suite in ESP] + [("ah", suite) for suite in AH]):
        every = [(*setting, esn, udp) for setting in settings for esn in (False, True) for udp in (False, True)
                 if not (udp and protocol == "ah")]
        if quick:
            every = [every[(5 * index + step) % len(every)] for step in (0, len(every) // 2)]
        rows += [(protocol, suite, *setting) for setting in every]
    return [Case(number, *row) for number, row in enumerate(rows)]
