"""Figures of a fleet: sums over sums, and who is missing from them."""

from typing import Any

import pytest

from app.events import RateReading, Routing, ServerRecord, StreamHealth
from app.fleet.figures import fleet, gap, pooled
from app.ids import Rank, ServerId

STREAM = StreamHealth(rank=Rank(0), state="connected", coverage="complete", endpoint="tcp://a:1")
GAPPED = StreamHealth(rank=Rank(0), state="connected", coverage="partial", endpoint="tcp://a:1")


def server(name: str, **fields: Any) -> ServerRecord:
    return ServerRecord(**{"id": ServerId(name), "state": "up", "metrics_state": "ok", "streams": (STREAM,), **fields})


def readings(hits: int, queries: int) -> tuple[RateReading, ...]:
    return tuple(
        RateReading(window, basis, hits, queries, hits / queries)  # type: ignore[arg-type]
        for window, basis in (("last_minute", "counter"), ("since_mark", "inferred"), ("last_request", "usage"))
    )


def test_a_rate_of_all_is_no_mean_of_rates() -> None:
    members = fleet([server("a"), server("b")], {ServerId("a"): readings(90, 100), ServerId("b"): readings(0, 900)})
    found = {(rate.window, rate.basis): rate for rate in pooled(members)}
    assert set(found) == {("last_minute", "counter"), ("since_mark", "inferred")}
    rate = found["last_minute", "counter"]
    assert (rate.hit_tokens, rate.query_tokens, rate.ratio, rate.servers) == (90, 1000, 0.09, 2)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"state": "down"}, "down"),
        ({"state": "not_vllm"}, "down"),
        ({"asleep": True}, "asleep"),
        ({"metrics_state": "failed"}, "metrics_failed"),
    ],
)
def test_who_is_left_out_is_named(fields: dict[str, Any], reason: str) -> None:
    members = fleet([server("a"), server("b", **fields)], dict.fromkeys(map(ServerId, "ab"), readings(1, 2)))
    assert [member.left_out for member in members] == [None, reason]
    assert {rate.servers for rate in pooled(members)} == {1}


def test_gaps_in_events_leave_counters_as_they_are() -> None:
    members = fleet([server("a"), server("b", streams=(GAPPED,))], dict.fromkeys(map(ServerId, "ab"), readings(1, 2)))
    assert [member.partial for member in members] == [False, True]
    assert {(rate.basis, rate.servers) for rate in pooled(members)} == {("counter", 2), ("inferred", 1)}


def test_accounts_are_summed_step_by_step() -> None:
    one = Routing(2, 100, 80, 60, ServerId("a"), Rank(0), 40, 20, 20, 20, 20, 20, True)
    unknown = Routing(2, 100, 80, 60, ServerId("a"), Rank(0), None, 20, 20, 20, None, None, False)
    found = gap([one, one, unknown])
    assert (found.requests, found.undecided, found.complete) == (2, 1, True)
    assert (found.reusable_tokens, found.ceiling_tokens, found.best_tokens) == (200, 160, 120)
    assert (found.chosen_tokens, found.delivered_tokens) == (80, 40)
    assert found.reusable_tokens - found.delivered_tokens == sum(
        (found.workload_lost_tokens, found.eviction_lost_tokens, found.placement_lost_tokens,
         found.staleness_lost_tokens)
    )  # fmt: skip


def test_nothing_sums_to_nothing() -> None:
    assert pooled(()) == ()
    assert gap(()).requests == 0
