"""The tables of docs/interop.md, out of the results of peers.py."""

from vm import ROOT

PAGE = ROOT / "docs/interop.md"
BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"


def write(results, events, page=PAGE):
    """Puts them between the two marks of the page."""
    text = page.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{tables(results, events)}\n{END}{after}")


def tables(results, events):
    """Versions, then events by peers, then why some are not there."""
    lines = [
        "| Peer | Daemon | Kernel | Gateway's daemon and kernel | Packets sealed | In the clear |",
        "|---|---|---|---|---|---|",
    ]
    for name, entry in results.items():
        versions = entry["versions"]
        runs = [*entry["events"].values(), *([entry["rekeys"]] if "rekeys" in entry else [])]
        counted = [run for run in runs if "sealed" in run]
        wire = [
            sum(run[what] for run in counted) if counted else "not counted" for what in ("sealed", "clear")
        ]
        lines.append(
            f"| {name} | {versions['daemon']} | {versions['kernel']} | {versions['gateway']} | {wire[0]} | {wire[1]} |"
        )
    reasons = []
    shown = [event for event in events if any(event in entry["events"] for entry in results.values())]
    if shown:
        lines += ["", "| Event | " + " | ".join(results) + " |", "|---" * (len(results) + 1) + "|"]
    for event in shown:
        cells = [cell(entry["events"].get(event), reasons) for entry in results.values()]
        lines.append(f"| {event} | " + " | ".join(cells) + " |")
    lines += [""] * bool(reasons) + [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
    for name, entry in results.items():
        if many := entry.get("rekeys"):
            lines += [
                "",
                f"{name}: {many['rekeys']} rekeys one after the other under {many['sent']} pings, "
                f"{many['lost']} lost, {many['by_linux']} of them dropped by the peer's kernel itself.",
            ]
    return "\n".join(lines) + "\n"


def cell(result, reasons):
    """What stands at a crossing: `ok`, how much was lost, or the number of the reason."""
    if result is None:
        return "not run"
    if result["outcome"] == "ok":
        lost = result.get("lost", 0)
        said = f" ({result['said']})" if result.get("said") else ""
        return "ok" + said + (f", {lost} of {result['sent']} lost" if lost else "")
    word = {"unable": "–", "failed": "**failed**"}[result["outcome"]]
    reason = " ".join(result["why"].replace("|", "/").split())[:160]
    if reason not in reasons:
        reasons.append(reason)
    return f"{word} [{reasons.index(reason) + 1}]"
