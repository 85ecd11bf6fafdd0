"""Placement policies in Python."""

import pickle
import traceback
from typing import Any

import pytest

import forebay as fb


def rank(one: fb.Candidate) -> tuple[float, bool, float, int]:
    """The order of the rule of finish time, ties included."""
    return one.finish, one.kind == "cpu", one.cost, one.index


class Greedy(fb.Placement):
    def choose(self, job: fb.Job, candidates: tuple[fb.Candidate, ...]) -> fb.Candidate | None:
        return min(candidates, key=rank)


class Always(fb.Placement):
    def __init__(self, name: str) -> None:
        self.name = name

    def choose(self, job: fb.Job, candidates: tuple[fb.Candidate, ...]) -> fb.Candidate | None:
        return next(one for one in candidates if one.name == self.name)


class Failing(fb.Placement):
    def __init__(self, after: int = 100) -> None:
        self.left = after

    def choose(self, job: fb.Job, candidates: tuple[fb.Candidate, ...]) -> fb.Candidate | None:
        self.left -= 1
        if self.left < 0:
            raise ZeroDivisionError("a mistake of the policy")
        return candidates[0]


def figures(run: fb.Run) -> dict[str, Any]:
    return {key: value for key, value in run.figures.items() if key != "resolved"}


@pytest.mark.parametrize("window", [1, 16])
def test_finish_time_in_python_is_the_rule_of_finish_time(host: fb.Scenario, window: int) -> None:
    host = host.set("scheduler.window", window)
    ours, theirs = host.simulate(), host.simulate(policy=Greedy())
    assert figures(theirs) == figures(ours)
    assert theirs.figures["resolved"]["scheduler"]["policy"] == "python: Greedy"


def test_no_choice_is_the_rule_of_finish_time(host: fb.Scenario) -> None:
    class Undecided(fb.Placement):
        def choose(self, job: fb.Job, candidates: tuple[fb.Candidate, ...]) -> None:
            return None

    assert figures(host.simulate(policy=Undecided())) == figures(host.simulate())


def test_an_object_is_the_policy_of_its_run_only(host: fb.Scenario) -> None:
    before = host.simulate()
    run = host.simulate(policy=Always("card.1"))
    assert run["card.1.packets"] == run["packets"] and run["cpu.packets"] == 0
    assert host.simulate().document == before.document
    assert host.simulate(policy=Always("cpu"))["cpu.packets"] == 3000


def test_a_policy_is_named_by_its_word(host: fb.Scenario) -> None:
    run = host.simulate(policy="round-robin")
    assert run.document == host.set("scheduler.policy", "round-robin").simulate().document


