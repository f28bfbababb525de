"""A run as a report: one JSON value that says all, and the samples as CSV. Pure."""

import csv
import io
from dataclasses import asdict
from typing import Any

from .. import __version__
from .findings import FORMAT, FORMAT_VERSION
from .runner import Run
from .sample import sample_record
from .setting import ServerFacts
from .shared import outlying


def report_of(run: Run, started_at: str, ended_at: str, *, text: bool = False) -> dict[str, Any]:
    """The report. Dates in ISO 8601. Without `text` it has no prompt and no answer in it."""
    experiment, setting = run.experiment, run.setting
    findings = experiment.conclude(setting, run.samples)
    far = outlying(run.samples)
    notes = list(run.notes)
    if far:
        places = ", ".join(str(sample.index) for sample in far)
        notes.append(f"{len(far)} first-token time(s) lie far from the others of their kind; they are in: {places}.")
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "experiment": {"number": experiment.number, "name": experiment.name, "title": experiment.title,
                       "question": experiment.question},
        "state": run.state,
        "detail": run.detail,
        "setting": {
            "lab_version": __version__,
            "started_at": started_at,
            "ended_at": ended_at,
            "seed": setting.seed,
            "repeats": setting.repeats,
            "parameters": {name: _plain(value) for name, value in setting.parameters.items()},
            "off": off_text(setting.off_server, local=experiment.local is not None),
            "server": None if experiment.local else _facts(setting.server),
            "off_server": _facts(setting.off_server) if setting.off_server else None,
            "timing": timing_text(setting.server, local=experiment.local is not None),
        },
        "totals": {
            "requests": len(run.samples),
            "own_prompt_tokens": run.own_query_tokens,
            "counted_query_tokens": run.counted_query_tokens,
            "counted_hit_tokens": run.counted_hit_tokens,
            "outliers": [sample.index for sample in far],
        },
        "notes": notes,
        **findings.record(),
        "samples": [sample_record(sample, text=text) for sample in run.samples],
        "has_text": text,
    }  # fmt: skip


def off_text(off_server: ServerFacts | None, *, local: bool) -> str:
    """How "off" is made."""
    if local:
        return "There is no side without a cache here."
    if off_server is not None:
        return f"A second server, {off_server.url}, that runs with prefix caching off."
    return "A fresh random cache_salt for each request: the cache runs, and nothing in it can be reused."


def timing_text(server: ServerFacts, *, local: bool) -> str:
    """Whose times these are."""
    if local:
        return "Measured on this machine."
    if not server.embedded:
        return "Measured by this machine's clock, from before the first byte of a request to the first generated token."
    assumed = f"; assumed, not published: {', '.join(server.assumed)}" if server.assumed else ""
    return (
        f"The embedded engine: exact block accounting, modelled timing (profile {server.profile}{assumed}), measured "
        "by this machine's clock."
    )


def csv_of(report: dict[str, Any]) -> str:
    """The samples, one a line; unknown is empty."""
    out = io.StringIO()
    samples = report["samples"]
    names = [name for name in samples[0] if name != "values"] if samples else ["index"]
    further = sorted({name for sample in samples for name in sample["values"]})
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*names, *further])
    for sample in samples:
        values = [*(sample[name] for name in names), *(sample["values"].get(name) for name in further)]
        writer.writerow([_cell(value) for value in values])
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return " ".join(map(str, value))
    # A spreadsheet takes text that begins like a formula for one.
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@" and value else value


def _facts(facts: ServerFacts) -> dict[str, Any]:
    record = asdict(facts)
    del record["alphabet"]
    return record | {"assumed": list(facts.assumed), "flags": dict(facts.flags)}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
