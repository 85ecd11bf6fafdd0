#!/usr/bin/env python3
"""Writes the reference of what a study may call from the docstrings of the package, into docs/reference/study.md.

    scripts/study_reference.py            writes it
    scripts/study_reference.py --check    says whether it is as the docstrings are

The modules are parsed and not imported, so that the compiled part of the package is not required.
"""

import ast
import inspect
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python/forebay/study"
PAGE = ROOT / "docs/reference/study.md"

# Headings, and what stands under them: module, class or None, names.
PARTS = [
    ("Claims and observations", "study", "Study", ["claim", "observation", "measured", "printed", "assumed", "band", "control", "reading", "repeat"]),
    ("Results of claims", "claims", "Claim", ["measured", "holds", "verdict", "open", "margin"]),
    ("Scenarios", "study", "Study", ["scenario", "file"]),
    ("Settings of scenarios", "scenarios", "StudyScenario", ["set", "value", "solved", "closed"]),
    ("Runs", "study", "Study", ["run", "sweep", "grid", "bound", "optimum", "simulate", "figures", "quick", "wants"]),
    ("The report", "study", "Study", ["section", "text", "series", "paper", "plot", "table", "heat"]),
    ("Figures as text", "units", None, ["digits", "percent", "bits", "time"]),
    ("Lists of figures", "figures", None, ["falls", "rises", "against", "correlation", "ranks", "join"]),
    ("Running a study from Python", "running", None, ["run"]),
    ("Findings", "findings", "Findings", ["all_hold", "manifest", "document", "page", "keep", "to_pandas", "runs_to_pandas"]),
]

ABOUT = """# What a study may call

<!-- Made by scripts/study_reference.py from the docstrings of python/forebay/study; do not edit. -->

A study is a directory with scenario files, `study.py` and a notebook. The docstring of `study.py` is the title (its first
line) and the introduction of the report, and its function `study(s)` declares claims, runs scenarios and describes the
report. `forebay study run DIRECTORY --out OUT` runs it and writes `report.html`, `results.json`, `claims.json`,
`manifest.json` and every resolved scenario; `forebay study copy NAME DIRECTORY` copies a shipped study to begin with. The
tutorial [A claim, a copy, a comparison](../tutorial-researcher.md) shows how.

`s` is the study. A run is a [`forebay.Run`](../python.md): `run["cpu.load"]` is a figure by its path, and an unknown path is
an error that lists the known ones. Figures are in SI base units. An error names the line of `study.py`, or of a module
beside it: the study is a package, and `from .claims import declare` imports from its `claims.py`.
"""


def main():
    text = page()
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text() != text:
            sys.exit(f"{PAGE.relative_to(ROOT)} is not what the docstrings say; to renew it: scripts/study_reference.py")
        return
    PAGE.write_text(text)


def page():
    parts = [ABOUT, example()]
    for heading, module, owner, names in PARTS:
        parts.append(f"## {heading}\n")
        body = ast.parse((PACKAGE / f"{module}.py").read_text()).body
        if owner is not None:
            body = next(one for one in body if isinstance(one, ast.ClassDef) and one.name == owner).body
        for name in names:
            # Of overloads the last, which has the words.
            found = [one for one in body if isinstance(one, ast.FunctionDef) and one.name == name][-1]
            parts.append(entry(found, owner))
    return "\n".join(parts).rstrip() + "\n"


def example():
    """The example of the package's own docstring."""
    words = inspect.cleandoc(ast.get_docstring(ast.parse((PACKAGE / "__init__.py").read_text())))
    lines = words.split("::\n", 1)[1].split("\n``forebay")[0]
    return "```python\n" + inspect.cleandoc(lines) + "\n```\n"


def entry(function, owner):
    """A heading with the call, and the docstring as Markdown."""
    before = {"Study": "s.", "Claim": "claim.", "StudyScenario": "scenario.", "Findings": "findings."}.get(owner, "")
    is_property = any(isinstance(one, ast.Name) and one.id == "property" for one in function.decorator_list)
    gives = f" -> {ast.unparse(function.returns)}" if function.returns is not None else ""
    call = f"{before}{function.name}" + ("" if is_property else f"({arguments(function.args)})")
    return f"### `{call}`\n\n{markdown(ast.get_docstring(function) or '')}{returned(gives)}"


def arguments(args):
    """The arguments with their defaults; types are said in words."""
    names = [one.arg for one in args.args if one.arg != "self"]
    defaults = [None] * (len(names) - len(args.defaults)) + [ast.unparse(one) for one in args.defaults]
    parts = [name if default is None else f"{name}={default}" for name, default in zip(names, defaults)]
    if args.kwonlyargs:
        parts.append("*")
        for one, default in zip(args.kwonlyargs, args.kw_defaults):
            parts.append(one.arg if default is None else f"{one.arg}={ast.unparse(default)}")
    return ", ".join(parts)


def returned(gives):
    kind = gives.removeprefix(" -> ")
    return f"\n\nGives `{kind}`.\n" if kind not in ("", "None") else "\n"


def markdown(text):
    """A docstring in numpydoc style: its sections as lists."""
    parts = re.split(r"\n\n?(\w[\w ]*)\n-{3,}\n", "\n" + text)
    lines = [paragraph(parts[0].strip())]
    for title, body in zip(parts[1::2], parts[2::2]):
        # The signature has the type of the returned value.
        items = [] if title == "Returns" else re.findall(r"^(\S[^\n]*)\n((?:    [^\n]*\n?|\n)*)", body + "\n", re.MULTILINE)
        rows = [f"- `{name.strip()}`: {paragraph(inspect.cleandoc(words))}" for name, words in items]
        if rows:
            lines.append(("" if title == "Parameters" else f"{title}:\n\n") + "\n".join(rows))
    return "\n\n".join(lines)


def paragraph(text):
    """Without line breaks, and with Markdown's code."""
    text = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
    text = re.sub(r":\w+:`([^`]+)`", r"`\1`", text)
    return re.sub(r"``([^`]+)``", r"`\1`", text)


if __name__ == "__main__":
    main()
