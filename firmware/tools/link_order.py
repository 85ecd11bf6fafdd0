#!/usr/bin/env python3
"""Prints objects in another order of linking: by the hash of the order's number and of their names.

    tools/link_order.py NUMBER build/reference/ipsec/src/protocol/esp.o ...

Where code lies decides which lines of a small cache it shares, so that figures of one order are those of one layout.
The order depends on the names below the folder of the program only, so that every mix is linked in the same one.
"""

import hashlib
import pathlib
import sys


def place(number, path):
    """The place of an object among the others; the hash is the same with every version of Python."""
    stem = pathlib.PurePath(*pathlib.PurePath(path).parts[3:]).as_posix()
    # A hotspot's version differs between mixes: aes_plain, aes_keys.
    name = stem.split("_")[0] if "/hotspots/" in stem else stem
    return hashlib.sha256(f"{number} {name}".encode()).hexdigest()


if __name__ == "__main__":
    print(*sorted(sys.argv[2:], key=lambda path: place(sys.argv[1], path)))
