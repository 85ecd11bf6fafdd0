#!/usr/bin/env python3
"""Every kind of report, made by the program and used in a real Chromium without a head.

    tests/browser/reports.py --forebay target/debug/forebay [--pictures DIR]

Of each page: it loads without a word of complaint and asks the network for nothing; in light and dark, at 1400
and 400 pixels, nothing is wider than the window and every plot has marks; the pointer and the arrow keys read
values; legends, zoom, logarithmic axes and downloads do what they say; and without scripts the drawings are
there all the same. A page that does all of it wrong shows that this test would see it.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from browser import DRAWN, FAINT, LABELS, Problem, find, launch

HOST = """model = "host"
seed = 1
[traffic]
source = "exponential"
mean = 400
min = 20
max = 1500
packets = 20000
rate = "400 Mbit/s"
sas = 10
[[processor]]
name = "cpu"
kind = "cpu"
init_ratio = 3
block_ratio = 3
[[processor]]
name = "card"
kind = "accelerator"
count = 2
init = "1 us"
block = "440 ns"
[scheduler]
input = 1000
"""

PIPELINE = """model = "pipeline"
duration = "50 ms"
[arrivals]
mean = "70 us"
distribution = "exponential"
[[stage]]
name = "receive"
time = "27.3 us"
buffer = 101
[[stage]]
name = "send"
time = "60 us"
buffer = 101
"""

# What makes each page: its name, the folder's command, whether the answer may be no.
PAGES = {
    "run": ["simulate", "host.toml", "--out"],
    "sweep": ["simulate", "host.toml", "--sweep", "processor.card.count=1,2,4", "--sweep", "traffic.rate=100 Mbit/s,200 Mbit/s,400 Mbit/s", "--replications", "3", "--out"],
    "replications": ["simulate", "host.toml", "--replications", "5", "--out"],
    "search": ["simulate", "host.toml", "--highest-rate", "--out"],
    "pipeline": ["simulate", "pipeline.toml", "--out"],
    "validate-model": ["validate-model", "--packets", "2000", "--rate", "200 Mbit/s", "--out"],
    "demo": ["demo", "--repeat", "1", "--comparison", "1", "--out"],
}  # fmt: skip


def make(forebay, work):
    """Makes all pages; which there are by name."""
    (work / "host.toml").write_text(HOST)
    (work / "pipeline.toml").write_text(PIPELINE)
    pages = {}
    for name, command in PAGES.items():
        done = subprocess.run([forebay, *command, name], cwd=work, capture_output=True, text=True, timeout=300)
        if done.returncode not in (0, 1):
            raise Problem(f"forebay {' '.join(command)} {name}: exit code {done.returncode}\n{done.stderr}")
        pages[name] = work / name / "report.html"
        if not pages[name].is_file():
            raise Problem(f"forebay {' '.join(command)} {name} made no report.html")
    return pages


class Checks:
    def __init__(self):
        self.failed, self.passed = [], 0

    def that(self, right, page, what):
        if right:
            self.passed += 1
        else:
            self.failed.append(f"{page}: {what}")


# What is drawn in a figure besides axes: shapes that stand for values, and lines through them.
MARKS = """[...document.querySelectorAll('figure')].filter((f) => f.querySelector('svg')).map((f) => ({
    title: f.querySelector('figcaption')?.textContent ?? '', words: f.querySelectorAll('svg text').length,
    marks: [...f.querySelectorAll('svg :is(rect, circle, polygon, path)')].filter((e) => !e.closest('.swatch, clipPath')
        && !e.matches('.hollow') && (e.getAttribute('d')?.length ?? 99) > 10).length }))"""
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
STROKES = "[...document.querySelectorAll('figure .fill')].slice(0, 8).map((e) => getComputedStyle(e).fill).join()"


def look(checks, name, page, path, width, dark, pictures):
    """A page as it stands; its colours."""
    at = f"{name} ({width} px, {'dark' if dark else 'light'})"
    page.looks(width, 900, dark)
    page.open(path)
    wide = page.ask("document.documentElement.scrollWidth - window.innerWidth")
    checks.that(wide <= 0, at, f"{wide} pixels wider than the window")
    figures = page.ask(MARKS)
    checks.that(figures, at, "no figures")
    for one in figures:
        checks.that(one["marks"] > 0 and one["words"] > 2, at, f"an empty figure: {one}")
    for script in (LABELS, DRAWN, FAINT):
        found = page.ask(script)
        checks.that(not found, at, "; ".join(found))
    if pictures:
        height = min(page.ask("document.documentElement.scrollHeight"), 7000)
        page.looks(width, height, dark)
        page.settle()
        page.picture(pictures / f"{name}-{width}-{'dark' if dark else 'light'}.png", False)
    return page.ask(BACKGROUND), page.ask(STROKES)


def quiet(checks, name, page):
    checks.that(not page.trouble(), name, f"complaints: {page.trouble()}")
    checks.that(not page.requests(), name, f"asked the network for {page.requests()}")


# The plot that is worked with: the last one with numbers on its x axis if there is any.
PICK = """(() => { const all = [...document.querySelectorAll('figure.plot')];
    const data = (f) => JSON.parse(f.querySelector('script.data').textContent);
    const lines = all.filter((f) => data(f).series[0]?.xs.length > 2 && typeof data(f).series[0].xs[0] === 'number');
    window.figure = lines.find((f) => data(f).series.length > 1) ?? lines[0] ?? all[0];
    window.svg = figure?.querySelector(':scope > svg'); svg?.scrollIntoView({ block: 'center' });
    return figure ? { lines: lines.includes(figure), series: data(figure).series.length } : null; })()"""
BOX = "(({ x, y, width, height }) => [x, y, width, height])(svg.getBoundingClientRect())"
ASKED = "(() => { const box = figure.querySelector('.asked'); return box.hidden ? '' : box.textContent; })()"


def work_with(checks, name, page, folder):
    """Hover, arrow keys, legend, zoom, logarithm, downloads, light and dark by hand."""
    picked = page.ask(PICK)
    if picked is None:
        return
    page.settle()
    x, y, width, height = page.ask(BOX)
    page.move(x + width * 0.55, y + height * 0.5)
    page.settle()
    said = page.ask(ASKED)
    checks.that(any(c.isdigit() for c in said), name, f"the pointer reads {said!r}")
    inside = page.ask("(({ top, bottom }) => [top, bottom])(figure.querySelector('.asked').getBoundingClientRect())")
    checks.that(y <= inside[0] and inside[1] <= y + height + 60, name, f"values stand at {inside}, the plot at {y} to {y + height}")
    page.move(x + width * 0.5, y - 60)
    page.ask("svg.focus()")
    page.key("ArrowRight")
    first = page.ask(ASKED)
    page.key("ArrowRight")
    second = page.ask(ASKED)
    checks.that(first and second, name, f"the arrow keys read {first!r} and {second!r}")
    if picked["lines"]:
        checks.that(first != second, name, "the arrow keys stay where they are")
        ticks = "[...svg.querySelectorAll('text')].map((t) => t.textContent).join()"
        before = page.ask(ticks)
        page.drag((x + width * 0.3, y + height * 0.4), (x + width * 0.7, y + height * 0.5))
        zoomed = page.ask(ticks)
        checks.that(zoomed != before, name, "a drag does not zoom")
        page.ask("svg.focus()")
        page.key("Escape")
        checks.that(page.ask(ticks) == before, name, "Escape does not show all again")
    if picked["series"] > 1:
        count = "svg.querySelectorAll('.series').length"
        before = page.ask(count)
        page.ask("figure.querySelector('.legend li').focus()")
        page.key("Enter")
        checks.that(page.ask(count) == before - 1, name, "the legend hides nothing")
        checks.that(page.ask("figure.querySelector('.legend li').getAttribute('aria-pressed')") == "false", name, "the legend does not say so")
        page.key("Enter")
        checks.that(page.ask(count) == before, name, "the legend shows nothing again")
    data = page.ask("JSON.parse(figure.querySelector('script.data').textContent)")
    page.ask("[...figure.querySelectorAll('.tools button')].forEach((b) => ['CSV', 'SVG', 'PNG'].includes(b.textContent) && b.click())")
    for ending in ("csv", "svg", "png"):
        file = wait_for(folder, ending)
        checks.that(file, name, f"no download of {ending}")
        if file and ending == "csv":
            rows = file.read_text().splitlines()
            values = sum(len(series["xs"]) for series in data["series"])
            checks.that(len(rows) == values + 1, name, f"{len(rows)} lines of CSV for {values} values")
        if file and ending == "svg":
            subprocess.run([sys.executable, "-c", "import sys, xml.dom.minidom as d; d.parse(sys.argv[1])", file], check=True)
        if file:
            file.unlink()
    before = page.ask(BACKGROUND)
    page.ask("document.querySelector('.theme button').click()")
    page.settle()
    checks.that(page.ask(BACKGROUND) != before, name, "the button for light and dark changes nothing")


def wait_for(folder, ending):
    for _ in range(100):
        found = list(folder.glob(f"*.{ending}"))
        if found and not list(folder.glob("*.crdownload")):
            return found[0]
        time.sleep(0.05)
    return None


def by_keyboard(checks, name, page):
    """Tab reaches what can be used, and nothing that cannot be seen."""
    page.ask("""window.stops = [...document.querySelectorAll('a[href], button, summary, [tabindex]')]
        .filter((e) => e.checkVisibility() && e.tabIndex >= 0); document.activeElement?.blur()""")
    there = page.ask("stops.length")
    reached = set()
    for _ in range(min(there, 25) + 2):  # once round also leaves the page
        page.key("Tab")
        reached.add(page.ask("stops.indexOf(document.activeElement)"))
    reached.discard(-1)
    checks.that(len(reached) >= min(there, 25), name, f"Tab reaches {len(reached)} of {min(there, 25)}")


def without_scripts(checks, name, page, path):
    page.open_without_scripts(path)
    for one in page.ask(MARKS):
        checks.that(one["marks"] > 0, f"{name} without scripts", f"an empty figure: {one}")


WRONG = """<!DOCTYPE html><html lang="en"><head><title>wrong</title></head><body style="width: 3000px">
<main><figure class="plot"><figcaption><b>f</b></figcaption><svg><text class="end" y="20">1</text><text class="end" y="60">1</text></svg></figure>`a`<img src="http://192.0.2.1/x.png"></main><script>nowhere();</script></body></html>"""


def would_see(browser, work):
    """The checks above, on a page that fails them all."""
    (work / "wrong.html").write_text(WRONG)
    checks = Checks()
    with browser.page() as page:
        look(checks, "wrong", page, work / "wrong.html", 1400, False, None)
        quiet(checks, "wrong", page)
    missing = [one for one in ("wider", "empty figure", "complaints", "network", "ticks 1 1") if not any(one in line for line in checks.failed)]
    if missing:
        raise Problem(f"a wrong page is not seen to be wrong: {missing} of {checks.failed}")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--forebay", required=True, type=os.path.abspath)
    options.add_argument("--only", help="pages, with commas between; studies by their names")
    options.add_argument("--pictures", type=pathlib.Path, help="folder for pictures of all pages")
    args = options.parse_args()
    if not find("chromium"):
        print("browser: SKIPPED, Chromium is not installed (scripts/setup.sh test)")
        return 0
    listed = subprocess.run([args.forebay, "study", "list"], capture_output=True, text=True, timeout=60, check=True).stdout
    # Python runs studies; of one that is nowhere it says so, if the package is there.
    tried = subprocess.run([args.forebay, "study", "run", "nowhere"], capture_output=True, text=True, timeout=60)
    if "installed" in tried.stderr:
        print("browser: SKIPPED the studies, the package of Python is not installed (scripts/python.sh develop)")
        listed = ""
    for study in (line.split()[0] for line in listed.splitlines()):
        PAGES[study] = ["study", "run", study, "--quick", "--out"]
    for name in set(PAGES) - set(args.only.split(",") if args.only else PAGES):
        del PAGES[name]
    if args.pictures:
        args.pictures.mkdir(parents=True, exist_ok=True)
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="forebay-reports-") as folder:
        work = pathlib.Path(folder)
        pages = make(args.forebay, work)
        downloads = work / "downloads"
        downloads.mkdir()
        with launch("chromium") as browser:
            browser.downloads(downloads)
            would_see(browser, work)
            for name, path in pages.items():
                with browser.page() as page:
                    colours = [look(checks, name, page, path, width, dark, args.pictures) for width, dark in ((400, False), (1400, True), (400, True), (1400, False))]
                    checks.that(colours[0][0] != colours[2][0], name, "dark looks like light")
                    checks.that(colours[0][1] != colours[2][1], name, "marks are alike in dark and light")
                    page.looks(1400, 900, False)
                    work_with(checks, name, page, downloads)
                    by_keyboard(checks, name, page)
                    quiet(checks, name, page)
                with browser.page() as page:
                    without_scripts(checks, name, page, path)
    for line in checks.failed:
        print(f"browser: FAILED {line}")
    print(f"browser: {len(pages)} reports, {checks.passed} checks passed, {len(checks.failed)} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Problem, subprocess.SubprocessError) as problem:
        print(f"browser: FAILED {problem}")
        sys.exit(1)
