"""Scenarios for the tests, and the command of the package."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import forebay as fb

ROOT = Path(__file__).parent.parent.parent

# A background job of a shell has interrupts ignored, and hands that on to the programs that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

HOST = """\
model = "host"
seed = 7
[traffic]
source = "exponential"
mean = 256
packets = 3000
rate = "400 Mbit/s"
sas = 10
[bus]
clock = "66 MHz"
width = 4
address_cycles = 1
[[processor]]
name = "cpu"
kind = "cpu"
init = "3 us"
block = "920 ns"
[[processor]]
name = "card"
kind = "accelerator"
count = 2
init = "1 us"
block = "440 ns"
queue = 50
"""

PIPELINE = """\
model = "pipeline"
seed = 3
duration = "200 ms"
service = "exponential"
[arrivals]
mean = "70 us"
distribution = "exponential"
[[server]]
name = "core"
discipline = "busy-waiting"
[[stage]]
name = "receive"
time = "20 us"
buffer = 4
[[stage]]
name = "work"
server = "core"
time = "30 us"
buffer = 4
"""


@pytest.fixture
def host_file(tmp_path: Path) -> Path:
    path = tmp_path / "host.toml"
    path.write_text(HOST)
    return path


@pytest.fixture
def host(host_file: Path) -> fb.Scenario:
    return fb.Scenario(host_file)


@pytest.fixture
def pipeline_file(tmp_path: Path) -> Path:
    path = tmp_path / "pipeline.toml"
    path.write_text(PIPELINE)
    return path


def forebay(*words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs the command of the package."""
    line = [sys.executable, "-m", "forebay", *map(str, words)]
    return subprocess.run(line, check=check, capture_output=True, text=True)
