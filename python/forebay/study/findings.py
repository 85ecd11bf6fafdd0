"""What a study comes to, and the directory that keeps it."""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from forebay import _forebay
from forebay._output import replace, same
from forebay.study.claims import BASES, Claim, Control, Verdict
from forebay.study.files import StudyFiles
from forebay.study.runs import StudyRun, cores
from forebay.study.scenarios import settings
from forebay.study.units import plain

__all__ = ["Findings"]


@dataclass
class Findings:
    """What a study comes to.

    Attributes
    ----------
    study : StudyFiles
        Its files.
    blocks : list of dict
        What stands on the page.
    claims : list of Claim
        Claims and observations, as declared.
    runs : list of StudyRun
        Every run, once.
    quick : bool
        Whether only a fiftieth of the packets was run.
    complete : bool
        Whether the study came to its end, or was interrupted.
    controls : list of Control
        The controls and readings under which it was run once more.
    repeated : str
        What differed between its repetitions, ``"seeds"``; empty if there were none.
    """

    study: StudyFiles
    blocks: list[dict[str, Any]]
    claims: list[Claim]
    runs: list[StudyRun]
    quick: bool
    complete: bool
    controls: list[Control] = field(default_factory=list)
    repeated: str = ""
    made: dict[str, str] = field(default_factory=lambda: _made())

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.study.name

    def of_kind(self, kind: Literal["claim", "observation"]) -> list[Claim]:
        """The claims, or the observations, that were measured."""
        return [one for one in self.claims if one.kind == kind and one.is_measured]

    def all_hold(self) -> bool:
        """Whether the values of every claim and every observation lie in their bands; decided or not."""
        return all(one.holds for one in self.claims if one.is_measured)

    def manifest(self) -> dict[str, Any]:
        """The document of ``manifest.json``."""
        claims, observations = self.of_kind("claim"), self.of_kind("observation")
        return {
            "schema": 1,
            "study": self.name,
            **self.made,
            "quick": self.quick,
            "complete": self.complete,
            "seeds": sorted({run.seed for run in self.runs}),
            "runs": len(self.runs),
            "claims_held": _held(claims),
            "claims": len(claims),
            "observations_held": _held(observations),
            "observations": len(observations),
            "verdicts": {"claims": _tally(claims), "observations": _tally(observations)},
            "readings": self._readings(),
            "controls": [one.name for one in self.controls if not one.reading],
            "repeated_over": self.repeated or None,
        }

    def _readings(self) -> list[dict[str, Any]]:
        """Of each reading of the paper, how many claims have their values in their bands."""
        counts = []
        for control in self.controls:
            if control.reading:
                found = [
                    under
                    for claim in self.of_kind("claim")
                    for under in claim.readings
                    if under.control.name == control.name
                ]
                held = sum(one.holds for one in found)
                counts.append({"name": control.name, "says": control.says, "held": held, "claims": len(found)})
        return counts

    def _claims(self) -> list[dict[str, Any]]:
        return [one.document() for one in self.claims if one.is_measured]

    def document(self) -> dict[str, Any]:
        """What ``forebay study run --json`` prints."""
        return {
            "schema": 1,
            "manifest": self.manifest(),
            "claims": self._claims(),
            "runs": [run.record() for run in self.runs],
        }

    def page(self) -> str:
        """The report as one self-contained HTML document."""
        findings = {
            "name": self.name,
            "about": self.study.about(),
            "blocks": self.blocks,
            "claims": self._claims(),
            "runs": [run.record() for run in self.runs],
            "quick": self.quick,
            "complete": self.complete,
            "readings": self._readings(),
        }
        return str(_forebay.study_page(json.dumps(findings), json.dumps(self.made)))

    def keep(self, directory: str | Path) -> Path:
        """Writes report, results, claims, manifest, the study and every resolved scenario.

        Returns
        -------
        Path
            The report.

        Raises
        ------
        StudyError
            If a file of the study would be overwritten; nothing is written then.
        """
        directory = Path(directory)
        self.study.keep_apart(directory)
        own, scenarios = directory / "study", directory / "scenarios"
        own.mkdir(parents=True, exist_ok=True)
        scenarios.mkdir(exist_ok=True)
        # Those of an earlier, longer run would be taken for this one's.
        number = len(self.runs) + 1
        while (stale := scenarios / f"{number:04}.toml").exists():
            stale.unlink()
            number += 1
        for name, text in self.study.files.items():
            # A kept study that is run again keeps its files.
            if not any(same(own / name, file) for file in self.study.paths()):
                replace(own / name, text)
        for run in self.runs:
            # Thousands of small files that a rerun gives again.
            replace(scenarios / f"{run.number:04}.toml", run.resolved, sync=False)
        _write(directory / "results.json", [run.record() for run in self.runs])
        _write(directory / "claims.json", self._claims())
        _write(directory / "manifest.json", self.manifest())
        report = directory / "report.html"
        replace(report, self.page())
        return report

    def lines(self) -> list[str]:
        """What the command prints: each claim with its verdict, and the counts."""
        lines: list[str] = []
        for one in self.claims:
            if not one.is_measured:
                continue
            lines += _said(one)
        lines.append(self._summary())
        if self.quick:
            lines.append("This was a quick run: its figures are those of queues that are still filling.")
        if not self.complete:
            lines.append("Interrupted: the results are incomplete.")
        return [plain(line) for line in lines]

    def _summary(self) -> str:
        """The counts, in one line."""
        parts = [
            *_counts("claim", "claims", self.of_kind("claim")),
            *_counts("observation", "observations", self.of_kind("observation")),
        ]
        for one in self._readings():
            parts.append(f"with {one['name']} {one['held']} of {one['claims']} claims are in their bands")
        return "; ".join([*parts, f"{len(self.runs)} runs"])

    def to_pandas(self) -> Any:
        """Claims and observations as a pandas DataFrame, one a row."""
        import pandas

        rows = []
        for one in self.claims:
            band = one.band
            rows.append(
                {
                    "id": one.id,
                    "kind": one.kind,
                    "says": one.says,
                    "where": one.where,
                    "low": band.low,
                    "high": band.high,
                    "unit": band.unit,
                    "least": min(one.values, default=None),
                    "most": max(one.values, default=None),
                    "holds": one.holds if one.is_measured else None,
                    "basis": one.basis,
                    "verdict": one.verdict if one.is_measured else None,
                    "found": one.found,
                }
            )
        return pandas.DataFrame(rows)

    def runs_to_pandas(self, paths: Iterable[str] = ()) -> Any:
        """The runs as a pandas DataFrame, one a row, settings and figures as columns.

        Parameters
        ----------
        paths
            Figures to take; none: all numbers at the top of a run's figures.
        """
        import pandas

        wanted = list(paths)
        rows = []
        for run in self.runs:
            row: dict[str, Any] = {"run": run.number, "scenario": run.scenario.name, "seed": run.seed}
            row.update(settings(run.scenario))
            if wanted:
                row.update({path: run[path] for path in wanted})
            else:
                row.update({key: one for key, one in run.figures.items() if isinstance(one, (int, float))})
            rows.append(row)
        return pandas.DataFrame(rows)

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><td>{escape(one.says)}</td><td>{escape(one.where)}</td><td>{escape(one.found)}</td>"
            f"<td>{_WORDS[one.verdict]}</td></tr>"
            for one in self.claims
            if one.is_measured
        )
        counts = escape(
            self.lines()[-1] if not self.quick and self.complete else "; ".join(self.lines()[-2:])
        )
        return (
            f"<p>{escape(self.study.title())}: {counts}</p>"
            f"<table><thead><tr><th>claim</th><th>where</th><th>found</th><th></th></tr></thead>{rows}</table>"
        )


