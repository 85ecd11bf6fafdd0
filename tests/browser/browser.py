"""Browsers without a window that tests drive over the real pages, and what a test may ask of a tab in any of them.

`chromium.py` and `firefox.py` have a `Browser` each, a context whose `page()` is a :class:`Tab`. They use Python's own
library alone and the browsers of the distribution: no driver is installed.
"""

import base64
import importlib
import os
import shutil
import signal
import subprocess
import time

ENGINES = ["chromium", "firefox"]

# What pages are asked about how they look. Labels of drawings that the window or a box around them cuts, or that stand on each
# other; what a box lets the reader scroll to is not cut.
LABELS = """[...document.querySelectorAll('figure > svg, figure .scroll > svg')].filter((svg) => svg.checkVisibility()).flatMap((svg) => {
    // A line has room above and below its letters, in each browser another one.
    const ink = ({ left, right, top, bottom, height }) => ({ left, right, top: top + 0.22 * height, bottom: bottom - 0.22 * height });
    const clips = (one) => getComputedStyle(one).overflowX !== 'visible';
    let around = svg.parentElement;
    while (around && !clips(around)) around = around.parentElement;
    const box = around?.getBoundingClientRect() ?? { left: 0, right: innerWidth }, end = box.right + (around ? around.scrollWidth - around.clientWidth : 0);
    const name = svg.closest('figure').querySelector('figcaption')?.textContent;
    const all = [...svg.querySelectorAll('text:not([transform])')].map((one) => [one.textContent, ink(one.getBoundingClientRect())]).filter(([text]) => text.trim());
    const cut = all.filter(([, one]) => one.left < box.left - 2 || one.right > end + 2).map(([text]) => `${name}: ${text} is cut`);
    const on = all.flatMap(([text, a], at) => all.slice(at + 1).filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom && b.top < a.bottom).map(([other]) => `${name}: ${text} on ${other}`));
    return cut.concat(on); }).slice(0, 5)"""
# Of plots and tables: two ticks of an axis with one text, a value under a mark, slanted names that begin left of the figure, titles of
# tables that go on beyond the window, one of up to nine columns that a wide window does not show, faint text on cells, and code that stands as it was typed.
DRAWN = """(() => { const box = (one) => one.getBoundingClientRect(), found = [], name = (one) => one.closest('figure')?.querySelector('figcaption b')?.textContent;
    for (const svg of document.querySelectorAll('figure.plot > svg')) {
        const ticks = [...svg.querySelectorAll(':scope > text.end:not([transform]), :scope > g > text.end:not([transform])')].map((one) => one.textContent);
        if (new Set(ticks).size < ticks.length) found.push(`${name(svg)}: ticks ${ticks.join(' ')}`);
        for (const text of svg.querySelectorAll('text.value')) { const a = box(text);
            if ([...svg.querySelectorAll('.printed')].map(box).some((b) => a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top < a.bottom - 3)) found.push(`${name(svg)}: a mark upon ${text.textContent}`); }
        for (const text of svg.querySelectorAll('text[transform]')) if (box(text).left < box(svg).left - 1) found.push(`${name(svg)}: ${text.textContent} is cut`); }
    for (const one of document.querySelectorAll('caption')) if (one.checkVisibility() && box(one.firstElementChild ?? one).right > innerWidth) found.push(`the title ${one.textContent} is cut`);
    for (const one of document.querySelectorAll('.scroll:has(> table)')) if (innerWidth > 1200 && !one.closest('details') && one.querySelectorAll('thead th').length < 10 && one.scrollWidth > one.clientWidth + 1) found.push(`${one.ariaLabel} is wider than the page`);
    const rgb = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((one) => (colour.startsWith('color(') ? 255 : 1) * one), light = (all) => all.map((one) => { const c = one / 255;
        return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }).reduce((sum, one, at) => sum + [0.2126, 0.7152, 0.0722][at] * one, 0);
    for (const cell of document.querySelectorAll('rect.cell + text')) { const share = cell.previousElementSibling.getAttribute('fill-opacity'), page = rgb(getComputedStyle(document.body).backgroundColor);
        const back = rgb(getComputedStyle(cell.previousElementSibling).fill).map((one, at) => share * one + (1 - share) * page[at]), [a, b] = [light(rgb(getComputedStyle(cell).fill)), light(back)].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) found.push(`${name(cell)}: ${cell.textContent} has a contrast of ${((a + 0.05) / (b + 0.05)).toFixed(2)}`); }
    if (document.body.innerText.includes('`')) found.push(document.body.innerText.match(/.{0,30}`.{0,30}/)[0]);
    return found.slice(0, 5); })()"""
