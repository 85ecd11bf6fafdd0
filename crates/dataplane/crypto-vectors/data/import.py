#!/usr/bin/env python3
"""Makes the vector files next to it from the published ones.

    python3 import.py ../../../../shared/corpora/primitives

What no suite of ours can carry is left out and counted in the file, with the reason. A line is

    @ NAME               a source; what follows comes from it
    ! N REASON           N vectors of it are not here
    FIELD FIELD ...      a vector: hex bytes, `-` for none

with, in this order,

    gcm.txt, ccm.txt, gmac.txt, chacha20poly1305.txt   key iv aad plaintext ciphertext tag
    cbc.txt, 3des.txt, ctr.txt      key iv plaintext ciphertext
    hmac.txt                        md5|sha1|sha256|sha384|sha512 key message tag
    mac.txt                         aesxcbc|aescmac key message tag

A plaintext of `x` (AEAD), or an `x` before the tag (MAC), says that the tag must be refused.
"""

import hashlib
import hmac
import json
import sys
from collections import Counter
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC

HERE = Path(__file__).parent
TAG_LENGTHS = (8, 12, 16)
# Bytes of salt and IV: RFC 4106, RFC 4309, RFC 7634.
NONCE, CCM_NONCE = 12, 11
# Bytes of AAD that AES-CCM takes (`Layout::CCM_AAD_MAX`).
CCM_AAD_MAX = 46
# Bytes of key, of digest block, and of ICV in a packet (RFC 2403, RFC 2404, RFC 4868 2.1).
HMAC_SIZES = {"md5": (16, 64, 12), "sha1": (20, 64, 12), "sha256": (32, 64, 16), "sha384": (48, 128, 24), "sha512": (64, 128, 32)}


class Source:
    """One source's vectors and what was left out of them."""

    def __init__(self, name):
        self.name, self.lines, self.skipped = name, [], Counter()

    def add(self, *fields):
        words = [field if isinstance(field, str) else field.hex() or "-" for field in fields]
        self.lines.append(" ".join(words))

    def skip(self, reason, n=1):
        self.skipped[reason] += n


def write(name, sources):
    sources, lines = list(sources), []
    for source in sources:
        lines.append(f"@ {source.name}")
        lines += [f"! {n} {reason}" for reason, n in sorted(source.skipped.items())]
        lines += source.lines
    (HERE / name).write_text("\n".join(lines) + "\n")
    for source in sources:
        print(f"{name:22} {source.name:42} {len(source.lines):5} kept, left out {dict(source.skipped)}")


def records(path):
    """The records of a NIST or OpenSSL text file: one dict each, with the section's fields and
    a word without value, such as FAIL, as a key with the value True."""
    section, record = {}, {}
    for line in path.read_text().splitlines():
        line = line.strip()
        if line.startswith("#"):
            continue
        if not line or line.startswith("["):
            if record:
                yield section | record
            record = {}
            if line.startswith("["):
                name, _, value = line.strip("[]").partition("=")
                section = section | {name.strip().upper(): value.strip()}
                if not value:
                    section = {name.strip().upper(): True}
            continue
        name, equals, value = line.partition("=")
        record[name.strip().upper()] = value.strip() if equals else True
    if record:
        yield section | record


def hexa(text):
    """Hex bytes, or the text itself if it is quoted."""
    return text[1:-1].encode() if text.startswith('"') else bytes.fromhex(text)


def aead(source, key, iv, aad, text, cipher_text, tag, good, nonce=NONCE):
    """Adds an AEAD vector if the bytes of salt and IV, and a suite's ICV, can carry it."""
    if len(iv) != nonce:
        return source.skip(f"IV of other than {8 * nonce} bits")
    if len(tag) not in TAG_LENGTHS:
        return source.skip("tag of other than 8, 12 or 16 bytes")
    source.add(key, iv, aad, text if good else "x", cipher_text, tag)


def nist_gcm(path):
    source = Source("NIST CAVP " + path.stem.split("__")[-1])
    for r in records(path):
        good = "FAIL" not in r
        fields = [bytes.fromhex(r[k]) for k in ("KEY", "IV", "AAD")]
        text = bytes.fromhex(r["PT"]) if good else b""
        aead(source, *fields, text, bytes.fromhex(r["CT"]), bytes.fromhex(r["TAG"]), good)
    return source


def nist_gmac(path):
    """The vectors of AES-GCM that have no text."""
    source = Source("NIST CAVP " + path.stem.split("__")[-1] + ", no text")
    for r in records(path):
        if r["CT"]:
            continue
        key, iv, aad, tag = (bytes.fromhex(r[k]) for k in ("KEY", "IV", "AAD", "TAG"))
        if len(tag) != 16:
            source.skip("tag of other than 16 bytes")
        else:
            aead(source, key, iv, aad, b"", b"", tag, "FAIL" not in r)
    return source


