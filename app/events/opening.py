"""What every connection opens with: who speaks, and everything that is known."""

from dataclasses import dataclass, field
from typing import ClassVar

from ..ids import ServerId
from .blocks import BlockColumns
from .envelope import Event
from .metrics import MetricsPoint
from .rates import RateReading, ReadingsDifference
from .requests import RequestSummary
from .scenario import ScenarioState
from .servers import ServerRecord


@dataclass(frozen=True, slots=True)
class Hello(Event):
    """The first message on every connection.

    product: "prefixscope".
    version: the dashboard's version.
    instance: changes with every start of the dashboard; sequence numbers count within one.
    backlog_events: events kept for a client that resumes from a sequence number.
    demo: whether this is the demo, with the embedded engine.
    show_prompts: whether the text of every request is shown, not only of the page's own.
    redact: whether no text is shown at all.
    """

    type: ClassVar[str] = "hello"
    product: str
    version: str
    instance: str
    backlog_events: int
    demo: bool
    show_prompts: bool
    redact: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot(Event):
    """Everything that is known, as of the envelope's seq; later events build on it.

    servers: every server.
    requests: kept requests, newest first, at most as many as the settings allow in a snapshot.
    blocks: resident blocks, an entry for each server and rank.
    rates: hit rates by server.
    differences: readings that disagree, by server.
    metrics: recent scrapes by server, oldest first.
    scenario: the demo's scenario; null where there is none.
    """

    type: ClassVar[str] = "snapshot"
    servers: tuple[ServerRecord, ...]
    requests: tuple[RequestSummary, ...]
    blocks: tuple[BlockColumns, ...]
    rates: dict[ServerId, tuple[RateReading, ...]]
    metrics: dict[ServerId, tuple[MetricsPoint, ...]]
    scenario: ScenarioState | None
    differences: dict[ServerId, tuple[ReadingsDifference, ...]] = field(default_factory=dict)
