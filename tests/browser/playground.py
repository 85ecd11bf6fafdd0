#!/usr/bin/env python3
"""Whether the playground says what the command says.

    tests/browser/playground.py FOREBAY [--engine chromium|node] [--drawn N] [--full] [--pictures DIR] [--speed]

The studies' scenarios and drawn ones are run by `forebay simulate --json` and by the module in the page (or in Node.js):
the documents must be equal to the byte. Files that the command's tests refuse, and lines of the studies' scenarios made
wrong, must be refused with the same messages, lines, columns and hints. In Chromium the page is used as well: run, stop,
compare, the controls, the link, the downloads; and a run in which a figure was changed shows that this test would see it.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

from chromium import Chromium, Problem, find

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "target/playground/index.html"
MODULE = ROOT / "target/playground/module"
PACKETS = 5000


class InChromium:
    def __init__(self, page):
        self.page = page

    def run(self, text, request):
        return self.page.ask(f"forebayRun({json.dumps(text)}, {json.dumps(request)})")


class InNode:
    def __enter__(self):
        command = ["node", ROOT / "tests/browser/playground.mjs", MODULE]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)

    def run(self, text, request):
        self.process.stdin.write(json.dumps({"text": text, "request": request}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise Problem("the module has ended in Node.js")
        return json.loads(line)


class Command:
    def __init__(self, forebay, folder):
        self.forebay, self.folder = forebay, folder

    def run(self, text, sets=(), command="simulate", timing=False):
        (self.folder / "s.toml").write_text(text)
        options = [part for one in sets for part in ("--set", one)]
        return subprocess.run(
            [self.forebay, command, "s.toml", "--json", *options, *(["--timing"] if timing else [])],
            cwd=self.folder, capture_output=True, text=True, timeout=300, env={**os.environ, "NO_COLOR": "1"},
        )  # fmt: skip


# ---- Scenarios.


def studies(full):
    """Name, text and what is set of each scenario of the studies that runs here."""
    for path in sorted(ROOT.glob("studies/*/*.toml")):
        text = path.read_text()
        model = re.search(r'^model = "([a-z-]+)"', text, re.MULTILINE)[1]
        if model == "embedded":
            continue
        sets = []
        if not full:
            sets = [f"traffic.packets={PACKETS}", "traffic.warm_up=0"] if model == "host" else ['duration=20 ms', 'warm_up=1 ms'] if model == "pipeline" else ["duration=5 ms"]
        yield f"{path.parent.name}/{path.stem}", text, sets


def drawn(number):
    """A host, cores or a pipeline whose keys are drawn."""
    chance = random.Random(number)
    pick, between = chance.choice, chance.randint
    if number % 4 == 3:
        stages = [f'[[stage]]\nname = "s{at}"\ntime = "{between(5, 60)} us"\nbuffer = {between(1, 12)}\n' for at in range(between(1, 5))]
        law = pick(["exponential", "constant"])
        return (f'model = "pipeline"\nseed = {between(0, 99)}\nduration = "{between(5, 30)} ms"\noverflow = "{pick(["drop", "block"])}"\n'
                f'[arrivals]\nmean = "{between(40, 90)} us"\ndistribution = "{law}"\n' + "".join(stages))  # fmt: skip
    sources = [
        'source = "uniform"\nmin = 40\nmax = 1500\n', 'source = "exponential"\nmean = 400\nmin = 20\nmax = 1500\n',
        f'source = "fixed"\nvalue = {between(40, 9000)}\n', 'source = "imix"\n', 'source = "paper"\n',
    ]  # fmt: skip
    text = f"model = \"host\"\nseed = {between(0, 1 << 40)}\n[traffic]\n{pick(sources)}packets = {between(500, PACKETS)}\nsas = {between(1, 200)}\n"
    text += f'rate = "{between(50, 2000)} Mbit/s"\noverhead = {between(0, 60)}\n'
    if number % 4 == 2:
        times = "".join(f'{key} = "{between(0, 400)} ns"\n' for key in ["take", "take_packet", "complete", "complete_packet"])
        flags = f"burst = {between(1, 64)}\nordered = {pick(['true', 'false'])}\nshared = {pick(['true', 'false'])}\n"
        cores = f'[[processor]]\nname = "core"\nkind = "cpu"\ncount = {between(1, 8)}\ninit = "{between(1, 900)} ns"\nblock = "{between(1, 90)} ns"\n'
        return text + "[cores]\n" + times + flags + cores
    for name in ["cpu", "card", "engine"][: between(1, 3)]:
        text += f'[[processor]]\nname = "{name}"\nkind = "{"cpu" if name == "cpu" else "accelerator"}"\ninit = "{between(1, 9000)} ns"\nblock = "{between(5, 900)} ns"\n'
        text += f"queue = {between(2, 60)}\n" + (f"count = {between(1, 4)}\n" if name != "cpu" else "")
        text += f"alpha = {between(10, 30) / 10}\n" if chance.random() < 0.5 else ""
    policy = pick(["finish-time", "adaptive-alpha", "round-robin", "shortest-queue"])
    return text + f'[scheduler]\npolicy = "{policy}"\ninput = {between(100, 2000)}\n'


# ---- Broken files.


def strings(source):
    """The string literals of Rust's source."""
    for match in re.finditer(r'r#"(.*?)"#|"((?:[^"\\]|\\.)*)"', source, re.DOTALL):
        raw, text = match.groups()
        yield raw if raw is not None else re.sub(r"\\(\n\s*|.)", lambda one: {"n": "\n", "t": "\t"}.get(one[1], "" if one[1][0] == "\n" else one[1]), text)


