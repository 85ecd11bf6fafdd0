"""Studies: claims, runs, pages, what is kept, and what is said when something is wrong."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from forebay import study
from forebay.errors import Error, FigureError, ScenarioError, StudyError
from forebay.study import Findings, Study, page
from forebay.study.command import main

HOST = """model = "host"
traffic = { source = "fixed", value = 100, packets = 2000, rate = "100 Mbit/s" }
[[processor]]
name = "cpu"
kind = "cpu"
block = "1 us"
"""
LINE = """model = "pipeline"
service = "exponential"
overflow = "block"
arrivals = { mean = "100 us" }
[[stage]]
name = "a.b"
time = "100 us"
buffer = 3
"""
CARD = """model = "inline-card"
payload = 1000
offered = "500 Mbit/s"
[[resource]]
name = "line"
rate = "1 Gbit/s"
"""
HEAD = '"""A title\n\nAn introduction\nover two lines.\n"""\nfrom forebay.study import Study\n\n'


@pytest.fixture
def own(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a study whose function has this body."""

    def write(body: str) -> Path:
        directory = tmp_path / "own"
        directory.mkdir(exist_ok=True)
        for name, text in (("host.toml", HOST), ("line.toml", LINE), ("card.toml", CARD)):
            (directory / name).write_text(text)
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        (directory / "study.py").write_text(f"{HEAD}def study(s: Study) -> None:\n{lines}")
        return directory

    return write


CLAIM = (
    'c = s.claim("a", says="More.", quote="q", where="[H] 1", parameters=[], '
    'band=s.band(1, 2, "times", "printed"))\n'
)
TURNS = (
    's.control("turns", says="Half as large.",\n'
    '    change=lambda one: one.set("traffic.value", one.value("traffic.value") / 2))\n'
)
RUN = 'h = s.scenario("host.toml")\nr = s.run(h)\n'


def run(directory: Path, threads: int = 2, quick: bool = False) -> Findings:
    return study.run(directory, threads=threads, quick=quick, progress=False)


# ---- Claims


@pytest.mark.parametrize(
    ("measured", "holds"),
    [
        ("1.0", True),
        ("2.0", True),
        ("0.999", False),
        ("[1.5, 2.001]", False),
        ("[1, 2]", True),
        ("float('nan')", False),
    ],
)
def test_a_claim_holds_if_every_value_lies_in_its_band(own, measured: str, holds: bool) -> None:
    findings = run(own(f'{CLAIM}{RUN}c.measured({measured}, found="found")'))
    (claim,) = findings.claims
    assert claim.holds is holds
    document = claim.document()
    assert document["kind"] == "claim" and document["holds"] is holds
    assert document["band"] == {"low": 1, "high": 2, "unit": "times", "source": "printed"}
    assert all(value is None or math.isfinite(value) for value in document["values"])


