"""The command ``forebay`` of the package."""

import json
import sys
from pathlib import Path

import forebay as fb
from conftest import forebay


def test_the_version_is_that_of_the_package() -> None:
    assert forebay("--version").stdout == f"forebay {fb.__version__}\n"


def test_usage_and_broken_files_have_exit_code_2(tmp_path: Path) -> None:
    assert forebay("simulate", check=False).returncode == 2
    assert forebay("simulate", tmp_path / "none.toml", check=False).returncode == 2
    renamed = forebay("twin", check=False)
    assert renamed.returncode == 2 and "validate-model" in renamed.stderr


def test_a_simulation_is_printed(host_file: Path) -> None:
    document = json.loads(forebay("simulate", host_file, "--json").stdout)
    assert document["schema"] == 1 and document["packets"] == 3000


def test_studies_are_listed() -> None:
    assert "multi-accelerator" in forebay("study", "list").stdout


def test_the_command_finds_this_python_for_studies() -> None:
    from forebay import _command

    assert _command.environment({})["FOREBAY_PYTHON"] == sys.executable
    assert _command.environment({"FOREBAY_PYTHON": "/other"})["FOREBAY_PYTHON"] == "/other"
