"""The figures as text, beside those of the paper."""

import os
import pathlib
import platform
import subprocess

from television.stream import is_in_time, is_whole

# [G] figure 15.3: transmitters with two processors of 1.3 GHz, and with one; in per cent of all processor time. The
# paper says "< 1 %" where there is 0.5.
COLUMNS = ("idle", "kernel", "IPsec", "links", "application", "libc")
PAPER = (
    ("GRIP: HDTV, 2 x 1.3 GHz", "893 Mbit/s", (62, 28, 4, 3, "<1", "<1")),
    ("GRIP: iperf, 2 x 1.3 GHz", "989 Mbit/s", (47, 35, 4, 4, 2, 8)),
    ("GRIP: iperf, 1 x 1.3 GHz", "989 Mbit/s", (0, 70, 9, 4, 3, 12)),
)


def machine():
    """What it ran on."""
    model = "?"
    for row in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if row.startswith("model name"):
            model = row.partition(":")[2].strip()
            break
    version = subprocess.run(["gst-launch-1.0", "--version"], capture_output=True, text=True).stdout.splitlines()
    return {
        "processors": os.cpu_count(),
        "model": model,
        "kernel": platform.release(),
        "gstreamer": version[-2] if len(version) > 1 else "?",
    }


def line(done):
    """One stream in one line."""
    frames, packets = done["frames"], done["packets"]
    rate = done["bits_per_second"] * 1e-6
    idle = done["processor"].get("idle", 0.0)
    verdict = "whole" if is_whole(done) else "NOT WHOLE"
    late = "" if is_in_time(done) else f", the sender took {done['took_s']:.1f} s for {done['seconds']:g}"
    places = "".join(f"; {count} at: {name}" for name, count in done["lost_at"].items())
    return (
        f"{done['format']}, {rate:.0f} Mbit/s: {verdict}; frames {frames['right']} right, {frames['wrong']} wrong,"
        f" {frames['missing']} missing; packets {packets['sent']} sent, {packets['lost']} lost{places}; idle {idle:.0%}{late}"
    )


def text(results):
    """All tables."""
    rows = []
    for one in results["main"]:
        rows.append(f"{one['suite']}: {line(one)}")
    if any(one["shares"] for one in results["main"]):
        rows += ["", shares_table(results)]
    if crowd(results["main"]):
        rows += ["", crowd(results["main"])]
    if results["ladder"]:
        rows += ["", ladder_table(results["ladder"])]
    return "\n".join(rows)


def shares_table(results):
    head = f"{'Share of processor time, %':38}{'rate':>12}" + "".join(f"{name:>13}" for name in COLUMNS) + f"{'others':>9}"
    rows = [head]
    for name, rate, parts in PAPER:
        rows.append(f"{name:38}{rate:>12}" + "".join(f"{part:>13}" for part in parts))
    for one in results["main"]:
        if not one["shares"]:
            continue
        for side, shares in one["shares"]["sides"].items():
            cells = "".join(f"{percent(shares[name]):>13}" for name in COLUMNS)
            name = f"{side}, {one['suite']}"
            rows.append(f"{name:38}{one['bits_per_second'] * 1e-6:7.0f} Mbit/s{cells}{percent(shares['others']):>9}")
    rows.append("links: in the place of GRIP's driver. All: both hosts and both gateways; others: what else ran on this machine.")
    rows += [f"by {one['shares']['by']}" for one in results["main"][:1] if one["shares"]]
    return "\n".join(rows)


def crowd(main):
    """A word where other programs had much of the machine."""
    most = max((one["shares"]["sides"]["both ends"]["others"] for one in main if one["shares"]), default=0.0)
    return f"Other programs had {most:.0%} of the processors: nothing here is of a quiet machine." if most > 0.05 else ""


def percent(share):
    return "-" if share is None else f"{100 * share:.1f}"


def ladder_table(ladder):
    head = f"{'suite':18}{'format':15}{'Mbit/s':>8}{'packets/s':>11}{'idle %':>8}{'lost':>9}{'frames not right':>18}  busiest; where packets were lost"
    rows = [head]
    for one in ladder:
        frames = one["frames"]
        bad = frames["wrong"] + frames["missing"]
        seconds = max(one["took_s"], one["seconds"])
        name, load = busiest(one)
        places = "".join(f"; {count} {name}" for name, count in one["lost_at"].items())
        late = "" if is_in_time(one) else f"; sender late: {one['took_s']:.1f} s for {one['seconds']:g}"
        rows.append(
            f"{one['suite']:18}{one['format']:15}{one['bits_per_second'] * 1e-6:8.0f}{one['packets']['sent'] / seconds:11.0f}"
            f"{100 * one['processor'].get('idle', 0.0):8.1f}{one['packets']['lost']:9}{bad:18}  {name} {load:.0%} of a processor{places}{late}"
        )
    return "\n".join(rows)


def busiest(one):
    """Which program has most of a processor, and how much; 1 is a whole one."""
    programs = {}
    for name, part in one["processor"].items():
        program, _, kind = name.rpartition(" ")
        if program and kind in ("user", "kernel"):
            programs[program] = programs.get(program, 0.0) + part * os.cpu_count()
    return max(programs.items(), key=lambda item: item[1]) if programs else ("nothing", 0.0)
