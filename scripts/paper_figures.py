#!/usr/bin/env python3
"""Writes the papers' figures as the playground draws them, into crates/workbench/playground/figures.json.

    target/python/bin/python scripts/paper_figures.py            writes them
    target/python/bin/python scripts/paper_figures.py --check    says whether they are as the studies are

Each study is run in its quick form with figures that remember how they were computed. So a point of a plot is known as a
formula over figures of runs, each of which is a scenario's file with what was set in it; the page runs those and applies the
formulas. The papers' printed values, titles, axes and notes are the study's own. A second pass with other seeds shows whether
the formulas hold whatever is drawn: a figure whose formulas do not, or whose runs a page cannot make, is left out.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from forebay import study
from forebay.scenario import Scenario
from forebay.study.modules import imported
from forebay.study.runs import Runner, StudyRun
from forebay.study.scenarios import StudyScenario, settings, way_of
from forebay.study.study import Study

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "crates/workbench/playground/figures.json"
FIGURE = re.compile(r"\[[A-Z]\] figure [0-9.]+(?<!\.)")
# What a page runs, and how.
WAYS = {"simulation", "solution"}


class Traced(float):
    """A number with its formula: a number, `[operator, left, right]`, or `["run", number, path]`."""

    formula: Any

    @classmethod
    def of(cls, value: float, formula: Any) -> Traced:
        one = cls(value)
        one.formula = formula
        return one


def formula_of(value: Any) -> Any:
    return value.formula if isinstance(value, Traced) else float(value)


def operator(sign: str, name: str) -> None:
    """Gives Traced an operator in both directions."""
    plain, other_way = getattr(float, f"__{name}__"), getattr(float, f"__r{name}__")

    def forward(one: Traced, other: Any) -> Any:
        value = plain(one, other)
        return value if value is NotImplemented else Traced.of(value, [sign, one.formula, formula_of(other)])

    def backward(one: Traced, other: Any) -> Any:
        value = other_way(one, other)
        return value if value is NotImplemented else Traced.of(value, [sign, formula_of(other), one.formula])

    setattr(Traced, f"__{name}__", forward)
    setattr(Traced, f"__r{name}__", backward)


for sign, name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("/", "truediv")):
    operator(sign, name)


class TracedRun(StudyRun):
    """A run whose figures say whose they are."""

    __slots__ = ("asked",)

    def __getitem__(self, path: str) -> float:
        return Traced.of(super().__getitem__(path), ["run", self.asked, path])


@dataclass
class TracingRunner(Runner):
    """Makes runs that are traced, and keeps the scenarios that were asked for."""

    asked: list[StudyScenario] = field(default_factory=list)

    def run(self, scenarios: Sequence[Scenario]) -> list[StudyRun]:
        return [self.traced(one, run) for one, run in zip(scenarios, super().run(scenarios))]

    def traced(self, scenario: Scenario, run: StudyRun) -> StudyRun:
        one = TracedRun.__new__(TracedRun)
        one.__setstate__(run.__getstate__())
        one.number, one.resolved, one.asked = run.number, run.resolved, len(self.asked)
        self.asked.append(scenario)
        return one


class TracingStudy(Study):
    """A study whose plots are kept with their formulas."""

    plots: list[dict[str, Any]]

    def plot(self, title: str, x: str, y: str, series: Any, paper: Any = (), counterpart: str | None = None, **more: Any) -> None:
        if FIGURE.search(counterpart or ""):
            lines = [{"name": one.name, "xs": list(one.xs), "ys": [formula_of(value) for value in one.ys]} for one in series]
            printed = [{"name": one.name, "xs": list(one.xs), "ys": list(one.ys), "where": one.where} for one in paper]
            self.plots.append({"title": title, "x": x, "y": y, "counterpart": counterpart, "series": lines, "paper": printed, **more})
        super().plot(title, x, y, series, paper, counterpart, **more)


def traced(name: str, seeds: int) -> tuple[TracingStudy, TracingRunner]:
    """A study in its quick form, with its seeds greater by so many."""

    def change(one: StudyScenario) -> StudyScenario:
        seed = one.value("seed")
        return one.set("seed", int(seed) + seeds) if seeds and seed is not None else one

    found = study.find(ROOT / "studies" / name)
    runner = TracingRunner(quick=True, threads=2, progress=False, change=change)
    with imported(found) as module:
        made = TracingStudy(found, runner)
        made.plots = []
        module.study(made)
    return made, runner


def runs_of(formula: Any) -> set[int]:
    if not isinstance(formula, list):
        return set()
    if formula[0] == "run":
        return {formula[1]}
    return runs_of(formula[1]) | runs_of(formula[2])


def renumbered(formula: Any, places: dict[int, int]) -> Any:
    if not isinstance(formula, list):
        return formula
    if formula[0] == "run":
        return ["run", places[formula[1]], formula[2]]
    return [formula[0], *(renumbered(part, places) for part in formula[1:])]


def said(made: Study, label: str) -> list[dict[str, str]]:
    """What the paper says of a figure, and what of that is tested."""
    number = re.compile(rf"{re.escape(label.partition(' ')[0])}.*figures? [0-9 ,and]*\b{re.escape(label.rpartition(' ')[2])}\b")
    claims = [one for one in made.claims if one.kind == "claim" and number.search(one.where)]
    return [{"quote": one.quote, "says": one.says, "where": one.where} for one in claims]


def figures(name: str) -> list[dict[str, Any]]:
    """The figures of a study that a page can draw."""
    (made, runner), (other, again) = traced(name, 0), traced(name, 1_000)
    found = []
    for plot, twin in zip(made.plots, other.plots, strict=True):
        numbers = sorted({run for one in plot["series"] for y in one["ys"] for run in runs_of(y)})
        scenarios = [runner.asked[number] for number in numbers]
        same = [again.asked[number].sets == runner.asked[number].sets for number in numbers]
        models = {one.value("model") or re.search(r'^model = "(.*)"', one.text, re.MULTILINE)[1] for one in scenarios}
        if not numbers or plot != twin or not all(same) or "embedded" in models or not {way_of(one) for one in scenarios} <= WAYS:
            print(f"{name}: {plot['counterpart']} is left out", file=sys.stderr)
            continue
        places = {number: at for at, number in enumerate(numbers)}
        for one in plot["series"]:
            one["ys"] = [renumbered(y, places) for y in one["ys"]]
        runs = [
            {"scenario": f"{name}/{one.name.removesuffix('.toml')}", "solve": way_of(one) == "solution",
             "sets": [f"{key}={value}" for key, value in settings(one).items()]}
            for one in scenarios
        ]  # fmt: skip
        label = FIGURE.search(plot["counterpart"])[0]
        found.append({"study": name, "label": label, "said": said(made, label), "plot": plot, "runs": runs})
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true")
    args = options.parse_args()
    names = sorted(path.parent.name for path in ROOT.glob("studies/*/study.py") if FIGURE.search(path.read_text()))
    lines = [json.dumps(one, ensure_ascii=False) for name in names for one in figures(name)]
    text = "[\n" + ",\n".join(lines) + "\n]\n"
    if args.check:
        if OUT.read_text(encoding="utf-8") != text:
            print(f"{OUT.relative_to(ROOT)} is not as the studies are: scripts/paper_figures.py writes it", file=sys.stderr)
            return 1
        return 0
    OUT.write_text(text, encoding="utf-8")
    print(f"{OUT.relative_to(ROOT)}: {len(lines)} figures, {len(text)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
