"""A report as one HTML file that works offline: tables in plain HTML, charts by Plotly, library and data inside.

Everything that comes from outside goes in as text. Without scripts the tables and figures are all there.
"""

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from ..page_files import PLOTLY, STATIC_DIR

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b1f24;background:#fff}
h1{margin-bottom:0}h2{margin-top:2.2rem}table{border-collapse:collapse;margin:.6rem 0;font-variant-numeric:tabular-nums}
th,td{border-bottom:1px solid #d0d7de;padding:.25rem .7rem;text-align:right}
th:first-child,td:first-child{text-align:left}
caption{text-align:left;font-weight:600;padding:.3rem 0}.wide{overflow-x:auto}.chart{height:26rem}
.partial{border-left:.4rem solid #9a3412;background:#fff4ed;padding:.6rem 1rem}.note{color:#57606a}
@media (prefers-color-scheme:dark){body{background:#14181d;color:#e6edf3}th,td{border-color:#3a424c}
.partial{background:#3a2115}.note{color:#9ba5b0}}
"""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#8a5fbf", "#b8860b", "#56b4e9", "#cc3377", "#5a6572")
"""Told apart by most colour-blind readers; lines differ by marks and dashes too."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star", "pentagon")
DRAW = """
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
JSON.parse(document.getElementById("charts").textContent).forEach((figure, place) => {
  const clear = "rgba(0,0,0,0)";
  const paper = {paper_bgcolor: clear, plot_bgcolor: clear, font: {color: dark ? "#e6edf3" : "#1b1f24"}};
  Plotly.newPlot(`chart-${place}`, figure.data, {...figure.layout, ...paper}, {responsive: true, displaylogo: false});
});
"""


def html_of(report: dict[str, Any]) -> str:
    """The file."""
    plotly = (STATIC_DIR / PLOTLY).read_text()
    experiment = report["experiment"]
    title = f"{experiment['title']}: PrefixScope lab"
    charts = [figure_of(chart) for chart in report["charts"]]
    return "".join((
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<style>{STYLE}</style></head><body><main>",
        f"<h1>{escape(experiment['title'])}</h1><p>{escape(experiment['question'])}</p>",
        _partial(report), _setting(report), _list("Notes", report["notes"]), _figures(report["figures"]),
        *(f'<h2>{escape(chart["title"])}</h2><div class="chart" id="chart-{place}"></div>'
          for place, chart in enumerate(report["charts"])),
        "<noscript><p class=note>The charts need scripts; the tables below have the same data.</p></noscript>",
        *(table_html(table["title"], table["columns"], table["rows"], table["note"]) for table in report["tables"]),
        *(_chart_table(chart) for chart in report["charts"]),
        _list("What follows", report["follows"]), _list("What does not follow", report["follows_not"]),
        _samples(report["samples"]), "</main>",
        f'<script type="application/json" id="report">{_data(report)}</script>',
        f'<script type="application/json" id="charts">{_data(charts)}</script>',
        f"<script>{plotly}</script><script>{DRAW}</script></body></html>",
    ))  # fmt: skip


def figure_of(chart: dict[str, Any]) -> dict[str, Any]:
    """A chart as Plotly's data and layout."""
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": chart["x_label"]}, "type": "log" if chart["log_x"] else None, "automargin": True},
        "yaxis": {"title": {"text": chart["y_label"]}, "rangemode": "tozero", "automargin": True},
        "legend": {"orientation": "h", "y": -0.25}, "margin": {"t": 16, "r": 16}, "barmode": "group",
        "shapes": [
            {"type": "rect", "xref": "x", "yref": "paper", "x0": low, "x1": high, "y0": 0, "y1": 1,
             "line": {"width": 0}, "fillcolor": "rgba(128,128,128,0.15)"}
            for low, high in chart["bands"]
        ],
    }  # fmt: skip
    return {"data": [_trace(series, place) for place, series in enumerate(chart["series"])], "layout": layout}


def _trace(series: dict[str, Any], place: int) -> dict[str, Any]:
    colour = COLOURS[place % len(COLOURS)]
    trace: dict[str, Any] = {"name": series["name"], "x": list(series["x"]), "y": list(series["y"])}
    if series["mode"] == "bars":
        trace |= {"type": "bar", "marker": {"color": colour}}
    else:
        mode = {"points": "markers", "line": "lines", "steps": "lines"}.get(series["mode"], "lines+markers")
        trace |= {"type": "scatter", "mode": mode, "marker": {"color": colour, "symbol": SYMBOLS[place % len(SYMBOLS)]},
                  "line": {"color": colour, "dash": "dash" if series["dash"] else "solid"}}  # fmt: skip
        if series["mode"] == "steps":
            trace["line"]["shape"] = "hv"
    if series["texts"]:
        trace["text"] = list(series["texts"])
    if series["high"]:
        pairs = list(zip(series["y"], series["low"], series["high"], strict=True))
        trace["error_y"] = {
            "type": "data", "symmetric": False, "color": colour,
            "array": [None if y is None or high is None else high - y for y, _, high in pairs],
            "arrayminus": [None if y is None or low is None else y - low for y, low, _ in pairs],
        }  # fmt: skip
    return trace


def _data(value: Any) -> str:
    """JSON that no markup can end early."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _partial(report: dict[str, Any]) -> str:
    if report["state"] == "complete":
        return ""
    words = f"This report is partial: the run was {report['state']}. {report['detail'] or ''}"
    return f'<p class="partial" role="alert">{escape(words)}</p>'


def _setting(report: dict[str, Any]) -> str:
    setting = report["setting"]
    server = setting["server"] or {}
    rows: list[tuple[str, Any]] = [
        ("Server", server.get("url")), ("vLLM version", server.get("version")), ("Model", server.get("model")),
        ("Block size", server.get("block_size")), ("Blocks in the pool", server.get("num_gpu_blocks")),
        ("Longest context", server.get("max_model_len")), ("Times", setting["timing"]), ("Off is", setting["off"]),
        ("Cached tokens from", server.get("cached_basis")),
        ("Cache flags", ", ".join(f"{name}={value}" for name, value in (server.get("flags") or {}).items()) or None),
        ("Parameters", ", ".join(f"{name}={value}" for name, value in setting["parameters"].items()) or None),
        ("Repeats", setting["repeats"]), ("Seed of the order", setting["seed"]), ("Started", setting["started_at"]),
        ("Ended", setting["ended_at"]), ("Requests", report["totals"]["requests"]),
        ("PrefixScope", setting["lab_version"]),
    ]  # fmt: skip
    return table_html("Setting", ("", ""), [row for row in rows if row[1] is not None], "")


def _figures(figures: Sequence[dict[str, Any]]) -> str:
    rows = [
        (f["text"], f["value"], f["unit"], f["low"], f["high"], f["level"], f["expected"], f["basis"], f["method"])
        for f in figures
    ]
    columns = ("figure", "value", "unit", "from", "to", "level", "expected", "basis", "method")
    return table_html("Figures", columns, rows, "") if rows else ""


def _chart_table(chart: dict[str, Any]) -> str:
    rows = [
        (series["name"], x, y, series["low"][place] if series["low"] else None,
         series["high"][place] if series["high"] else None)
        for series in chart["series"]
        for place, (x, y) in enumerate(zip(series["x"], series["y"], strict=True))
    ]  # fmt: skip
    columns = ("line", chart["x_label"] or "x", chart["y_label"], "from", "to")
    table = table_html("", columns, rows, "")
    return f"<details><summary>Data of the chart: {escape(chart['title'])}</summary>{table}</details>"


def _samples(samples: Sequence[dict[str, Any]]) -> str:
    if not samples:
        return "<p class=note>No request was completed.</p>"
    names = [name for name in samples[0] if name not in ("values", "prompt_ids", "answer_ids", "space")]
    further = sorted({name for sample in samples for name in sample["values"]})
    rows = [[*(s[name] for name in names), *(s["values"].get(name) for name in further)] for s in samples]
    table = table_html("", [*names, *further], rows, "")
    return f"<details><summary>All {len(samples)} measurements</summary>{table}</details>"


def _list(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    return f"<h2>{escape(title)}</h2><ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def table_html(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str) -> str:
    """A table; every cell goes in as text."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(shown(cell))}</td>' for cell in row)}</tr>" for row in rows)
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    below = f'<p class="note">{escape(note)}</p>' if note else ""
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>{below}'


def shown(value: Any) -> str:
    """A cell as text; unknown is a dash, which 0 is not."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"