def broken_by_tests():
    """The files that crates/cli/tests refuse, from their tables."""
    source = (ROOT / "crates/cli/tests/bad_scenarios.rs").read_text()
    whole = next(strings(source[source.index("const WHOLE") :]))
    lists = {name: list(strings(body)) for name, body in re.findall(r"^const (\w+): &\[&str\] = &\[(.*?)\];", source, re.MULTILINE | re.DOTALL)}
    table = source[source.index("const KEYS") : source.index("fn forebay")]
    keys = re.findall(r'\("(\w+)", (?:(\w+)|&\[(.*?)\])\),', table, re.DOTALL)
    lines = whole.splitlines()
    for key, name, body in keys:
        at = next(number for number, line in enumerate(lines) if line.startswith(f"{key} ="))
        for value in lists[name] if name else strings(body):
            yield "\n".join([*lines[:at], f"{key} = {value}", *lines[at + 1 :]])
    for at, line in enumerate(lines):
        if " = " in line and not line.startswith("model"):
            yield "\n".join([*lines[:at], line.replace(" = ", "x = ", 1), *lines[at + 1 :]])
    source = (ROOT / "crates/cli/tests/broken_pipelines.rs").read_text()
    for name, rows in (("LINE", "ROWS"), ("CARD", "CARD_ROWS")):
        whole = next(strings(source[source.index(f"const {name}:") :]))
        table = source[source.index(f"const {rows}:") :]
        table = table[: table.index("\n];")]
        for row in re.split(r"\n    \((?=\s*SIMULATE,)|\n    \((?=\s*[A-Z]+,)", table)[1:]:
            if row.strip().startswith("SIMULATE") and '.csv' not in row:
                what, by = list(strings(row))[:2]
                yield whole.replace(what, by, 1)


WRONG = ["-1", "0", "2.5", '"many"', "true", "nan", '"1 fortnight"', "[1]", '""', '"x']


def broken_studies(count):
    """Lines of the studies' scenarios with other values."""
    chance, texts = random.Random(1), [text for _, text, _ in studies(False)]
    for _ in range(count):
        lines = chance.choice(texts).splitlines()
        at = chance.choice([number for number, line in enumerate(lines) if re.match(r"[a-z_]+ = ", line)])
        lines[at] = re.sub(r"=.*", f"= {chance.choice(WRONG)}", lines[at])
        # What is right all the same must not run for long.
        yield "\n".join(re.sub(r"^packets = .*", "packets = 1000", line) if number != at else line for number, line in enumerate(lines)) + "\n"


