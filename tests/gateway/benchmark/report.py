"""What came out: figures of all rounds, as text for a terminal and as a page."""

import statistics

from . import page, traffic
from .namespaces import MTU_INSIDE, MTU_OUTSIDE

# What is read off in each measurement: key, words, unit's digits, factor.
FIGURES = {
    "tcp1": [("gbit_per_s", "Gbit/s", 2), ("cpu_s_per_gbit", "CPU s/Gbit", 3), ("retransmits", "retransmits", 0)],
    "tcp4": [("gbit_per_s", "Gbit/s", 2), ("cpu_s_per_gbit", "CPU s/Gbit", 3)],
    "both": [("gbit_per_s", "Gbit/s, the sum", 2), ("cpu_s_per_gbit", "CPU s/Gbit", 3)],
    "tcp1ping": [("gbit_per_s", "Gbit/s", 2), ("cpu_s_per_gbit", "CPU s/Gbit", 3), ("ping_p50_ms", "ping p50 ms", 2),
                 ("ping_p99_ms", "p99", 2), ("ping_max_ms", "max", 2)],
    "udp64": [("packets_per_s", "read by iperf3/s", 0), ("delivered_per_s", "delivered/s", 0), ("sent_per_s", "sent/s", 0), ("cpu_us_per_packet", "CPU us/packet", 2)],
    "udp1372": [("packets_per_s", "read by iperf3/s", 0), ("delivered_per_s", "delivered/s", 0), ("gbit_per_s", "Gbit/s", 2), ("sent_per_s", "sent/s", 0),
                ("cpu_us_per_packet", "CPU us/packet", 2)],
    "idle": [("ping_p50_ms", "ping p50 ms", 3), ("ping_p99_ms", "p99", 2), ("ping_max_ms", "max", 2)],
    "udp20k": [("ping_p50_ms", "ping p50 ms", 3), ("ping_p99_ms", "p99", 2), ("ping_max_ms", "max", 2),
               ("packets_per_s", "received/s", 0)],
}
# Under bars there is little room.
SHORT = {"tcp1": "one flow", "tcp4": "four flows", "both": "both ways", "udp64": "64 bytes", "udp1372": "1372 bytes"}
SHORT_PING = {"idle": "nothing else", "udp20k": f"{traffic.UDP_RATE // 1000},000 UDP/s", "tcp1ping": "a TCP flow"}
# Goals: measurement, figure, words, what it is divided by (a peer, Forebay in another measurement, or nothing), at least
# or at most.
WIREGUARD, RELAY, ALONE, NOTHING = "wireguard-go", "relay", "Forebay alone", "-"
WANTED = [
    ("tcp1", "gbit_per_s", "TCP, one flow", RELAY, 0.8, None),
    ("tcp1ping", "gbit_per_s", "TCP, one flow, with pings beside it", ALONE, 0.9, None),
    ("udp64", "cpu_us_per_packet", "64-byte UDP, CPU us per packet of both gateways", NOTHING, None, 1.6),
    ("tcp1", "gbit_per_s", "TCP, one flow", WIREGUARD, 3.0, None),
    ("tcp4", "gbit_per_s", "TCP, four flows", WIREGUARD, 2.8, None),
    ("both", "gbit_per_s", "TCP, both directions at once", WIREGUARD, 2.8, None),
    ("udp64", "packets_per_s", "64-byte UDP, read by iperf3", WIREGUARD, 4.0, None),
    ("udp64", "delivered_per_s", "64-byte UDP, delivered to iperf3's socket", WIREGUARD, 4.0, None),
    ("idle", "ping_p50_ms", "ping, nothing else, median", WIREGUARD, None, 1.0),
    ("tcp1ping", "gbit_per_s", "TCP, one flow, with pings beside it", WIREGUARD, 2.0, None),
    ("tcp1ping", "ping_p50_ms", "ping under TCP, median", WIREGUARD, None, 1.0),
    ("tcp1ping", "ping_p99_ms", "ping under TCP, p99", WIREGUARD, None, 1.0),
    ("udp20k", "ping_p50_ms", "ping under UDP, median", WIREGUARD, None, 1.0),
    ("udp20k", "ping_p99_ms", "ping under UDP, p99", WIREGUARD, None, 1.0),
]


def values(runs, peer, measurement, figure):
    found = [run["figures"].get(figure) for run in runs if (run["peer"], run["measurement"]) == (peer, measurement)]
    return [value for value in found if value is not None]


def median(runs, peer, measurement, figure):
    found = values(runs, peer, measurement, figure)
    return statistics.median(found) if found else None