def test_observations_are_counted_apart(own) -> None:
    body = CLAIM + 'o = s.observation("b", says="Less.", band=s.band(None, 0, "", "guess"))\n' + RUN
    findings = run(own(body + 'c.measured(1, found="f")\no.measured(1, found="g")'))
    manifest = findings.manifest()
    assert (manifest["claims"], manifest["claims_held"]) == (1, 1)
    assert (manifest["observations"], manifest["observations_held"]) == (1, 0)
    assert findings.lines()[-1] == "1 claim: 1 holds; 1 observation: 1 fails; 1 runs"
    assert not findings.all_hold()
    frame = findings.to_pandas()
    assert list(frame["kind"]) == ["claim", "observation"]


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        (RUN + CLAIM, 11, "declared after the first run"),
        (CLAIM + CLAIM, 10, "there already"),
        (CLAIM + RUN, None, "declared and never measured: a"),
        (CLAIM + 'c.measured(True, found="f")', 10, "measured by numbers"),
        (CLAIM + 'c.measured([], found="f")', 10, "no values"),
        (CLAIM + "c.measured(1, found='')", 10, "no `found`"),
        (CLAIM + "c.measured(1, found='f')\nc.measured(1, found='f')", 11, "measured already"),
        ('s.band(None, None, "", "x")', 9, "no end"),
        ('s.band(2, 1, "", "x")', 9, "above its"),
        ('s.band(1, 2, "", " ")', 9, "no source"),
        ('s.assumed("key", 1, "")', 9, "assumed, and no source"),
        (CLAIM.replace('quote="q"', 'quote=""'), 9, "no quote"),
        (CLAIM.replace('quote="q"', 'quote="q", control="turns"'), 9, "control `turns`, which is not declared"),
        (CLAIM.replace('quote="q"', 'quote="q", basis="fitted"'), 9, "basis `fitted` and no reason"),
        (CLAIM.replace('quote="q"', 'quote="q", because="r"'), 9, "basis `test` and a reason"),
        (CLAIM.replace('quote="q"', 'quote="q", basis="guess"'), 9, "has the basis `guess`"),
        (TURNS + CLAIM + RUN + 'c.measured(1, found="f")', None, "no claim names the control turns"),
        (TURNS + TURNS, 11, "control `turns` is there already"),
        ('s.control("a", says=" ", change=lambda one: one)', 9, "needs a name and what it says"),
        (RUN + TURNS, 11, "declared after the first run"),
        (RUN + 's.repeat("orders", [lambda one: one])', 11, "declared after the first run"),
        ('s.repeat("orders", [])', 9, "there is no repetition"),
        (
            TURNS + CLAIM.replace('quote="q"', 'quote="q", control="turns", basis="input", because="r"'),
            11,
            "is no test, and names a control",
        ),
        ('s.scenario("hots.toml")', 9, "no scenario `hots.toml`"),
        ('s.run("host.toml")', 9, "only a scenario can be run"),
        ('s.series("a", [1, 2], [1])', 9, "2 places and 1 values"),
        ('s.table("t", ["a"], [[1, 2]])', 9, "2 cells for 1 columns"),
        ('s.plot("t", "x", "y", [])', 9, "has no series"),
        ('s.heat("t", "x", "y", [1], [1], [[1, 2]])', 9, "1 rows of 1 values"),
    ],
)
def test_an_error_names_the_line_of_the_study(own, body: str, line: int | None, words: str) -> None:
    directory = own(body)
    with pytest.raises(StudyError, match=words) as caught:
        run(directory)
    assert caught.value.line == line
    if line is not None:
        assert caught.value.file == str(directory / "study.py")
        assert str(caught.value).startswith(f"{directory / 'study.py'}:{line}: ")


def test_a_study_has_modules_of_its_own(own, tmp_path: Path) -> None:
    directory = own('from .more import declare\ndeclare(s)\ns.measured("a", 1, found="f")')
    more = "def declare(s):\n    " + CLAIM
    (directory / "more.py").write_text(more)
    findings = run(directory)
    assert findings.all_hold()
    # Out of the package as out of a directory: a study that was read needs its directory no longer.
    read = study.StudyFiles("read", dict(findings.study.files))
    assert study.run(read, progress=False).all_hold()
    assert not [name for name in sys.modules if name.startswith("forebay_study_")]
    main(["copy", "network-processor", str(tmp_path / "copy")])
    assert (tmp_path / "copy/claims.py").is_file()
    (directory / "more.py").write_text(more.replace('quote="q"', 'quote=""'))
    with pytest.raises(StudyError, match="no quote") as caught:
        run(directory)
    assert (caught.value.file, caught.value.line) == (str(directory / "more.py"), 2)
    (directory / "more.py").write_text("import fullstop")
    with pytest.raises(ModuleNotFoundError, match="fullstop"):
        run(directory)
    with pytest.raises(StudyError, match="there is no claim `b`") as caught:
        run(own(CLAIM + 's.measured("b", 1, found="f")'))
    assert caught.value.findings[0].expected == "a"


def test_errors_of_scenarios_and_figures_keep_their_kind(own) -> None:
    with pytest.raises(FigureError, match="no figure `cpu.lod`.*did you mean `cpu.load`"):
        run(own(RUN + 'r["cpu.lod"]'))
    with pytest.raises(ScenarioError, match="did you mean `rate`"):
        run(own('s.run(s.scenario("host.toml").set("traffic.rat", 1))'))
    with pytest.raises(Error, match="grows without limit"):
        run(own('s.run(s.scenario("line.toml").closed())'))
    with pytest.raises(NameError):
        run(own("nothing"))


# ---- Controls, bases and repetitions


def controlled(name: str, low: float) -> str:
    """A claim on the mean size, 140 bytes and 90 under the control."""
    return (
        f's.claim("{name}", says="More.", quote="q", where="[H] 1", parameters=[], control="turns",\n'
        f'    band=s.band({low}, None, "bytes", "printed"))\n'
    )