def squashed(text):
    """Without what a terminal's width decides."""
    return re.sub(r"[\s│╰─▶×]+", "", text)


def same_words(fault, stderr):
    """What of the findings the command does not say."""
    flat = squashed(stderr)
    findings = fault["findings"] or [fault]
    for one in findings:
        if squashed(one["message"]) not in flat:
            yield f"the command does not say {one['message']!r}"
        if one["help"] and squashed("help: " + one["help"]) not in flat:
            yield f"the command does not hint {one['help']!r}"
        if one.get("line") and f"[s.toml:{one['line']}:{one['column']}]" not in stderr:
            yield f"the command does not point at {one['line']}:{one['column']}"
    said = len(re.findall(r"^\s*×", stderr, re.MULTILINE)) - (len(findings) > 1)
    if said != len(findings):
        yield f"{len(findings)} findings, and the command has {said}"


# ---- Checks.


class Checks:
    def __init__(self):
        self.passed, self.failed = 0, []

    def that(self, right, what):
        if right:
            self.passed += 1
        else:
            self.failed.append(what)


def equal(checks, engine, command, args):
    """Documents of the engine and of the command."""
    cases = [*studies(args.full), *((f"drawn {number}", drawn(number), []) for number in range(args.drawn))]
    for name, text, sets in cases:
        told = command.run(text, sets)
        answer = engine.run(text, {"name": "s.toml", "sets": sets})
        if told.returncode == 0:
            document = answer.get("results", {}).get("document")
            checks.that(document is not None and document + "\n" == told.stdout, f"{name}: {differs(document, told.stdout) if document else answer}")
        else:
            compare_faults(checks, name, answer, told)
        if name == cases[0][0]:
            # A figure that is another one is seen.
            other = engine.run(text, {"name": "s.toml", "sets": [*sets, "seed=2"]})
            checks.that(other["results"]["document"] + "\n" != told.stdout, "another seed gives the same document")
    for name in ("network-processor/markov", "inline-card/bulk"):
        text = (ROOT / f"studies/{name}.toml").read_text()
        document = engine.run(text, {"name": "s.toml", "solve": True}).get("results", {}).get("document", "")
        told = command.run(text, command="solve").stdout
        checks.that(document + "\n" == told, f"{name} solved: {differs(document, told)}")
    print(f"playground: {len(cases)} scenarios compared")


def differs(ours, theirs):
    for one, other in zip(ours.splitlines(), theirs.splitlines()):
        if one != other:
            return f"{one.strip()} and not {other.strip()}"
    return "one of both is longer"


def compare_faults(checks, name, answer, told):
    fault = answer.get("fault")
    if fault is None:
        checks.that(False, f"{name}: is not refused, and the command says {told.stderr}")
        return
    wrong = list(same_words(fault, told.stderr))
    checks.that(not wrong, f"{name}: {'; '.join(wrong)}\n{told.stderr}")


def refuse(checks, engine, command, args):
    tables = list(broken_by_tests())
    if len(tables) < 230:
        raise Problem(f"only {len(tables)} broken files are found in the tables of the command's tests")
    refused = 0
    for text in [*tables, *broken_studies(args.broken)]:
        told = command.run(text)
        answer = engine.run(text, {"name": "s.toml"})
        if told.returncode == 0:
            checks.that(answer.get("results", {}).get("document", "") + "\n" == told.stdout, f"another document of\n{text}")
            continue
        refused += 1
        compare_faults(checks, text, answer, told)
    print(f"playground: {refused} broken files compared, {len(tables)} of the command's tests")


# ---- The page in use.

LOOKS = [(400, False), (1280, True), (400, True), (1280, False)]
WIDE = """[...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1
    && !one.closest('.scroll, .editor, pre, svg')).map((one) => one.tagName + '.' + one.className + ' ' + one.textContent.slice(0, 40)).slice(0, 3)"""
UNNAMED = """[...document.querySelectorAll('input, select, textarea, button')].filter((one) => !one.closest('template') && !(one.labels?.length
    || one.getAttribute('aria-label') || one.textContent.trim())).map((one) => one.outerHTML.slice(0, 80))"""
