"""Two reports side by side: of which figures it can be said that they differ."""

import json
from pathlib import Path
from typing import Any

from .errors import LabError
from .findings import FORMAT, FORMAT_VERSION
from .html import STYLE, table_html
from .text import grid

COLUMNS = ("figure", "unit", "first", "second", "change", "said")
ALIKE = ("model", "version", "block_size", "num_gpu_blocks", "profile")


def read_report(path: str) -> dict[str, Any]:
    """A report of a file. Raises LabError."""
    try:
        report = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LabError(f"{path} can't be read as a report: {error}") from None
    return checked_report(report, path)


def checked_report(report: Any, name: str) -> dict[str, Any]:
    """`report` where it is one. `name`: what it is called in a LabError."""
    if not isinstance(report, dict) or report.get("format") != FORMAT:
        raise LabError(f"{name} is no report of the lab.")
    if report.get("format_version") != FORMAT_VERSION:
        raise LabError(f"{name} has the format {report.get('format_version')}; this version reads {FORMAT_VERSION}.")
    return report


def compared_reports(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Figure by figure. Raises LabError for two different experiments, and where something is missing or no report."""
    try:
        return _compared(first, second)
    except (KeyError, TypeError, AttributeError):
        raise LabError("One of the two isn't a whole report.") from None


def _compared(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    if first["experiment"]["name"] != second["experiment"]["name"]:
        raise LabError("Two different experiments can't be compared.")
    theirs = {figure["key"]: figure for figure in second["figures"]}
    rows = [_row(figure, theirs[figure["key"]]) for figure in first["figures"] if figure["key"] in theirs]
    return {
        "format": f"{FORMAT}-comparison",
        "format_version": FORMAT_VERSION,
        "experiment": first["experiment"],
        "runs": [_run(first), _run(second)],
        "notes": _notes(first, second),
        "columns": list(COLUMNS),
        "rows": rows,
    }


def _row(one: dict[str, Any], other: dict[str, Any]) -> list[Any]:
    a, b = one["value"], other["value"]
    if a is None or b is None:
        return [one["text"], one["unit"], a, b, None, "not known in both"]
    estimated = None not in (one["low"], one["high"], other["low"], other["high"])
    if not estimated:
        said = "equal" if a == b else "different" if one["basis"] in ("usage", "counter") else "no interval"
    elif one["high"] < other["low"] or other["high"] < one["low"]:
        said = "different: the intervals lie apart"
    else:
        said = "can't be told apart"
    return [one["text"], one["unit"], a, b, b - a, said]


def _run(report: dict[str, Any]) -> dict[str, Any]:
    setting = report["setting"]
    return {"state": report["state"], "started_at": setting["started_at"], "server": setting["server"],
            "parameters": setting["parameters"], "repeats": setting["repeats"], "seed": setting["seed"]}  # fmt: skip


def _notes(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    notes = [
        f"The {place} run is partial: {report['state']}."
        for place, report in (("first", first), ("second", second))
        if report["state"] != "complete"
    ]
    one, other = first["setting"]["server"] or {}, second["setting"]["server"] or {}
    notes += [
        f"The servers differ in {name}: {one.get(name)} and {other.get(name)}."
        for name in ALIKE
        if one.get(name) != other.get(name)
    ]
    if first["setting"]["parameters"] != second["setting"]["parameters"]:
        notes.append("The parameters differ.")
    return notes


def text_of_comparison(comparison: dict[str, Any]) -> str:
    """For a terminal."""
    lines = [comparison["experiment"]["title"], *(f"- {note}" for note in comparison["notes"]), ""]
    return "\n".join([*lines, *grid(comparison["columns"], comparison["rows"])])


def html_of_comparison(comparison: dict[str, Any]) -> str:
    """A page with the same table."""
    from html import escape

    title = escape(f"{comparison['experiment']['title']}: two runs")
    notes = "".join(f"<li>{escape(note)}</li>" for note in comparison["notes"])
    table = table_html(
        "Figures", comparison["columns"], comparison["rows"], "Different means: the intervals lie apart."
    )
    head = f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    return f"{head}</head><body><main><h1>{title}</h1><ul>{notes}</ul>{table}</main></body></html>"
