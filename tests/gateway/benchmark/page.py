"""Pages that look like those of the program: its style sheet and its script of plots, written from Python."""

import html
import json
import pathlib

PARTS = pathlib.Path(__file__).resolve().parents[3] / "crates" / "base" / "page" / "src"
USE = ("On a plot: rest the pointer for values, or step with the arrow keys; press a name in a legend to hide or show "
       "it, with Shift to see it alone.")
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 520, 310, 58, 26, 262


def text(words):
    return html.escape(str(words), quote=True)


def paragraph(words, kind=""):
    return f'<p class="{kind}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>"


def table(title, head, rows, kind=""):
    cells = "".join(f"<th>{text(one)}</th>" for one in head)
    body = "".join("<tr>" + "".join(f"<td>{text(one)}</td>" for one in row) + "</tr>" for row in rows)
    return (f'<div class="scroll" tabindex="0" role="region" aria-label="{text(title)}"><table class="{kind}">'
            f"<caption>{text(title)}</caption><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>")


def digits(value):
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def bars(title, unit, names, series, note=""):
    """Bars over names; `series` are names and values, None where there is none. plot.js draws them anew."""
    values = [value for _, ys in series for value in ys if value is not None]
    most = max(values, default=0) or 1
    step, chart = (WIDTH - 12 - LEFT) / max(1, len(names)), []
    for part in range(5):
        y = BOTTOM - (BOTTOM - TOP) * part / 4
        chart.append(f'<line x1="{LEFT}" x2="{WIDTH - 12}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
                     f'<text x="{LEFT - 7}" y="{y + 4:.1f}" class="end">{digits(most * part / 4)}</text>')
    chart.append(f'<text x="0" y="12" class="quiet">{text(unit)}</text>')
    for number, name in enumerate(names):
        middle = LEFT + step * (number + 0.5)
        chart.append(f'<text x="{middle:.1f}" y="{BOTTOM + 17}" class="middle">{text(name)}</text>')
    width = step * 0.8 / max(1, len(series))
    for slot, (name, ys) in enumerate(series):
        for number, value in enumerate(ys):
            if value is not None:
                x, height = LEFT + step * (number + 0.1) + width * slot, (BOTTOM - TOP) * value / most
                chart.append(f'<rect x="{x:.1f}" y="{BOTTOM - height:.1f}" width="{width * 0.94:.1f}" '
                             f'height="{height:.1f}" class="fill point p{slot % 8}"><title>{text(name)}, '
                             f"{text(names[number])}: {digits(value)}</title></rect>")
    legend = "".join(f'<li class="p{slot % 8}"><svg class="swatch" viewBox="0 0 14 14"><rect x="2" y="2" width="10" '
                     f'height="10" class="fill p{slot % 8}"/></svg>{text(name)}</li>'
                     for slot, (name, _) in enumerate(series))
    data = {"title": title, "x": "", "y": unit, "log_x": False, "log_y": False, "note": note,
            "series": [{"name": name, "xs": names, "ys": ys} for name, ys in series]}
    data = json.dumps(data).replace("<", "\\u003c")
    return (f'<figure class="plot"><figcaption><b>{text(title)}</b></figcaption>'
            + (f'<ul class="legend">{legend}</ul>' if len(series) > 1 else "")
            + f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text(title)}: {text(unit)}">{"".join(chart)}'
            f'<line x1="{LEFT}" x2="{WIDTH - 12}" y1="{BOTTOM}" y2="{BOTTOM}" class="axis"/></svg>'
            + (paragraph(note, "how") if note else "")
            + f'<script type="application/json" class="data">{data}</script></figure>')


def pairs(*figures):
    return f'<div class="pair plots">{"".join(figures)}</div>'


def section(title, *blocks):
    return f"<section><h2>{text(title)}</h2>{''.join(blocks)}</section>"


def verbatim(name, words):
    return f"<details><summary>{text(name)}</summary><pre>{text(words)}</pre></details>"


def document(kind, verdict, intro, warnings, sections, footer):
    style, parts, script = ((PARTS / name).read_text("utf-8") for name in ("style.css", "parts.css", "plot.js"))
    head = (f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{text(kind)}</title><style>{style}{parts}</style>")
    top = (f'<header><p class="name">{text(kind)}</p><h1>{text(verdict)}</h1>'
           + "".join(paragraph(one, "warning") for one in warnings)
           + "".join(paragraph(one, "intro") for one in intro) + "</header>")
    end = f'<footer>{paragraph(footer)}{paragraph(USE, "use")}</footer>'
    return (f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body><main>{top}{"".join(sections)}{end}</main>'
            f"<script>{script}</script></body></html>\n")
