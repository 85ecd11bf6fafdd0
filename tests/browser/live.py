#!/usr/bin/env python3
"""The live page in the browsers that are installed, of a gateway under traffic that drops some packets.

Runs in the laboratory, whose namespaces the kernel takes away:

    QUEUES=2 TUNNELS=6 scripts/lab.sh FOREBAY run tests/browser/live.py [--engine NAME] [--pictures DIR] [--seconds N]

The page is opened in the gateway's own namespace, used by pointer and keyboard, and looked at at two widths in both themes:
nothing is wider than the window, no label is cut or stands on another, text has contrast, every control has a name and every number its
unit.
`--seconds` is how long traffic passes before the pictures.
"""

import argparse
import pathlib
import subprocess
import sys
import time

from browser import ENGINES, FAINT, LABELS, Problem, find, launch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "gateway"))
from lab import HOST_B, program  # noqa: E402
from page import POLICY, enter, page as serve  # noqa: E402

ADDRESS = "http://127.0.0.1:9465/"
LOOKS = [(390, False), (390, True), (1300, False), (1300, True)]
# What stands beyond the window, or is cut by its own box.
WIDE = """[...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('.scroll, svg')
    || getComputedStyle(one).overflowX === 'hidden' && one.scrollWidth > one.clientWidth + 1)
    .map((one) => one.tagName + '.' + one.className + ' ' + one.textContent.slice(0, 40)).slice(0, 3)"""
# Boxes of text that stand on each other: tiles, cells, flows.
BOXES = """(() => { const all = [...document.querySelectorAll('.tiles dd, .tiles dt, .flows li b, .flows li span, td, th, h1, h2, h3, .legend li, .bar > *')]
    .filter((one) => one.offsetParent && one.textContent.trim()).map((one) => [one.textContent.slice(0, 30), one.getBoundingClientRect()]);
    return all.flatMap(([text, a], at) => all.slice(at + 1, at + 12).filter(([, b]) => a.left < b.right - 2 && b.left < a.right - 2 && a.top < b.bottom - 3 && b.top < a.bottom - 3)
        .map(([other]) => `${text} on ${other}`)).slice(0, 5); })()"""
UNNAMED = """[...document.querySelectorAll('input, select, button, svg[role], table, figure.plot > svg, .scroll')].filter((one) => !(one.labels?.length || one.textContent.trim()
    && one.tagName === 'BUTTON' || one.caption?.textContent || one.getAttribute('aria-label'))).map((one) => one.outerHTML.slice(0, 90))"""
# Numbers of tables without a unit beside them or in the head of their column; the factor alpha and peers' addresses have none.
UNITLESS = """[...document.querySelectorAll('td:not(:first-child)')].filter((one) => /^[\\d.,]+\\s?[kMGT]?$/.test(one.textContent) && !/packets|bit|jobs|alpha|peer/.test(one.dataset.head))
    .map((one) => one.dataset.head + ' ' + one.textContent).slice(0, 3)"""
DROPPED = """
import socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(1, 1_000_000):
    out.sendto((0x9999).to_bytes(4, "big") + n.to_bytes(4, "big") + bytes(60), ("192.0.2.1", 4500))
    time.sleep(0.05)
"""
TRAFFIC = """
import math, socket, sys, time
out, n = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0
begin = time.monotonic()
while True:
    for _ in range(20 + int(15 * math.sin((time.monotonic() - begin) / 7))):
        out.sendto(bytes(200 + 50 * (n % 20)), (sys.argv[1], 9))
        n += 1
    time.sleep(0.01)
"""


class Checks:
    def __init__(self):
        self.passed, self.failed = 0, []

    def that(self, right, what):
        if right:
            self.passed += 1
        else:
            self.failed.append(what)


def text(tab, selector):
    return tab.ask(f"document.querySelector({selector!r}).textContent")


