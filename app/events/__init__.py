"""Frozen dashboard events going out: the contract with the browser and with other programs.

`EVENTS.md` is generated from these classes: each docstring's `name: meaning` lines describe its fields, and a test
checks that none is left out. Adding an optional field keeps `PROTOCOL_VERSION`; changing a meaning raises it.
None goes out as null and always means "unknown" or "not applicable", never 0. Hashes are text (`ids.hash_text`).
Shares are ratios, 0 to 1. `at_ms` is in milliseconds of the Unix epoch; durations come from a monotonic clock.
A module a subject: its records, which look the same wherever they appear, and its events, which carry them.
Imports only `ids`, `observations` and msgspec.
"""

from .blocks import BlockColumns, BlocksCleared, BlocksRemoved, BlocksReused, BlocksStored
from .envelope import PROTOCOL_VERSION, Basis, Event, Outgoing
from .metrics import MetricsPoint, MetricsSampledEvent
from .opening import Hello, Snapshot
from .rates import HitRateUpdated, RateReading, ReadingsDifference
from .requests import (
    BlockTable,
    CellState,
    FirstTokenParts,
    RequestFailed,
    RequestFinished,
    RequestFirstTokenEvent,
    RequestJoined,
    RequestRecord,
    RequestStartedEvent,
    RequestSummary,
    Routing,
    TokenGaps,
)
from .scenario import ScenarioAdvanced, ScenarioState
from .sentences import Notice, Verdict
from .servers import ForecastScore, ServerChanged, ServerRecord
from .streams import CacheGroup, StreamGapped, StreamHealth, StreamResynced

EVENT_TYPES: dict[str, type[Event]] = {
    event_class.type: event_class
    for event_class in (
        Hello, Snapshot, RequestStartedEvent, RequestFirstTokenEvent, RequestJoined, RequestFinished, RequestFailed,
        BlocksStored, BlocksReused, BlocksRemoved, BlocksCleared, MetricsSampledEvent, HitRateUpdated, ServerChanged,
        StreamGapped, StreamResynced, ScenarioAdvanced,
    )
}  # fmt: skip

__all__ = [
    "EVENT_TYPES",
    "PROTOCOL_VERSION",
    "Basis",
    "BlockColumns",
    "BlockTable",
    "BlocksCleared",
    "BlocksRemoved",
    "BlocksReused",
    "BlocksStored",
    "CacheGroup",
    "CellState",
    "Event",
    "FirstTokenParts",
    "ForecastScore",
    "Hello",
    "HitRateUpdated",
    "MetricsPoint",
    "MetricsSampledEvent",
    "Notice",
    "Outgoing",
    "RateReading",
    "ReadingsDifference",
    "RequestFailed",
    "RequestFinished",
    "RequestFirstTokenEvent",
    "RequestJoined",
    "RequestRecord",
    "RequestStartedEvent",
    "RequestSummary",
    "Routing",
    "ScenarioAdvanced",
    "ScenarioState",
    "ServerChanged",
    "ServerRecord",
    "Snapshot",
    "StreamGapped",
    "StreamHealth",
    "StreamResynced",
    "TokenGaps",
    "Verdict",
]