SMALL = 'model = "host"\nseed = 1\n[traffic]\nsource = "imix"\npackets = 20_000\nrate = "400 Mbit/s"\n[[processor]]\nname = "cpu"\nkind = "cpu"\ninit = "3 us"\nblock = "920 ns"\n[[processor]]\nname = "card"\nkind = "accelerator"\ncount = 2\ninit = "1 us"\nblock = "440 ns"\n[scheduler]\npolicy = "finish-time"\nwindow = 8\ninput = 1000\n'


def write(page, design, text):
    page.ask(f"""(() => {{ const area = document.querySelector('[data-design="{design}"] textarea');
        area.value = {json.dumps(text)}; area.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()""")


def finished(page):
    page.until("!document.getElementById('run').disabled", "run to its end")
    return page.ask("document.getElementById('status').textContent")


def use(checks, browser, args):
    """Everything that a person does with the page, and how it looks meanwhile."""
    with browser.page(1280, 900) as page:
        page.open(PAGE)
        page.until("document.documentElement.dataset.ready", "ready")
        # The first thing that a visitor presses.
        page.ask("document.getElementById('run').click()")
        words = finished(page)
        checks.that("packets/s" in words, f"the first scenario: {words}")
        write(page, "a", SMALL)
        page.ask("document.getElementById('run').click()")
        finished(page)
        plots = page.ask("[...document.querySelectorAll('#results figure.plot')].map((f) => f.querySelectorAll('svg .mark, svg .curve, svg .fill, svg .series').length)")
        checks.that(len(plots) >= 8 and all(plots), f"marks of the plots: {plots}")
        stop(checks, page)
        controls(checks, page)
        keys(checks, page)
        mistakes(checks, page)
        side_by_side(checks, page)
        sweep(checks, page)
        checks.that(not page.ask(UNNAMED), f"controls without a name: {page.ask(UNNAMED)}")
        looks(checks, page, args)
        link = page.ask("(document.getElementById('link').click(), new Promise((done) => setTimeout(() => done(location.href), 500)))")
        text = page.ask("document.querySelector('[data-design=\"b\"] textarea').value")
        checks.that(not page.trouble(), f"complaints: {page.trouble()}")
        checks.that(not page.requests(), f"asked the network for {page.requests()}")
    with browser.page(1280, 900) as page:
        page.open(PAGE)
        page.ask(f"location.hash = {json.dumps(link.partition('#')[2])}")
        page.until("document.querySelector('[data-design=\"b\"] textarea').value", "filled from the address")
        checks.that(page.ask("document.querySelector('[data-design=\"b\"] textarea').value") == text, "the link holds another scenario")


def stop(checks, page):
    write(page, "a", SMALL.replace("20_000", "4_000_000_000"))
    page.ask("document.getElementById('run').click()")
    page.until("document.getElementById('progress').value > 0 || document.getElementById('status').textContent !== 'running …'", "running")
    page.ask("document.getElementById('stop').click()")
    checks.that(finished(page) == "stopped", "Stop does not stop")
    write(page, "a", SMALL)
    page.ask("document.getElementById('run').click()")
    checks.that("packets/s" in finished(page), "no run after a stop")
    # A worker that throws, as one does whose memory has ended: it is said, and the next run has a new one.
    ended = page.ask("forebayRun(undefined, {})")
    checks.that("has ended early" in ended.get("fault", {}).get("message", ""), f"a worker that ended: {ended}")
    page.ask("document.getElementById('run').click()")
    checks.that("packets/s" in finished(page), "no run after a worker has ended")


def controls(checks, page):
    page.ask("""(() => { const of = (key) => [...document.querySelectorAll('[data-design="a"] .control')].find((one) => one.textContent.trim().startsWith(key));
        const range = of('rate').querySelector('[type=range]'); range.value = 0.5; range.dispatchEvent(new Event('input'));
        const select = of('policy').querySelector('select'); select.value = 'round-robin'; select.dispatchEvent(new Event('change')); })()""")
    text = page.ask("document.querySelector('[data-design=\"a\"] textarea').value")
    page.ask("""(() => { const area = document.querySelector('[data-design="b"] textarea'); area.value = 'model = "host"'; area.dispatchEvent(new Event('input'));
        const select = document.querySelector('[data-design="b"] .control select'); select.value = 'single'; select.dispatchEvent(new Event('change')); })()""")
    added = page.ask("document.querySelector('[data-design=\"b\"] textarea').value")
    checks.that(added == 'model = "host"\n\n[scheduler]\npolicy = "single"\n', f"a policy that is not in the text: {added}")
    checks.that('rate = "1260 Mbit/s"' in text and 'policy = "round-robin"' in text, f"the controls do not write: {text}")


