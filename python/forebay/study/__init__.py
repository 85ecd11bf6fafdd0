"""Studies: scenarios and a ``study.py`` of comparisons, into figures, claims and a page.

A study is a directory with scenario files and ``study.py``, a module whose docstring is the title (first line)
and the introduction of the report, with one function. It may import modules beside it (``from .claims import
declare``)::

    from forebay.study import Study, bits

    def study(s: Study) -> None:
        s.control("one", says="One card only.", change=lambda one: one.set("processor.card.count", 1))
        four = s.claim(
            "four-cards",
            says="Four cards carry more than one.",
            quote="...",
            where="[H] section 4.2",
            parameters=[s.printed("processor.card.queue", 50, "figure 3")],
            band=s.band(1.05, None, "times", "more, by a margin above the noise of the runs"),
            control="one",
        )
        cards = [1, 2, 4]
        runs = s.sweep(s.scenario("host.toml"), "processor.card.count", cards)
        gbit = s.figures(runs, "throughput_bps", 1e-9)
        s.plot("Throughput", x="cards", y="Gbit/s", series=[s.series("finish-time", cards, gbit)])
        four.measured(gbit[2] / gbit[0], found=f"{bits(1e9 * gbit[2])} against {bits(1e9 * gbit[0])}")

``forebay.study.run("multi-accelerator")`` or ``forebay study run multi-accelerator --out DIR`` runs it:
once as it is, once under each control, and with other seeds for the intervals of the claims.
"""

from forebay.study.claims import Band, Claim, Control, Interval, Parameter
from forebay.study.errors import StudyError
from forebay.study.figures import against, correlation, falls, join, ranks, rises
from forebay.study.files import StudyFiles, find, shipped
from forebay.study.findings import Findings
from forebay.study.page import Series
from forebay.study.running import run
from forebay.study.runs import StudyRun
from forebay.study.scenarios import StudyScenario
from forebay.study.study import Study
from forebay.study.units import bits, digits, percent, time

__all__ = [
    "Band",
    "Claim",
    "Control",
    "Findings",
    "Interval",
    "Parameter",
    "Series",
    "Study",
    "StudyError",
    "StudyFiles",
    "StudyRun",
    "StudyScenario",
    "against",
    "bits",
    "correlation",
    "digits",
    "falls",
    "find",
    "join",
    "percent",
    "ranks",
    "rises",
    "run",
    "shipped",
    "time",
]