def nist_ccm(path):
    source, state = Source("NIST CAVP " + path.stem.replace("ciphers__AES__CCM__", "CCM ")), {}
    for r in records(path):
        # Lengths and key stand apart, and hold for the vectors that follow.
        state |= r
        if "NONCE" not in r:
            continue
        key, nonce, aad, plain, sealed = (
            bytes.fromhex(state[k]) for k in ("KEY", "NONCE", "ADATA", "PAYLOAD", "CT")
        )
        at = len(sealed) - int(state["TLEN"])
        aead(source, key, nonce, aad[: int(state["ALEN"])], plain[:at], sealed[:at], sealed[at:], True, CCM_NONCE)
    return source


def openssl_aead(path, name, text="PLAINTEXT", cipher_text="CIPHERTEXT", iv="IV", aad="AAD"):
    source = Source(name)
    for r in records(path):
        fields = [hexa(r[k]) for k in ("KEY", iv, aad, text, cipher_text, "TAG")]
        aead(source, *fields, "RESULT" not in r)
    return source


def wycheproof(path):
    for group in json.loads(path.read_text())["testGroups"]:
        for test in group["tests"]:
            yield group, test, test["result"] == "valid"


def wycheproof_aead(path, nonce=NONCE, aad_max=None):
    source = Source("Wycheproof " + path.stem.removesuffix("_test"))
    for _, test, good in wycheproof(path):
        fields = [bytes.fromhex(test[k]) for k in ("key", "iv", "aad", "msg", "ct", "tag")]
        if aad_max is not None and len(fields[2]) > aad_max:
            source.skip("more AAD than a job has")
        else:
            aead(source, *fields, good, nonce)
    return source


def wycheproof_gmac(path):
    source = Source("Wycheproof aes_gmac")
    for _, test, good in wycheproof(path):
        key, iv, message, tag = (bytes.fromhex(test[k]) for k in ("key", "iv", "msg", "tag"))
        aead(source, key, iv, message, b"", b"", tag, good)
    return source


def nist_cbc(paths):
    for path in paths:
        source, seen = Source("NIST CAVP " + path.stem.split("__")[-1]), set()
        for r in records(path):
            if "IV" not in r:
                continue
            if "KEYS" in r:
                r["KEY"] = 3 * r["KEYS"]
            elif "KEY1" in r:
                r["KEY"] = r["KEY1"] + r["KEY2"] + r["KEY3"]
            fields = tuple(bytes.fromhex(r[k]) for k in ("KEY", "IV", "PLAINTEXT", "CIPHERTEXT"))
            if fields in seen:
                source.skip("DECRYPT repeats an ENCRYPT vector, which is run in both directions")
            else:
                source.add(*fields)
            seen.add(fields)
        yield source


def wycheproof_cbc(path):
    source = Source("Wycheproof aes_cbc_pkcs5")
    for _, test, good in wycheproof(path):
        key, iv, text, cipher_text = (bytes.fromhex(test[k]) for k in ("key", "iv", "msg", "ct"))
        if not good:
            source.skip("tests the check of PKCS #5 padding, which ESP does not have")
            continue
        pad = 16 - len(text) % 16
        source.add(key, iv, text + bytes([pad]) * pad, cipher_text)
    return source


def counter_mode(source, key, counter, text, cipher_text):
    if counter[12:] != b"\0\0\0\1":
        return source.skip("counter that does not start from one")
    source.add(key, counter[:12], text, cipher_text)


def nist_style_ctr(paths):
    for path in paths:
        source = Source("RFC 3686 " + path.stem.split("__")[-1])
        for r in records(path):
            counter_mode(source, *(bytes.fromhex(r[k]) for k in ("KEY", "IV", "PLAINTEXT", "CIPHERTEXT")))
        yield source


def mac(source, algorithm, key, message, tag, good):
    """Adds an HMAC vector, its key brought to the suite's length where HMAC's own definition
    allows it: a key over a block is hashed first, a short one has zeros behind it (RFC 2104 2)."""
    key_len, block, icv = HMAC_SIZES[algorithm]
    if len(key) > block:
        key = hashlib.new(algorithm, key).digest()
    if len(key) > key_len:
        return source.skip("key longer than the suite's and no longer than a block")
    if len(tag) < icv:
        return source.skip("tag shorter than the suite's ICV")
    if not good and hmac.digest(key, message, algorithm)[:icv] == tag[:icv]:
        return source.skip("tag modified behind the suite's ICV")
    source.add(algorithm, key.ljust(key_len, b"\0"), message, ("" if good else "x") + tag.hex())


def rfc_hmac(path, name, algorithm):
    source = Source(name)
    for r in records(path):
        mac(source, algorithm, *(bytes.fromhex(r[k]) for k in ("KEY", "MSG", "MD")), True)
    return source


def wycheproof_hmac(path):
    algorithm = path.stem.removesuffix("_test").removeprefix("hmac_")
    source = Source("Wycheproof hmac_" + algorithm)
    for _, test, good in wycheproof(path):
        mac(source, algorithm, *(bytes.fromhex(test[k]) for k in ("key", "msg", "tag")), good)
    return source


def block_mac(source, algorithm, key, message, tag, good):
    """Adds a vector of a MAC by AES-128, whose tag is cut to the 12 bytes of an ICV."""
    if len(key) != 16:
        return source.skip("key of other than 128 bits")
    if not good and algorithm == "aescmac":
        right = CMAC(AES(key))
        right.update(message)
        if right.finalize()[:12] == tag[:12]:
            return source.skip("tag modified behind the suite's ICV")
    source.add(algorithm, key, message, ("" if good else "x") + tag.hex())