def test_a_claim_that_holds_under_its_control_is_not_decided(own) -> None:
    body = TURNS + controlled("sharp", 100) + controlled("blunt", 80) + controlled("wrong", 200) + RUN
    body += 'for id in ("sharp", "blunt", "wrong"):\n    s.measured(id, r["cpu.mean_size"], found=str(r["cpu.mean_size"]))'
    findings = run(own(body))
    sharp, blunt, wrong = findings.claims
    assert [one.verdict for one in findings.claims] == ["holds", "not decided", "fails"]
    assert sharp.under is not None and sharp.under.values == [90.0] and not sharp.under.holds
    assert blunt.holds and blunt.open == "it holds under its control too"
    # What was there keeps its meaning: the value lies in its band.
    document = blunt.document()
    assert document["holds"] is True and document["verdict"] == "not decided"
    assert document["control"]["figure"] == "90.0" and wrong.document()["control"]["name"] == "turns"
    assert findings.manifest()["claims_held"] == 2
    counts = {"claims": 3, "holds": 1, "fails": 1, "not_decided": 1, "without_control": 0}
    assert findings.manifest()["verdicts"]["claims"] == {"test": counts}
    assert findings.manifest()["controls"] == ["turns"]
    lines = findings.lines()
    assert "blunt: not decided, it holds under its control too" in lines
    assert "  Under its control: Half as large. 90.0" in lines
    assert lines[-1] == "3 claims: 1 holds, 1 fails, 1 not decided; 1 runs"
    assert list(findings.to_pandas()["verdict"]) == ["holds", "not decided", "fails"]
    page = findings.page()
    for words in ("not decided: it holds under its control too", "Control: Half as large. Under it it fails: 90.0"):
        assert words in page, words
    once = study.run(own(body), progress=False, once=True)
    assert [one.verdict for one in once.claims] == ["holds", "holds", "fails"] and once.manifest()["controls"] == []


def test_what_is_no_test_is_counted_apart(own) -> None:
    other = CLAIM.replace('s.claim("a"', 's.claim("b"').replace(
        'quote="q"', 'quote="q", basis="arithmetic", because="2 is printed."'
    )
    body = CLAIM + other + RUN + 'c.measured(3, found="f")\ns.measured("a", 1, found="f")'
    findings = run(own(body))
    verdicts = findings.manifest()["verdicts"]["claims"]
    assert (verdicts["test"]["holds"], verdicts["arithmetic"]["fails"]) == (1, 1)
    assert findings.lines()[-1] == "1 claim: 1 holds; 1 arithmetic claim: 1 fails; 1 runs"
    page = findings.page()
    assert "Arithmetic of the paper" in page and "2 is printed." in page


def test_the_interval_over_repetitions_decides(own) -> None:
    body = (
        's.repeat("sizes", [lambda one, more=more: one.set("traffic.value", 100 + more) for more in (20, 40)])\n'
        + "".join(
            f's.claim("{name}", says="More.", quote="q", where="[H] 1", parameters=[],\n'
            f'    band=s.band({low}, None, "bytes", "printed"))\n'
            for name, low in (("in", 100), ("on", 140), ("out", 400))
        )
        + RUN
        + 'for id in ("in", "on", "out"):\n    s.measured(id, r["cpu.mean_size"], found="f")'
    )
    findings = run(own(body))
    inside, on, out = findings.claims
    # 140, 160 and 180 bytes: their mean is 160, and half of the interval is 4.303 x 20 / sqrt(3).
    assert inside.interval is not None and (inside.interval.margin, inside.interval.held) == (60.0, 3)
    assert inside.interval.half_width == pytest.approx(49.68, rel=1e-3)
    assert [one.verdict for one in findings.claims] == ["holds", "not decided", "fails"]
    assert on.open == "its interval meets the end of the band"
    assert out.document()["interval"] == {
        "over": "sizes", "count": 3, "held": 0, "margin": -240.0, "half_width": pytest.approx(49.68, rel=1e-3),
    }  # fmt: skip
    assert findings.manifest()["repeated_over"] == "sizes"
    assert "Over 3 sizes the values lie in the band in 3" in findings.page()
    # Of a quick run one repetition is made.
    assert (quick := run(own(body), quick=True).claims[0].interval) is not None and quick.count == 2


