"""Everything that counts packets or processor time in the laboratory, read at two moments."""

import json
import os
import pathlib
import subprocess

NAMESPACES = ("host-a", "gw-a", "gw-b", "host-b")
TICKS = os.sysconf("SC_CLK_TCK")


def read():
    """All counters now, as one flat table."""
    flat = {}
    for name in NAMESPACES:
        table = output("ip", "netns", "exec", name, "cat", "/proc/net/snmp")
        names, values = [line.split()[1:] for line in table.splitlines() if line.startswith("Udp:")]
        # Gateways send and take trains of packets as one, and the kernel counts a lost train once.
        unit = " (trains)" if name.startswith("gw-") else ""
        flat |= {f"{name} UDP {key}{unit}": int(value) for key, value in zip(names, values)}
        for link in json.loads(output("ip", "-n", name, "-s", "-j", "link", "show")):
            stats = link["stats64"]
            flat |= {f"{name} {link['ifname']} {way} dropped": stats[way]["dropped"] for way in ("rx", "tx")}
    for letter in "ab":
        status = gateway(letter)
        for link in status["links"]:
            flat |= {f"gateway {letter} {link['name']} {why}": count for why, count in link["drops"].items()}
        flat |= {f"gateway {letter} {why}": count for why, count in status["drops"].items()}
    # Of the whole machine: the second column of each processor.
    rows = pathlib.Path("/proc/net/softnet_stat").read_text(encoding="ascii").splitlines()
    flat["kernel backlog (netdev_max_backlog) dropped"] = sum(int(row.split()[1], 16) for row in rows)
    return flat


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def gateway(letter):
    return json.loads(
        output(os.environ["FOREBAY"], "status", "--socket", f"{os.environ['LAB']}/{letter}.sock", "--json")
    )


def packets(before, after):
    """Packets that the sender gave to the kernel, that the receiver was given, and the difference."""
    sent = after["host-a UDP OutDatagrams"] - before["host-a UDP OutDatagrams"]
    received = after["host-b UDP InDatagrams"] - before["host-b UDP InDatagrams"]
    return {"sent": sent, "received": received, "lost": sent - received}


def losses(before, after):
    """Where packets were lost, and how many: all counters of losses that moved."""
    counts = {}
    for name, count in after.items():
        is_udp = " UDP " in name
        bare = name.removesuffix(" (trains)")
        # Linux counts a full buffer as InErrors too.
        is_loss = bare.endswith(("Errors", "NoPorts")) and not bare.endswith("UDP InErrors")
        if (is_loss or not is_udp) and count > before.get(name, 0):
            counts[name] = count - before.get(name, 0)
    return counts


def gateways():
    return {f"gateway {letter}": gateway(letter)["pid"] for letter in "ab"}


def processor(processes):
    """Processor time so far in seconds, of the machine by kind and of processes."""
    with open("/proc/stat", encoding="ascii") as file:
        words = file.readline().split()[1:]
    kinds = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    flat = {kind: int(word) / TICKS for kind, word in zip(kinds, words)}
    for name, pid in processes.items():
        try:
            words = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        # utime, stime: fields 14 and 15.
        flat[f"{name} user"], flat[f"{name} kernel"] = (int(word) / TICKS for word in words[11:13])
    return flat


def share(before, after, seconds):
    """Of all processors' time: parts of one, by kind of the machine and by process."""
    whole = max(seconds, 1e-9) * os.cpu_count()
    return {name: (after[name] - before[name]) / whole for name in before if name in after}
