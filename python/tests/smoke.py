"""What a freshly installed wheel must do, without any other package: run with the path of its command."""

import subprocess
import sys

import forebay as fb

HOST = {
    "model": "host",
    "seed": 1,
    "traffic": {"source": "exponential", "mean": 256, "packets": 2000, "rate": "400 Mbit/s"},
    "processor": [
        {"name": "cpu", "kind": "cpu", "init": "3 us", "block": "920 ns"},
        {"name": "card", "kind": "accelerator", "init": "1 us", "block": "440 ns"},
    ],
}


class First(fb.Placement):
    def choose(self, job, candidates):
        return candidates[0]


def main(command: str) -> None:
    host = fb.Scenario(HOST)
    assert host.simulate()["packets"] == 2000
    assert host.simulate(policy=First())["cpu.packets"] == 2000
    assert len(host.simulate(replications=3)) == 3
    table = fb.sweep(host, {"processor.cpu.alpha": [1, 10]})
    assert len(table.rows) == 2
    try:
        host.set("processor.card.cuont", 2).simulate()
    except fb.ScenarioError as error:
        assert error.found == "cuont" and "count" in error.hint
    else:
        raise AssertionError("a wrong key is an error")
    said = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
    assert said == f"forebay {fb.__version__}\n", said
    assert (
        "multi-accelerator"
        in subprocess.run([command, "study", "list"], check=True, capture_output=True, text=True).stdout
    )


if __name__ == "__main__":
    main(sys.argv[1])
