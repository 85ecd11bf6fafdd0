#!/usr/bin/env python3
"""Checks what the documents say of this tree, and updates what can be counted.

    scripts/docs.py            links between the documents, pages of the site, and the walks of ARCHITECTURE.md
    scripts/docs.py --update   the same, and writes the line counts of the walks anew

A walk is a table behind `<!-- walk: NAME -->` whose rows begin with a file (relative to crates/) and its line count.
It names at most 25 files, each once. A count may be off by a tenth, so that not every change of a file is one of the
document. A link to a file, or to a heading of one, must have its target. Every document of docs/ is a page of the site:
it is in docs/SUMMARY.md, once.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WALKS = ROOT / "ARCHITECTURE.md"
SUMMARY = ROOT / "docs/SUMMARY.md"
FILES_MAX = 25
ROW = re.compile(r"^\| `([^`]+)` \| (\d+) \|", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the line counts of the walks anew")
    update = parser.parse_args().update
    wrong = walks(update) + [error for path in documents() for error in links(path)] + list(summary())
    for error in wrong:
        print(f"docs: {error}")
    sys.exit(1 if wrong else 0)


def documents():
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def pages():
    """The documents that are pages of the site."""
    return [path for path in documents() if path != SUMMARY]


def targets(text):
    """The links of a document that lead to files of the repository."""
    links = LINK.findall(CODE.sub("", text))
    return [link for link in links if "://" not in link and not link.startswith("mailto:")]


def from_root(path, target):
    """The target of a link as a path from the root of the repository."""
    return (path.parent / target).resolve().relative_to(ROOT).as_posix()


def summary():
    """Pages that SUMMARY.md lacks, or has twice."""
    named = [from_root(SUMMARY, target) for target in targets(SUMMARY.read_text())]
    for path in pages():
        times = named.count(path.relative_to(ROOT).as_posix())
        if times != 1:
            yield f"docs/SUMMARY.md: names {path.relative_to(ROOT)} {times} times; expected once"


def walks(update):
    """Checks the walks, or brings their counts up to date."""
    text = WALKS.read_text()
    wrong, found = [], 0
    for part in re.split(r"(?=<!-- walk: )", text)[1:]:
        name = part[len("<!-- walk: "):].split(" -->")[0]
        table = part[:part.find("\n\n")]
        rows = ROW.findall(table)
        found += 1
        if not 0 < len(rows) <= FILES_MAX or len({file for file, _ in rows}) != len(rows):
            wrong.append(f"{WALKS.name}: walk {name}: {len(rows)} files; expected 1 to {FILES_MAX}, each once")
        for file, told in rows:
            path = ROOT / "crates" / file
            if not path.is_file():
                wrong.append(f"{WALKS.name}: walk {name}: there is no file crates/{file}")
                continue
            lines = len(path.read_text().splitlines())
            if update:
                text = text.replace(f"| `{file}` | {told} |", f"| `{file}` | {lines} |")
            elif abs(lines - int(told)) > lines / 10:
                hint = "run scripts/docs.py --update"
                wrong.append(f"{WALKS.name}: walk {name}: crates/{file} has {lines} lines, not {told}; {hint}")
    if not found:
        wrong.append(f"{WALKS.name}: no walk: expected a table behind `<!-- walk: NAME -->`")
    if update:
        WALKS.write_text(text)
    return wrong


def links(path):
    """The links of a document whose targets do not exist."""
    for target in targets(path.read_text()):
        file, _, heading = target.partition("#")
        at = (path.parent / file) if file else path
        if not at.exists():
            yield f"{path.relative_to(ROOT)}: {target}: there is no such file"
        elif heading and at.suffix == ".md" and heading not in anchors(at.read_text()):
            yield f"{path.relative_to(ROOT)}: {target}: there is no such heading"


def anchors(text):
    """The headings of a document as GitHub names them in links."""
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)]
    return set(plain)


if __name__ == "__main__":
    main()
