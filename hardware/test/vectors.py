"""Published vectors, as the crate `forebay-crypto-vectors` holds them (see its data/README.md for the
sources)."""

import itertools
import pathlib

DATA = pathlib.Path(__file__).resolve().parents[2] / "crates/dataplane/crypto-vectors/data"


def lines(name):
    """The vectors of a file as lists of words; lines that name a source or count what was left out are
    passed over."""
    with open(DATA / f"{name}.txt", encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words and words[0] not in ("@", "!", "#"):
                yield words


def unhex(word):
    """Bytes of a word, of which `-` is none."""
    return b"" if word == "-" else bytes.fromhex(word)


def sampled(items, count):
    """About `count` of the items, evenly over all of them."""
    items = list(items)
    step = max(1, len(items) // count)
    return list(itertools.islice(items, 0, None, step))
