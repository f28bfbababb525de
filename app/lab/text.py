"""A report as plain text, for a terminal."""

from collections.abc import Sequence
from typing import Any

from .html import shown

LONGEST_CELL = 60


def text_of(report: dict[str, Any]) -> str:
    """Setting, figures, tables, and what follows."""
    experiment, setting, server = report["experiment"], report["setting"], report["setting"]["server"] or {}
    lines = [experiment["title"], experiment["question"], ""]
    if report["state"] != "complete":
        lines += [f"PARTIAL: the run was {report['state']}. {report['detail'] or ''}", ""]
    if server:
        lines += [f"{server['url']}, vLLM {server['version']}, {server['model']}, blocks of {server['block_size']}"]
        lines += [f"Off is: {setting['off']}"]
    lines += [f"Times: {setting['timing']}", ""]
    rows = [(f["text"], f["value"], f["unit"], _interval(f), f["expected"], f["basis"]) for f in report["figures"]]
    lines += grid(("figure", "value", "unit", "interval", "expected", "basis"), rows)
    for table in report["tables"]:
        lines += ["", table["title"], *grid(table["columns"], table["rows"])]
    for title, name in (("Notes", "notes"), ("What follows", "follows"), ("What does not follow", "follows_not")):
        if report[name]:
            lines += ["", f"{title}:", *(f"- {item}" for item in report[name])]
    return "\n".join(lines)


def grid(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Rows under each other, columns as wide as they must be."""
    cells = [list(columns), *([shown(cell)[:LONGEST_CELL] for cell in row] for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(columns))]
    return [
        "  ".join(
            cell.ljust(width) if not place else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def _interval(figure: dict[str, Any]) -> str:
    if figure["low"] is None:
        return ""
    level = f" ({100 * figure['level']:.0f} %)" if figure["level"] else ""
    return f"{shown(figure['low'])} to {shown(figure['high'])}{level}"
