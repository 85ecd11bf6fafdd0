#!/usr/bin/env python3
"""The site of the documentation in a real Chromium.

    tests/browser/site.py SITE [--pictures DIR]

Every page, at the width of a phone and of a desk, light and dark: no page is wider than the window, nothing is fetched from
elsewhere, no errors; and a search for a key finds its page.
"""

import argparse
import pathlib
import sys

from browser import Problem, find, launch

LOOKS = [(390, 844, False), (390, 844, True), (1280, 900, False), (1280, 900, True)]
# Those that say which parts are wider than the window.
WIDE = """[...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1
    && !one.closest('.table-wrapper, pre')).map((one) => one.tagName + ' ' + one.textContent.slice(0, 60)).slice(0, 3)"""
BACKGROUND = "getComputedStyle(document.documentElement).backgroundColor"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=pathlib.Path)
    parser.add_argument("--pictures", type=pathlib.Path)
    arguments = parser.parse_args()
    if not find("chromium"):
        print("site: SKIPPED, there is no Chromium")
        return
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    # The playground is no page of mdBook's; tests/browser/playground.py has its looks.
    pages = [path for path in sorted(arguments.site.rglob("*.html")) if path.name not in ("404.html", "toc.html") and path.parent.name != "playground"]
    wrong = []
    with launch("chromium") as browser:
        for width, height, dark in LOOKS:
            with browser.page(width, height, dark) as page:
                for path in pages:
                    wrong += look(page, path, arguments, width, dark)
        with browser.page(*LOOKS[2]) as page:
            wrong += search(page, arguments.site)
    for error in wrong:
        print(f"site: {error}")
    print(f"site: {len(pages)} pages, {len(LOOKS)} looks, {len(wrong)} problems")
    sys.exit(1 if wrong else 0)


def look(page, path, arguments, width, dark):
    name = path.relative_to(arguments.site)
    page.open(path)
    if arguments.pictures:
        shown = f"{name.with_suffix('')}".replace("/", "-")
        page.picture(arguments.pictures / f"{shown}-{width}-{'dark' if dark else 'light'}.png", whole=False)
    if wide := page.ask(WIDE):
        yield f"{name} is wider than {width}: {wide}"
    elsewhere = [url for url in page.requests() if not url.startswith("file:")]
    if elsewhere:
        yield f"{name} fetches {elsewhere[0]}"
    red, green, blue = (int(part) for part in page.ask(BACKGROUND).strip("rgba()").split(",")[:3])
    if (red + green + blue < 384) != dark:
        yield f"{name} is not {'dark' if dark else 'light'}"


def search(page, site):
    """Whether a key is found by mdBook's search."""
    page.open(site / "index.html")
    page.ask("document.getElementById('mdbook-search-toggle').click()")
    bar = "document.getElementById('mdbook-searchbar')"
    page.ask(f"{bar}.value = 'mss_clamp'; {bar}.dispatchEvent(new Event('input', {{ bubbles: true }}));"
             f"{bar}.dispatchEvent(new KeyboardEvent('keyup', {{ bubbles: true }}))")
    found = "[...document.querySelectorAll('#mdbook-searchresults a')].map((one) => one.getAttribute('href')).join(' ')"
    try:
        page.until(f"{found}.includes('reference/gateway.html')", "searched")
    except Problem as problem:
        yield f"a search for mss_clamp finds {page.ask(found)!r}: {problem}"


if __name__ == "__main__":
    main()
