"""Where processor time goes, by sampling the whole machine with perf: the columns of the paper's figure 15.3.

Samples are told apart by the network namespace of their process (the hosts', the gateways', or neither: others), by
kernel or user, and by library and function.
"""

import os
import re
import shutil
import signal
import subprocess
import sys

COLUMNS = ("idle", "kernel", "IPsec", "links", "application", "libc", "others")
# A second on each processor; a prime near 500 beats with nothing.
RATE = 499
# Where the kernel waits for work; elsewhere the idle task works, as in interrupts.
IDLE = re.compile(
    r"safe_halt|default_idle|acpi_idle|intel_idle|mwait_idle|poll_idle|cpu_idle_poll|haltpoll|cpuidle_enter"
)
LIBC = re.compile(r"/(libc|ld-linux[^/]*|libpthread|libm)[.-][^/]*$")
SAMPLE = re.compile(
    r"^ *(?P<comm>.+?) +(?P<pid>-?\d+)/(?P<tid>-?\d+) +(?P<time>[\d.]+): +cpu-clock[^:]*: +[0-9a-f]+ (?P<symbol>.*) \((?P<dso>[^)]*)\)$"
)
NAMESPACES = re.compile(r"PERF_RECORD_NAMESPACES (\d+)/(\d+) ")
NET = re.compile(r"0/net: \d+/0x([0-9a-f]+)")
SIDES = {"transmitter": ("host-a", "gw-a"), "receiver": ("host-b", "gw-b")}


class Profile:
    """Samples while the block runs, if perf is there and may."""

    def __init__(self, path, wanted):
        self.path, self.perf = path, None
        if wanted and not self.may():
            print("hdtv: without perf (linux-perf, and root): only /proc says where the time goes", file=sys.stderr)
        elif wanted:
            self.perf = [
                "perf",
                "record",
                "-q",
                "-k",
                "CLOCK_MONOTONIC",
                "--namespaces",
                "-e",
                "cpu-clock",
                "-F",
                str(RATE),
            ]

    @staticmethod
    def may():
        words = ["perf", "record", "-q", "-a", "-e", "cpu-clock", "-o", "/dev/null", "true"]
        return bool(shutil.which("perf")) and subprocess.run(words, capture_output=True).returncode == 0

    def __enter__(self):
        if self.perf:
            self.perf = subprocess.Popen([*self.perf, "-a", "-o", str(self.path)], stdout=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        if self.perf:
            self.perf.send_signal(signal.SIGINT)
            self.perf.wait(timeout=60)

    def shares(self, forebay, done):
        """The shares in the window of a stream; by /proc alone without samples."""
        if not self.perf:
            return of_proc(done["processor"])
        words = ["perf", "script", "-i", str(self.path), "--no-inline", "--show-namespace-events"]
        words += ["-F", "pid,tid,comm,time,event,ip,sym,dso"]
        script = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
        with script:
            found = count(script.stdout, os.path.realpath(forebay), done["namespaces"], done["window"])
        self.path.unlink()
        return found


def count(lines, forebay, namespaces, window):
    """Counts samples into columns, for the machine and for each side."""
    place_of = {number: name for name, number in namespaces.items()}
    where, of = {}, None
    counts, functions = {}, {}
    for line in lines:
        if found := NAMESPACES.search(line):
            of = int(found[2])
        elif found := NET.search(line):
            where[of] = place_of.get(int(found[1], 16))
        elif (sample := SAMPLE.match(line)) and window[0] <= float(sample["time"]) <= window[1]:
            place = where.get(int(sample["tid"]))
            column = column_of(sample, place, forebay)
            counts[place, column] = counts.get((place, column), 0) + 1
            key = (place or "", column, sample["symbol"])
            functions[key] = functions.get(key, 0) + 1
    whole = max(sum(counts.values()), 1)
    total = {column: sum(n for (_, c), n in counts.items() if c == column) / whole for column in COLUMNS}
    sides = {"both ends": total}
    for side, places in SIDES.items():
        parts = {c: sum(counts.get((place, c), 0) for place in places) / whole for c in COLUMNS}
        sides[f"{side} alone"] = parts | {"idle": 1 - sum(parts.values()), "others": 0.0}
    most = sorted(functions.items(), key=lambda item: -item[1])[:40]
    expected = RATE * os.cpu_count() * (window[1] - window[0])
    return {
        "by": "samples of the whole machine (perf, cpu-clock); of a side alone idle is what that side left",
        "samples": whole,
        "samples_of_expected": whole / max(expected, 1),
        "sides": sides,
        "functions": [{"place": p, "column": c, "function": f, "share": n / whole} for (p, c, f), n in most],
    }


def column_of(sample, place, forebay):
    dso, symbol = sample["dso"], sample["symbol"]
    if sample["pid"] == "0" and IDLE.search(symbol):
        return "idle"
    of_kernel = dso.startswith("[") and dso != "[vdso]"
    # Threads of the kernel and interrupts of the idle task move packets as well.
    if place is None:
        return "kernel" if of_kernel and is_of_kernel(sample["comm"]) else "others"
    if of_kernel:
        return "kernel"
    if LIBC.search(dso):
        return "libc"
    if os.path.realpath(dso) == forebay:
        return "links" if re.match(r"<?&?(mut )?(forebay_links|rustix)", symbol) else "IPsec"
    return "application"


def is_of_kernel(comm):
    return comm == "swapper" or comm.startswith(("ksoftirqd/", "kworker/", "rcu_"))


def of_proc(machine):
    """As much as /proc says: no libc, no links apart."""
    user = {name: part for name, part in machine.items() if name.endswith(" user")}
    shares = dict.fromkeys(COLUMNS)
    shares["idle"] = machine["idle"] + machine["iowait"]
    shares["kernel"] = machine["system"] + machine["irq"] + machine["softirq"]
    shares["IPsec"] = sum(part for name, part in user.items() if name.startswith("gateway"))
    shares["application"] = sum(part for name, part in user.items() if not name.startswith("gateway"))
    shares["others"] = 1 - sum(part for part in shares.values() if part)
    return {"by": "/proc: IPsec and application with libc, IPsec with links", "sides": {"both ends": shares}}