def nist_cmac(path):
    source = Source("NIST SP 800-38B aes128")
    for r in records(path):
        block_mac(source, "aescmac", *(bytes.fromhex(r[k]) for k in ("KEY", "MESSAGE", "OUTPUT")), True)
    return source


def wycheproof_cmac(path):
    source = Source("Wycheproof aes_cmac")
    for _, test, good in wycheproof(path):
        block_mac(source, "aescmac", *(bytes.fromhex(test[k]) for k in ("key", "msg", "tag")), good)
    return source


def rfc_macs(path):
    vectors = json.loads(path.read_text())
    xcbc, cmac = Source("RFC 3566"), Source("RFC 4494")
    for v in vectors["rfc3566_xcbc"]:
        block_mac(xcbc, "aesxcbc", *(bytes.fromhex(v[k]) for k in ("key", "msg", "mac96")), v["ok"])
    for v in vectors["rfc4494_cmac96"]:
        block_mac(cmac, "aescmac", *(bytes.fromhex(v[k]) for k in ("key", "msg", "mac96")), v["ok"])
    return xcbc, cmac


def rfc_json(path):
    vectors = json.loads(path.read_text())
    cbc, ctr, auth = Source("RFC 3602"), Source("RFC 3686"), Source("RFC 4868")
    for v in vectors["rfc3602_aes_cbc"]:
        cbc.add(*(bytes.fromhex(v[k]) for k in ("key", "iv", "pt", "ct")))
    for v in vectors["rfc3686_aes_ctr"]:
        ctr.add(bytes.fromhex(v["key"]), bytes.fromhex(v["nonce"] + v["iv"]), *(bytes.fromhex(v[k]) for k in ("pt", "ct")))
    for v in vectors["rfc4868_auth"]:
        algorithm = "sha" + v["alg"].split("-")[2]
        mac(auth, algorithm, *(bytes.fromhex(v[k]) for k in ("key", "data", "tag")), v["ok"])
    return cbc, ctr, auth


def main():
    root = Path(sys.argv[1])
    rfc_cbc, rfc_ctr, rfc_auth = rfc_json(root / "rfc-vectors.json")
    gcm = [nist_gcm(path) for path in sorted(root.glob("ciphers__AES__GCM__*.rsp"))]
    ccm = [nist_ccm(path) for path in sorted(root.glob("ciphers__AES__CCM__VNT*.rsp"))]
    write("ccm.txt", [*ccm, wycheproof_aead(root / "wycheproof/aes_ccm_test.json", CCM_NONCE, CCM_AAD_MAX)])
    gmac = [nist_gmac(path) for path in sorted(root.glob("ciphers__AES__GCM__*.rsp"))]
    write("gmac.txt", [*gmac, wycheproof_gmac(root / "wycheproof/aes_gmac_test.json")])
    write("3des.txt", nist_cbc(sorted(root.glob("ciphers__3DES__CBC__TCBC[!I]*.rsp"))))
    write("mac.txt", [
        *rfc_macs(root / "rfc-vectors.json"),
        nist_cmac(root / "CMAC__nist-800-38b-aes128.txt"),
        wycheproof_cmac(root / "wycheproof/aes_cmac_test.json"),
    ])
    write("gcm.txt", [*gcm, wycheproof_aead(root / "wycheproof/aes_gcm_test.json")])
    boringssl = {"text": "IN", "cipher_text": "CT", "iv": "NONCE", "aad": "AD"}
    chacha = "ciphers__ChaCha20Poly1305__"
    write("chacha20poly1305.txt", [
        openssl_aead(root / (chacha + "boringssl.txt"), "BoringSSL chacha20_poly1305", **boringssl),
        openssl_aead(root / (chacha + "openssl.txt"), "OpenSSL evpciph chacha20-poly1305"),
        wycheproof_aead(root / "wycheproof/chacha20_poly1305_test.json"),
    ])
    nist = nist_cbc(sorted(root.glob("ciphers__AES__CBC__*.rsp")))
    write("cbc.txt", [rfc_cbc, *nist, wycheproof_cbc(root / "wycheproof/aes_cbc_pkcs5_test.json")])
    write("ctr.txt", [rfc_ctr, *nist_style_ctr(sorted(root.glob("ciphers__AES__CTR__*.txt")))])
    write("hmac.txt", [
        rfc_auth,
        rfc_hmac(root / "HMAC__rfc-2202-md5.txt", "RFC 2202 md5", "md5"),
        rfc_hmac(root / "HMAC__rfc-2202-sha1.txt", "RFC 2202 sha1", "sha1"),
        *(rfc_hmac(root / f"HMAC__rfc-4231-{a}.txt", f"RFC 4231 {a}", a) for a in ("sha256", "sha384", "sha512")),
        *(wycheproof_hmac(path) for path in sorted(root.glob("wycheproof/hmac_*_test.json"))),
    ])


if __name__ == "__main__":
    main()
