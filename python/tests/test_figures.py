"""The shipped studies in their quick form, and the counterpart of every figure and table of the papers."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from forebay import study
from forebay.study import Findings

ROOT = Path(__file__).parents[2]
# Figures and tables of the five papers.
COUNTS = {"H": 9, "S": 7, "N": 17, "G": 4, "E": 6}
LABEL = re.compile(r"\[[HSNGE]\] (?:figure|table) [0-9IVX.]+(?<!\.)")
ROW = re.compile(r"^\| (\[[HSNGE]\] [^|]+?) \| [^|]+ \| `([a-z-]+)` \| ([^|]+?) \|$", re.MULTILINE)


@functools.cache
def quick(name: str) -> Findings:
    """The findings of a shipped study's quick form."""
    return study.run(name, quick=True, progress=False)


def counterparts(name: str) -> dict[str, set[str]]:
    """The figures and tables of papers that a study has counterparts of, with the sections they stand in."""
    found: dict[str, set[str]] = {}
    section = ""
    for block in quick(name).blocks:
        ((kind, content),) = block.items()
        if kind == "section":
            section = content
        elif isinstance(content, dict):
            for label in LABEL.findall(content["counterpart"]):
                found.setdefault(label, set()).add(section)
    return found


def test_shipped_studies_are_those_of_the_repository() -> None:
    if not (ROOT / "studies").is_dir():
        pytest.skip("no repository around the tests")
    own = {path.parent.name for path in ROOT.glob("studies/*/study.py")}
    assert set(study.shipped()) == own
    for name, files in study.shipped().items():
        there = study.find(ROOT / "studies" / name).files
        assert files.files == there, f"{name}: the native module is of another version"


@pytest.mark.parametrize("name", sorted(study.shipped()))
def test_a_shipped_study_runs_in_its_quick_form(name: str) -> None:
    findings = quick(name)
    assert findings.complete and findings.runs
    for claim in findings.claims:
        assert claim.found and claim.says and claim.band.source
        assert claim.since is not None, f"when the band of {claim.id} was set is not recorded: scripts/bands.py"
        if claim.kind == "claim":
            assert claim.quote and claim.where and claim.parameters, claim.id
    page = findings.page().replace('"http://www.w3.org/2000/svg"', "")
    for wrong in ("http:", "https:", "src=", "@import", "NaN", "\u2026"):
        assert wrong not in page, wrong


def test_every_figure_and_table_of_the_papers_has_its_counterpart() -> None:
    document = ROOT / "docs/figures.md"
    if not document.is_file():
        pytest.skip("no repository around the tests")
    rows = ROW.findall(document.read_text(encoding="utf-8"))
    listed = {label: (name, section) for label, name, section in rows}
    assert len(rows) == len(listed), "a figure is listed twice"
    counts = {paper: sum(label.startswith(f"[{paper}]") for label in listed) for paper in COUNTS}
    assert counts == COUNTS
    made = {name: counterparts(name) for name in study.shipped()}
    for label, (name, section) in listed.items():
        assert section in made[name].get(label, set()), (
            f"docs/figures.md: {label} is not in {name}, {section}"
        )
    unlisted = {label for found in made.values() for label in found} - set(listed)
    assert not unlisted, f"docs/figures.md does not list {sorted(unlisted)}"


def test_the_playground_has_the_figures_that_the_studies_draw() -> None:
    script = ROOT / "scripts/paper_figures.py"
    if not script.is_file():
        pytest.skip("no repository around the tests")
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