def keys(checks, page):
    """The key at the cursor is explained, and an empty line offers those that its section lacks."""
    area, line = "document.querySelector('[data-design=\"a\"] textarea')", "document.querySelector('[data-design=\"a\"] .keys')"
    to = lambda at: page.ask(f"{area}.focus(), {area}.setSelectionRange({at}, {at}), {area}.dispatchEvent(new Event('keyup'))")
    write(page, "a", SMALL + "al")
    to(SMALL.index("rate"))
    checks.that(page.ask(f"{line}.textContent").startswith("rate: "), "the key at the cursor is not explained")
    to(len(SMALL) + 2)
    offered = page.ask(f"[...{line}.querySelectorAll('button')].map((one) => one.textContent)")
    checks.that(offered and all(one.startswith("al") for one in offered), f"offered are {offered}")
    page.ask(f"{line}.querySelector('button').click()")
    checks.that(page.ask(f"{area}.value").startswith(SMALL + offered[0] + " = "), "what is offered is not written")
    write(page, "a", SMALL)


def mistakes(checks, page):
    write(page, "a", SMALL.replace("400 Mbit/s", "400 Mbyte"))
    page.until("document.querySelector('[data-design=\"a\"] .faults').textContent", "refused")
    said = page.ask("document.querySelector('[data-design=\"a\"] .faults').textContent")
    checks.that("line 6, column 8" in said and "400 Mbyte" in said, f"a wrong rate: {said}")
    checks.that(page.ask("document.querySelector('.gutter .wrong').textContent") == "6", "the line is not marked")
    page.ask("document.querySelector('.faults a').click()")
    checks.that(page.ask("document.activeElement.selectionStart") == SMALL.index('"400 Mbit'), "the finding leads elsewhere")
    write(page, "a", SMALL)
    page.until("!document.querySelector('[data-design=\"a\"] .faults').textContent", "right again")


def side_by_side(checks, page):
    page.ask("document.getElementById('compare').click()")
    write(page, "b", SMALL.replace("count = 2", "count = 1"))
    page.ask("document.getElementById('run').click()")
    finished(page)
    head = page.ask("[...document.querySelectorAll('.figures th')].map((one) => one.textContent)")
    checks.that(head == ["figure", "A", "B", "B to A"], f"the table of two designs: {head}")
    same = page.ask("[...document.querySelectorAll('.figures tr')].find((row) => row.textContent.startsWith('packets'))?.lastChild.textContent")
    checks.that(same == "=", f"both designs do not see the same packets: {same}")
    page.ask("(() => { const film = document.querySelector('.film'); film.open = true; film.querySelectorAll('button')[1].click(); film.querySelectorAll('button')[1].click(); })()")
    words = page.ask("document.querySelector('.film p').textContent")
    checks.that("last placed" in words, f"the film says {words}")


def sweep(checks, page):
    page.ask("document.getElementById('sweep').open = true")
    page.until("document.getElementById('key').value", "ready to sweep")
    page.ask("""(() => { const key = document.getElementById('key');
        key.value = 'traffic.rate'; key.dispatchEvent(new Event('change')); document.getElementById('points').value = 4;
        document.getElementById('sweep-run').click(); })()""")
    page.until("!document.getElementById('sweep-run').disabled", "swept")
    plots = page.ask("document.querySelectorAll('#curves figure.plot').length")
    said = page.ask("document.getElementById('status').textContent")
    checks.that(plots >= 3, f"a sweep draws {plots} plots: {said}")