def spread(runs, peer, measurement, figure, digits):
    found = values(runs, peer, measurement, figure)
    if not found:
        return "-"
    middle = f"{statistics.median(found):,.{digits}f}"
    return middle if len(found) == 1 else f"{middle} ({min(found):,.{digits}f} to {max(found):,.{digits}f})"


def ratios(runs):
    """Forebay's figures in others', and whether they reach their goals."""
    rows = []
    for measurement, figure, words, beside, least, most in WANTED:
        ours = median(runs, "forebay", measurement, figure)
        if beside == NOTHING:
            theirs = 1.0
        elif beside == ALONE:
            theirs = median(runs, "forebay", "tcp1", figure)
        else:
            theirs = median(runs, beside, measurement, figure)
        if ours is None or not theirs:
            continue
        ratio = ours / theirs
        wanted = f"at least {least:g}" if least else f"at most {most:g}"
        reached = ratio >= least if least else ratio <= most
        rows.append({"what": words, "forebay": ours, "beside": beside, "theirs": theirs, "ratio": ratio, "wanted": wanted,
                     "reached": reached})
    return rows


def tables(result):
    """Title, head and rows of each measurement."""
    for name, title, *_ in traffic.ALL:
        rows = []
        for peer in result["peers"]:
            if values(result["runs"], peer["key"], name, FIGURES[name][0][0]):
                cells = [spread(result["runs"], peer["key"], name, key, digits) for key, _, digits in FIGURES[name]]
                rows.append([peer["title"], *cells])
        if rows:
            yield title, ["", *(words for _, words, _ in FIGURES[name])], rows


def looked_at(one):
    again = f", sent again {one['sent_again']}" if one["below"] else ""
    return f"{one['below']} of {one['seen']:,}{again}"


def reordering(result):
    order = result.get("reordering")
    if not order:
        return None
    rows = []
    for way in order["ways"]:
        runs = way["runs"]
        middle = statistics.median(run["gbit_per_s"] for run in runs)
        rows.append([way["title"], f"{middle:.2f} ({min(run['gbit_per_s'] for run in runs):.2f} to "
                     f"{max(run['gbit_per_s'] for run in runs):.2f})",
                     f"{statistics.median(run['cpu_s_per_gbit'] for run in runs):.3f}",
                     sum(run["TCPOFOQueue"] for run in runs), sum(run["TCPSACKReorder"] for run in runs),
                     sum(run["RetransSegs"] for run in runs),
                     *(looked_at(way["looked_at"][what]) for what in ("esp", "tcp"))])
    head = ["", "Gbit/s", "CPU s/Gbit", "put aside by the receiver", "reorderings seen by the sender", "sent again",
            "ESP below earlier ones", "TCP trains below earlier ones"]
    return head, rows


def lines_of(head, rows):
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    for row in cells:
        yield "  " + row[0].ljust(widths[0]) + "".join(f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:]))


def warnings(result):
    """What a reader must know first."""
    said = [f"{one['title']} was not measured: {one['why']}" for one in result["missing"]]
    if result["busy_before"] > 0.1:
        said.insert(0, f"The machine was busy with something else: {result['busy_before']:.0%} of its CPUs before the first "
                    "measurement. Compare CPU times; throughput and latency are those of a crowd.")
    return said


def ratio_rows(result):
    rows = []
    for one in ratios(result["runs"]):
        theirs = "" if one["beside"] == NOTHING else page.digits(one["theirs"])
        rows.append([one["what"], page.digits(one["forebay"]), one["beside"], theirs, f"{one['ratio']:.2f}", one["wanted"],
                     "reached" if one["reached"] else "not reached"])
    return ["", "Forebay", "beside", "", "ratio", "goal", ""], rows


def terminal(result):
    out = [f"{words}: {value}" for words, value in result["machine"].items()] + [""]
    for peer in result["peers"]:
        out.append(f"{peer['title']}: {peer['about']}{', ' + peer['version'] if peer['version'] else ''}")
    out += [f"! {words}" for words in warnings(result)]
    for title, head, rows in tables(result):
        out += ["", title, *lines_of(head, rows)]
    head, rows = ratio_rows(result)
    if rows:
        out += ["", "Goals", *lines_of(head, rows)]
    found = reordering(result)
    if found:
        out += ["", "One TCP flow, four unlike processors and one", *lines_of(*found),
                f"  throughput of four in that of one: {result['reordering']['ratio']:.3f} (median of the rounds)",
                "  packets done by: " + shares(result)]
    for profile in result["profiles"]:
        kinds = ", ".join(f"{name} {share:.0%}" for name, share in profile["kinds"].items())
        out += ["", f"Where {profile['title']}'s time goes, one TCP flow: {kinds}"]
        out += [f"  {share:6.1%}  {name}: {part}" for name, part, share in profile["parts"][:12]]
    return "\n".join(out)


