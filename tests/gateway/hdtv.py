#!/usr/bin/env python3
"""Uncompressed HDTV through two gateways: GRIP's demonstration [G] with this machine's processors in the card's place.

    tests/gateway/hdtv.py FOREBAY [--out DIR] [--json FILE] [--seconds 120] [--step 8] [--record FILE] [--quick]
    tests/gateway/hdtv.py FOREBAY --bulk 20 --record FILE

GStreamer as Debian has it sends 1280x720 at 60 frames a second, 4:2:2 of 8 bits (885 Mbit/s), by RTP (RFC 4175) from
one host of the laboratory (scripts/lab.sh) to the other: through both gateways, in packets of up to 9000 bytes, once with
AES-CTR and HMAC-SHA-256, once with AES-GCM. Every frame is compared with what was sent, every packet is counted, and
where each lost one was lost. Then larger formats, until the first loss. Exit code 1 if anything was lost at 885 Mbit/s.
With --bulk, a TCP transfer by iperf3 at the paper's 989 Mbit/s instead, whose profile is added to FILE.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from television import bulk, page, report, shares  # noqa: E402
from television.stream import Format, is_whole, stream  # noqa: E402

SUITES = ("aes128ctr-sha256", "aes128gcm16")
# By their rate.
LADDER = (
    "720p60", "1080p30", "720p60-10bit", "1080p60", "1080p60-10bit", "2160p30", "2160p30-10bit", "2160p60", "2160p60-10bit",
)  # fmt: skip
# Short, and at a rate that a busy machine has too.
QUICK = "720p10"
# Room of the gateways' sockets: some frames of the largest format. BUFFER in the environment goes before.
BUFFER = "64 MiB"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("forebay")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("forebay-hdtv"))
    parser.add_argument("--json", type=pathlib.Path, help="where the figures go; by default hdtv.json in OUT")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--step", type=float, default=8, help="seconds of each larger format; 0 for none")
    parser.add_argument("--format", default="720p60")
    parser.add_argument("--suites", nargs="+", default=SUITES)
    parser.add_argument("--ladder", nargs="+", default=LADDER)
    parser.add_argument(
        "--quick", action="store_true", help=f"three seconds of {QUICK}, nothing more; skips what is not installed"
    )
    parser.add_argument("--record", type=pathlib.Path, help="where the profile for studies/inline-card goes")
    parser.add_argument("--bulk", type=float, metavar="SECONDS", help="a transfer by iperf3 in place of the video")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    given = arguments()
    if given.inside:
        return inside(json.loads(given.inside))
    if given.quick:
        given.format, given.seconds, given.step = QUICK, 3, 0
    if given.bulk:
        if missing := what_a_transfer_lacks(given):
            say(missing)
            return 2
        return transfers(given)
    python = python_with_gstreamer()
    if not python or not shutil.which("gst-launch-1.0"):
        say("SKIPPED, GStreamer or its Python bindings are not installed (scripts/setup.sh hdtv)")
        return 0 if given.quick else 2
    if given.quick:
        with tempfile.TemporaryDirectory() as folder:
            given.out = pathlib.Path(folder)
            return demonstrate(given, python)
    given.out.mkdir(parents=True, exist_ok=True)
    return demonstrate(given, python)


def demonstrate(given, python):
    results = {"machine": report.machine(), "main": [], "ladder": []}
    for suite in given.suites:
        say(f"{suite}: {given.format} for {given.seconds:g} s")
        name = f"{given.format}-{suite}"
        steps = [(given.format, given.seconds, False)] + [(given.format, 1, True)] * given.quick
        done, where = laboratory(given, suite, python, steps, name, profile=not given.quick)
        if not done:
            return 0
        if given.quick and done[1]["frames"]["wrong"] != done[1]["changed"]:
            sys.exit("hdtv: frames with a bit changed were not found, so that a right one says nothing")
        results["main"].append(done[0] | {"suite": suite, "shares": where, "pictures": name})
    for suite in given.suites if given.step else []:
        say(f"{suite}: larger formats, {given.step:g} s each")
        steps = [(name, given.step, False) for name in given.ladder]
        done, _ = laboratory(given, suite, python, steps, None, profile=False)
        results["ladder"] += [one | {"suite": suite} for one in done]
    text = report.text(results)
    print(text)
    if not given.quick:
        (given.json or given.out / "hdtv.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        (given.out / "index.html").write_text(page.page(results, given.out), encoding="utf-8")
        if given.record:
            command = f"tests/gateway/hdtv.py --seconds {given.seconds:g} --step {given.step:g}"
            record = report.recording(results, command)
            if given.record.exists():
                record |= {"bulk": json.loads(given.record.read_text(encoding="utf-8")).get("bulk")}
            text = json.dumps(record, indent=1)
            given.record.write_text(text + "\n", encoding="utf-8")
        say(f"{given.out}/index.html, the pictures beside it")
    return 0 if all(map(is_whole, results["main"])) else 1


def what_a_transfer_lacks(given):
    """Why a transfer cannot be made or recorded, before it is; `None` if it can."""
    if not shutil.which("iperf3"):
        return "--bulk: iperf3 is not installed (scripts/setup.sh lab)"
    if not given.record:
        return None
    hint = "make it by a run without --bulk, whose figures it has too"
    try:
        record = json.loads(given.record.read_text(encoding="utf-8"))
    except OSError as error:
        return f"--bulk adds to --record {given.record}, which cannot be read ({error.strerror}): {hint}"
    except ValueError as error:
        return f"--bulk adds to --record {given.record}, which is not JSON ({error}): {hint}"
    if not isinstance(record, dict):
        return f"--bulk adds to --record {given.record}, which is no record: {hint}"
    return None


def transfers(given):
    """A bulk transfer with each suite; the profile of each goes to the record, beside those of the video."""
    given.out.mkdir(parents=True, exist_ok=True)
    found = []
    for suite in given.suites:
        done, where = laboratory(given, suite, None, [], None, profile=True)
        one = {key: done[0][key] for key in ("seconds", "bits_per_second", "retransmits")}
        found.append({"suite": suite} | one | {"by": where["by"], "sides": where["sides"]})
        say(f"{suite}: {one['bits_per_second'] * 1e-6:.0f} Mbit/s, {one['retransmits']} segments sent again")
    if given.record:
        record = json.loads(given.record.read_text(encoding="utf-8"))
        command = f"tests/gateway/hdtv.py --bulk {given.bulk:g}"
        machine = {key: value for key, value in report.machine().items() if key != "gstreamer"}
        record["bulk"] = {"machine": machine, "date": report.today(), "command": command, "transfers": found}
        given.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


def laboratory(given, suite, python, steps, pictures, profile):
    """Runs the steps in a laboratory; gives their figures, and where the time of the first went."""
    out = given.out.resolve()
    results = out / "steps.json"
    results.unlink(missing_ok=True)
    spec = {"steps": steps, "python": python, "results": str(results), "pictures": pictures and str(out / pictures), "bulk": given.bulk}
    environment = {"BUFFER": BUFFER} | os.environ | {"MTU": "9000", "PROPOSAL": suite, "ENCAPSULATION": "udp"}
    if given.quick:
        environment["LAB_OPTIONAL"] = "1"
    words = [HERE.parent.parent / "scripts" / "lab.sh", given.forebay, "run", sys.executable, HERE / "hdtv.py"]
    with shares.Profile(out / "perf.data", profile) as samples:
        ended = subprocess.run([*words, given.forebay, "--inside", json.dumps(spec)], env=environment)
    if ended.returncode != 0 or not results.exists():
        if ended.returncode == 0 and given.quick:
            return [], None
        sys.exit(f"hdtv: the laboratory ended with {ended.returncode}")
    done = json.loads(results.read_text(encoding="utf-8"))
    results.unlink()
    return done, profile and samples.shares(given.forebay, done[0])


def inside(spec):
    """What runs in the laboratory: one stream after the other."""
    os.umask(0o022)
    done = [bulk.transfer(spec["bulk"])] if spec["bulk"] else []
    for name, seconds, change in spec["steps"]:
        form = Format(name)
        told = Told(form, seconds)
        one = stream(form, seconds, spec["python"], told.tell, spec["pictures"], change)
        done.append(one)
        if not change:
            told.end(one)
    pathlib.Path(spec["results"]).write_text(json.dumps(done), encoding="utf-8")
    return 0


class Told:
    """What is said while a stream runs: each second at a terminal, each ten elsewhere, and at the first loss."""

    def __init__(self, form, seconds):
        self.form, self.seconds = form, seconds
        self.frames, self.at, self.lost, self.said = 0, 0.0, 0, 0.0

    def tell(self, at, state):
        frames, lost = state["right"] + state["wrong"], state["rtp"]["lost"]
        rate = (frames - self.frames) / max(at - self.at, 1e-9)
        live = sys.stderr.isatty()
        first_loss = lost > 0 and not self.lost
        if live or first_loss or at - self.said >= 10:
            text = (
                f"{self.form.name} {at:5.0f} of {self.seconds:g} s: {rate:3.0f} frames/s,"
                f" {rate * self.form.frame_bytes * 8e-6:5.0f} Mbit/s; frames {state['right']} right,"
                f" {state['wrong']} wrong; {lost} packets lost"
            )
            print(
                f"\r\x1b[Khdtv: {text}" if live else f"hdtv: {text}",
                end="" if live else "\n",
                file=sys.stderr,
                flush=True,
            )
            self.said = at
        self.frames, self.at, self.lost = frames, at, lost

    def end(self, done):
        print("\r\x1b[K" if sys.stderr.isatty() else "", end="", file=sys.stderr)
        say(report.line(done))


def python_with_gstreamer():
    """A Python that has GStreamer's bindings: Debian's, where another stands before it."""
    for python in (sys.executable, "/usr/bin/python3"):
        asked = [python, "-c", "import gi; gi.require_version('GstApp', '1.0'); from gi.repository import GstApp"]
        if shutil.which(python) and subprocess.run(asked, capture_output=True).returncode == 0:
            return python
    return None


def say(text):
    print(f"hdtv: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
