"""Every example of docs/workbench-questions.md, as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import forebay as fb
from conftest import ROOT

for package in ("numpy", "pandas", "polars", "pyarrow", "optuna"):
    pytest.importorskip(package)

PAGE = ROOT / "docs" / "workbench-questions.md"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]*) \|$", re.MULTILINE)
NONE = "–"
EXAMPLE = re.compile(r"`(.+?)`(?: raises `(\w+)`)?")


def page() -> str:
    if not PAGE.is_file():
        pytest.skip("no repository around the tests")
    return PAGE.read_text(encoding="utf-8")


def rows() -> list[tuple[str, str]]:
    text = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    found = [(question, example) for question, _, _, example in ROW.findall(text)]
    return [(question, example.strip()) for question, example in found if question != "Question"]


def test_the_page_has_a_row_for_each_of_many_questions() -> None:
    text = page()
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| Question")]
    assert len(rows()) == len(lines) >= 30
    # What a few rows say needs a cluster, or another interpreter.
    assert sum(example == NONE for _, example in rows()) <= 4


@pytest.mark.parametrize(("question", "example"), rows())
def test_what_the_page_says_happens(
    question: str, example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if example == NONE:
        pytest.skip("the row has no example")
    monkeypatch.chdir(tmp_path)
    setup = re.search(r"```python\n(.*?)```", page(), re.DOTALL)
    whole = EXAMPLE.fullmatch(example)
    assert setup and whole, question
    expression, error = whole.groups()
    names: dict[str, Any] = {}
    exec(setup[1], names)
    if error:
        with pytest.raises(getattr(fb, error)):
            eval(expression, names)
    else:
        assert eval(expression, names), question
