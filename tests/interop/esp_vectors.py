#!/usr/bin/python3
"""Opens packets that others published with esp.py, so that the second opinion is itself checked.

    esp_vectors.py VECTORS.jsonl        ../shared/corpora/esp-ah/vectors.jsonl, read-only beside the repository

Vectors of suites that esp.py does not know, and AH, are passed over and counted.
"""

import collections
import json
import sys

import esp

CIPHERS = {
    "aes-gcm": "gcm", "aes-ccm": "ccm", "aes-gmac": "gmac", "chacha20-poly1305": "chacha20poly1305",
    "aes-cbc": "cbc", "aes-ctr": "ctr", "3des-cbc": "3des", "null": "null",
}  # fmt: skip
HASHES = {
    "none": "", "hmac-md5-96": "md5", "hmac-sha1-96": "sha1", "hmac-sha2-256-128": "sha256",
    "hmac-sha2-384-192": "sha384", "hmac-sha2-512-256": "sha512", "aes-xcbc-96": "aesxcbc",
}  # fmt: skip


def suite_of(vector):
    cipher, digest = CIPHERS.get(vector["enc"]), HASHES.get(vector["auth"])
    if vector["proto"] != "esp" or cipher is None or digest is None:
        return None
    key_len, icv_len = len(vector["enc_key"]) // 2, vector["icv_len"]
    if cipher in ("gcm", "ccm", "gmac", "chacha20poly1305"):
        digest, icv_len = None, icv_len or 16
    for suite in esp.SUITES.values():
        if (suite.cipher, suite.key_len, suite.hash) == (cipher, key_len, digest) and icv_len in (None, suite.icv_len):
            return suite
    return None


def main():
    counts, wrong = collections.Counter(), []
    with open(sys.argv[1]) as file:
        vectors = [json.loads(line) for line in file]
    for vector in vectors:
        suite = suite_of(vector)
        if suite is None:
            counts["passed over"] += 1
            continue
        sealed = bytes.fromhex(vector["esp"])
        key = bytes.fromhex(vector["enc_key"] + (vector["salt"] or ""))
        high = vector["esn_hi"]
        sa = esp.Sa(suite, int.from_bytes(sealed[:4], "big"), key, bytes.fromhex(vector["auth_key"] or ""), high is not None)
        try:
            _, _, next_header, payload = sa.open(sealed, high or 0)
            good = next_header == vector.get("next_header", next_header)
            verdict = "accept" if good else f"next header {next_header}"
        except esp.BadPacket as error:
            verdict = f"reject: {error}"
        if verdict.split(":")[0] != vector["expect"].split(":")[0]:
            wrong.append(f"{vector['id']} ({suite.name}): {verdict}, expected {vector['expect']}")
        counts[vector["expect"]] += 1
    print(", ".join(f"{word} {count}" for word, count in counts.items()))
    for fault in wrong:
        print("FAIL " + fault)
    sys.exit(1 if wrong or not counts["accept"] else 0)


if __name__ == "__main__":
    main()
