"""Ctrl-C: what is done is kept, and the process stays in order. No test asserts how long something takes."""

import signal
import subprocess
import sys
import time
from pathlib import Path

LONG = """
import sys
import forebay as fb
host = fb.Scenario(sys.argv[1]).set("traffic.packets", 2_000_000_000)
told = []
def watch(done, whole):
    if not told:
        told.append(done)
        print("runs", flush=True)
"""

SINGLE = """
try:
    host.simulate(progress=watch)
except KeyboardInterrupt as interrupt:
    run = interrupt.partial
    print("kept", run.cut, run["packets"], run["throughput_bps"] > 0, type(interrupt).__name__)
"""

POLICY = """
class First(fb.Placement):
    def choose(self, job, candidates):
        return candidates[0]
try:
    host.simulate(progress=watch, policy=First())
except KeyboardInterrupt as interrupt:
    print("kept", getattr(interrupt, "partial", None) is None or interrupt.partial.cut > 0)
"""

SEVERAL = """
class First(fb.Placement):
    count = 0
    def choose(self, job, candidates):
        return candidates[0]
short = host.set("traffic.packets", 2000)
try:
    short.simulate(replications=1_000_000, progress=watch)
except KeyboardInterrupt as interrupt:
    runs = interrupt.partial
    print("kept", len(runs) > 0, all(run["packets"] == 2000 for run in runs))
"""

UNTIL = """
# Of batches that are shorter than any interval between two looks at signals.
short = host.set("traffic.packets", 20)
def begun(done, whole):
    if not told:
        told.append(done)
        print("runs", flush=True)
try:
    short.simulate(replications=fb.Until(relative=1e-12, most=100_000_000), progress=begun)
except KeyboardInterrupt as interrupt:
    runs = interrupt.partial
    print("kept", type(interrupt).__name__, len(runs) > 0, runs.converged)
"""

WITHOUT_RESULT = """
import os, threading, time
stages = [{"name": name, "time": "30 us", "buffer": 14} for name in "abcde"]
chain = fb.Scenario({"model": "pipeline", "service": "exponential", "overflow": "block",
                     "arrivals": {"mean": "40 us"}, "stage": stages})
drop = chain.set("overflow", "drop").set("duration", "20 s")
try:
    print("runs", flush=True)
    time.sleep(60)  # until the first signal, which is of the test
except KeyboardInterrupt:
    pass
for work in (chain.solve, lambda: fb.size_buffers(drop, 0.001), lambda: fb.highest_rate(host, latency=1e-3)):
    try:
        threading.Timer(0.3, os.kill, [os.getpid(), 2]).start()
        work()
    except KeyboardInterrupt as interrupt:
        print(type(interrupt).__name__)
"""


def interrupted(script: str, host_file: Path) -> tuple[list[str], int]:
    """What a script says after it was interrupted in the midst of a run."""
    line = [sys.executable, "-c", LONG + script, str(host_file)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "runs\n"
        child.send_signal(signal.SIGINT)
        rest = child.stdout.read().split()
        return rest, child.wait()


def test_a_run_keeps_the_packets_that_were_done(host_file: Path) -> None:
    said, code = interrupted(SINGLE, host_file)
    assert code == 0 and said[0] == "kept"
    assert int(said[1]) == float(said[2]) > 0
    assert said[3:] == ["True", "Interrupted"]


def test_a_run_with_a_policy_ends(host_file: Path) -> None:
    assert interrupted(POLICY, host_file) == (["kept", "True"], 0)


def test_replications_keep_the_complete_runs(host_file: Path) -> None:
    assert interrupted(SEVERAL, host_file) == (["kept", "True", "True"], 0)


def test_replications_until_keep_the_complete_runs(host_file: Path) -> None:
    assert interrupted(UNTIL, host_file) == (["kept", "Interrupted", "True", "False"], 0)


def test_work_without_a_partial_result_raises_the_same_class(host_file: Path) -> None:
    said, code = interrupted(WITHOUT_RESULT, host_file)
    assert (said[-3:], code) == (["Interrupted"] * 3, 0)


def test_without_a_handler_the_process_ends(host_file: Path) -> None:
    said, code = interrupted("host.simulate(progress=watch); print('after')", host_file)
    assert said == [] and code != 0


def test_the_command_ends_with_130(host_file: Path) -> None:
    sets = ["--set", "traffic.packets=2000000000"]
    line = [sys.executable, "-m", "forebay", "simulate", str(host_file), *sets, "--json"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        # The command says nothing by which its beginning could be seen; an earlier interrupt ends it as well.
        time.sleep(2)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate()
        assert child.returncode in (130, -signal.SIGINT)
        assert child.returncode != 130 or "interrupted_after" in out
