"""Design-space search with Optuna: trials are points that run like those of a sweep."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forebay import _points, _quantity, _toml, cluster
from forebay._parts import path
from forebay._progress import Progress
from forebay.errors import Error, FigureError, Interrupted, RunError
from forebay.placement import Placement
from forebay.run import names_of
from forebay.scenario import Scenario, Source, taken
from forebay.stats import Until
from forebay.sweep import collect, parallel

if TYPE_CHECKING:
    import matplotlib.axes
    import optuna
    import pandas

__all__ = ["Search", "search"]

Objective = str | Sequence[str] | Mapping[str, str]


class Search:
    """The trials of a search.

    Attributes
    ----------
    study : optuna.Study
        The study of Optuna, for its own plots and analyses.
    objectives : dict of str to str
        The path of each figure, and whether it is minimised or maximised.
    rows : list of dict
        One row for each complete trial: its number, parameters and objectives. A trial whose runs do not have an
        objective, such as the delay of no packet, is none of them.
    """

    def __init__(
        self, scenario: Scenario, study: optuna.Study, objectives: dict[str, str], version: str
    ) -> None:
        self.scenario = scenario
        self.study = study
        self.objectives = objectives
        self.version = version

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each complete trial."""
        return [self._row(trial) for trial in self.study.trials if trial.values is not None]

    def _row(self, trial: Any) -> dict[str, Any]:
        return {"trial": trial.number, **trial.params, **dict(zip(self.objectives, trial.values))}

    @property
    def best(self) -> dict[str, Any]:
        """The best trial as a row; of several objectives the first of the Pareto front, see `front`."""
        front = self.front
        if not front:
            raise RunError("the search has no complete trial")
        return front[0]

    @property
    def front(self) -> list[dict[str, Any]]:
        """The Pareto front: the trials than which no other is better in every objective, by the first one."""
        if len(self.objectives) == 1:
            return [self._row(self.study.best_trial)] if self.rows else []
        rows = [self._row(trial) for trial in self.study.best_trials]
        first, direction = next(iter(self.objectives.items()))
        return sorted(rows, key=lambda row: float(row[first]), reverse=direction == "maximize")

    @property
    def best_scenario(self) -> Scenario:
        """The scenario with the parameters of the best trial."""
        scenario = self.scenario
        for key, value in self.best.items():
            if key != "trial" and key not in self.objectives:
                scenario = scenario.set(key, value)
        return scenario

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a DataFrame of pandas."""
        import pandas

        return pandas.DataFrame(self.rows)

    def plot(self, **options: Any) -> matplotlib.axes.Axes:
        """Draw the trials: the objective over the trials, or two objectives with their Pareto front."""
        from forebay import plots

        return plots.search(self, **options)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        goals = ", ".join(f"{direction} {path}" for path, direction in self.objectives.items())
        return f"<forebay.Search: {len(self)} trials; {goals}>"


def search(
    scenario: Source,
    space: Mapping[str, Sequence[Any]],
    *,
    minimise: Objective = (),
    maximise: Objective = (),
    trials: int = 100,
    replications: int | str | Until = 1,
    policy: Placement | str | None = None,
    seed: int = 1,
    client: cluster.Client = None,
    storage: str | Any = None,
    name: str = "forebay",
    batch: int = 8,
    progress: Callable[[int, int], bool | None] | bool | None = None,
) -> Search:
    """Search the parameters at which figures are smallest or largest.

    Parameters
    ----------
    scenario : Scenario
        The scenario, of any model.
    space : mapping of str to (low, high), (low, high, "log") or list
        For each key a range as a tuple, of whole numbers if both limits are, or a list of choices. Both may be text with
        units: ``("100 Mbit/s", "1 Gbit/s")``, whose values are then numbers in SI base units.
    minimise, maximise : str, or list or mapping of them
        Paths of the figures; together at least one. With several the result has a Pareto front. The values of
        a mapping are the paths, its keys are words for the reader and not used.
    trials : int, default 100
        Number of trials, those that the storage has included. No design is tried twice, since it would have the
        same figures: a search ends before if `space` has no other designs.
    replications : int, str or Until
        Runs of each trial, as for `forebay.sweep`; the objective is their mean.
    policy : Placement, str or None
        As for `forebay.sweep`.
    seed : int, default 1
        Seed of the search. The seeds of the runs are those of the scenario.
    client : None, str, Client or cluster
        As for `forebay.sweep`.
    storage : str or optuna.storages.BaseStorage, optional
        Where trials are kept, such as "sqlite:///search.db"; the same call goes on where the last one
        stopped.
    name : str
        Name of the study in the storage.
    batch : int, default 8
        Trials that are proposed together and run in parallel. It, and not the number of workers, decides how
        many results a proposal can take into account, so that the trials are the same on every cluster.
    progress : callable or bool, optional
        As for `forebay.sweep`; called with trials.

    Returns
    -------
    Search
        The trials, the best one and the Pareto front.

    Raises
    ------
    Interrupted
        By Ctrl-C; its ``partial`` has the trials that were done.

    Notes
    -----
    Proposals are those of the tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011;
    for several objectives Ozaki et al., GECCO 2020), with the constant liar for the trials in flight. A
    trial's proposal draws from its own seed, so that a search that was broken off and resumed gives the
    trials of one that was not.
    """
    optuna = _optuna()
    scenario = taken(scenario)
    trials, batch = _quantity.count("trials", trials, 0), _quantity.count("batch", batch, 1)
    seed = _quantity.count("seed", seed, 0)
    objectives = _objectives(minimise, maximise)
    space = {key: _values(key, values) for key, values in space.items()}
    # Validated before the first trial: the scenario, and each limit and choice.
    corners = {
        key: [values[0], values[1]] if isinstance(values, tuple) else list(values)
        for key, values in space.items()
    }
    model = _points.plan(scenario, corners, replications, policy)
    try:
        study = optuna.create_study(
            study_name=name,
            storage=storage,
            directions=list(objectives.values()),
            load_if_exists=storage is not None,
        )
        _identify(study, model, space, objectives)
    except KeyboardInterrupt as caught:
        raise Interrupted("interrupted before the first trial") from caught
    except Error:
        raise
    except Exception as error:  # of SQLAlchemy or of the database, by the storage
        if storage is None:
            raise
        said = str(error).partition("\n")[0]
        hint = 'a storage is a URL such as "sqlite:///search.db", in a folder that can be written'
        raise RunError(f"the storage {storage!r} cannot be opened: {said}", hint=hint) from error
    result = Search(scenario, study, objectives, model.version)

    def tried() -> int:
        """Trials that ran, with or without a result."""
        return sum(one.state.is_finished() for one in study.get_trials(deepcopy=False))

    def interrupted() -> Interrupted:
        return Interrupted(f"interrupted: {tried()} of {trials} trials are complete", result)

    # One cluster for all batches.
    try:
        with parallel(model, client) as connected, Progress(progress, "search") as show:
            while asked := _ask(study, space, trials, batch, seed, optuna):
                points = _points.plan(scenario, [params for _, params in asked], replications, policy)
                try:
                    table = collect(points, client=connected, progress=False)
                except KeyboardInterrupt as caught:
                    _tell(study, asked, objectives, getattr(caught, "partial", None))
                    raise
                except Exception as error:
                    _tell(study, asked, objectives, getattr(error, "partial", None))
                    error.partial = result  # type: ignore[attr-defined]
                    raise
                _tell(study, asked, objectives, table)
                if show is not None and show(tried(), trials) is False:
                    raise KeyboardInterrupt
    except KeyboardInterrupt:
        # At any moment: while points run, while trials are proposed, stored or shown.
        raise interrupted() from None
    return result


def _optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError:
        raise RunError("search requires optuna", hint="pip install optuna") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _objectives(minimise: Objective, maximise: Objective) -> dict[str, str]:
    found: dict[str, str] = {}
    for given, direction in ((minimise, "minimize"), (maximise, "maximize")):
        paths = (
            [given]
            if isinstance(given, str)
            else list(given.values() if isinstance(given, Mapping) else given)
        )
        for path in paths:
            if found.setdefault(path, direction) != direction:
                raise ValueError(f"{path}: expected one of minimise= and maximise=, found both")
    if not found:
        raise ValueError(
            'expected minimise= or maximise= with the path of a figure, such as "throughput_bps"'
        )
    return found


def _failed() -> Any:
    return _optuna().trial.TrialState.FAIL


def _values(key: str, values: Any) -> Any:
    """A range or a list of choices, with numbers of Python in place of those of numpy."""
    if not isinstance(values, (tuple, list)) and callable(getattr(values, "tolist", None)):
        values = _toml.plain(values)
    if isinstance(values, tuple):
        plain: Any = tuple(_toml.plain(one) for one in values)
        plain = (*_limits(plain[:2]), *plain[2:])
        numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in plain[:2])
        if len(plain) in (2, 3) and numbers and plain[0] < plain[1] and plain[2:] in ((), ("log",)):
            return plain
    elif isinstance(values, range) and values:
        return list(values)
    elif isinstance(values, list) and values:
        # A value that is written in two ways is one design: the first of them stands.
        choices: dict[Any, Any] = {}
        for choice in map(_toml.plain, values):
            found = _quantity.number(choice)
            choices.setdefault(repr(choice) if found is None else found[0], choice)
        return list(choices.values())
    raise ValueError(
        f'{key}: expected (low, high), (low, high, "log") or a list of choices, found {values!r}'
    )


def _limits(plain: tuple[Any, ...]) -> tuple[Any, ...]:
    """The limits of a range, those with units as numbers in SI base units."""
    found = [_quantity.number(one) for one in plain]
    words = {one[1] for one in found if one is not None} - {""}
    if not any(isinstance(one, str) for one in plain) or None in found or len(words) != 1:
        return plain
    return tuple(one[0] for one in found if one is not None)


def _identify(study: Any, plan: _points.Plan, space: Mapping[str, Any], objectives: dict[str, str]) -> None:
    """Hold a storage to one search: trials of another scenario would mislead the proposals."""
    identity = {"scenario": plan.key(), "space": repr(dict(space)), "objectives": repr(objectives)}
    for key, value in identity.items():
        found = study.user_attrs.get(key)
        if found is None:
            study.set_user_attr(key, value)
        elif found != value:
            raise RunError(
                f"the storage has a search with another {key}: found {found}, expected {value}",
                hint="give the search another name=, or use another storage",
            )


Design = dict[str, Any]


def _ask(
    study: Any, space: Mapping[str, Any], trials: int, batch: int, seed: int, optuna: Any
) -> list[tuple[int, Design]]:
    """The trials of the next batch without a result, none if the search is at its end.

    A batch is proposed from the results of those before it and from its own proposals. So that a search that was
    killed anywhere goes on as if it had not been, its batch is proposed in full before any of it runs, a trial is
    stored with all its parameters at once, and the batch is completed before the next one is proposed.
    """
    known = study.get_trials(deepcopy=False)
    running = [one for one in known if one.state == optuna.trial.TrialState.RUNNING]
    # The batch of the first trial without a result; trials have consecutive numbers.
    number = running[0].number if running else len(known)
    begin = number - number % batch
    told = sum(one.number >= begin for one in known) > sum(one.number >= begin for one in running)
    # A batch of which something was told was proposed in full, or was the last of a search of fewer trials.
    end = len(known) if told and running else min(begin + batch, trials)
    while len(known) < end:
        design = _propose(study, space, known, batch > 1, seed, optuna)
        if design is None:
            break
        study.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState.RUNNING,
                params=design,
                distributions={key: _distribution(values, optuna) for key, values in space.items()},
            )
        )
        known = study.get_trials(deepcopy=False)
    running = [one for one in known if one.state == optuna.trial.TrialState.RUNNING]
    return [(one.number, dict(one.params)) for one in running]


# Proposals of the estimator that may be designs that were tried, before one is drawn at random.
_PROPOSALS = 16
# Designs of a space that are listed to find those that were not tried.
_LISTED = 100_000


def _propose(
    study: Any, space: Mapping[str, Any], known: Sequence[Any], liar: bool, seed: int, optuna: Any
) -> Design | None:
    """A design that was not tried; None if all were. It depends on the seed and on the trials before it only."""
    tried = [dict(one.params) for one in known]
    number = len(known)
    blank = optuna.trial.create_trial(state=optuna.trial.TrialState.RUNNING)
    blank.number = number
    for attempt in range(_PROPOSALS):
        sampler = optuna.samplers.TPESampler(
            seed=(seed * 1_000_003 + number + attempt * 7_919_003) % 2**32, constant_liar=liar, multivariate=False
        )
        design = {
            key: sampler.sample_independent(study, blank, key, _distribution(values, optuna))
            for key, values in space.items()
        }
        if design not in tried:
            return design
    drawn = random.Random(f"{seed} {number}")
    choices = [_choices(values) for values in space.values()]
    if all(one is not None for one in choices) and math.prod(len(one or ()) for one in choices) <= _LISTED:
        listed = (dict(zip(space, one)) for one in itertools.product(*(one or () for one in choices)))
        rest = [one for one in listed if one not in tried]
        return drawn.choice(rest) if rest else None
    while (design := {key: _drawn(drawn, values) for key, values in space.items()}) in tried:
        pass
    return design


def _choices(values: Any) -> Sequence[Any] | None:
    """All values of a key, if they can be counted."""
    if isinstance(values, list):
        return values
    return range(values[0], values[1] + 1) if _is_whole(values) else None


def _drawn(drawn: random.Random, values: Any) -> Any:
    choices = _choices(values)
    return drawn.uniform(values[0], values[1]) if choices is None else drawn.choice(choices)


def _is_whole(values: Any) -> bool:
    return isinstance(values[0], int) and isinstance(values[1], int)


def _distribution(values: Any, optuna: Any) -> Any:
    of = optuna.distributions
    if isinstance(values, list):
        return of.CategoricalDistribution(values)
    low, high, log = values[0], values[1], values[2:] == ("log",)
    if _is_whole(values):
        return of.IntDistribution(low, high, log=log)
    return of.FloatDistribution(float(low), float(high), log=log)


def _tell(
    study: Any, asked: list[tuple[int, dict[str, Any]]], objectives: dict[str, str], table: Any
) -> None:
    """Report the trials that are done, in the order in which they were asked for."""
    for row in table if table is not None else ():
        number = asked[row["point"]][0]
        values = []
        for objective in objectives:
            named = [one for known in names_of(objective) for one in (known, path(known)) if one in row]
            name = named[0] if named else objective
            if name not in row:
                known = ", ".join(key for key in row if not key.endswith(".half_width"))
                raise FigureError(f"no figure `{objective}`", hint=f"there are {known}")
            values.append(math.nan if row[name] is None else float(row[name]))
        # A design without the figure, such as the delay of no packet, is not the best of any.
        has_all = not any(map(math.isnan, values))
        study.tell(number, values if has_all else None, state=None if has_all else _failed())
