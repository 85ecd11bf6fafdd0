#!/usr/bin/env python3
"""Writes when the bands of the studies' claims were set, into studies/NAME/bands.json.

    scripts/bands.py [STUDY...]     writes them, by the history of this checkout; takes about two minutes
    scripts/bands.py --check        says which bands are not recorded with their ends as they are

A band counts as set by the newest commit that has written a line of its declaration: of the call of `claim` or
`observation` that names it, as far as it says the band, or of the call of a helper that the claim's name is given to. A
change of a line's form counts too, so a band may be older than its date, and never younger. Constants that a declaration
names count with the lines that give them a value. The package is required (scripts/python.sh develop).
"""

import ast
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
STUDIES = ROOT / "studies"


def main():
    names = [one for one in sys.argv[1:] if not one.startswith("--")]
    check = "--check" in sys.argv[1:]
    wrong = []
    for study in sorted(path.parent for path in STUDIES.glob("*/study.py")):
        if names and study.name not in names:
            continue
        claims = declared(study)
        if check:
            wrong += [f"{study.name}: {one.id}" for one in claims if one.since is None]
            continue
        lines = {path: Lines(path) for path in sorted(study.glob("*.py"))}
        record = {}
        for claim in claims:
            date, commit = newest(claim.id, lines)
            band = claim.band
            record[claim.id] = {"low": band.low, "high": band.high, "unit": band.unit, "date": date, "commit": commit}
        (study / "bands.json").write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
        print(f"{study.name}: {len(record)} bands", file=sys.stderr)
    if wrong:
        sys.exit("not recorded with their ends: " + ", ".join(wrong) + "; to record them: scripts/bands.py")


def declared(study):
    """The claims and observations of a study, from a quick run."""
    import forebay.study

    return forebay.study.run(study, quick=True, once=True, progress=False).claims


class Lines:
    """A file of a study: where its claims are declared, and who wrote each line when."""

    def __init__(self, path):
        self.tree = ast.parse(path.read_text())
        self.blame = blame(path)
        self.constants = {}
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self.constants[node.targets[0].id] = node

    def of(self, name):
        """The lines that say the band of a claim; none if the file does not declare it."""
        for call in (node for node in ast.walk(self.tree) if isinstance(node, ast.Call)):
            if not any(isinstance(one, ast.Constant) and one.value == name for one in call.args):
                continue
            way = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            if way in ("measured", "wants"):
                continue
            given = [one.value for one in call.keywords if one.arg == "band"]
            part = given[0] if way in ("claim", "observation") and given else call
            # Ends and unit; the source of a band is prose.
            ends = part.args[:3] if isinstance(part, ast.Call) and part is not call else [part]
            names = {one.id for end in ends for one in ast.walk(end) if isinstance(one, ast.Name)}
            spans = [*ends, *(self.constants[one] for one in names if one in self.constants)]
            return {line for one in spans for line in range(one.lineno, one.end_lineno + 1)}
        return set()


def newest(name, files):
    """Day and abbreviated name of the newest commit that has written a line of a claim's band."""
    found = [file.blame[line] for file in files.values() for line in file.of(name)]
    if not found:
        found = [one for file in files.values() for one in file.blame.values()]
    when, commit = max(found)
    if set(commit) == {"0"}:
        sys.exit(f"the band of {name} is not committed")
    return time.strftime("%Y-%m-%d", time.gmtime(when)), commit[:8]


def blame(path):
    """By line from 1: time and name of the commit that wrote it."""
    text = subprocess.run(
        ["git", "blame", "--line-porcelain", "--", str(path)], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    lines, commit, when = {}, "", 0
    number = 0
    for line in text.splitlines():
        if line.startswith("\t"):
            lines[number] = (when, commit)
        elif line.startswith("committer-time "):
            when = int(line.split()[1])
        elif len(line.split(" ")[0]) == 40:
            commit, _, number = line.split(" ")[0], line.split(" ")[1], int(line.split(" ")[2])
    return lines


if __name__ == "__main__":
    main()