# Text with less contrast to what is behind it than WCAG 2.2 asks for (1.4.3): 4.5 to 1, of large text 3 to 1.
FAINT = """(() => { const parts = (colour) => { const all = colour.match(/[\\d.]+/g).map(Number); return [...all.slice(0, 3).map((one) => (colour.startsWith('color(') ? 255 * one : one)), all[3] ?? 1]; };
    const light = (colour) => { const [r, g, b] = colour.map((one) => { const c = one / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const around = (one) => (one ? [one, ...around(one.parentElement)] : []);
    const behind = (one) => around(one).map((at) => parts(getComputedStyle(at).backgroundColor)).find((colour) => colour[3] > 0.5) ?? [255, 255, 255, 1];
    const opacity = (one) => around(one).reduce((product, at) => product * getComputedStyle(at).opacity, 1);
    return [...document.querySelectorAll('body *')].filter((one) => !one.closest('svg, option, script, style') && !one.matches(':disabled') && one.checkVisibility()
        && [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())).flatMap((one) => {
        const style = getComputedStyle(one), back = behind(one), own = parts(style.color), share = own[3] * opacity(one);
        const [a, b] = [light(own.slice(0, 3).map((part, at) => share * part + (1 - share) * back[at])), light(back.slice(0, 3))].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
        const large = parseFloat(style.fontSize) >= 24 || parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700;
        return ratio < (large ? 3 : 4.5) ? [`${one.tagName}.${one.className} ${one.textContent.trim().slice(0, 30)}: ${ratio.toFixed(2)}`] : []; }).slice(0, 5); })()"""


class Problem(Exception):
    """The browser did not do what it was told, or not in time."""


def find(engine):
    """The browser's program, or None."""
    return next((path for path in map(shutil.which, importlib.import_module(engine).NAMES) if path), None)


def launch(engine, seconds=30):
    """The browser as a context; what it is asked takes `seconds` at most."""
    return importlib.import_module(engine).Browser(find(engine), seconds)


def end(process, profile):
    """Ends a browser with all its processes, and takes its profile away."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sent)
            process.wait(10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
    for _ in range(20):
        shutil.rmtree(profile, ignore_errors=True)
        if not os.path.exists(profile):
            break
        time.sleep(0.1)


class Tab:
    """A tab. An engine has `looks`, `go`, `ask`, `point`, `key`, `screenshot`, `trouble` and `asked`."""

    url = ""

    def __init__(self, browser):
        self.browser = browser

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def open(self, path):
        """Opens a file and waits until it is loaded and drawn."""
        self.load(path)
        self.settle()

    def load(self, path):
        self.go("file://" + os.path.abspath(path))
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'", "loaded")

    def settle(self):
        """Waits for two frames: what was asked for is on the screen then."""
        self.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def until(self, expression, what):
        end = time.monotonic() + self.browser.seconds
        while not self.ask(expression):
            if time.monotonic() > end:
                raise Problem(f"{self.url}: not {what} in {self.browser.seconds} s")
            time.sleep(0.02)

    def move(self, x, y):
        self.point([("move", x, y)])

    def press(self, x, y):
        self.point([("move", x, y), ("down",), ("up",)])
        self.settle()

    def drag(self, start, end):
        parts = [("move", *[a + (b - a) * part for a, b in zip(start, end)]) for part in (0.3, 0.7, 1.0)]
        self.point([("move", *start), ("down",), *parts, ("up",)])
        self.settle()

    def picture(self, path, whole=True):
        """A PNG of the page, or of what its window shows."""
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.screenshot(whole)))

    def requests(self):
        """What the page asked for besides itself and what it holds."""
        return [url for url in self.asked() if url.split("#")[0] != self.url and not url.startswith(("data:", "blob:"))]
