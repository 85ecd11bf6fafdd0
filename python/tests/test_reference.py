"""The reference page is made from the docstrings that the package has now."""

import subprocess
import sys

from conftest import ROOT


def test_the_reference_is_up_to_date() -> None:
    line = [sys.executable, str(ROOT / "scripts" / "python_reference.py"), "--check"]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
