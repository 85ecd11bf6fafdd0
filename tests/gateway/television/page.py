"""The figures as one self-contained page, in the look of Forebay's other reports."""

import base64
import pathlib
from html import escape

from television import report
from television.report import COLUMNS, PAPER, loads_text, not_right, packet_rate
from television.stream import is_whole

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Slots of colour in style.css; idle is the time that no component used.
SLOTS = {"kernel": 0, "IPsec": 1, "links": 2, "application": 3, "libc": 5, "others": 4}
LEFT, WIDTH, ROW = 350, 1080, 34


def page(results, folder):
    """The page; `folder` has the pictures."""
    style = "".join(
        (ROOT / "crates/base/page/src" / name).read_text(encoding="utf-8") for name in ("style.css", "parts.css")
    )
    main = results["main"]
    whole = all(map(is_whole, main))
    suites = " and ".join(name(one["suite"]) for one in main)
    frames = sum(one["frames"]["sent"] for one in main)
    if whole:
        verdict = f"No packet lost, {frames:,} frames right in every byte"
    else:
        lost, bad = sum(one["packets"]["lost"] for one in main), sum(not_right(one) for one in main)
        verdict = f"{lost:,} packets lost, {bad:,} of {frames:,} frames not right"
    first = main[0]
    machine = results["machine"]
    intro = (
        f"{first['format']}, 4:2:2, uncompressed: {first['bits_per_second'] * 1e-6:.0f} Mbit/s for {first['seconds']:g} s"
        f" each with {suites}, as RTP in packets of 9000 bytes, from one host to another through both gateways."
        f" All of it on one machine: {machine['processors']} processors ({machine['model']}), Linux {machine['kernel']},"
        f" {machine['gstreamer']}."
    )
    sections = [
        tiles(main),
        shares_section(main),
        ladder_section(results["ladder"]),
        pictures_section(main, folder),
        how_section(main),
    ]
    sign = ("verdict good", "✓") if whole else ("verdict bad", "!")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>HDTV through Forebay</title><style>{style}{OWN}</style></head><body><main><header>"
        f'<p class="name">Forebay: uncompressed HDTV over IPsec</p><h1 class="{sign[0]}"><span class="sign" aria-hidden="true">'
        f'{sign[1]}</span><span>{escape(verdict)}</span></h1><p class="intro">{escape(intro)}</p>{warning(main)}</header>'
        f"{''.join(sections)}<footer><p>Made by <code>make hdtv</code>. Paper: Bellows et al., IPsec-Protected Transport of HDTV"
        " over IP (GRIP), figure 15.3.</p></footer></main></body></html>\n"
    )


OWN = """
.bars { min-width: 760px; } .seen { max-width: 100%; height: auto; border: 1px solid var(--hair); }
.none { fill: var(--stream); } .lossy { fill: none; stroke: var(--bad); stroke-dasharray: 4 3; stroke-width: 1.5; }
.places.places { text-align: left; white-space: normal; min-width: 260px; } text.bad { fill: var(--bad); }
"""
WHERE = '<th class="places">where</th>'


def name(suite):
    return {"aes128ctr-sha256": "AES-CTR with HMAC-SHA-256", "aes128gcm16": "AES-GCM"}.get(suite, suite)


def warning(main):
    text = report.crowd(main)
    return f'<p class="warning">{escape(text)}</p>' if text else ""


def tiles(main):
    cells = []
    for one in main:
        cells.append(
            (f"{one['packets']['lost']:,}", f"of {one['packets']['sent']:,} packets lost, {name(one['suite'])}")
        )
    for one in main:
        if one["shares"]:
            idle = one["shares"]["sides"]["both ends"]["idle"]
            cells.append(
                (f"{100 * idle:.0f} %", f"of the processors idle, {name(one['suite'])}; GRIP's transmitter: 62 %")
            )
    cells.append(
        (f"{main[0]['packets']['sent'] / main[0]['frames']['sent']:.0f}", "RTP packets a frame; the paper: about 200")
    )
    inner = "".join(
        f'<div><span class="value">{escape(value)}</span><p class="note">{escape(note)}</p></div>'
        for value, note in cells
    )
    return f'<div class="tiles">{inner}</div>'


