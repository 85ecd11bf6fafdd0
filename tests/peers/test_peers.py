"""The short form of compare.py: the figures agree, peer by peer. Peers that are not installed are skipped.

FOREBAY=target/release/forebay pytest tests/peers
"""

from __future__ import annotations

import os
import pathlib
import shutil

import compare
import pytest

HERE = pathlib.Path(__file__).resolve().parent
PACKETS = 3000


def forebay() -> str:
    built = [HERE.parent.parent / "target" / profile / "forebay" for profile in ("release", "quick", "debug")]
    found = os.environ.get("FOREBAY") or next((str(path) for path in built if path.exists()), shutil.which("forebay"))
    if not found:
        pytest.skip("there is no forebay command; FOREBAY= names one")
    return found


@pytest.mark.parametrize("cards", [1, 2])
@pytest.mark.parametrize("name", ["SystemC", "ns-3", "SimPy", "salabim", "Ciw"])
def test_peer_has_the_figures_of_the_simulator(tmp_path: pathlib.Path, name: str, cards: int) -> None:
    peer = next(peer for peer in compare.peers(cards) if peer.name == name)
    missing = peer.missing()
    if missing is not None:
        pytest.skip(f"{name} is not installed: {missing}")
    compare.write_sizes(tmp_path / "sizes.csv", PACKETS)
    mine = compare.ours(forebay(), tmp_path, cards)
    more = ("ties",) if name == "SystemC" else ()
    figures = compare.theirs(peer.build(tmp_path), tmp_path, cards, *more)
    assert compare.difference(mine, figures) <= peer.tolerance


def test_lines_of_code_leave_comments_blank_lines_and_docstrings_out(tmp_path: pathlib.Path) -> None:
    model = tmp_path / "model.py"
    model.write_text('"""A model."""\n\n# why\nx = 1  # one\n\n\ndef f():\n    """What.\n\n    More.\n    """\n    return x\n')
    assert compare.lines(model) == 3
    model = tmp_path / "model.cc"
    model.write_text("// why\n#include <vector>\n\nint main() {\n    // here\n}\n")
    assert compare.lines(model) == 3