SPEED = [("policies/papers", ["traffic.packets=1000000"]), ("scaling/cores", ["traffic.packets=1000000"]),
         ("network-processor/busy-waiting", ["duration=10 s"]), ("inline-card/video", ["duration=5 s"])]  # fmt: skip


def speed(browser, command):
    """Packets per second of the command and of the page, in turns: medians of three."""
    with browser.page(1280, 900) as page:
        page.open(PAGE)
        page.until("document.documentElement.dataset.ready", "ready")
        marks = "performance.getEntriesByType('paint').find((one) => one.name === 'first-contentful-paint').startTime"
        page.settle()
        print(f"first contentful paint after {page.ask(marks):.0f} ms, ready after {page.ask('window.forebayReady'):.0f} ms")
        print(f"{'scenario':32} {'packets':>10} {'command/s':>12} {'page/s':>12} {'with plots':>12}")
        for name, sets in SPEED:
            text = (ROOT / f"studies/{name}.toml").read_text()
            native, plain, plots = [], [], []
            for _ in range(3):
                told = json.loads(command.run(text, [*sets], timing=True).stdout)
                native.append(told["timing"]["packets_per_s"])
                for request, into in (({}, plain), ({"plots": True, "beginning": 2000}, plots)):
                    asked = f"forebayRun({json.dumps(text)}, {json.dumps({'name': 's.toml', 'sets': sets, **request})})"
                    packets, took = page.ask(f"{asked}.then((one) => [one.results.packets, one.took_ms])")
                    into.append(1000 * packets / took)
            print(f"{name:32} {packets:>10,}" + "".join(f" {sorted(rates)[1]:>12,.0f}" for rates in (native, plain, plots)))


def looks(checks, page, args):
    for width, dark in LOOKS:
        page.looks(width, 900, dark)
        page.settle()
        wide = page.ask(WIDE)
        checks.that(not wide and page.ask("document.documentElement.scrollWidth <= innerWidth"), f"wider than {width} pixels: {wide}")
        if args.pictures:
            page.looks(width, min(page.ask("document.documentElement.scrollHeight"), 6000), dark)
            page.settle()
            page.picture(args.pictures / f"playground-{width}-{'dark' if dark else 'light'}.png", False)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("forebay", type=os.path.abspath)
    options.add_argument("--engine", choices=["chromium", "node"], default="chromium")
    options.add_argument("--drawn", type=int, default=50)
    options.add_argument("--broken", type=int, default=150)
    options.add_argument("--pictures", type=pathlib.Path, help="folder for pictures of the page")
    options.add_argument("--speed", action="store_true", help="only packets per second, beside the command's")
    options.add_argument("--full", action="store_true", help="the studies' scenarios in full length")
    args = options.parse_args()
    if args.pictures:
        args.pictures.mkdir(parents=True, exist_ok=True)
    checks = Checks()
    missing = "node is not installed" if args.engine == "node" and not shutil.which("node") else ""
    missing = missing or ("Chromium is not installed (scripts/setup.sh browser)" if args.engine == "chromium" and not find() else "")
    missing = missing or ("it is not built (make playground)" if not PAGE.exists() else "")
    if missing:
        print(f"playground: SKIPPED, {missing}")
        return 0
    with tempfile.TemporaryDirectory(prefix="forebay-playground-") as folder:
        command = Command(args.forebay, pathlib.Path(folder))
        if args.engine == "node":
            with InNode() as engine:
                equal(checks, engine, command, args)
                refuse(checks, engine, command, args)
        else:
            with Chromium(find(), seconds=180 if args.full else 60) as browser, browser.page() as page:
                if args.speed:
                    speed(browser, command)
                    return 0
                page.open(PAGE)
                page.until("document.documentElement.dataset.ready", "ready")
                equal(checks, InChromium(page), command, args)
                refuse(checks, InChromium(page), command, args)
                use(checks, browser, args)
    for line in checks.failed[:20]:
        print(f"playground: FAILED {line}")
    print(f"playground: {checks.passed} checks passed, {len(checks.failed)} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Problem, subprocess.SubprocessError) as problem:
        print(f"playground: FAILED {problem}")
        sys.exit(1)