def shares(result):
    return ", ".join(f"{name} {share:.2%}" for name, share in result["reordering"]["shares"].items())


def figure(result, title, unit, measurements, key, note=""):
    series = []
    for peer in result["peers"]:
        ys = [median(result["runs"], peer["key"], name, key) for name in measurements]
        if any(y is not None for y in ys):
            series.append((peer["title"], ys))
    if not series:
        return ""
    short = [(SHORT_PING if key.startswith("ping") else SHORT)[name] for name in measurements]
    return page.bars(title, unit, short, series, note)


def html(result):
    head, rows = ratio_rows(result)
    by = {one["what"]: one["ratio"] for one in ratios(result["runs"]) if one["beside"] == WIREGUARD}
    tcp, udp = by.get("TCP, one flow"), by.get("64-byte UDP, delivered to iperf3's socket")
    verdict = "Gateways side by side"
    if tcp and udp:
        verdict = f"TCP {tcp:.1f} times, small UDP {udp:.1f} times what wireguard-go passes"
    intro = [f"Two gateways on one machine, a veth of MTU {MTU_OUTSIDE} between their network namespaces, tunnels of MTU "
             f"{MTU_INSIDE}, iperf3 in the gateways' own namespaces. Every gateway has such a pair of namespaces and runs "
             "the whole time; measurements go round from one to the next. Figures are medians of the rounds, with the "
             "least and the most. All share the CPUs with iperf3: what a gateway saves, the others get."]
    sections = []
    if rows:
        sections.append(page.section("Goals", page.table("Forebay's figures divided by others'", head, rows)))
    plots = (
        figure(result, "TCP throughput", "Gbit/s", ["tcp1", "tcp4", "both"], "gbit_per_s"),
        figure(result, "CPU time of both gateways", "s per Gbit", ["tcp1", "tcp4", "both"], "cpu_s_per_gbit",
               "Of their processes; what the kernel does for packets elsewhere is not in it."),
        figure(result, "UDP delivered", "packets/s", ["udp64", "udp1372"], "delivered_per_s",
               "To the socket of the receiving iperf3. Sent as fast as one iperf3 can, which takes a CPU by itself; the "
               "receiving one reads fewer where it has to share its CPU (see the table)."),
        figure(result, "CPU time a UDP packet", "us", ["udp64", "udp1372"], "cpu_us_per_packet"),
        figure(result, "Ping, median", "ms", ["idle", "udp20k", "tcp1ping"], "ping_p50_ms"),
        figure(result, "Ping, 99 of 100", "ms", ["idle", "udp20k", "tcp1ping"], "ping_p99_ms"))
    sections.append(page.section("Figures", page.pairs(*filter(None, plots)), *(page.table(*one) for one in tables(result))))
    found = reordering(result)
    if found:
        text = (f"Throughput of four processors in that of the running core alone: {result['reordering']['ratio']:.3f}, the "
                f"median of the rounds. Packets were done by: {shares(result)}.")
        sections.append(page.section("Four unlike processors", page.paragraph(text), page.table(
            "One TCP flow, in turn", *found), page.verbatim("The processors", result["reordering"]["processors"])))
    if result["profiles"]:
        kinds = list(dict.fromkeys(kind for one in result["profiles"] for kind in one["kinds"]))
        plot = page.bars("Share of the CPU time of both gateways", "%", kinds, [
            (one["title"], [100 * one["kinds"].get(kind, 0) for kind in kinds]) for one in result["profiles"]])
        blocks = [page.pairs(plot)]
        for one in result["profiles"]:
            parts = [[name, part, f"{share:.1%}"] for name, part, share in one["parts"] if share >= 0.005]
            blocks.append(page.table(f"{one['title']}: {one['samples']:,} samples; {one['user_s']:.2f} s in user mode, "
                                     f"{one['kernel_s']:.2f} s in the kernel", ["", "part", "share"], parts))
        text = ("Samples of the CPU's clock by perf during one TCP flow. A sample in the kernel counts for the system call "
                "it is in, with what the kernel does at once in its place; one in user space for the function that it is "
                "in, into which others may be inlined.")
        sections.append(page.section("Where the time goes", page.paragraph(text, "how"), *blocks))
    facts = [[words, value] for words, value in result["machine"].items()]
    facts += [[peer["title"], f"{peer['about']}{'; ' + peer['version'] if peer['version'] else ''}"] for peer in result["peers"]]
    sections.append(page.section("How it was measured", page.table("Machine and versions", ["", ""], facts, "runs"),
                                 page.verbatim("Commands", "\n".join(result["commands"]))))
    return page.document("Forebay: gateways side by side", verdict, intro, warnings(result), sections,
                         f"Made by tests/gateway/bench.py, {result['date']}. Nothing is asserted about times.")
