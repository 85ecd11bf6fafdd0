#!/usr/bin/env python3
"""Runs the commands of the tutorials as a reader types them.

    tests/docs/tutorials.py FOREBAY            every docs/tutorial-*.md
    tests/docs/tutorials.py FOREBAY FILE...    these files

The blocks of a tutorial run one after the other in one temporary directory, which is empty at first, with `forebay` on
the PATH. Each block runs in a shell of its own (`sh -e`), so the first command that fails ends the block. A comment
line before a block says how to treat it:

    <!-- run -->                         a ```sh block that must end with exit code 0 within 60 s
    <!-- run: exit 1 -->                 the same with exit code 1
    <!-- run: timeout 180 -->            the same with another time limit, in seconds; also `exit 1, timeout 180`
    <!-- not run: REASON -->             a ```sh block that is shown only, for example because it requires root
    <!-- output -->                      a ```text block: each line must be in the output of the last block that ran,
                                         in this order; other lines, such as those for which `...` stands, may be between

Every ```sh block needs a comment of its own, so that no command is left out by mistake.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TIMEOUT = 60
MARK = re.compile(r"^<!-- (run|not run|output)(?:: (.*?))? -->$")
OPTION = re.compile(r"^(exit|timeout) (\d+)$")
FENCE = re.compile(r"^```(\w*)$")


class Mistake(Exception):
    """A tutorial that is not marked as described above."""


class Block:
    """A fenced block with its mark."""

    def __init__(self, line, kind, mark, options, text):
        self.line, self.kind, self.mark, self.text = line, kind, mark, text
        self.exit, self.timeout = 0, TIMEOUT
        if mark == "run":
            for option in filter(None, (options or "").split(", ")):
                match = OPTION.match(option)
                if not match:
                    raise Mistake(f"line {line}: `{option}`: expected `exit N` or `timeout SECONDS`")
                setattr(self, match[1], int(match[2]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forebay", help="the program to test")
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="tutorials [default: docs/tutorial-*.md]")
    arguments = parser.parse_args()
    program = shutil.which(arguments.forebay)
    if not program:
        parser.error(f"{arguments.forebay}: not an executable program")
    files = arguments.files or sorted(ROOT.glob("docs/tutorial-*.md"))
    if not files:
        parser.error("there is no docs/tutorial-*.md")
    results = [tutorial(path, pathlib.Path(program).resolve()) for path in files]
    sys.exit(0 if all(results) else 1)


def tutorial(path, program):
    """Runs the blocks of one tutorial; whether all of them did what they should."""
    try:
        found = blocks(path.read_text())
    except Mistake as mistake:
        print(f"{path.name}: {mistake}")
        return False
    began, count, shown = time.monotonic(), 0, ""
    with tempfile.TemporaryDirectory(prefix="forebay-tutorial-") as scratch:
        bin_directory, work, home = (pathlib.Path(scratch) / name for name in ("bin", "work", "home"))
        for directory in (bin_directory, work, home):
            directory.mkdir()
        (bin_directory / "forebay").symlink_to(program)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FOREBAY", "XDG_"))}
        environment = {**kept, "PATH": f"{bin_directory}:{os.environ['PATH']}", "HOME": str(home), "COLUMNS": "100"}
        for block in found:
            if block.mark == "run":
                wrong, shown = run(block, work, environment)
                count += 1
            elif block.mark == "output":
                wrong = missing(block.text, shown)
            else:
                continue
            if wrong:
                print(f"{path.name}:{block.line}: {wrong}\n{indented(block.text)}\n  output:\n{indented(shown[-4000:])}")
                return False
    print(f"{path.name}: {count} blocks, {time.monotonic() - began:.1f} s")
    return True


def blocks(text):
    """The fenced blocks of a document that have a mark."""
    found, mark, block, begin = [], None, None, 0
    for number, line in enumerate(text.splitlines(), 1):
        if block is not None:
            if line == "```":
                found.append(Block(begin, kind, *mark, "\n".join(block)))
                block, mark = None, None
            else:
                block.append(line)
            continue
        fence = FENCE.match(line)
        if fence:
            kind = fence[1]
            expected = {"run": "sh", "not run": "sh", "output": "text"}.get(mark and mark[0], kind)
            if kind != expected or (kind == "sh" and not mark):
                expected = f"a block of `{expected}`" if mark and mark[0] else "a mark before a block of `sh`"
                raise Mistake(f"line {number}: expected {expected}, as the head of tests/docs/tutorials.py says")
            mark, block, begin = mark or ("", None), [], number
        elif line.strip():
            match = MARK.match(line)
            if mark and mark[0]:
                raise Mistake(f"line {number}: expected a block behind the mark `{mark[0]}`")
            mark = (match[1], match[2]) if match else None
    if block is not None or (mark and mark[0]):
        raise Mistake("the last block or mark is not complete")
    if not any(one.mark == "run" for one in found):
        raise Mistake("no block is marked `<!-- run -->`")
    return found


def run(block, work, environment):
    """What was wrong with a block, and its output."""
    command = ["sh", "-e", "-c", block.text]
    process = subprocess.Popen(command, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        shown, _ = process.communicate(timeout=block.timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        shown, _ = process.communicate()
        return f"not finished after {block.timeout} s", shown
    if process.returncode != block.exit:
        return f"exit code {process.returncode}, expected {block.exit}", shown
    return None, shown


def missing(excerpt, shown):
    """The first line of an excerpt that the output does not have, or not at its place."""
    rest = iter([plain(line) for line in shown.splitlines()])
    for line in excerpt.splitlines():
        if line.strip() != "..." and plain(line) not in rest:
            return f"the output does not have the line {line.rstrip()!r} here"
    return None


def plain(line):
    """A line with ordinary spaces in place of the ones that do not break, and none at its end."""
    return re.sub("[\u00a0\u202f]", " ", line).rstrip()


def indented(text):
    return "\n".join(f"    {line}" for line in text.splitlines())


if __name__ == "__main__":
    main()
