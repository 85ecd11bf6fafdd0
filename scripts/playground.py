#!/usr/bin/env python3
"""Puts the playground together: one HTML file that opens from a disk and asks no network for anything.

    scripts/playground.py DIR [OUT]    DIR: what wasm-bindgen wrote; OUT: target/playground/index.html

The page, its scripts and styles, the scenarios of the studies and the module, compressed, stand in that file.
"""

import base64
import gzip
import html
import json
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "crates/workbench/playground/page"
REPORT = ROOT / "crates/base/page/src"
MODELS = ["host", "pipeline", "inline-card"]
PARTS = ["base", "runner", "text", "keys", "design", "sweep", "papers", "film", "playground"]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    built = pathlib.Path(sys.argv[1])
    out = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else ROOT / "target/playground/index.html"
    module = (built / "forebay_playground_bg.wasm").read_bytes()
    data = {
        "version": tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"],
        "scenarios": scenarios(),
        "keys": {model: keys(model) for model in MODELS},
        "policies": policies(),
        "figures": json.loads((PAGE.parent / "figures.json").read_text()),
        "glue": (built / "forebay_playground.js").read_text(),
        "worker": (PAGE / "worker.js").read_text(),
        "wasm": base64.b64encode(gzip.compress(module, 9, mtime=0)).decode(),
    }
    # In a script no `<` may begin a tag.
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    style = "".join((folder / name).read_text() for folder, name in ((REPORT, "style.css"), (REPORT, "parts.css"), (PAGE, "playground.css")))
    pieces = {
        "style": style,
        "data": f"window.FOREBAY = {text};",
        "plot": (REPORT / "plot.js").read_text(),
        "playground": script(),
        "third_party": html.escape((built / "third-party.txt").read_text()),
    }
    page = re.sub(r"/\*\{(\w+)\}\*/", lambda hole: pieces[hole[1]], (PAGE / "index.html").read_text())
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page)
    small = len(gzip.compress(page.encode(), 9))
    print(f"playground: {out}: {len(page.encode()) / 1e6:.2f} MB, {small / 1e6:.2f} MB compressed, of which the module {len(data['wasm']) * 3 / 4e6:.2f} MB")


def script():
    """The page's own script: one function, so that nothing of it is global."""
    parts = [(PAGE / f"{name}.js").read_text() for name in PARTS]
    return '"use strict";\n(async () => {\n' + "\n".join(parts) + "})();"


def scenarios():
    """The studies' scenarios that the page runs, the host model's best known one first."""
    found = []
    for path in sorted(ROOT.glob("studies/*/*.toml")):
        text = path.read_text()
        model = tomllib.loads(text).get("model")
        if model not in MODELS:
            continue
        folder = path.parent.name
        found.append({"name": f"{folder}/{path.stem}", "folder": folder, "file": path.stem, "text": text})
    return sorted(found, key=lambda one: one["name"] != "policies/papers")


def schema_of(model):
    return json.loads((ROOT / f"docs/schema/{model}.schema.json").read_text())


def keys(model):
    """The keys of each section, with what they mean and an example."""
    schema = schema_of(model)
    sections = {"": schema, **schema["definitions"]}

    def of(properties):
        found = [(key, one) for key, one in properties.items() if "description" in one]
        return [{"key": key, "help": one["description"], "example": json.dumps(one["examples"][0]), "unit": unit(one)} for key, one in found]

    return {name: of(section["properties"]) for name, section in sections.items()}


def unit(one):
    """The unit of a value without one: the first that its pattern names."""
    patterns = [form.get("pattern", "") for form in one.get("anyOf", [])]
    named = [re.search(r"\(([A-Za-z/]+)\|[^()]*\)\?", pattern) for pattern in patterns]
    return next((found[1] for found in named if found), "")


def policies():
    schema = schema_of("host")
    return schema["definitions"]["scheduler"]["properties"]["policy"]["enum"]


if __name__ == "__main__":
    main()
