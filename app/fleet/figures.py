"""A fleet's figures, pooled from counts: hits of all over lookups of all, never a mean of rates. Pure.

A member that is down, asleep or without readings is named and left out; one whose events have gaps is left out of what
is inferred from events. Imports only `ids` and `events`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..events import Basis, RateReading, Routing, ServerRecord
from ..ids import ServerId


@dataclass(frozen=True, slots=True)
class Member:
    """One server. left_out: why its counts are missing from the pooled ones (down, asleep, metrics_failed), null where
    they aren't. partial: some history of its blocks is missing, so that inferred readings leave it out."""

    server: ServerId
    state: str
    version: str | None
    models: tuple[str, ...]
    block_size: int | None
    num_gpu_blocks: int | None
    ranks: int
    left_out: str | None
    partial: bool
    rates: tuple[RateReading, ...]


@dataclass(frozen=True, slots=True)
class PooledRate:
    """Hit tokens of `servers` members over the tokens that they looked up. ratio: null where that is none."""

    window: str
    basis: Basis
    hit_tokens: int
    query_tokens: int
    ratio: float | None
    servers: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Routing accounts of `requests` summed: each step from what could be reused down to what was. `undecided` are
    requests of which it isn't known which replica served them: they count in no other field."""

    requests: int
    undecided: int
    reusable_tokens: int
    ceiling_tokens: int
    best_tokens: int
    chosen_tokens: int
    delivered_tokens: int
    workload_lost_tokens: int
    eviction_lost_tokens: int
    placement_lost_tokens: int
    staleness_lost_tokens: int
    complete: bool


def member(record: ServerRecord, rates: Sequence[RateReading]) -> Member:
    """A server as a member of a fleet."""
    if record.state != "up":
        left_out: str | None = "down"
    elif record.asleep:
        left_out = "asleep"
    else:
        left_out = None if record.metrics_state == "ok" else "metrics_failed"
    return Member(
        server=record.id,
        state=record.state,
        version=record.version,
        models=record.models,
        block_size=record.block_size,
        num_gpu_blocks=record.num_gpu_blocks,
        ranks=len(record.streams),
        left_out=left_out,
        partial=not record.streams or any(stream.coverage != "complete" for stream in record.streams),
        rates=tuple(rates),
    )


def pooled(members: Iterable[Member]) -> tuple[PooledRate, ...]:
    """Each window by each basis, over the members that have it. The window of the last request is none of a fleet's."""
    sums: dict[tuple[str, Basis], list[int]] = {}
    for each in members:
        for reading in each.rates:
            inferred_partly = reading.basis == "inferred" and each.partial
            if each.left_out is not None or inferred_partly or reading.window == "last_request":
                continue
            counted = sums.setdefault((reading.window, reading.basis), [0, 0, 0])
            counted[0] += reading.hit_tokens
            counted[1] += reading.query_tokens
            counted[2] += 1
    return tuple(
        PooledRate(window, basis, hits, queries, round(hits / queries, 6) if queries else None, servers)
        for (window, basis), (hits, queries, servers) in sums.items()
    )


def gap(routings: Iterable[Routing]) -> Gap:
    """The accounts of requests, summed."""
    every = tuple(routings)
    decided = [routing for routing in every if routing.chosen_tokens is not None]
    return Gap(
        requests=len(decided),
        undecided=len(every) - len(decided),
        reusable_tokens=sum(routing.reusable_tokens for routing in decided),
        ceiling_tokens=sum(routing.ceiling_tokens for routing in decided),
        best_tokens=sum(routing.best_tokens for routing in decided),
        chosen_tokens=sum(routing.chosen_tokens or 0 for routing in decided),
        delivered_tokens=sum(routing.delivered_tokens for routing in decided),
        workload_lost_tokens=sum(routing.workload_lost_tokens for routing in decided),
        eviction_lost_tokens=sum(routing.eviction_lost_tokens for routing in decided),
        placement_lost_tokens=sum(routing.placement_lost_tokens or 0 for routing in decided),
        staleness_lost_tokens=sum(routing.staleness_lost_tokens or 0 for routing in decided),
        complete=all(routing.complete for routing in decided),
    )


def fleet(records: Iterable[ServerRecord], rates: Mapping[ServerId, Sequence[RateReading]]) -> tuple[Member, ...]:
    """Every server as a member."""
    return tuple(member(record, rates.get(record.id, ())) for record in records)
