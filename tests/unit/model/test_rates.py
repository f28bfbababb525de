import pytest

from app.events import RateReading
from app.model.metrics_points import pooled
from app.model.rates import CounterPair, CounterStep, ServerRates
from app.observations import EngineSample


def sample(query: float | None, hit: float | None, engine: str = "0") -> EngineSample:
    return EngineSample(engine, query_tokens=query, hit_tokens=hit)


def reading(rates: ServerRates, window: str, basis: str, at_s: float = 10.0) -> RateReading | None:
    found = [r for r in rates.readings(at_s, 0.0) if (r.window, r.basis) == (window, basis)]
    return found[0] if found else None


def figures(rates: ServerRates, window: str, basis: str, at_s: float = 10.0) -> tuple[int, int, float | None]:
    found = reading(rates, window, basis, at_s)
    assert found is not None
    return found.hit_tokens, found.query_tokens, found.ratio


def test_interval_and_lifetime_are_different_windows() -> None:
    rates = ServerRates()
    rates.sampled(1.0, (sample(1000, 600),))
    rates.sampled(2.0, (sample(2000, 900),))
    assert figures(rates, "since_mark", "counter") == (300, 1000, 0.3)
    assert figures(rates, "lifetime", "counter") == (900, 2000, 0.45)


def test_engines_are_pooled_before_dividing() -> None:
    rates = ServerRates()
    rates.sampled(1.0, (sample(0, 0, "0"), sample(0, 0, "1")))
    rates.sampled(2.0, (sample(1000, 100, "0"), sample(3000, 900, "1")))
    assert figures(rates, "since_mark", "counter") == (1000, 4000, 0.25)


def test_nothing_looked_up_is_no_ratio() -> None:
    rates = ServerRates()
    rates.sampled(1.0, (sample(0, 0),))
    rates.sampled(2.0, (sample(0, 0),))
    assert figures(rates, "since_mark", "counter") == (0, 0, None)


def test_counters_that_are_not_exported_give_no_reading() -> None:
    rates = ServerRates()
    rates.sampled(1.0, (sample(None, None),))
    assert rates.readings(2.0, 0.0) == ()


def test_a_reset_adds_what_was_counted_since_and_never_less_than_nothing() -> None:
    rates = ServerRates()
    rates.sampled(1.0, (sample(1000, 900),))
    assert rates.sampled(2.0, (sample(100, 10),)) == set()
    assert figures(rates, "since_mark", "counter") == (0, 0, None)
    assert rates.sampled(3.0, (sample(100, 10),)) == set()
    assert rates.sampled(4.0, (sample(100, 10),)) == set()
    assert figures(rates, "since_mark", "counter") == (0, 0, None)
    assert rates.sampled(5.0, (sample(100, 10),)) == {"reset"}
    assert figures(rates, "since_mark", "counter") == (10, 100, 0.1)


def test_a_reset_after_an_interruption_is_told_at_once() -> None:
    rates = ServerRates()
    rates.sampled(1.0, (sample(1000, 900),))
    rates.interrupted()
    assert rates.sampled(2.0, (sample(100, 10),)) == {"restarted"}
    assert figures(rates, "since_mark", "counter") == (10, 100, 0.1)


def test_an_interruption_without_a_fall_changes_nothing() -> None:
    rates = ServerRates()
    rates.sampled(1.0, (sample(1000, 900),))
    rates.interrupted()
    assert rates.sampled(2.0, (sample(1100, 950),)) == set()
    assert figures(rates, "since_mark", "counter") == (50, 100, 0.5)


def test_alternating_exporters_are_no_restarts() -> None:
    rates = ServerRates()
    findings = [rates.sampled(float(at), (sample(query, 0),)) for at, query in enumerate((1000, 400, 1100, 450, 1200))]
    assert findings == [set(), set(), {"inconsistent"}, set(), {"inconsistent"}]
    assert figures(rates, "since_mark", "counter") == (0, 0, None)


@pytest.mark.parametrize(
    "queries",
    [
        (1000, 10, 500, 1000, 10, 500, 1000, 10, 500),
        (1000, 500, 10, 1000, 500, 10, 1000, 500),
        (1000, 10, 500, 10, 500, 1000, 500, 10, 700, 900, 1000),
        (1000, 400, 200, 10, 1000, 400, 200, 10),
    ],
)
def test_three_exporters_and_more_are_no_restarts_either(queries: tuple[int, ...]) -> None:
    rates = ServerRates()
    findings: set[str] = set()
    for at, query in enumerate(queries):
        findings |= rates.sampled(float(at), (sample(query, 0),))
    assert findings == {"inconsistent"}
    assert figures(rates, "since_mark", "counter") == (0, 0, None)