_WORDS: dict[Verdict, str] = {"holds": "holds", "fails": "does not hold", "not decided": "not decided"}


def _said(one: Claim) -> list[str]:
    """A claim's lines for a terminal: verdict, statement, figures, and what the verdict is worth."""
    kind = "" if one.kind == "claim" else " (observation)"
    basis = "" if one.basis == "test" else f", {one.basis}"
    reason = f", {one.open}" if one.open else ""
    says = f"{one.says} ({one.where})" if one.where else one.says
    lines = [f"{one.id}{kind}{basis}: {_WORDS[one.verdict]}{reason}", f"  {says}", f"  {one.found}"]
    if one.verdict != "holds" and one.why:
        lines.append(f"  {one.why}")
    if one.under is not None and one.under.holds:
        lines.append(f"  Under its control: {one.under.control.says} {one.under.found}")
    return lines


def _tally(claims: list[Claim]) -> dict[str, dict[str, int]]:
    """By basis: how many hold, fail and are not decided, and how many of the tests have no control."""
    found = {}
    for basis in BASES:
        some = [one for one in claims if one.basis == basis]
        if some:
            found[basis] = {
                "claims": len(some),
                "holds": sum(one.verdict == "holds" for one in some),
                "fails": sum(one.verdict == "fails" for one in some),
                "not_decided": sum(one.verdict == "not decided" for one in some),
                "without_control": sum(not one.control for one in some),
            }
    return found


def _counts(one: str, many: str, claims: list[Claim]) -> list[str]:
    """The counts of claims or observations as text: tests first, what is none apart."""
    parts = []
    for basis, found in _tally(claims).items():
        all = found["claims"]
        name = one if all == 1 else many
        words = f"{all} {name}" if basis == "test" else f"{all} {basis} {name}"
        verdicts = [
            f"{found[key]} {verb}"
            for key, verb in (
                ("holds", "hold" if found["holds"] != 1 else "holds"),
                ("fails", "fail" if found["fails"] != 1 else "fails"),
                ("not_decided", "not decided"),
            )
            if found[key]
        ]
        parts.append(f"{words}: {', '.join(verdicts)}")
    return parts


def _held(claims: list[Claim]) -> int:
    return sum(one.holds for one in claims)


def _write(path: Path, value: Any) -> None:
    replace(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _made() -> dict[str, str]:
    """Version, machine and time, for the page and the manifest."""
    model = platform.processor() or platform.machine() or "unknown processor"
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as info:
            names = [
                line.split(":", 1)[1].strip()
                for line in info
                if line.startswith("model name") and ":" in line
            ]
        model = names[0] if names else model
    at = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"version": str(_forebay.version), "host": f"{model}, {cores()} cores", "at": at}
