"""What ``study.py`` is given: scenarios, runs, claims and the page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

from forebay import _forebay
from forebay.placement import Placement
from forebay.run import Run
from forebay.scenario import Scenario
from forebay.study import page
from forebay.study.claims import BASES, Band, Basis, Change, Claim, Control, Parameter, Since
from forebay.study.errors import problem
from forebay.study.files import StudyFiles
from forebay.study.page import Series
from forebay.study.runs import Runner, StudyRun
from forebay.study.scenarios import StudyScenario

__all__ = ["Enough", "Study"]


class Enough(Exception):
    """Ends a study that is run for some of its claims only: they are measured."""


class Study:
    """A study while it runs: the argument of the function ``study`` in ``study.py``.

    Claims and observations are declared first, then scenarios are run, and then each claim gets what was
    measured.
    """

    def __init__(self, files: StudyFiles, runner: Runner) -> None:
        self._files = files
        self._runner = runner
        self._started = False
        self.blocks: list[dict[str, Any]] = []
        self.claims: list[Claim] = []
        self.controls: list[Control] = []
        self.repeated_over = "seeds"
        self.changes: list[Change] = []
        self.wanted: set[str] | None = None
        self.under = ""
        """Name of the control or reading under which the study runs; empty as it is, and in repetitions."""

    @property
    def quick(self) -> bool:
        """Whether this is a quick run, of a fiftieth of the packets: figures are not meaningful."""
        return self._runner.quick

    # ---- Claims

    def printed(self, key: str, value: Any, where: str) -> Parameter:
        """A parameter that the paper prints.

        Parameters
        ----------
        key
            Key of the scenario, or a name.
        value
            The value, as the scenario has it.
        where
            Section, table or figure that prints it.
        """
        return self._parameter(key, value, "printed", where)

    def assumed(self, key: str, value: Any, reason: str) -> Parameter:
        """A parameter that the paper does not print, and why it has this value here."""
        return self._parameter(key, value, "assumed", reason)

    def _parameter(
        self, key: str, value: Any, whose: Literal["printed", "assumed"], source: str
    ) -> Parameter:
        if not source.strip():
            raise problem(f"parameter `{key}` is {whose}, and no source is given")
        return Parameter(key, value, whose, source)

    def band(self, low: float | None, high: float | None, unit: str, source: str) -> Band:
        """The values for which a claim holds, both ends included.

        Parameters
        ----------
        low, high
            The ends; ``None``: no such end.
        unit
            Their unit; ``""`` for ratios.
        source
            Where the ends come from: the printed value and the tolerance, with its reason.
        """
        return Band(low, high, unit, source)

    def control(self, name: str, *, says: str, change: Change) -> str:
        """Declares a wrong rule: the study is run with it once more, and each claim that names it must fail then.

        A claim that holds under its control too is not decided, because it would hold whatever the rule.

        Parameters
        ----------
        name
            A short name, unique in the study; claims give it as their ``control``.
        says
            What is wrong under it, as one sentence.
        change
            Called with each scenario that is run; returns it, or a changed one: ``one.set(key, value)``.
            ``one.value(key)`` has the value of a key.

        Returns
        -------
        str
            The name.
        """
        return self._control(Control(name, says, change))

    def reading(self, name: str, *, says: str, change: Change) -> str:
        """Declares another reading of the paper: the study is run with it once more, and all claims are counted."""
        return self._control(Control(name, says, change, reading=True))

    def _control(self, control: Control) -> str:
        if self._started:
            raise problem(f"control `{control.name}` is declared after the first run")
        if not control.name or not control.says.strip():
            raise problem("a control needs a name and what it says")
        if any(one.name == control.name for one in self.controls):
            raise problem(f"control `{control.name}` is there already")
        self.controls.append(control)
        return control.name

    def repeat(self, over: str, changes: Sequence[Change]) -> None:
        """Says what a repetition of the study changes in each scenario, in the place of the seed.

        The values of a claim over all repetitions give its interval. Without this call the seeds of simulations are
        others in each repetition.

        Parameters
        ----------
        over
            What differs, in the plural: ``"link orders"``.
        changes
            One for each repetition beside the study as it is.
        """
        if self._started:
            raise problem("repetitions are declared after the first run")
        if not changes:
            raise problem("there is no repetition", expected="a list of changes")
        self.repeated_over, self.changes = over, list(changes)

    def claim(
        self,
        id: str,
        *,
        says: str,
        quote: str,
        where: str,
        parameters: Sequence[Parameter],
        band: Band,
        control: str = "",
        basis: Basis = "test",
        because: str = "",
    ) -> Claim:
        """Declares a claim of a paper, before the first run.

        Parameters
        ----------
        id
            A short name, unique in the study.
        says
            Our reading, as one sentence.
        quote
            The paper's sentence, short and exact.
        where
            Its place: ``"[H] section 4.2, figure 3"``.
        parameters
            Parameters for which it is tested: `printed` and `assumed`.
        band
            The values for which it holds.
        control
            The name of a wrong rule, declared by `control`, under which it must fail.
        basis
            ``"test"``, or why it is no test of its sentence: ``"arithmetic"`` (the paper's printed numbers decide it),
            ``"fitted"`` (a parameter was chosen by it), ``"consistency"`` (it compares numbers of the paper with each
            other), ``"input"`` (what goes in comes out). Those are counted apart.
        because
            Why it is no test.

        Returns
        -------
        Claim
            Its ``measured`` decides.
        """
        if not quote.strip():
            raise problem(
                f"claim `{id}` has no quote", hint="what no paper says is an observation: `s.observation`"
            )
        claim = Claim(id, "claim", says, quote, where, tuple(parameters), band, basis, because, control)
        return self._declare(claim)

    def observation(
        self,
        id: str,
        *,
        says: str,
        band: Band,
        where: str = "",
        parameters: Sequence[Parameter] = (),
        control: str = "",
        basis: Basis = "test",
        because: str = "",
    ) -> Claim:
        """Declares an observation: as a claim, but it is no sentence of a paper, and is counted apart."""
        claim = Claim(id, "observation", says, "", where, tuple(parameters), band, basis, because, control)
        return self._declare(claim)

    def _declare(self, claim: Claim) -> Claim:
        if self._started:
            raise problem(
                f"{claim.kind} `{claim.id}` is declared after the first run",
                hint="declare all claims first, so that no band can follow a result",
            )
        if any(one.id == claim.id for one in self.claims):
            raise problem(f"claim `{claim.id}` is there already")
        if not claim.id or not claim.says.strip():
            raise problem(f"{claim.kind} `{claim.id}` needs an id and what it says")
        if claim.kind == "claim" and not claim.where.strip():
            raise problem(
                f"claim `{claim.id}` has no place in a paper", hint='give `where="[H] section 4.2"`'
            )
        if claim.basis not in BASES:
            raise problem(f"`{claim.id}` has the basis `{claim.basis}`", expected=", ".join(BASES))
        if (claim.basis == "test") == bool(claim.because.strip()):
            raise problem(
                f"`{claim.id}` has the basis `{claim.basis}` and "
                f"{'a' if claim.because.strip() else 'no'} reason why it is no test",
                hint='`because` belongs to any other basis than "test"',
            )
        if claim.control and claim.basis != "test":
            raise problem(f"`{claim.id}` is no test, and names a control", hint="take `control` away")
        if claim.control and all(one.name != claim.control for one in self.controls if not one.reading):
            known = ", ".join(one.name for one in self.controls if not one.reading)
            raise problem(
                f"`{claim.id}` names the control `{claim.control}`, which is not declared",
                expected=known or "a control that was declared by `s.control` before",
            )
        claim.since = self._since(claim)
        self.claims.append(claim)
        return claim

    def _since(self, claim: Claim) -> Since | None:
        """When the band was set, if ``bands.json`` beside ``study.py`` has it with these ends."""
        record = json.loads(self._files.files.get("bands.json", "{}")).get(claim.id, {})
        if [record.get(key) for key in ("low", "high", "unit")] != [claim.band.low, claim.band.high, claim.band.unit]:
            return None
        return Since(record["date"], record["commit"])

    def measured(self, id: str, value: float | Iterable[float], found: str, why: str = "") -> bool:
        """Records what was measured for the claim or observation of this name; see :meth:`Claim.measured`."""
        claim = next((one for one in self.claims if one.id == id), None)
        if claim is None:
            known = ", ".join(one.id for one in self.claims)
            raise problem(f"there is no claim `{id}`", expected=known or "a claim that was declared before")
        return claim.measured(value, found=found, why=why)

    def wants(self, *ids: str) -> bool:
        """Whether any of these claims is to be measured; with no names, whether the report is to be made.

        True in the study as it is. A part of a study that asks is left out under controls and in repetitions that do not
        require it.
        """
        return self.wanted is None or any(id in self.wanted for id in ids)

    def simulate(self, scenario: Scenario, policy: Placement) -> Run:
        """Simulates a scenario with a policy of the study's own; the run is not recorded.

        Use this and not ``scenario.simulate``, so that controls and repetitions reach the run too.
        """
        self._begin()
        return self._runner.actual(scenario).simulate(policy=policy, progress=False)

    # ---- Scenarios and runs

    def scenario(self, file: str) -> StudyScenario:
        """A scenario file beside ``study.py``, of any model."""
        text = self._files.files.get(file)
        if text is None or not file.endswith(".toml"):
            known = ", ".join(name for name in self._files.files if name.endswith(".toml"))
            raise problem(f"the study has no scenario `{file}`", expected=known or "a *.toml beside study.py")
        return StudyScenario.of(Scenario.parse(text, file, self._files.scenario_directory()))

    def file(self, name: str) -> str:
        """The text of a file beside ``study.py``, such as measurements (``*.json``) that a figure stands beside."""
        text = self._files.files.get(name)
        if text is None:
            raise problem(f"the study has no file `{name}`", expected=", ".join(self._files.files))
        return text

    @overload
    def run(self, scenario: Scenario) -> StudyRun: ...

    @overload
    def run(self, scenario: Iterable[Scenario]) -> list[StudyRun]: ...

    def run(self, scenario: Scenario | Iterable[Scenario]) -> StudyRun | list[StudyRun]:
        """Runs a scenario, or several in parallel; equal scenarios of a study are run once."""
        self._begin()
        if isinstance(scenario, Scenario):
            return self._runner.run([scenario])[0]
        return self._runner.run(list(scenario))

    def _begin(self) -> None:
        """Notes that runs begin. What is run for some claims only ends once those are measured."""
        self._started = True
        if self.wanted is not None and all(one.is_measured for one in self.claims if one.id in self.wanted):
            raise Enough

    def sweep(self, scenario: Scenario, key: str, values: Iterable[Any]) -> list[StudyRun]:
        """A run for each value of the key, in parallel."""
        return self.run([scenario.set(key, value) for value in values])

    def grid(
        self, scenario: Scenario, key: str, values: Iterable[Any], key2: str, values2: Iterable[Any]
    ) -> list[list[StudyRun]]:
        """For each value of `key` a list with a run for each value of `key2`, all in parallel."""
        columns = list(values2)
        rows = [[scenario.set(key, value).set(key2, column) for column in columns] for value in values]
        runs = iter(self.run([one for row in rows for one in row]))
        return [[next(runs) for _ in row] for row in rows]

    def bound(self, scenario: Scenario) -> dict[str, float]:
        """Limits that no placement can beat, of the host model.

        Returns
        -------
        dict
            ``elapsed_s``, ``throughput_bps`` and ``total_latency_mean_s``.
        """
        self._started = True
        found: dict[str, float] = _mapping(_forebay.bound(self._runner.model(self._runner.actual(scenario))))
        return found

    def optimum(self, scenario: Scenario) -> dict[str, float] | None:
        """The same figures of the best placement, found by trying all; ``None`` if there are too many."""
        self._started = True
        found = _forebay.optimum(self._runner.model(self._runner.actual(scenario)))
        return None if found is None else _mapping(found)

    def figures(self, runs: Iterable[StudyRun], path: str, factor: float = 1.0) -> list[float]:
        """The figure of each run, times a factor such as 1e-9 for Gbit/s."""
        return [run[path] * factor for run in runs]

    # ---- The page

    def section(self, title: str) -> None:
        """A heading."""
        self.blocks.append({"section": title})

    def text(self, words: str) -> None:
        """A paragraph; line breaks and indentation do not count."""
        self.blocks.append({"text": " ".join(words.split(None))})

    def series(
        self, name: str, xs: Sequence[Any], ys: Sequence[float], spread: Sequence[float] = ()
    ) -> Series:
        """A line of a plot over numbers, or bars over names.

        Parameters
        ----------
        name
            Its name in the legend.
        xs, ys
            Places and values, as many.
        spread
            Half the width of each value's confidence interval, in the unit of `ys`.
        """
        return page.series(name, list(xs), list(ys), list(spread), "")

    def paper(self, name: str, xs: Sequence[Any], ys: Sequence[float], where: str) -> Series:
        """Values that the paper prints, drawn as marks without a line.

        Parameters
        ----------
        name
            Its name in the legend, as ``"printed"``.
        xs, ys
            Places and values, as many; they may be fewer than the series', and names must be some of theirs.
        where
            Where they are printed: ``"figure 3"``.
        """
        return page.series(name, list(xs), list(ys), [], where)

    def plot(
        self,
        title: str,
        x: str,
        y: str,
        series: Sequence[Series],
        paper: Sequence[Series] = (),
        counterpart: str | None = None,
        log_x: bool = False,
        log_y: bool = False,
        note: str = "",
    ) -> None:
        """A diagram.

        Parameters
        ----------
        title
            What it shows.
        x, y
            Titles of the axes, with their units.
        series
            Lines or bars: what `series` gives.
        paper
            The paper's printed values: what `paper` gives.
        counterpart
            The figure or table of a paper that this is the counterpart of: ``"[H] figure 3"``; several with
            semicolons between.
        log_x, log_y
            Whether an axis is logarithmic.
        note
            What to see in it.
        """
        self.blocks.append(
            page.plot(
                title, x, y, series, paper, log_x=log_x, log_y=log_y, note=note, counterpart=counterpart or ""
            )
        )

    def table(
        self,
        title: str,
        head: Sequence[Any],
        rows: Sequence[Sequence[Any]],
        counterpart: str | None = None,
        note: str = "",
    ) -> None:
        """A table; each row has as many cells as the head, and numbers are written with three digits."""
        self.blocks.append(page.table(title, head, rows, note, counterpart or ""))

    def heat(
        self,
        title: str,
        x: str,
        y: str,
        columns: Sequence[Any],
        rows: Sequence[Any],
        values: Sequence[Sequence[float]],
        note: str = "",
        counterpart: str | None = None,
    ) -> None:
        """A map of ratios, one list of values per row, with a line where the ratio passes 1."""
        self.blocks.append(page.heat(title, x, y, columns, rows, values, note, counterpart or ""))


def _mapping(found: Any) -> Any:
    """What the compiled module gives: a mapping, or its JSON."""
    return json.loads(found) if isinstance(found, str) else dict(found)
