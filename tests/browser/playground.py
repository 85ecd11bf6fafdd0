#!/usr/bin/env python3
"""Whether the playground says what the command says.

    tests/browser/playground.py FOREBAY [--engine chromium|firefox|node] [--drawn N] [--full] [--pictures DIR] [--speed]

The studies' scenarios and drawn ones are run by `forebay simulate --json` and by the module in the page of each browser
that is installed (or in Node.js): the documents must be equal to the byte. Files that the command's tests refuse, and lines
of the studies' scenarios made wrong, must be refused with the same messages, lines, columns and hints. In browsers the page is
used as well: run, stop, compare, the controls, sweeps, the papers' figures, the film, the link, the downloads; and a run in
which a figure was changed shows that this test would see it.

`--speed` prints tables of packets per second, memory and times from a cold start, and checks nothing.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import statistics
import sys
import tempfile
import time

from browser import ENGINES, FAINT, LABELS, Problem, find, launch

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "target/playground/index.html"
MODULE = ROOT / "target/playground/module"
PACKETS = 5000


class InBrowser:
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

CORES = SMALL[: SMALL.index("[[processor]]")] + '[cores]\nburst = 32\ntake = "300 ns"\ncomplete = "300 ns"\n[[processor]]\nname = "core"\nkind = "cpu"\ncount = 4\nblock = "90 ns"\n'


def write(page, design, text):
    page.ask(f"""(() => {{ const area = document.querySelector('[data-design="{design}"] textarea');
        area.value = {json.dumps(text)}; area.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()""")


def finished(page):
    page.until("!document.getElementById('run').disabled", "run to its end")
    return page.ask("document.getElementById('status').textContent")


def use(checks, browser, command, args):
    """Everything that a person does with the page, and how it looks meanwhile."""
    saved = command.folder / f"saved-{len(list(command.folder.glob('saved-*')))}"
    saved.mkdir()
    browser.downloads(saved)
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
        downloads(checks, page, command, saved)
        stop(checks, page)
        controls(checks, page)
        keys(checks, page)
        mistakes(checks, page)
        side_by_side(checks, page)
        ordered(checks, page)
        sweep(checks, page)
        papers(checks, page, command)
        by_keyboard(checks, page)
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


def saved_file(folder, ending):
    """The file that was saved, once it is whole."""
    for _ in range(200):
        found = [one for one in folder.iterdir() if one.name.endswith(ending) and one.stat().st_size]
        if found and not list(folder.glob("*.crdownload")) and not list(folder.glob("*.part")):
            return found[0].read_text()
        time.sleep(0.05)
    return ""


def downloads(checks, page, command, saved):
    """What is saved: the design, which the command runs to the same figures, the figures, and plots."""
    page.ask("document.querySelector('[data-design=\"a\"] .toml').click()")
    text = saved_file(saved, ".toml")
    checks.that(text == SMALL, f"the design that is saved is another one: {text}")
    page.ask("[...document.querySelectorAll('#results > .row button')].forEach((one) => one.click())")
    checks.that(saved_file(saved, ".json") == command.run(text).stdout, "the figures that are saved are not the command's of the saved design")
    table = saved_file(saved, "figures.csv").splitlines()
    checks.that(table and table[0] == "figure,value" and any(line.startswith("throughput_bps,") for line in table), f"figures as CSV: {table[:2]}")
    page.ask("[...document.querySelector('#results figure.plot').querySelectorAll('.tools button')].filter((one) => one.textContent === 'SVG').forEach((one) => one.click())")
    checks.that(saved_file(saved, ".svg").startswith(("<svg", "<?xml")), "no plot as SVG")


def stop(checks, page):
    # One without an end, and one whose packets do not fit into a browser's memory.
    for endless in (SMALL.replace("20_000", "4_000_000_000"), CORES.replace("20_000", "9_000_000")):
        write(page, "a", endless)
        page.ask("document.getElementById('run').click()")
        page.until("document.getElementById('progress').value > 0 || document.getElementById('status').textContent !== 'running …' || forebayWaited++ > 25"
                   .replace("forebayWaited++", "(window.forebayWaited = (window.forebayWaited ?? 0) + 1)"), "running")  # fmt: skip
        page.ask("document.getElementById('stop').click()")
        words = finished(page)
        checks.that(words == "stopped" or "ended early" in words, f"Stop does not stop: {words}")
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
    page.ask("""(() => { const of = (key) => [...document.querySelectorAll('[data-design="a"] .control')].find((one) => one.textContent.trim().startsWith(key));
        const range = of('alpha').querySelector('[type=range]'); range.value = 0.4; range.dispatchEvent(new Event('input')); range.dispatchEvent(new Event('change'));
        const beta = of('beta').querySelector('[type=text]'); beta.value = 17.6; beta.dispatchEvent(new Event('change')); })()""")
    biased = page.ask("document.querySelector('[data-design=\"a\"] textarea').value")
    checks.that(biased.count("alpha") == 1 and "[[processor]]\nbeta = \"17.6 us\"\nalpha = 2.51\nname = \"cpu\"" in biased, f"alpha and beta of the CPU: {biased}")
    units = page.ask("[...document.querySelectorAll('.control')].filter((one) => !one.querySelector('.unit, select')).map((one) => one.textContent.trim())")
    checks.that(set(units) == {"seed"}, f"controls without a unit: {units}")
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
    words = watched(page, 2)
    checks.that(re.search(r"Placed last: packet \d+ \(\d+ B, SA 0, ticket \d+\) on .* Predicted finish, with alpha and beta: cpu [\d.]+ us, card\.0 [\d.]+ us", words), f"the film says {words}")
    checks.that("Left last" in watched(page, 3) and "as soon as it was complete" in watched(page, 3), f"the film does not say why a packet left: {watched(page, 3)}")


def watched(page, button):
    """What the film says after two presses of a button."""
    press = f"film.querySelectorAll('button')[{button - 1}].click()"
    page.ask(f"(() => {{ const film = document.querySelector('.film'); film.open = true; {press}; {press}; }})()")
    return page.ask("document.querySelector('.film ul').textContent")


def ordered(checks, page):
    """Packets that wait for an earlier one of their SA, and cores with turnstiles."""
    write(page, "a", SMALL.replace('policy = "finish-time"', 'policy = "round-robin"\nkeep_order = true'))
    page.ask("document.getElementById('run').click()")
    finished(page)
    waited = re.compile(r"after it was complete, when ticket \d+ of its SA was complete too")
    checks.that(any(waited.search(watched(page, 3)) for _ in range(40)), f"no packet waits for its ticket: {watched(page, 3)}")
    write(page, "a", CORES)
    page.ask("document.getElementById('run').click()")
    finished(page)
    checks.that("idle at the free turnstile" in watched(page, 2), f"the film of cores says {watched(page, 2)}")
    write(page, "a", SMALL)


def scenario(name):
    return (ROOT / f"studies/{name}.toml").read_text()


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
    # Two parameters: a map of each figure that differs, for both designs.
    page.ask("""(() => { const key = document.getElementById('key-2');
        key.value = 'scheduler.window'; key.dispatchEvent(new Event('change')); document.getElementById('points-2').value = 3;
        document.getElementById('sweep-run').click(); })()""")
    page.until("!document.getElementById('sweep-run').disabled", "swept")
    maps = page.ask("[...document.querySelectorAll('#curves figure.heat')].map((one) => [one.querySelector('figcaption').textContent, one.querySelectorAll('rect').length])")
    said = page.ask("document.getElementById('status').textContent")
    checks.that(said == "24 runs" and len(maps) >= 4 and all(cells == 12 for _, cells in maps), f"a sweep of two parameters draws {maps}: {said}")
    checks.that(any(title.startswith("A ") for title, _ in maps) and any(title.startswith("B ") for title, _ in maps), f"maps of both designs: {maps}")


PAPER = "[H] figure 4"


def value_at(document, path):
    """A figure of a document by its path, as the package for Python finds it."""
    if isinstance(document, dict):
        lists = [one for name in ("processors", "classes", "stages", "servers", "resources") for one in document.get(name) or ()]
        for dot in [at for at, letter in enumerate(path) if letter == "."] + [len(path)]:
            step, rest = path[:dot], path[dot + 1 :]
            found = document[step] if step in document else next((one for one in lists if one.get("name") == step), None)
            if found is not None:
                return value_at(found, rest) if rest else found
    return None


def papers(checks, page, command):
    """A figure of a paper in one press: its points are the command's, and the paper's values are marked."""
    press = f"[...document.querySelectorAll('#paper-list .row')].find((one) => one.textContent.startsWith({PAPER[:3]!r})).querySelectorAll('button')"
    page.ask("(() => { const share = document.getElementById('share'); share.add(new Option('few', 0.001)); share.value = 0.001; })()")
    page.ask(f"[...{press}].find((one) => one.textContent.startsWith({PAPER[4:]!r})).click()")
    page.until("!document.getElementById('run').disabled && window.forebayPaper", "drawn")
    shown, wanted = page.ask("forebayPaper"), next(one for one in page.ask("FOREBAY.figures") if one["label"] == PAPER)
    documents = {}

    def compute(formula):
        if not isinstance(formula, list):
            return formula
        if formula[0] != "run":
            left, right = map(compute, formula[1:])
            return {"+": left + right, "-": left - right, "*": left * right, "/": left / (right or 1)}[formula[0]]
        run = wanted["runs"][formula[1]]
        if formula[1] not in documents:
            packets = [one for one in run["sets"] if one.startswith("traffic.packets=")] or ["=1000000"]
            sets = [*run["sets"], f"traffic.packets={round(int(packets[-1].partition('=')[2]) / 1000)}"]
            documents[formula[1]] = json.loads(command.run(scenario(run["scenario"]), sets).stdout)
        return value_at(documents[formula[1]], formula[2])

    own = [[compute(y) for y in line["ys"]] for line in wanted["plot"]["series"]]
    checks.that([line["ys"] for line in shown] == own, f"{PAPER}: points are not the command's: {shown} {own}")
    printed = page.ask("document.querySelectorAll('#paper figure.plot > svg .printed').length")
    legend = page.ask("[...document.querySelectorAll('#paper .legend li')].map((one) => one.textContent)")
    checks.that(printed and any(line.strip().startswith("printed") for line in legend), f"{PAPER}: {printed} printed values are marked: {legend}")
    checks.that(page.ask("document.querySelectorAll('#paper .said li').length") > 0, f"{PAPER}: nothing of what the paper says")


def by_keyboard(checks, page):
    """Tab reaches what can be used, and nothing that cannot be seen."""
    page.ask("(scrollTo(0, 0), document.querySelector('.pick').focus())")
    reached, hidden = set(), []
    for _ in range(40):
        page.key("Tab")
        one = page.ask("(() => { const one = document.activeElement; return [one.outerHTML.slice(0, 160), one.checkVisibility()]; })()")
        reached.add(one[0])
        hidden += [] if one[1] else [one[0]]
    checks.that(len(reached) >= 30 and not hidden, f"Tab reaches {len(reached)} things in 40 presses, hidden ones: {hidden}")


SPEED = [("policies/papers", ["traffic.packets=1000000"]), ("scaling/cores", ["traffic.packets=1000000"]),
         ("network-processor/busy-waiting", ["duration=10 s"]), ("inline-card/video", ["duration=5 s"])]  # fmt: skip
ROUNDS = 3


def speed(engines, command):
    """Packets per second of the command and of the pages, in turns, and what a page takes: medians."""
    for engine in engines:
        rows = [cold_start(engine) for _ in range(ROUNDS)]
        paint, ready, first = (statistics.median(column) for column in zip(*rows))
        print(f"{engine}, cold: first contentful paint after {paint:.0f} ms, ready after {ready:.0f} ms, first result after {first:.0f} ms")
    head = [f"{engine}{more}" for engine in engines for more in ("", ", plots")]
    print(f"{'scenario':32} {'packets':>10} {'command':>12}" + "".join(f" {one:>17}" for one in head))
    with contextlib.ExitStack() as stack:
        pages = [stack.enter_context(stack.enter_context(launch(engine, 120)).page(1280, 900)) for engine in engines]
        for name, sets in SPEED:
            native, found, memory = [], {one: [] for one in head}, {}
            for _ in range(ROUNDS):
                timing = json.loads(command.run(scenario(name), sets, timing=True).stdout)["timing"]
                native.append(timing["packets_per_s"])
                for engine, page in zip(engines, pages):
                    for more, request in (("", {}), (", plots", {"plots": True, "beginning": 1000})):
                        # A page of its own, so that the memory is that of one run.
                        page.open(PAGE)
                        page.until("document.documentElement.dataset.ready", "ready")
                        asked = f"forebayRun({json.dumps(scenario(name))}, {json.dumps({'name': 's.toml', 'sets': sets, **request})})"
                        packets, took, memory[engine + more] = page.ask(f"{asked}.then((one) => [one.results.packets, one.took_ms, one.memory])")
                        found[engine + more].append(1000 * packets / took)
            print(f"{name:32} {packets:>10,} {statistics.median(native):>12,.0f}" + "".join(f" {statistics.median(found[one]):>17,.0f}" for one in head))
            print(f"{'  memory of the module, MB':56}" + "".join(f" {memory[one] / 1e6:>17,.1f}" for one in head))


def cold_start(engine):
    """Milliseconds from the navigation of a new browser to its first paint, until it can run, and to the first scenario's results."""
    with launch(engine, 60) as browser, browser.page(1280, 900) as page:
        page.open(PAGE)
        page.until("document.documentElement.dataset.ready", "ready")
        took = page.ask("""(() => { const run = document.getElementById('run'), begin = performance.now(); run.click();
            return new Promise((done) => { const look = () => (run.disabled ? setTimeout(look, 2) : done(performance.now() - begin)); look(); }); })()""")
        paint = page.ask("performance.getEntriesByType('paint').find((one) => one.name === 'first-contentful-paint').startTime")
        ready = page.ask("window.forebayReady")
        return paint, ready, ready + took


def looks(checks, page, args):
    for width, dark in LOOKS:
        page.looks(width, 900, dark)
        page.settle()
        wide = page.ask(WIDE)
        checks.that(not wide and page.ask("document.documentElement.scrollWidth <= innerWidth"), f"wider than {width} pixels: {wide}")
        for what, expression in (("labels", LABELS), ("too little contrast", FAINT)):
            found = page.ask(expression)
            checks.that(not found, f"{width} pixels, {'dark' if dark else 'light'}, {what}: {found}")
        if args.pictures:
            # From the top, and from the papers' figures on.
            for part, away in (("", ""), ("-results", "#designs, .bar, #sweep { display: none !important }")):
                page.ask(f"(() => {{ document.getElementById('away')?.remove(); const away = document.head.appendChild(document.createElement('style')); away.id = 'away'; away.textContent = {away!r}; }})()")
                page.looks(width, 900, dark)
                page.looks(width, min(page.ask("document.documentElement.scrollHeight"), 6000), dark)
                page.settle()
                page.picture(args.pictures / f"playground-{args.engine}-{width}-{'dark' if dark else 'light'}{part}.png", False)
            page.ask("document.getElementById('away').remove()")
    # What is wrong is seen.
    page.ask("(document.querySelector('.intro').style.opacity = 0.3, document.querySelector('#results figure.plot > svg text').setAttribute('x', -900))")
    checks.that(page.ask(FAINT) and page.ask(LABELS), "text without contrast, or a label that is cut, is not seen")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("forebay", type=os.path.abspath)
    options.add_argument("--engine", choices=[*ENGINES, "node"], help="one in place of all browsers that are installed")
    options.add_argument("--drawn", type=int, default=50)
    options.add_argument("--broken", type=int, default=150)
    options.add_argument("--pictures", type=pathlib.Path, help="folder for pictures of the page")
    options.add_argument("--speed", action="store_true", help="only figures of speed, beside the command's")
    options.add_argument("--full", action="store_true", help="the studies' scenarios in full length")
    args = options.parse_args()
    if args.pictures:
        args.pictures.mkdir(parents=True, exist_ok=True)
    engines = [args.engine] if args.engine else ENGINES
    there = {engine: shutil.which("node") if engine == "node" else find(engine) for engine in engines}
    for engine in engines:
        if not there[engine]:
            print(f"playground: SKIPPED, {engine} is not installed (scripts/setup.sh browser)")
    if not PAGE.exists():
        print("playground: SKIPPED, it is not built (make playground)")
        return 0
    engines = [engine for engine in engines if there[engine]]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="forebay-playground-") as folder:
        command = Command(args.forebay, pathlib.Path(folder))
        if args.speed:
            speed(engines, command)
            return 0
        for args.engine in engines:
            checks = Checks()
            drive(checks, command, args)
            for line in checks.failed[:20]:
                print(f"playground: FAILED {args.engine}: {line}")
            print(f"playground: {args.engine}: {checks.passed} checks passed, {len(checks.failed)} failed")
            failed += len(checks.failed)
    return 1 if failed else 0


def drive(checks, command, args):
    """All checks in one engine."""
    if args.engine == "node":
        with InNode() as engine:
            equal(checks, engine, command, args)
            refuse(checks, engine, command, args)
        return
    with launch(args.engine, 180 if args.full else 60) as browser:
        with browser.page() as page:
            page.open(PAGE)
            page.until("document.documentElement.dataset.ready", "ready")
            equal(checks, InBrowser(page), command, args)
            refuse(checks, InBrowser(page), command, args)
        use(checks, browser, command, args)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Problem, subprocess.SubprocessError) as problem:
        print(f"playground: FAILED {problem}")
        sys.exit(1)