def use(checks, tab):
    """What a person does with it."""
    tab.until("document.querySelectorAll('#sas tbody td').length > 10 && document.querySelectorAll('#plot-bits path.curve').length > 1", "filled")
    # The page's own script found the stream; its text changes by itself.
    before = text(tab, "#status")
    tab.until(f"document.querySelector('#status').textContent !== {before!r}", "live")
    checks.that(before.startswith("live"), f"the status says {before}")
    for selector, words in (("#tiles", "Outbound"), ("#drops", "in_no_states"), ("#drops", "forebay show sas"), ("#processors", "core"), ("#links", "udp-1"),
                            ("#sas", "to-peer"), ("#others", "Guard of the host"), ("#policies", "protect")):  # fmt: skip
        checks.that(words in text(tab, selector), f"{selector} does not say {words}")
    checks.that("10.1." not in tab.ask("document.documentElement.outerHTML"), "an address of a site is shown")
    checks.that(not tab.ask(UNITLESS), f"numbers without a unit: {tab.ask(UNITLESS)}")
    checks.that(not tab.ask(UNNAMED), f"without a name: {tab.ask(UNNAMED)}")
    # Pause by the key, and on by the button.
    tab.key("p")
    checks.that(text(tab, "#status") == "paused" and tab.ask("document.querySelector('#pause').getAttribute('aria-pressed')") == "true", "no pause")
    tiles = text(tab, "#tiles")
    time.sleep(2.2)
    checks.that(text(tab, "#tiles") == tiles, "what is paused changes")
    tab.ask("document.querySelector('#pause').click()")
    tab.until("document.querySelector('#status').textContent.startsWith('live')", "live again")
    # The order of the SAs.
    tab.ask("(() => { const order = document.querySelector('#order'); order.value = 'name'; order.dispatchEvent(new Event('change')); })()")
    names = tab.ask("[...document.querySelectorAll('#sas tbody td:first-child')].map((one) => one.textContent)")
    checks.that(names == sorted(names), f"SAs by name: {names}")
    # A plot by the keyboard; what is read stays while new points come.
    tab.ask("document.querySelector('#plot-bits > svg').focus()")
    tab.key("ArrowRight")
    asked = "document.querySelector('#plot-bits .asked')"
    checks.that(not tab.ask(f"{asked}.hidden") and "minutes from now" in tab.ask(f"{asked}.textContent"), "no value by the arrow key")
    read = tab.ask(f"{asked}.textContent")
    time.sleep(6)
    checks.that(tab.ask(f"{asked}.textContent") == read, "a value that is read goes away")
    tab.key("Escape")
    tab.ask("document.activeElement.blur()")
    # A series that is hidden stays so.
    tab.ask("document.querySelector('#plot-bits .legend li').click()")
    curves = "document.querySelectorAll('#plot-bits path.curve').length"
    path = "document.querySelector('#plot-bits path.curve').getAttribute('d')"
    few, before = tab.ask(curves), tab.ask(path)
    tab.until(f"{path} !== {before!r}", "longer by a point")
    time.sleep(0.3)
    checks.that(tab.ask(curves) == few, "a hidden series is back")
    tab.ask("document.querySelector('#plot-bits .legend li').click()")
    tab.ask("[...document.querySelectorAll('#plot-bits .tools button')].filter((one) => /CSV|SVG|PNG/.test(one.textContent)).forEach((one) => one.click())")
    time.sleep(0.5)


def lose(checks, tab):
    """The gateway goes away, and comes back."""
    serve(None)
    tab.until("document.body.classList.contains('stale')", "told that the connection is lost")
    checks.that("not connected" in text(tab, "#status"), f"without a gateway: {text(tab, '#status')}")
    serve('listen = "127.0.0.1:9465"')
    tab.until("!document.body.classList.contains('stale') && document.querySelector('#status').textContent.startsWith('live')", "connected again")


def looks(checks, tab, engine, pictures):
    for width, dark in LOOKS:
        tab.looks(width, 900, dark)
        tab.settle()
        time.sleep(1.5)
        checks.that(tab.ask("document.documentElement.scrollWidth <= innerWidth"), f"the page is wider than {width} pixels")
        for what, expression in (("wider than its place", WIDE), ("labels", LABELS), ("boxes", BOXES), ("too little contrast", FAINT)):
            found = tab.ask(expression)
            checks.that(not found, f"{width} pixels, {what}: {found}")
        if pictures:
            tab.looks(width, min(tab.ask("document.documentElement.scrollHeight"), 7000), dark)
            tab.settle()
            time.sleep(1.2)
            tab.picture(pictures / f"live-{engine}-{width}-{'dark' if dark else 'light'}.png", False)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pictures", type=pathlib.Path, help="folder for pictures of the page")
    options.add_argument("--engine", choices=ENGINES, help="one in place of all browsers that are installed")
    options.add_argument("--seconds", type=int, default=5)
    args = options.parse_args()
    engines = [args.engine] if args.engine else ENGINES
    for engine in engines:
        if not find(engine):
            print(f"live page: SKIPPED, {engine} is not installed (scripts/setup.sh browser)")
    engines = [engine for engine in engines if find(engine)]
    if not engines:
        return 0
    if args.pictures:
        args.pictures.mkdir(parents=True, exist_ok=True)
    enter("gw-a")
    talkers = [subprocess.Popen(program("host-a", TRAFFIC, HOST_B)), subprocess.Popen(program("host-b", TRAFFIC, "10.1.0.10")), subprocess.Popen(program("gw-b", DROPPED))]
    failed = 0
    try:
        for engine in engines:
            checks = Checks()
            serve(f'listen = "127.0.0.1:9465"\n{POLICY}')
            with launch(engine, seconds=60) as browser, browser.page(1300, 900) as tab:
                tab.go(ADDRESS)
                use(checks, tab)
                time.sleep(args.seconds)
                looks(checks, tab, engine, args.pictures)
                checks.that(not tab.trouble(), f"complaints: {tab.trouble()}")
                asked = {url for url in tab.requests() if not url.startswith(ADDRESS)}
                checks.that(not asked, f"asked others for {asked}")
                lose(checks, tab)
            for line in checks.failed:
                print(f"live page: FAILED {engine}: {line}")
            print(f"live page: {engine}: {checks.passed} checks passed, {len(checks.failed)} failed")
            failed += len(checks.failed)
    finally:
        for one in talkers:
            one.kill()
            one.wait()
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Problem, subprocess.SubprocessError) as problem:
        print(f"live page: FAILED {problem}")
        sys.exit(1)
