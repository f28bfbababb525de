"""Writes what is generated from the event classes: EVENTS.md and the golden files. `make golden` runs it.

A test fails while either differs from the classes, so a change of the contract is always seen in a diff.
"""

import dataclasses
import json
import re
from pathlib import Path

import msgspec

from app import events
from app.wire.live_protocol import encode_event
from tests.contract.examples import EXAMPLES, outgoing

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "contract" / "golden"

HEAD = """# Events

Generated from `app/events/` by `make golden`; a test keeps it current.

`WS /live` sends one JSON object a message:

| field | meaning |
|---|---|
| `v` | version of this protocol: {version}. Adding an optional field keeps it; changing a meaning raises it. |
| `seq` | number of the event within one run of the dashboard; strictly increasing on a connection |
| `at_ms` | when, in milliseconds of the Unix epoch |
| `server`, `rank` | whose event it is; null for the dashboard's own, and where it is the whole server's |
| `type` | the name below |
| `basis` | `engine`, `counter`, `usage`, `clock`, `inferred` or `modelled`; null where each figure names its own |
| `data` | the fields below |

First comes `hello`, then `snapshot`, then events. A client that reconnects names the last `seq` it has seen and the
`instance` of its `hello` (`/live?after=SEQ&instance=ID`) and gets the events since, or a fresh snapshot where they are
no longer kept. A client that is too slow gets a fresh snapshot instead of its backlog: a `snapshot` may come at any
time, and replaces everything before it. Where nothing else came for a while, `{{"type": "heartbeat"}}` comes, without
`seq` and `data`.

null always means "unknown" or "not applicable", never 0. Hashes are text. Shares are ratios, 0 to 1.
"""


def field_rows(cls: type) -> str:
    """A Markdown table of a class's fields, from its docstring's `name: meaning` lines. Raises KeyError for a gap."""
    doc = cls.__doc__ or ""
    meanings = dict(re.findall(r"^\s*([a-z_0-9]+): (.+(?:\n(?!\s*[a-z_0-9]+: )\s+.+)*)", doc, re.M))
    rows = ["| field | type | meaning |", "|---|---|---|"]
    for name, annotation in fields_of(cls):
        meaning = re.sub(r"\s+", " ", meanings[name]).strip()
        rows.append(f"| `{name}` | {type_text(annotation)} | {meaning} |")
    return "\n".join(rows)


def fields_of(cls: type) -> list[tuple[str, object]]:
    """(name, annotation) of each field of an event class, a dataclass or a msgspec struct."""
    if dataclasses.is_dataclass(cls):
        return [(field.name, field.type) for field in dataclasses.fields(cls)]
    return [(field.name, field.type) for field in msgspec.structs.fields(cls)]


def type_text(annotation: object) -> str:
    """A type annotation in words of JSON."""
    text = (
        annotation.__name__ if isinstance(annotation, type) and not hasattr(annotation, "__args__") else str(annotation)
    )
    for pattern, replacement in (
        (r"(?:app\.(?:\w+\.)+|typing\.)", ""),
        (r"Literal\[(.*?)\]", lambda m: " or ".join(m[1].replace("'", "`").split(", "))),
        (r"\bNoneType\b|\bNone\b", "null"),
        (r"\b(str|RequestId|ServerId)\b", "string"),
        (r"\b(int|Rank|GroupIdx)\b", "integer"),
        (r"\bfloat\b", "number"),
        (r"\bbool\b", "boolean"),
        (r"\btuple\[(.*), \.\.\.\]", r"array of \1"),
        (r"\bdict\[", "object["),
        (r" \| ", " or "),
    ):
        text = re.sub(pattern, replacement, text)
    return text


def summary(cls: type) -> str:
    """The part of a docstring before its fields."""
    text: list[str] = []
    for line in (cls.__doc__ or "").strip().splitlines():
        if re.match(r"\s*[a-z_0-9]+: ", line):
            break
        text.append(line.strip())
    return " ".join(text).strip()


def events_markdown() -> str:
    """The whole of EVENTS.md."""
    parts = [HEAD.format(version=events.PROTOCOL_VERSION)]
    for name, cls in events.EVENT_TYPES.items():
        parts.append(f"## `{name}`\n\n{summary(cls)}\n\n{field_rows(cls)}\n")
    parts.append("# Records\n\nWhat events carry.\n")
    records = (
        events.RequestRecord, events.FirstTokenParts, events.TokenGaps, events.Verdict, events.BlockTable,
        events.RequestSummary, events.BlockColumns, events.ServerRecord, events.ForecastScore, events.StreamHealth,
        events.RateReading, events.ReadingsDifference, events.MetricsPoint, events.ScenarioState,
    )  # fmt: skip
    for record in records:
        parts.append(f"## {record.__name__}\n\n{summary(record)}\n\n{field_rows(record)}\n")
    return "\n".join(parts)


def golden_files() -> dict[str, str]:
    """File name to content: each example event as it goes over the websocket, indented for reading."""
    files = {}
    for seq, event in enumerate(EXAMPLES, start=1):
        message = json.loads(encode_event(outgoing(event), seq))
        files[f"{event.type}.json"] = json.dumps(message, indent=1, ensure_ascii=False) + "\n"
    return files


def main() -> None:
    """Writes EVENTS.md and the golden files."""
    (ROOT / "EVENTS.md").write_text(events_markdown())
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, content in golden_files().items():
        (GOLDEN / name).write_text(content)


if __name__ == "__main__":
    main()