def test_seeds_are_the_repetitions_of_what_is_drawn(own) -> None:
    body = CLAIM.replace("s.band(1, 2,", "s.band(None, 1e9,") + (
        'h = s.scenario("line.toml").set("duration", "50 ms")\n'
        'runs = s.sweep(h, "seed", [1, 2])\n'
        'c.measured([run["processed"] for run in runs], found="f")'
    )
    (claim,) = run(own(body)).claims
    assert claim.interval is not None and claim.interval.over == "seeds" and claim.interval.count == 5
    assert claim.interval.half_width > 0 and claim.verdict == "holds"
    # Where nothing is drawn, there is no interval.
    (claim,) = run(own(CLAIM + RUN + 'c.measured(r["cpu.load"] / r["cpu.load"], found="f")')).claims
    assert claim.interval is None and claim.verdict == "holds"


def test_another_reading_counts_all_claims(own) -> None:
    body = TURNS.replace("s.control", "s.reading") + CLAIM.replace("s.band(1, 2,", "s.band(100, None,") + RUN
    findings = run(own(body + 'c.measured(r["cpu.mean_size"], found=str(r["cpu.mean_size"]))'))
    assert findings.claims[0].verdict == "holds"
    assert findings.claims[0].document()["readings"][0]["values"] == [90.0]
    assert findings.manifest()["readings"] == [
        {"name": "turns", "says": "Half as large.", "held": 0, "claims": 1}
    ]
    assert "with turns 0 of 1 claims are in their bands" in findings.lines()[-1]
    assert "With it, 0 of 1 claims" in findings.page()


def test_a_policy_of_the_study_runs_under_its_controls(own) -> None:
    body = (
        "from forebay import Placement\n"
        "class First(Placement):\n"
        "    def choose(self, job, candidates):\n"
        "        return candidates[0]\n" + TURNS + controlled("sharp", 100)
        + 'r = s.simulate(s.scenario("host.toml"), First())\n'
        's.measured("sharp", r["cpu.mean_size"], found=s.under or "none")'
    )
    (claim,) = run(own(body)).claims
    assert claim.verdict == "holds" and claim.found == "none"
    assert claim.under is not None and (claim.under.values, claim.under.found) == ([90.0], "turns")


def test_a_part_that_no_wanted_claim_requires_is_left_out(own) -> None:
    body = TURNS + controlled("sharp", 100) + RUN
    body += (
        'print("report") if s.wants() else None\n'
        'if s.wants({0}):\n    s.measured("sharp", r["cpu.mean_size"], found="f")'
    )
    (claim,) = run(own(body.format('"sharp"'))).claims
    assert claim.verdict == "holds"
    with pytest.raises(StudyError, match="not measured under `turns`: sharp") as caught:
        run(own(body.format('"blunt"')))
    assert "s.wants" in caught.value.findings[0].hint


def test_helpers_over_lists_do_not_take_constants_for_trends() -> None:
    assert study.against([4, 3, 1]) == 0 and study.against([4, 5, 2]) == 0.5
    assert study.against([3, 3, 3]) == math.inf and study.against([1, 2]) == math.inf
    assert math.isnan(study.correlation([1, 2], [3, 3])) and study.correlation([1, 2, 3], [2, 4, 6]) == 1
    assert study.ranks([30, 10, 10, 20]) == [3, 0.5, 0.5, 2]


# ---- Runs


def test_runs_come_in_order_whatever_the_threads_and_equal_ones_are_made_once(own) -> None:
    body = CLAIM + (
        'h = s.scenario("host.toml")\n'
        'runs = s.sweep(h, "traffic.value", [10, 100, 1000, 10])\n'
        'grid = s.grid(h, "traffic.value", [10, 20], "seed", [1, 2])\n'
        "same = s.run(h)\n"
        'c.measured(1, found=str([run["cpu.mean_size"] for run in [*runs, *grid[1], same]]))'
    )
    one = run(own(body), threads=1)
    sizes = [50.0, 140.0, 1040.0, 50.0, 60.0, 60.0, 140.0]
    assert one.claims[0].found == str(sizes)
    assert [record.number for record in one.runs] == list(range(1, len(one.runs) + 1))
    assert len(one.runs) == 6
    many = run(own(body), threads=8)
    assert [record.record() for record in many.runs] == [record.record() for record in one.runs]


