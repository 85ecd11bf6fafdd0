"""The notebooks of the studies, executed in their short forms."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")
pytest.importorskip("pandas")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "studies").glob("*/*.ipynb"))
# Seconds for a cell; a notebook takes less than half a minute on an idle machine.
TIMEOUT = 300


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") and not cell.get("execution_count") for cell in cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_a_table_a_plot_and_the_claims(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([package, os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=TIMEOUT, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert not [output for output in outputs if output.output_type == "error"]
    assert "text/html" in kinds, "no table"
    assert "image/png" in kinds, "no plot"
