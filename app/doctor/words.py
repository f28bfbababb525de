"""A finding, the closed list of its codes, and the panels that each thing turns on. Pure."""

from dataclasses import dataclass, field
from typing import Literal

Code = Literal[
    "server", "version", "metrics", "prefix_caching", "tokenize", "usage_details", "request_metrics", "kv_events",
    "kv_history", "kv_replay", "kv_ranks", "reuse_reports", "events_exposed",
]  # fmt: skip
"""In the order in which they are shown."""
FindingStatus = Literal["on", "missing", "unknown", "unsupported", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing of a server.

    flag: what to add to `vllm serve`, ready to paste; null where no flag helps. panels: what it turns on on the page.
    reason: which of several kinds of the same thing it is; null where there is one.
    """

    code: Code
    status: FindingStatus
    title: str
    text: str
    flag: str | None = None
    panels: tuple[str, ...] = ()
    reason: str | None = None
    params: dict[str, str | int | None] = field(default_factory=dict)


class Panels:
    """What of the page each thing turns on, in the page's own words."""

    METRICS = ("Hit rate by the server's counters", "Hit rate over time", "Pool: blocks held by running requests")
    CACHING = ("Every figure of reuse",)
    TOKENIZE = ("Forecast while typing", "Block tables of other clients' requests", "Text of blocks")
    USAGE = ("Hit rate by the requests' own usage", "Prompt tokens reused", "Forecast against outcome")
    TIMES = ("First token by the server's clock", "Time in the server's queue")
    EVENTS = ("Requests, block by block", "The cache", "Prefix tree", "Forecasts")
    HISTORY = ("Forecasts that are exact, not lower bounds",)
    REPLAY = ("The cache as it was before the dashboard started", "Closing gaps in the event stream")
    RANKS = ("The cache of every data-parallel rank",)
    REPORTS = ("Reused blocks by the server's own word",)
