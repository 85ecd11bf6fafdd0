#!/usr/bin/env python3
"""Builds the documentation as a site with mdBook, and checks its links.

    scripts/site.py MDBOOK [OUT]    with this mdbook, into OUT (target/site)

The documents link to each other as files of the repository. mdBook wants all pages below one folder, so they are copied
to target/site-src with the paths that they have in the repository, and the links of SUMMARY.md are those of that copy.
Files that are no pages but linked (a unit file, a capture) are copied with them. The playground is part of the site if
it has been built (make playground).
"""

import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import docs

ROOT = docs.ROOT


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else ROOT / "target/site").resolve()
    source = ROOT / "target/site-src"
    stage(source)
    shutil.rmtree(out, ignore_errors=True)
    built = subprocess.run([sys.argv[1], "build", source, "--dest-dir", out], capture_output=True, text=True)
    if built.returncode:
        sys.exit(f"site: mdbook failed:\n{built.stdout}{built.stderr}")
    wrong = broken(out)
    for error in wrong:
        print(f"site: {error}")
    print(f"site: {len(list(out.rglob('*.html')))} pages, {len(wrong)} broken links: {out / 'index.html'}")
    sys.exit(1 if wrong else 0)


def stage(source):
    """Makes the folder from which mdBook builds."""
    shutil.rmtree(source, ignore_errors=True)
    pages = source / "src"
    for path in [*docs.pages(), *(ROOT / "docs").rglob("*.json"), *(ROOT / "docs").glob("*.svg")]:
        copy(path, pages)
    for path in docs.pages():
        copied = pages / path.relative_to(ROOT)
        # mdBook makes index.html of README.md, and does not say so to the links.
        text = re.sub(r"\]\(([^)\s]*/)?README\.md", r"](\1index.html", copied.read_text())
        for target in docs.targets(path.read_text()):
            file = path.parent / urllib.parse.unquote(target.partition("#")[0])
            if file.is_dir():
                # A folder has no page: its link becomes its words.
                text = re.sub(rf"\[([^\]]*)\]\({re.escape(target)}\)", r"\1", text)
            elif file.is_file() and file.suffix != ".md":
                copy(file.resolve(), pages)
        copied.write_text(text)
    playground = ROOT / "target/playground/index.html"
    if playground.is_file():
        (pages / "docs/playground").mkdir()
        shutil.copy(playground, pages / "docs/playground")
        page = pages / "docs/playground.md"
        heading, text = page.read_text().split("\n", 1)
        page.write_text(f"{heading}\n\n**[Open the playground](playground/index.html)**\n{text}")
    summary = docs.SUMMARY.read_text()
    moved = re.sub(r"\]\(([^)]+)\)", lambda link: f"]({docs.from_root(docs.SUMMARY, link[1])})", summary)
    (pages / "SUMMARY.md").write_text(moved)
    shutil.copy(ROOT / "docs/book.toml", source)
    shutil.copy(ROOT / "docs/site.css", source)


def copy(path, pages):
    to = pages / path.relative_to(ROOT)
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, to)


class Page(html.parser.HTMLParser):
    """The links of a page and the places in it that can be linked to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def broken(out):
    """Links of the site without a target, from every page."""
    pages = {path: Page(path.read_text()) for path in out.rglob("*.html")}
    wrong = []
    for path, page in sorted(pages.items()):
        # This one is shown at any address, and has a base of its own.
        if path.name in ("404.html", "toc.html"):
            continue
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("#!"):
                continue
            at = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            place = urllib.parse.unquote(parts.fragment)
            if not at.is_file():
                wrong.append(f"{path.relative_to(out)}: {link}: there is no such file")
            elif place and at in pages and place not in pages[at].ids:
                wrong.append(f"{path.relative_to(out)}: {link}: there is no such heading")
    return wrong


if __name__ == "__main__":
    main()
