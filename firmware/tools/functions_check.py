#!/usr/bin/python3
"""Every function of a program is in exactly one group of functions.toml: functions_check.py NM PROGRAM..."""

import fnmatch
import subprocess
import sys
import tomllib
from pathlib import Path

groups = tomllib.loads((Path(__file__).parent.parent / "functions.toml").read_text())["groups"]
callers = {"memcpy", "memmove", "memset", "memcmp"}
wrong = []
for program in sys.argv[2:]:
    lines = subprocess.run([sys.argv[1], "--defined-only", program], capture_output=True, text=True, check=True).stdout.splitlines()
    names = {name for _, kind, name in map(str.split, lines) if kind in "tT"} - callers
    for name in sorted(names):
        found = [group for group, globs in groups.items() if any(fnmatch.fnmatchcase(name, glob) for glob in globs)]
        if len(found) != 1:
            wrong.append(f"{program}: {name} is in {', '.join(found) or 'no group'}")
print("\n".join(wrong) or "functions: each is in one group")
sys.exit(1 if wrong else 0)
