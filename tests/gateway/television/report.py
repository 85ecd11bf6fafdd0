"""The figures as text, beside those of the paper."""

import datetime
import os
import pathlib
import platform
import shutil
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
    words = ["gst-launch-1.0", "--version"]
    found = shutil.which(words[0]) and subprocess.run(words, capture_output=True, text=True).stdout
    version = (found or "").splitlines()
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
    return (
        f"{done['format']}, {rate:.0f} Mbit/s: {verdict}; frames {frames['right']} right, {frames['wrong']} wrong,"
        f" {frames['missing']} missing; packets {packets['sent']} sent, {packets['lost']} lost{places(done)}; idle {idle:.0%}"
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
    head = (
        f"{'Share of processor time, %':38}{'rate':>12}" + "".join(f"{name:>13}" for name in COLUMNS) + f"{'others':>9}"
    )
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
    rows.append(
        "links: in the place of GRIP's driver. All: both hosts and both gateways; others: what else ran on this machine."
    )
    rows += [f"by {one['shares']['by']}" for one in results["main"][:1] if one["shares"]]
    return "\n".join(rows)


def today():
    return datetime.date.today().isoformat()


def recording(results, command):
    """What the study inline-card draws beside the paper's figure 15.3: machine, command, and the shares."""
    streams = []
    for one in results["main"]:
        keys = ("suite", "format", "seconds", "bits_per_second", "frames", "packets", "lost_at")
        if one["shares"] and "transmitter alone" in one["shares"]["sides"]:
            parts = {"whole": is_whole(one), "by": one["shares"]["by"], "sides": one["shares"]["sides"]}
            streams.append({key: one[key] for key in keys} | parts)
    notes = [f"{one['suite']} lost packets." for one in streams if not one["whole"]]
    return {"machine": results["machine"], "date": today(), "command": command, "notes": notes, "streams": streams}


def crowd(main):
    """A word where other programs had much of the machine."""
    most = max((one["shares"]["sides"]["both ends"]["others"] for one in main if one["shares"]), default=0.0)
    return (
        f"Other programs had {most:.0%} of the processors: nothing here is of a quiet machine." if most > 0.05 else ""
    )


def percent(share):
    return "-" if share is None else f"{100 * share:.1f}"


def ladder_table(ladder):
    head = f"{'suite':18}{'format':15}{'Mbit/s':>8}{'packets/s':>11}{'idle %':>8}{'lost':>9}{'frames not right':>18}  of a processor: sender, gateways, receiver; losses"
    rows = [head]
    for one in ladder:
        rows.append(
            f"{one['suite']:18}{one['format']:15}{one['bits_per_second'] * 1e-6:8.0f}{packet_rate(one):11.0f}"
            f"{100 * one['processor'].get('idle', 0.0):8.1f}{one['packets']['lost']:9}{not_right(one):18}  {loads_text(one)}{places(one)}"
        )
    for suite in dict.fromkeys(one["suite"] for one in ladder):
        rows.append(f"{suite}: {limit(one for one in ladder if one['suite'] == suite)}")
    return "\n".join(rows)


def not_right(one):
    return one["frames"]["wrong"] + one["frames"]["missing"]


def packet_rate(one):
    return one["packets"]["sent"] / max(one["took_s"], one["seconds"])


def places(one):
    """Where packets were lost, and whether the sender was late."""
    text = "".join(f"; {count} {place}" for place, count in one["lost_at"].items())
    return text if is_in_time(one) else f"{text}; the sender took {one['took_s']:.1f} s for {one['seconds']:g}"


def loads(one):
    """How much of a processor each program had; what interrupts did while it ran is in it."""
    parts = one["processor"]
    names = ("sender", "gateway a", "gateway b", "receiver")
    return {
        name: os.cpu_count() * sum(parts.get(f"{name} {kind}", 0.0) for kind in ("user", "kernel")) for name in names
    }


def loads_text(one):
    return ", ".join(f"{load:.0%}" for load in loads(one).values())


def limit(steps):
    """Up to where all was whole, and what held the next one up."""
    best = None
    for one in steps:
        if not is_whole(one):
            upto = f"whole up to {best['format']} ({best['bits_per_second'] * 1e-6:.0f} Mbit/s); " if best else ""
            return f"{upto}not {one['format']} ({one['bits_per_second'] * 1e-6:.0f} Mbit/s): {bottleneck(one)}"
        best = one
    return "all whole"


def bottleneck(one):
    idle = one["processor"].get("idle", 0.0)
    name, load = max(loads(one).items(), key=lambda item: item[1])
    if load > 0.9:
        return f"the {name} had all of a processor"
    if idle < 0.1:
        own = sum(loads(one).values()) / os.cpu_count()
        return f"the processors were full ({own:.0%} by the stream), the {name} had the most: {load:.0%} of one"
    return f"{idle:.0%} idle, a queue overran{places(one)}"
