#!/usr/bin/env python3
"""Makes the vector files next to it from the published ones.

    python3 import.py /work/shared/corpora/primitives

What no suite of ours can carry is left out and counted in the file, with the reason. A line is

    @ NAME               a source; what follows comes from it
    ! N REASON           N vectors of it are not here
    FIELD FIELD ...      a vector: hex bytes, `-` for none

with, in this order,

    gcm.txt, chacha20poly1305.txt   key iv aad plaintext ciphertext tag
    cbc.txt, ctr.txt                key iv plaintext ciphertext
    hmac.txt                        sha1|sha256|sha384|sha512 key message tag

A plaintext of `x` (AEAD), or an `x` before the tag (HMAC), says that the tag must be refused.
"""

import hashlib
import hmac
import json
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
TAG_LENGTHS = (8, 12, 16)
# Bytes of key, of digest block, and of ICV in a packet (RFC 2404, RFC 4868 2.1).
HMAC_SIZES = {"sha1": (20, 64, 12), "sha256": (32, 64, 16), "sha384": (48, 128, 24), "sha512": (64, 128, 32)}


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
    lines = []
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


def aead(source, key, iv, aad, text, cipher_text, tag, good):
    """Adds an AEAD vector if the 12 bytes of salt and IV, and a suite's ICV, can carry it."""
    if len(iv) != 12:
        return source.skip("IV of other than 96 bits")
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


def wycheproof_aead(path):
    source = Source("Wycheproof " + path.stem.removesuffix("_test"))
    for _, test, good in wycheproof(path):
        fields = [bytes.fromhex(test[k]) for k in ("key", "iv", "aad", "msg", "ct", "tag")]
        aead(source, *fields, good)
    return source


def nist_cbc(paths):
    for path in paths:
        source, seen = Source("NIST CAVP " + path.stem.split("__")[-1]), set()
        for r in records(path):
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
        rfc_hmac(root / "HMAC__rfc-2202-sha1.txt", "RFC 2202 sha1", "sha1"),
        *(rfc_hmac(root / f"HMAC__rfc-4231-{a}.txt", f"RFC 4231 {a}", a) for a in ("sha256", "sha384", "sha512")),
        *(wycheproof_hmac(path) for path in sorted(root.glob("wycheproof/hmac_*_test.json"))),
    ])


if __name__ == "__main__":
    main()
