"""What the doctor looks at: facts of one server, gathered from what the dashboard knows of it anyway.

Pure; imports only `events`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ..events import RequestRecord, ServerRecord, StreamHealth


@dataclass(frozen=True, slots=True)
class Facts:
    """One server. A None is "not known".

    tokenize: whether `/tokenize` answers. usage_details: whether a usage says its cached tokens.
    request_metrics: whether a response says the server's own times. counters: whether metrics have the pair of counters
    that hit rates come from. exposed: addresses of its events that are reachable from beyond the server's machine.
    """

    server: str
    state: Literal["up", "down", "not_vllm", "unauthorized", "unknown"]
    message: str | None = None
    version: str | None = None
    models: tuple[str, ...] = ()
    embedded: bool = False
    metrics: Literal["ok", "failed", "unknown"] = "unknown"
    metrics_message: str | None = None
    counters: bool | None = None
    prefix_caching: bool | None = None
    tokenize: bool | None = None
    usage_details: bool | None = None
    request_metrics: bool | None = None
    streams: tuple[StreamHealth, ...] = ()
    ranks_expected: int | None = None
    exposed: tuple[str, ...] = ()

    @property
    def release(self) -> tuple[int, int] | None:
        """Major and minor number of the version; None where they can't be told, as of a build from source."""
        parts = (self.version or "").split(".")
        if len(parts) < 2 or not (parts[0].isdecimal() and parts[1].isdecimal()):
            return None
        release = (int(parts[0]), int(parts[1]))
        # A build without a tag calls itself 0.0 or 0.1.dev: that is no old release.
        return release if release >= (0, 2) else None

    def is_before(self, release: tuple[int, int]) -> bool:
        """Whether the server is known to be of an earlier release than that."""
        return self.release is not None and self.release < release


def facts_of(
    record: ServerRecord,
    *,
    request_metrics: bool | None = None,
    tokenize: bool | None = None,
    exposed: tuple[str, ...] = (),
) -> Facts:
    """The facts in a server's record, and what the record doesn't have."""
    return Facts(
        server=record.id,
        state=record.state,
        message=record.message,
        version=record.version,
        models=record.models,
        embedded=record.embedded,
        metrics=record.metrics_state,
        metrics_message=record.metrics_message,
        counters=_counters(record),
        prefix_caching=record.prefix_caching,
        tokenize=tokenize,
        usage_details=record.usage_details,
        request_metrics=request_metrics,
        streams=record.streams,
        ranks_expected=record.ranks_expected,
        exposed=exposed,
    )


def _counters(record: ServerRecord) -> bool | None:
    """Older releases have a gauge in the place of counters; `not_exported` names what a page lacks, once it is read."""
    if record.metrics_state != "ok":
        return None
    return not {"query_tokens", "lifetime_hit_ratio"} <= set(record.not_exported)


def request_metrics_of(records: Iterable[RequestRecord]) -> bool | None:
    """Whether the server's own times came with responses. They ride on the usage, so only one with a usage tells."""
    answered = None
    for record in records:
        if record.engine_ttft_ms is not None or record.queue_ms is not None:
            return True
        if record.outcome == "ok" and record.completion_tokens is not None:
            answered = False
    return answered