def shares_section(main):
    rows = [(title, rate, [number(part) for part in parts] + [0.0], parts) for title, rate, parts in PAPER]
    for one in main:
        for side, shares in (one["shares"] or {"sides": {}})["sides"].items():
            parts = [100 * (shares[c] or 0.0) for c in (*COLUMNS, "others")]
            rows.append((f"{side}, {name(one['suite'])}", f"{one['bits_per_second'] * 1e-6:.0f} Mbit/s", parts, None))
    if len(rows) == len(PAPER):
        return ""
    legend = '<li><svg class="swatch" viewBox="0 0 14 14"><rect width="14" height="14" class="none"/></svg>idle</li>'
    legend += "".join(
        f'<li class="p{slot}"><svg class="swatch" viewBox="0 0 14 14"><rect width="14" height="14" class="fill p{slot}"/></svg>{column}</li>'
        for column, slot in SLOTS.items()
    )
    by = main[0]["shares"]["by"]
    return (
        "<section><h2>Where processor time goes</h2><p>Links stand in the place of GRIP's driver. Both ends are all that ran:"
        " both hosts and both gateways. A transmitter alone is sending host and its gateway, as in the paper, whose receiver"
        " was alike.</p>"
        f'<figure><ul class="legend">{legend}</ul><div class="scroll">{bars(rows)}</div><p class="how">By {escape(by)}.</p></figure>'
        f"{shares_table(rows)}</section>"
    )


def number(part):
    """The paper's "< 1 %" drawn as half of it."""
    return 0.5 if part == "<1" else float(part)


def bars(rows):
    scale = (WIDTH - LEFT) / 100
    out = []
    for index, (title, rate, parts, _) in enumerate(rows):
        y = index * ROW + (10 if index >= len(PAPER) else 0)
        out.append(f'<text x="0" y="{y + 19}"><tspan>{escape(title)}</tspan></text>')
        out.append(
            f'<text x="{LEFT - 10}" y="{y + 19}" class="end quiet">{escape(rate) if index < len(PAPER) else ""}</text>'
        )
        x = float(LEFT)
        for column, part in zip((*COLUMNS, "others"), parts):
            width = part * scale
            kind = "none" if column == "idle" else f"fill part p{SLOTS[column]}"
            out.append(
                f'<rect x="{x:.1f}" y="{y + 2}" width="{max(width, 0):.1f}" height="24" class="mark {kind}"><title>{column} {part:.1f} %</title></rect>'
            )
            if width > 26:
                ink = "middle" if column == "idle" else f"middle inside p{SLOTS[column]}"
                out.append(f'<text x="{x + width / 2:.1f}" y="{y + 19}" class="{ink}">{part:.0f}</text>')
            x += width
    height = len(rows) * ROW + 10
    return f'<svg class="bars" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Shares of processor time in per cent">{"".join(out)}</svg>'


def shares_table(rows):
    head = "".join(f"<th>{column}</th>" for column in (*COLUMNS, "others"))
    body = []
    for title, rate, parts, given in rows:
        cells = [*given, "-"] if given else [f"{part:.1f}" for part in parts]
        body.append(
            f"<tr><th>{escape(title)}</th><td>{escape(rate)}</td>"
            + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
            + "</tr>"
        )
    return f'<div class="scroll"><table><caption>Per cent of all processors\' time</caption><thead><tr><th></th><th>video</th>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'