def test_job_and_candidates_have_what_is_predicted(host: fb.Scenario) -> None:
    seen: list[tuple[Any, ...]] = []

    class Watching(fb.Placement):
        def begin(self, processors: list[str]) -> None:
            assert processors == ["cpu", "card.0", "card.1"]

        def choose(self, job: fb.Job, candidates: tuple[fb.Candidate, ...]) -> None:
            assert [one.index for one in candidates] == [0, 1, 2]
            assert [one.name for one in candidates] == ["cpu", "card.0", "card.1"]
            assert [one.kind for one in candidates] == ["cpu", "accelerator", "accelerator"]
            for one in candidates:
                assert one.finish == pytest.approx(one.free_at + one.cost, rel=1e-12)
                assert one.free_at == pytest.approx(job.now + one.load, rel=1e-12)
                assert one.has_room in (True, False) and one.alpha == 1.0 and one.jobs >= 0
            assert job.arrived <= job.now and job.packets == 1 and job.service_class == 0
            # Of the CPU: 3 us and 920 ns for each block of 16 bytes.
            assert candidates[0].cost == pytest.approx(3e-6 + 920e-9 * -(-job.bytes // 16), rel=1e-9)
            seen.append((job.bytes, job.sa, job.arrived))

    run = host.simulate(policy=Watching(), packets=True)
    packets = run.packets.to_numpy()
    assert [one[0] for one in seen] == packets["bytes"].tolist()
    assert [one[1] for one in seen] == packets["sa"].tolist()
    assert [one[2] for one in seen] == pytest.approx((packets["arrived_ps"] / 1e12).tolist())


def test_an_exception_ends_the_run_with_its_traceback(host: fb.Scenario) -> None:
    with pytest.raises(fb.PolicyError) as caught:
        host.simulate(policy=Failing())
    error = caught.value
    assert isinstance(error.__cause__, ZeroDivisionError)
    frames = traceback.extract_tb(error.__cause__.__traceback__)
    assert frames[-1].name == "choose" and frames[-1].filename == __file__
    assert "a mistake of the policy" in str(error) and "Failing" in str(error)
    assert "in choose" in error.traceback
    assert pickle.loads(pickle.dumps(error)).traceback == error.traceback
    # The next run is as if nothing had been.
    assert host.simulate().seed == 7


@pytest.mark.parametrize("answer", [3, "cpu", object(), [1]])
def test_an_answer_that_is_no_candidate_is_said(host: fb.Scenario, answer: object) -> None:
    class Wrong(fb.Placement):
        def choose(self, job: fb.Job, candidates: tuple[fb.Candidate, ...]) -> Any:
            return answer

    with pytest.raises(fb.PolicyError) as caught:
        host.simulate(policy=Wrong())
    assert caught.value.expected == "one of the candidates, or None"
    assert type(answer).__name__ in (caught.value.found or "")


def test_a_candidate_of_another_run_is_none(host: fb.Scenario) -> None:
    kept: list[fb.Candidate] = []

    class Keeping(fb.Placement):
        def choose(self, job: fb.Job, candidates: tuple[fb.Candidate, ...]) -> fb.Candidate:
            kept.append(candidates[0])
            return kept[0]

    host.simulate(policy=Keeping())
    with pytest.raises(fb.PolicyError, match="not one of this job's candidates"):
        host.simulate(policy=Keeping())


def test_an_object_without_choose_is_refused(host: fb.Scenario) -> None:
    with pytest.raises(fb.PolicyError, match="choose"):
        host.simulate(policy=object())  # type: ignore[arg-type]
    with pytest.raises(fb.PolicyError, match="NotImplementedError"):
        host.simulate(policy=fb.Placement())


def test_policies_are_for_simulations_of_hosts(pipeline_file: Any) -> None:
    with pytest.raises(fb.PolicyError, match="host model"):
        fb.Scenario(pipeline_file).simulate(policy=Greedy())


class Counting(fb.Placement):
    """A state that must not pass from one run to the next."""

    def __init__(self) -> None:
        self.count = 0
        self.done = 0

    def choose(self, job: fb.Job, candidates: tuple[fb.Candidate, ...]) -> fb.Candidate:
        self.count += 1
        return candidates[self.count % len(candidates)]

    def finished(self, processor: int, jobs: int) -> None:
        self.done += jobs


def test_each_of_several_runs_has_its_own_copy(host: fb.Scenario) -> None:
    own = Counting()
    runs = host.simulate(policy=own, replications=3)
    assert own.count == 0
    alone = [host.simulate(policy=Counting(), seed=seed).document for seed in (7, 8, 9)]
    assert [run.document for run in runs] == alone  # type: ignore[union-attr]


def test_a_single_run_uses_the_object_itself_and_tells_it_of_finished_jobs(host: fb.Scenario) -> None:
    own = Counting()
    host.simulate(policy=own)
    assert (own.count, own.done) == (3000, 3000)


def test_a_policy_may_run_a_simulation(host: fb.Scenario) -> None:
    class Planning(fb.Placement):
        planned = False

        def choose(self, job: fb.Job, candidates: tuple[fb.Candidate, ...]) -> None:
            if not self.planned:
                self.planned = True
                assert host.simulate(policy=Always("cpu"))["cpu.packets"] == 3000

    assert figures(host.simulate(policy=Planning())) == figures(host.simulate())


def test_a_policy_has_no_effect_on_cores_and_is_refused() -> None:
    text = (
        'model = "host"\n[traffic]\nsource = "fixed"\nvalue = 400\nrate = "1 Gbit/s"\npackets = 100\n'
        '[cores]\n[[processor]]\nkind = "cpu"\nblock = "1 ns"\n'
    )
    cores = fb.Scenario.parse(text)
    assert cores.simulate().figures["cores"]["take"]["load"] == 0
    with pytest.raises(fb.PolicyError, match="no effect with"):
        cores.simulate(policy=Greedy())