def test_a_second_fall_is_no_restart_but_one_after_an_interruption_is() -> None:
    pair = CounterPair()
    steps = [pair.feed(*values).finding for values in ((1000.0, 500.0), (100.0, 50.0), (40.0, 20.0), (60.0, 30.0))]
    assert steps == ["first", "fell", "inconsistent", "fell"]
    pair.interrupted = True
    assert pair.feed(5.0, 1.0).finding == "restarted"
    assert pair.feed(8.0, 1.0) == CounterStep(3.0, 0.0, "ok")


def test_the_minute_moves() -> None:
    rates = ServerRates()
    rates.sampled(0.0, (sample(0, 0),))
    rates.sampled(1.0, (sample(100, 50),))
    rates.request_ended(1.0, 100, 50, 50)
    assert figures(rates, "last_minute", "counter", 60.0) == (50, 100, 0.5)
    assert figures(rates, "last_minute", "usage", 60.0) == (50, 100, 0.5)
    assert figures(rates, "last_minute", "counter", 61.5) == (0, 0, None)
    assert figures(rates, "last_minute", "usage", 61.5) == (0, 0, None)
    assert figures(rates, "since_mark", "usage", 61.5) == (50, 100, 0.5)


def test_requests_are_weighted_by_tokens() -> None:
    rates = ServerRates()
    rates.request_ended(1.0, 1000, 0, 0)
    rates.request_ended(2.0, 100, 96, 96)
    found = reading(rates, "last_1000_requests", "usage")
    assert found is not None
    assert (found.hit_tokens, found.query_tokens, found.requests) == (96, 1100, 2)
    assert figures(rates, "last_request", "usage") == (96, 100, 0.96)


def test_null_zero_and_n_stay_apart() -> None:
    rates = ServerRates()
    rates.request_ended(1.0, 25, None, None)
    assert reading(rates, "last_request", "usage") is None
    rates.request_ended(2.0, 25, 0, None)
    assert figures(rates, "last_request", "usage") == (0, 25, 0.0)
    rates.request_ended(3.0, 25, None, 16)
    assert reading(rates, "last_request", "usage") is None
    assert figures(rates, "last_request", "inferred") == (16, 25, 0.64)
    assert figures(rates, "last_1000_requests", "usage") == (0, 25, 0.0)


def test_only_the_last_thousand_requests_count() -> None:
    rates = ServerRates()
    for _ in range(1000):
        rates.request_ended(1.0, 10, 0, None)
    for _ in range(1000):
        rates.request_ended(1.0, 10, 10, None)
    assert figures(rates, "last_1000_requests", "usage") == (10_000, 10_000, 1.0)


def test_the_mark_moves() -> None:
    rates = ServerRates()
    rates.sampled(1.0, (sample(0, 0),))
    rates.sampled(2.0, (sample(100, 0),))
    rates.request_ended(2.0, 100, 0, 0)
    rates.mark(3.0)
    found = reading(rates, "since_mark", "counter")
    assert found is not None
    assert (found.query_tokens, found.since_ms) == (0, 3000.0)
    rates.sampled(4.0, (sample(300, 100),))
    rates.request_ended(4.0, 200, 100, 96)
    assert figures(rates, "since_mark", "counter") == (100, 200, 0.5)
    assert figures(rates, "since_mark", "usage") == (100, 200, 0.5)
    assert figures(rates, "since_mark", "inferred") == (96, 200, 0.48)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [((None, None), 0.5), ((100, 300), 0.3), ((100, None), 0.5)],
)
def test_shares_are_averaged_by_pool_size_and_never_added(
    sizes: tuple[int | None, int | None], expected: float
) -> None:
    engines = (
        EngineSample("0", running=3, kv_usage_ratio=0.9, num_gpu_blocks=sizes[0]),
        EngineSample("1", running=5, kv_usage_ratio=0.1, num_gpu_blocks=sizes[1]),
    )
    point = pooled(engines, 1.0)
    assert point.kv_usage_ratio == pytest.approx(expected)
    assert point.running == 8
    assert point.preemptions is None


def test_zero_is_not_absence() -> None:
    assert pooled((EngineSample("0", preemptions=0.0),), 1.0).preemptions == 0.0