def test_pipelines_and_cards_are_simulated_and_solved(own) -> None:
    findings = run(
        own(
            CLAIM + 'line = s.scenario("line.toml")\n'
            "exact = s.run(line.solved())\n"
            'closed = s.run(line.closed().set("arrivals.mean", "200 us"))\n'
            'drawn = s.run(line.set("runs", 3).set("duration", "20 ms"))\n'
            'card = s.run(s.scenario("card.toml").solved())\n'
            "c.measured(1, found=str([exact['a.b.utilisation'], closed['a.b.mean_delay_s'],"
            " card['line.utilisation'], drawn['processed'] > 0]))"
        )
    )
    # M/M/1/3 at full load: each of four states a quarter of the time. M/M/1 at half: 200 us.
    values = json.loads(findings.claims[0].found.replace("True", "true"))
    assert values == [pytest.approx(0.75), pytest.approx(0.0002), pytest.approx(0.5), True]
    assert [record.record()["by"] for record in findings.runs] == [
        "solution",
        "closed-form",
        "simulation",
        "solution",
    ]
    page = findings.page()
    assert "closed form" in page and "solution" in page


def test_bounds_and_the_optimum_of_a_host(own) -> None:
    body = (
        'o = s.observation("b", says="In order.", band=s.band(0, None, "s", "by definition"))\n'
        'h = s.scenario("host.toml").set("traffic.packets", 4)\n'
        'best, low = s.optimum(h)["elapsed_s"], s.bound(h)["elapsed_s"]\n'
        'assert s.optimum(h.set("traffic.packets", 9)) is None\n'
        'o.measured([best - low, s.run(h)["elapsed_s"] - best], found="f")'
    )
    assert run(own(body)).all_hold()


def test_a_quick_run_is_shorter_and_says_so(own) -> None:
    directory = own(CLAIM + RUN + 'c.measured(1, found="f")')
    (directory / "host.toml").write_text(HOST.replace("2000", "200_000"))
    findings = run(directory, quick=True)
    assert findings.runs[0]["packets"] == 4000
    assert "quick run" in findings.lines()[-1] and "quick run" in findings.page()


# ---- What is kept


def test_a_directory_has_what_repeats_the_study(own, tmp_path: Path) -> None:
    body = (
        'c = s.claim("a", says="<b>", quote="The quote.", where="[H] figure 3",\n'
        '    parameters=[s.printed("x.y", "17.6 us", "table 1"), s.assumed("z", 1, "no trace")],\n'
        '    band=s.band(0, 1, "us", "printed 0.5"))\n'
        'r = s.sweep(s.scenario("host.toml").set("traffic.rate", 1), "traffic.value", [7, 700])\n'
        's.section("Section")\n'
        'ours = s.series("ours", [7, 700], s.figures(r, "cpu.mean_size"))\n'
        's.plot("Plot", x="size (B)", y="mean", series=[ours],\n'
        '    paper=[s.paper("printed", [7], [40], "figure 3")], counterpart="[H] figure 3")\n'
        's.plot("Bars", x="", y="mean", series=[s.series("ours", ["one", "two"], [1.0, 2.0])])\n'
        's.table("Table", ["a", "b"], [[1.23456, None], ["x", True]], counterpart="[H] table 1")\n'
        's.heat("Heat", "x", "y", [1, 2], [3], [[0.5, 2.0]], "note")\n'
        'c.measured(0.5, found="240,000")'
    )
    out = tmp_path / "out"
    findings = run(own(body))
    report = findings.keep(out)
    page = report.read_text()
    expected = (
        "&lt;b&gt;|The quote.|[H] figure 3|17.6 µs|(assumed: no trace)|0 to 1|printed 0.5|printed, figure 3|"
    )
    for words in f"{expected}Counterpart of [H] figure 3.|1.23|Heat".split("|"):
        assert words in page, words
    for wrong in ("http:", "https:", "src=", "@import", "NaN"):
        assert wrong not in page.replace('"http://www.w3.org/2000/svg"', "")
    assert "value = 7" in (out / "scenarios/0001.toml").read_text()
    results = json.loads((out / "results.json").read_text())
    assert results[0]["set"] == [["traffic.rate", "1"], ["traffic.value", "7"]]
    assert json.loads((out / "claims.json").read_text())[0]["parameters"][1]["whose"] == "assumed"
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["claims"] == 1 and manifest["runs"] == 2 and manifest["complete"]
    again = study.run(out / "study", progress=False)
    assert [one.record() for one in again.runs] == [one.record() for one in findings.runs]
    # Fewer runs: the scenarios of the longer study are gone.
    run(own(CLAIM + RUN + 'c.measured(1, found="f")')).keep(out)
    assert [path.name for path in sorted((out / "scenarios").iterdir())] == ["0001.toml"]


