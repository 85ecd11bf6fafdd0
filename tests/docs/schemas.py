#!/usr/bin/env python3
"""The JSON Schemas of docs/schema accept every example of the repository, and no misspelt key.

    tests/docs/schemas.py

Examples are the TOML files of the repository and the blocks of TOML in the documents. Which schema is for a file is seen
by what stands in it.
"""

import copy
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "docs/schema"
# Files of others, of tools, and those that are wrong on purpose.
OTHERS = re.compile(r"(^|/)(target|\.git|\.cargo)/|Cargo\.toml$|(clippy|rustfmt|deny|book|area|functions)\.toml$"
                    r"|fuzz/seeds/sas_file/(wrong|small)\.toml$")
EXAMPLES_MIN = 30


def main():
    try:
        import jsonschema
        import tomllib
    except ImportError as error:
        print(f"schemas: SKIPPED, {error.name} is not installed")
        return
    schemas = {path.name.split(".")[0]: json.loads(path.read_text()) for path in SCHEMAS.glob("*.schema.json")}
    validators = {}
    for name, schema in schemas.items():
        jsonschema.Draft7Validator.check_schema(schema)
        validators[name] = jsonschema.Draft7Validator(schema)
    wrong, seen = [], dict.fromkeys(schemas, 0)
    for name, text in examples():
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            wrong.append(f"{name}: {error}")
            continue
        kind = kind_of(document)
        if kind is None:
            continue
        seen[kind] += 1
        for error in validators[kind].iter_errors(document):
            wrong.append(f"{name}: {kind}.schema.json: {'.'.join(map(str, error.absolute_path))}: {error.message[:200]}")
        for path, misspelt in misspellings(document):
            if validators[kind].is_valid(misspelt):
                wrong.append(f"{name}: {kind}.schema.json accepts the misspelt key {path}")
    for kind, times in seen.items():
        if not times:
            wrong.append(f"no example for {kind}.schema.json")
    if sum(seen.values()) < EXAMPLES_MIN:
        wrong.append(f"{sum(seen.values())} examples; expected at least {EXAMPLES_MIN}")
    for error in wrong:
        print(f"schemas: {error}")
    print(f"schemas: {', '.join(f'{times} {kind}' for kind, times in sorted(seen.items()))}")
    sys.exit(1 if wrong else 0)


def examples():
    """Name and text of every example."""
    for path in sorted(ROOT.rglob("*.toml")):
        name = path.relative_to(ROOT).as_posix()
        if not OTHERS.search(name):
            yield name, path.read_text()
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        for number, block in enumerate(re.findall(r"^```toml\n(.*?)^```", path.read_text(), re.M | re.S), 1):
            yield f"{path.relative_to(ROOT)}, block {number}", block


def kind_of(document):
    """The schema for a file with these sections."""
    if "model" in document:
        return document["model"]
    if "instruction" in document:
        return "instructions"
    if "outside" in document:
        return "gateway"
    return "sas" if "sa" in document else None


def misspellings(node, path=()):
    """The document with each key once misspelt."""
    yield from (((".".join(where)), changed) for where, changed in renamed(node, path))


def renamed(node, path):
    if isinstance(node, dict):
        for key in node:
            where = (*path, key)
            changed = copy.copy(node)
            changed[key + "x"] = changed.pop(key)
            yield where, changed
            for inner, value in renamed(node[key], where):
                yield inner, {**node, key: value}
    elif isinstance(node, list):
        for number, one in enumerate(node):
            for inner, value in renamed(one, (*path, str(number))):
                yield inner, [*node[:number], value, *node[number + 1:]]


if __name__ == "__main__":
    main()
