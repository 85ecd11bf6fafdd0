#!/usr/bin/env python3
"""Writes docs/reference/python.md from the docstrings of the package; --check: says whether it is up to date.

It requires the native module beside the package, where `scripts/python.sh develop` puts it, and runs with the Python that has
the packages of the extras: target/python/bin/python3.
"""

import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import forebay as fb  # noqa: E402
PAGE = ROOT / "docs/reference/python.md"
HEAD = """# Python: classes and functions

This page is made from the docstrings of the package (`scripts/python_reference.py`); [python.md](../python.md) introduces it.
Times are in seconds, sizes in bytes and rates in bit/s, unless a value carries its unit as text ("50 us", "1 Gbit/s").
"""
ORDER = """Scenario Run Replications Estimate Until Packets sweep Table search Search highest_rate compare Difference warm_up Warmup Placement Job
Candidate Chain size_buffers Core Gateway Error Finding ScenarioError RunError PolicyError FigureError StudyError GatewayError
Interrupted""".split()
# Classes that are results: nobody makes an object of them.
RESULTS = {"Run", "Replications", "Packets", "Job", "Candidate", "Table", "Search", "Estimate", "Difference", "Warmup"}
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def main() -> int:
    text = page()
    if "--check" in sys.argv:
        if PAGE.exists() and PAGE.read_text() == text:
            return 0
        print("docs/reference/python.md is not up to date: target/python/bin/python3 scripts/python_reference.py")
        return 1
    PAGE.write_text(text)
    return 0


def page() -> str:
    names = [name for name in ORDER if name in fb.__all__]
    rest = [name for name in sorted(fb.__all__) if name not in names and not name.startswith("__")]
    parts = [HEAD]
    for name in names + rest:
        one = getattr(fb, name)
        if inspect.ismodule(one):
            parts.append(f"## forebay.{name}\n\n{prose(one.__doc__)}")
        elif inspect.isclass(one):
            parts.append(klass(name, one))
        else:
            parts.append(entry("##", f"forebay.{name}", one))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def klass(name: str, one: type) -> str:
    parts = [entry("##", f"forebay.{name}", one)]
    members = [(member, inspect.getattr_static(one, member)) for member in vars(one) if not member.startswith("_")]
    # What is a function comes after what is a value; those of the native module have no order of their own.
    if all(inspect.isgetsetdescriptor(value) for _, value in members):
        members.sort(key=lambda pair: pair[0])
    for member, value in sorted(members, key=lambda pair: callable(pair[1]) or hasattr(pair[1], "__func__")):
        if isinstance(value, property) or inspect.isgetsetdescriptor(value):
            said = (value.__doc__ or "").strip()
            if said:
                parts.append(f"- **`{member}`**: {flat(said)}")
        elif isinstance(value, (classmethod, staticmethod)) or inspect.isfunction(value):
            parts.append("\n" + entry("###", f"{name}.{member}", getattr(one, member)))
    return "\n".join(parts) + "\n"


def entry(level: str, name: str, one: object) -> str:
    last = name.split(".")[-1]
    call = "" if last in RESULTS else f"    {last}{signature(one)}\n\n"
    return f"{level} {name}\n\n{call}{prose(inspect.getdoc(one))}"


def signature(one: object) -> str:
    try:
        found = inspect.signature(one)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    own = [each for each in found.parameters.values() if each.name != "self"]
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in own]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def flat(text: str) -> str:
    return " ".join(markdown(text).split())


def markdown(text: str) -> str:
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    return text.replace("``", "`").replace("     # doctest: +SKIP", "").replace("    # doctest: +SKIP", "")


def prose(said: str | None) -> str:
    """A docstring in numpydoc's form as Markdown."""
    text = markdown(inspect.cleandoc(said or ""))
    first, *sections = SECTION.split(text)
    parts = [first.strip()]
    for title, body in zip(sections[::2], sections[1::2]):
        if title in ("Examples", "Notes", "Returns", "Raises"):
            lines = body.strip("\n")
            block = "\n".join("    " + line.strip(" ") if title == "Examples" else line for line in lines.split("\n"))
            parts.append(f"**{title}**\n\n" + (block if title in ("Examples", "Notes") else fields(lines)))
        else:
            parts.append(f"**{title}**\n\n{fields(body.strip(chr(10)))}")
    return "\n\n".join(part for part in parts if part) + "\n"


def fields(body: str) -> str:
    """Names with their descriptions as a list."""
    items: list[str] = []
    for line in body.split("\n"):
        if line and not line.startswith(" "):
            name, _, kind = line.partition(" : ")
            items.append(f"- `{name}`" + (f" ({kind})" if kind else ""))
        elif line.strip() and items:
            items[-1] += (": " if not re.search(r": .*", items[-1].split(")")[-1] or "-") else " ") + line.strip()
    return "\n".join(items)


if __name__ == "__main__":
    sys.exit(main())