def test_results_overwrite_no_file_of_the_study(own, tmp_path: Path) -> None:
    directory = own(CLAIM + RUN + 'c.measured(1, found="f")')
    (directory / "results.json").write_text('{"measured": 1}')
    (tmp_path / "elsewhere").mkdir()
    os.symlink(directory / "results.json", tmp_path / "elsewhere" / "claims.json")
    for out in (directory, tmp_path / "elsewhere"):
        with pytest.raises(StudyError, match="is the same file as the study's"):
            study.run(directory, out=out, progress=False)
        assert main(["run", str(directory), "--out", str(out)]) == 2
        assert (directory / "results.json").read_text() == '{"measured": 1}'
        assert not (out / "report.html").exists()
    (directory / "results.json").unlink()
    # What an earlier run left is replaced, not cut off: its other names keep it.
    out = tmp_path / "out"
    study.run(directory, out=out, progress=False)
    os.link(out / "results.json", tmp_path / "copy.json")
    before = (tmp_path / "copy.json").stat().st_ino
    study.run(out / "study", out=out, progress=False)
    assert (out / "results.json").stat().st_ino != before and (tmp_path / "copy.json").stat().st_ino == before
    assert not [path for path in out.rglob(".*")]


# ---- The command


def test_the_command_lists_copies_and_runs(own, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    listed = capsys.readouterr().out
    assert "multi-accelerator" in listed
    assert main(["copy", "scaling", str(tmp_path / "copy")]) == 0
    assert (tmp_path / "copy/study.py").is_file()
    assert main(["copy", "scaling", str(tmp_path / "copy")]) == 2
    directory = own(CLAIM + RUN + 'c.measured(3, found="f", why="Because.")')
    capsys.readouterr()
    assert main(["run", str(directory)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "a: does not hold",
        "  More. ([H] 1)",
        "  f",
        "  Because.",
        "1 claim: 1 fails; 1 runs",
    ]
    assert main(["run", str(directory), "--strict", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["manifest"]["claims_held"] == 0 and document["claims"][0]["id"] == "a"
    assert main(["run", "nowhere"]) == 2
    assert "no study `nowhere`" in capsys.readouterr().err
    directory = own(RUN + "nothing")
    assert main(["run", str(directory)]) == 2
    said = capsys.readouterr().err
    assert "NameError" in said and "line 11" in said and "running.py" not in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_is_done(own, tmp_path: Path, number: signal.Signals) -> None:
    body = CLAIM + RUN + 'c.measured(1, found="f")\nprint("first", flush=True)\n'
    directory = own(body + 's.run(h.set("traffic.packets", 4_000_000_000))')
    command = [sys.executable, "-m", "forebay.study", "run", str(directory), "--out", str(tmp_path / "kept")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert child.stdout is not None and child.stdout.readline() == "first\n"
    time.sleep(0.5)
    child.send_signal(number)
    rest, _ = child.communicate(timeout=60)
    assert child.returncode == 130, rest
    assert "Interrupted: the results are incomplete." in rest
    kept = tmp_path / "kept"
    assert json.loads((kept / "manifest.json").read_text())["complete"] is False
    assert len(json.loads((kept / "results.json").read_text())) == 1
    assert json.loads((kept / "claims.json").read_text())[0]["id"] == "a"
    assert "Broken off" in (kept / "report.html").read_text()


def test_a_study_object_is_what_the_function_is_given(own) -> None:
    directory = own("assert isinstance(s, Study) and s.quick is False")
    assert isinstance(run(directory), Findings) and Study.__doc__


def test_a_folder_with_a_dot_is_a_study(tmp_path: Path) -> None:
    from forebay.study.files import StudyFiles
    from forebay.study.modules import imported

    files = StudyFiles("my.study-2", {"study.py": "from .part import NUMBER\n", "part.py": "NUMBER = 7\n"}, tmp_path)
    with imported(files) as module:
        assert module.NUMBER == 7


def test_cells_keep_zeros_that_are_digits() -> None:
    values = [1.4, 1.3998, 0.9999, 1.0, 72.03, 32, 1234.5, 0.25, 5e-9, True, None]
    assert [page.shown(value) for value in values] == [
        "1.4", "1.40", "1.00", "1", "72.0", "32", "1,235", "0.25", "5.00×10⁻⁹", "yes", "–",
    ]  # fmt: skip