def ladder_section(ladder):
    if not ladder:
        return ""
    most = max(one["bits_per_second"] for one in ladder)
    suites = list(dict.fromkeys(one["suite"] for one in ladder))
    drawn, y = [], 0
    for one in ladder:
        slot = suites.index(one["suite"])
        width = one["bits_per_second"] / most * (WIDTH - LEFT - 230)
        kind = f"fill p{slot}" if is_whole(one) else "lossy"
        told = "whole" if is_whole(one) else (f"{one['packets']['lost']:,} lost" if one["packets"]["lost"] else "late")
        drawn.append(f'<text x="0" y="{y + 17}">{escape(one["format"])}, {escape(name(one["suite"]))}</text>')
        drawn.append(f'<rect x="{LEFT}" y="{y + 2}" width="{width:.1f}" height="20" class="{kind}"/>')
        drawn.append(
            f'<text x="{LEFT + width + 8:.1f}" y="{y + 17}">{one["bits_per_second"] * 1e-6:,.0f} Mbit/s, {told}</text>'
        )
        y += 27
    picture = f'<svg class="bars" viewBox="0 0 {WIDTH} {y}" role="img" aria-label="Formats and what became of them">{"".join(drawn)}</svg>'
    rows = []
    for one in ladder:
        where = report.places(one).removeprefix("; ") or "nowhere"
        cells = (
            name(one["suite"]),
            f"{one['bits_per_second'] * 1e-6:,.0f}",
            f"{packet_rate(one):,.0f}",
            f"{100 * one['processor'].get('idle', 0.0):.0f} %",
            f"{one['packets']['lost']:,}",
            f"{not_right(one):,}",
            loads_text(one),
        )
        inner = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(f'<tr><th>{escape(one["format"])}</th>{inner}<td class="places">{escape(where)}</td></tr>')
    of = {suite: [one for one in ladder if one["suite"] == suite] for suite in suites}
    limits = "".join(f"<p>{escape(name(suite))}: {escape(report.limit(steps))}.</p>" for suite, steps in of.items())
    head = "".join(
        f"<th>{h}</th>"
        for h in (
            "",
            "suite",
            "Mbit/s",
            "packets/s",
            "idle",
            "packets lost",
            "frames not right",
            "of a processor: sender, gateways, receiver",
        )
    )
    return (
        "<section><h2>How far it goes</h2><p>Each a few seconds. Whole: no packet lost, every frame right, the sender in time.</p>"
        f"{limits}"
        f'<div class="scroll">{picture}</div><div class="scroll"><table><thead><tr>{head}{WHERE}</tr></thead><tbody>{"".join(rows)}</tbody></table></div></section>'
    )


def pictures_section(main, folder):
    figures = []
    for one in main:
        for what in ("sent", "received"):
            path = folder / f"{one['pictures']}-{what}.png"
            if path.exists():
                data = base64.b64encode(path.read_bytes()).decode("ascii")
                title = f"{what.capitalize()}: {name(one['suite'])}"
                figures.append(
                    f'<figure><figcaption>{escape(title)}</figcaption><img class="seen" alt="{escape(title)}" src="data:image/png;base64,{data}"></figure>'
                )
    return (
        f'<section><h2>A frame</h2><p>The first that was not right; where all were, the last.</p><div class="pair">{"".join(figures)}</div></section>'
        if figures
        else ""
    )


def how_section(main):
    rows = []
    for one in main:
        frames, rtp = one["frames"], one["rtp"]
        cells = [
            one["suite"],
            f"{frames['sent']:,}",
            f"{frames['right']:,}",
            f"{frames['wrong']:,}",
            f"{frames['missing']:,}",
        ]
        cells += [f"{one['packets'][key]:,}" for key in ("sent", "received", "lost")] + [f"{rtp['lost']:,}"]
        where = report.places(one).removeprefix("; ") or "nowhere"
        rows.append(
            f"<tr><th>{escape(cells[0])}</th>"
            + "".join(f"<td>{escape(c)}</td>" for c in cells[1:])
            + f'<td class="places">{escape(where)}</td></tr>'
        )
    head = "".join(
        f"<th>{h}</th>"
        for h in (
            "",
            "frames sent",
            "right",
            "wrong",
            "missing",
            "packets sent",
            "received",
            "lost",
            "lost by RTP's numbers",
        )
    )
    room = main[0]["receiver_room"]
    return (
        f'<section><h2>What was counted</h2><div class="scroll"><table><thead><tr>{head}{WHERE}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        f"<p>The receiver's socket has room for {room['bytes'] >> 20} MiB (SO_RCVBUFFORCE; the system's limit is {room['system_limit']:,} bytes).</p>"
        f"<details><summary>The sender</summary><pre>{escape(main[0]['sender'])}</pre></details></section>"
    )
