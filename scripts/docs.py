#!/usr/bin/env python3
"""Checks what the documents say of this tree, and updates what can be counted.

    scripts/docs.py            links between the documents, pages of the site, and the walks of ARCHITECTURE.md
    scripts/docs.py --update   the same, and writes the line counts of the walks anew

A walk is a table behind `<!-- walk: NAME -->` whose rows begin with a file (relative to crates/) and its line count.
It names at most 20 files, each once. A count may be off by a tenth, so that not every change of a file is one of the
document. A link to a file, or to a heading of one, must have its target. Every document of docs/ and hardware/ is a page of
the site: it is in docs/SUMMARY.md, once, and docs/README.md lists it. Every alert has its line in docs/runbooks.md; every
metric that a document names is one of docs/metrics.md. No text of the repository cites a specification that it does not
contain (`spec/...`), and a crate that cites a paper by a letter says which paper that is.
"""

import argparse
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
WALKS = ROOT / "ARCHITECTURE.md"
SUMMARY = ROOT / "docs/SUMMARY.md"
FILES_MAX = 20
ROW = re.compile(r"^\| `([^`]+)` \| (\d+) \|", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
METRIC = re.compile(r"(?<![\w.:/-])forebay_[a-z_]+(?![\w:/])")  # not a crate, `forebay_spd::Spd`
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the line counts of the walks anew")
    update = parser.parse_args().update
    wrong = walks(update) + [error for path in documents() for error in links(path)]
    for check in (summary, listed, alerts, metrics, citations, papers, publication):
        wrong += check()
    for error in wrong:
        print(f"docs: {error}")
    sys.exit(1 if wrong else 0)


def documents():
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("hardware/**/README.md")])


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


def listed():
    """Pages that docs/README.md does not list."""
    index = ROOT / "docs/README.md"
    named = {from_root(index, target.partition("#")[0]) for target in targets(index.read_text()) if target[0] != "#"}
    for path in pages():
        name = path.relative_to(ROOT).as_posix()
        if path != index and name not in named and not re.match(r"hardware/.+/", name):
            yield f"docs/README.md: {name} is not listed"


def alerts():
    """Alerts without a line in the runbooks, and lines without an alert."""
    defined = set(re.findall(r"^ *- alert: (\w+)$", (ROOT / "docs/alerts.yml").read_text(), re.MULTILINE))
    rows = re.findall(r"^\| (`Forebay.*?) \|", (ROOT / "docs/runbooks.md").read_text(), re.MULTILINE)
    explained = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    for name in sorted(defined - explained):
        yield f"docs/runbooks.md: no line for the alert {name} of docs/alerts.yml"
    for name in sorted(explained - defined):
        yield f"docs/runbooks.md: {name} is no alert of docs/alerts.yml"


def metrics():
    """Metrics that a document, a rule or the dashboard names and that the gateway does not have."""
    known = set(re.findall(r"`(forebay_\w+)`", (ROOT / "docs/metrics.md").read_text()))
    for path in [*documents(), ROOT / "docs/alerts.yml", ROOT / "docs/grafana.json"]:
        # Ansible's variables have the same prefix.
        if path.name in ("CHANGELOG.md", "ansible.md"):
            continue
        for name in sorted(set(METRIC.findall(path.read_text())) - known):
            # `forebay_pair_*` stands for several.
            if not (name.endswith("_") and any(metric.startswith(name) for metric in known)):
                yield f"{path.relative_to(ROOT)}: {name} is not a metric of docs/metrics.md"


def sources(*folders):
    """Texts that people read: of these folders, or of all."""
    for folder in folders or ("crates", "docs", "examples", "firmware", "fuzz", "hardware", "packaging", "python", "studies", "tests"):
        for path in sorted((ROOT / folder).rglob("*")):
            kinds = (".rs", ".py", ".toml", ".md", ".c", ".h", ".sh", ".v", ".ipynb", ".service", ".yml")
            if path.suffix in kinds and path.is_file() and "target" not in path.parts:
                yield path


def citations():
    """Texts that cite a specification which is not in the repository."""
    for path in [*sources(), *ROOT.glob("*.md")]:
        for found in re.findall(r"(?<![\w/-])spec/\w+", path.read_text(errors="replace")):
            yield f"{path.relative_to(ROOT)}: cites {found}, which the repository does not have; docs/models.md has the models"


def papers():
    """Crates that cite a paper by its letter and do not say which it is."""
    cited = re.compile(r"\\\[([HSNGE])\\\]")
    for manifest in sorted((ROOT / "crates").rglob("Cargo.toml")):
        source = manifest.parent / "src"
        head = source / "lib.rs"
        if not head.is_file():
            continue
        told = " ".join(line[3:] for line in head.read_text().splitlines() if line.startswith("//!"))
        for letter in sorted({letter for path in source.rglob("*.rs") for letter in cited.findall(path.read_text())}):
            if not re.search(rf"\\\[{letter}\\\],? ?(is|of|after|from|\()? ?[^.]*?(Castanier|Taddeo|Lin et|Bellows|Potlapally)", told):
                yield f"{head.relative_to(ROOT)}: its modules cite [{letter}], and the head does not say which paper that is"


# What a text may tell users only if project.toml says that it is so.
PROMISES = {
    "pypi": re.compile(r"pip install (?:'|\")?forebay\b(?!-)"),
    "crates-io": re.compile(r"cargo (?:add|install) (?!--path)forebay\S*"),
    "debian": re.compile(r"(?<!\.)apt(?:-get)? install forebay\b"),
}
UNREACHABLE = re.compile(r"[\w.+-]+@[\w.-]*\.example\b|https?://(?:[\w-]+\.)*forebay\.example\b")


def publication():
    """Addresses and install lines that do not work, because nothing is published yet (project.toml)."""
    project = tomllib.loads((ROOT / "project.toml").read_text())
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    if f"\nversion: {version}\n" not in (ROOT / "CITATION.cff").read_text():
        yield f"CITATION.cff: expected version: {version}, as in Cargo.toml"
    if project["contact"] and project["contact"] not in (ROOT / "SECURITY.md").read_text():
        yield "SECURITY.md: does not name `contact` of project.toml"
    texts = [*sources("crates", "docs", "packaging", "python", "studies"), *ROOT.glob("*.md"), *ROOT.glob(".github/**/*.yml")]
    for path in texts:
        if "tests" in path.parts or path.name == "CHANGELOG.md":
            continue
        text = path.read_text(errors="replace")
        for registry, promise in PROMISES.items():
            if not project["registries"][registry]:
                for found in promise.finditer(text):
                    yield f"{path.relative_to(ROOT)}: `{found[0]}`, and project.toml says that it is not in {registry}"
        for found in UNREACHABLE.findall(text):
            yield f"{path.relative_to(ROOT)}: {found} is no address; SECURITY.md and project.toml have the contact"


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
