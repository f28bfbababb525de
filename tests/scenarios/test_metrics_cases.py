"""Faults that readers of vLLM's metrics have in the field, as pages and what must be shown."""

import pytest

from app.events import HitRateUpdated, MetricsSampledEvent
from app.observations import MetricsFailed, ServerProbed
from tests.scenarios.tables import SERVER, SIZE, Scene, removed, stored

CONFIG = 'cache_config_info{block_size="4",num_gpu_blocks="101",engine="0"} 1'


def test_one_gauge_under_two_names_is_one_reading() -> None:
    scene = Scene()
    for lines in (
        ("gpu_cache_usage_perc 0.25",),
        ("kv_cache_usage_perc 0.25",),
        ("gpu_cache_usage_perc 0.25", "kv_cache_usage_perc 0.25"),
    ):
        scene.page(*lines)
        assert scene.point.kv_usage_ratio == 0.25
    other = Scene()
    other.page("num_requests_running 1")
    assert other.point.kv_usage_ratio is None
    assert "kv_usage_ratio" in other.server.not_exported
    assert "running" not in other.server.not_exported


def test_a_name_that_comes_back_is_exported() -> None:
    scene = Scene()
    assert scene.apply(ServerProbed(SERVER, "up", None, scene.now))
    assert scene.server.not_exported == ()
    scene.page("num_requests_running 1", "num_requests_waiting 0")
    assert "preemptions" in scene.server.not_exported
    scene.page("num_requests_running 1", "num_preemptions_total 0")
    assert "preemptions" not in scene.server.not_exported
    assert "waiting" not in scene.server.not_exported


def test_the_old_hit_rate_gauge_is_never_divided_by_a_counter() -> None:
    old = Scene()
    old.page("gpu_prefix_cache_hit_rate 0.6")
    assert old.point.lifetime_hit_ratio == 0.6
    assert old.rate("lifetime", "counter") is None
    new = Scene()
    new.page("prefix_cache_queries_total 1000", "prefix_cache_hits_total 600")
    new.page("prefix_cache_queries_total 2000", "prefix_cache_hits_total 900")
    assert new.rate("since_mark", "counter") == (300, 1000, 0.3)
    assert new.rate("last_minute", "counter") == (300, 1000, 0.3)
    assert new.rate("lifetime", "counter") == (900, 2000, 0.45)
    assert new.point.lifetime_hit_ratio is None


def test_shares_of_engines_are_weighted_by_their_pools() -> None:
    scene = Scene()
    scene.page(
        'kv_cache_usage_perc{engine="0"} 0.4',
        'kv_cache_usage_perc{engine="1"} 0.4',
    )
    assert scene.point.kv_usage_ratio == 0.4
    scene.page(
        'kv_cache_usage_perc{engine="0"} 0.1',
        'kv_cache_usage_perc{engine="1"} 0.4',
        'cache_config_info{engine="0",num_gpu_blocks="300"} 1',
        'cache_config_info{engine="1",num_gpu_blocks="100"} 1',
    )
    assert scene.point.kv_usage_ratio == pytest.approx(0.175)


@pytest.mark.parametrize(
    "family", ["time_per_output_token_seconds", "inter_token_latency_seconds", "request_time_per_output_token_seconds"]
)
def test_the_time_per_token_has_many_names_and_may_be_missing(family: str) -> None:
    scene = Scene()
    scene.page("num_requests_running 1", f"{family}_sum 1.0", f"{family}_count 50")
    assert scene.point.tpot_ms is None
    scene.page("num_requests_running 1", f"{family}_sum 3.0", f"{family}_count 150")
    assert scene.point.tpot_ms == pytest.approx(20.0)
    scene.page("num_requests_running 1", f"{family}_sum 3.0", f"{family}_count 150")
    assert scene.point.tpot_ms is None
    assert "tpot_ms" not in scene.server.not_exported
    assert {"swapped", "ttft_ms"} <= set(scene.server.not_exported)


def test_prompts_that_share_less_than_a_block_are_why_nothing_hits() -> None:
    scene = Scene()
    scene.page("prefix_cache_queries_total 0", "prefix_cache_hits_total 0", CONFIG.replace('"4"', '"784"'))
    for number in range(20):
        scene.send(f"r-{number}", (*range(240), *range(1000 * number, 1000 * number + 160)))
        scene.end(f"r-{number}", 400, cached=0)
    scene.page("prefix_cache_queries_total 8000", "prefix_cache_hits_total 0", CONFIG.replace('"4"', '"784"'))
    scene.now += 10
    assert scene.notices() == {"prefix_below_block": {"shared_tokens": 240, "block_size": 784}}
    assert scene.rate("since_mark", "counter") == (0, 8000, 0.0)


def test_prompts_with_nothing_in_common_are_another_reason_and_caching_off_a_third() -> None:
    for caching in (True, False):
        scene = Scene()
        scene.metrics(0, 0, block_size=SIZE, prefix_caching=caching)
        for number in range(3):
            scene.send(f"r-{number}", tuple(range(100 * number, 100 * number + 9)))
            scene.end(f"r-{number}", 9, cached=0)
        scene.metrics(27, 0, block_size=SIZE, prefix_caching=caching)
        scene.now += 10
        assert set(scene.notices()) == ({"no_shared_prefix"} if caching else set())
        assert scene.server.prefix_caching == caching


def test_a_zero_has_no_reason_once_something_hits() -> None:
    scene = Scene()
    scene.metrics(0, 0, block_size=SIZE)
    for number in range(2):
        scene.send(f"r-{number}", (1, 2, *range(100 * number, 100 * number + 9)))
        scene.end(f"r-{number}", 11, cached=0)
    scene.metrics(22, 0)
    scene.now += 10
    assert "prefix_below_block" in scene.notices()
    scene.metrics(44, 8)
    scene.now += 10
    assert scene.notices() == {}


def test_a_lookup_that_is_counted_at_every_try() -> None:
    scene = Scene()
    scene.page("prefix_cache_queries_total 0", "prefix_cache_hits_total 0", "prompt_tokens_total 0", CONFIG)
    scene.send("r", tuple(range(1000)))
    scene.end("r", 1000, cached=960)
    scene.page("prefix_cache_queries_total 5000", "prefix_cache_hits_total 4800", "prompt_tokens_total 1000", CONFIG)
    (found,) = scene.ledger.snapshot().differences[SERVER]
    assert (found.cause, found.query_tokens, found.hit_tokens) == ("retries_counted", 4000, 3840)
    assert scene.notices() == {"tries_counted": {"query_tokens": 5000, "prompt_tokens": 1000}}
    assert scene.server.saved_tokens == 960


def test_requests_from_elsewhere_are_no_retries() -> None:
    scene = Scene()
    scene.page("prefix_cache_queries_total 0", "prefix_cache_hits_total 0", "prompt_tokens_total 0", CONFIG)
    scene.send("r", tuple(range(1000)))
    scene.end("r", 1000, cached=0)
    scene.page("prefix_cache_queries_total 5000", "prefix_cache_hits_total 0", "prompt_tokens_total 5000", CONFIG)
    assert [found.causes for found in scene.ledger.snapshot().differences[SERVER]] == [("elsewhere",)]
    assert scene.notices() == {}


@pytest.mark.parametrize("external_queries", [400, 1000], ids=["what missed locally", "the whole prompt"])
def test_external_lookups_are_never_added_to_local_ones(external_queries: int) -> None:
    scene = Scene()
    zero = [f"{name}_total 0" for name in ("prefix_cache_queries", "prefix_cache_hits")]
    scene.page(*zero, "external_prefix_cache_queries_total 0", "external_prefix_cache_hits_total 0")
    scene.page(
        "prefix_cache_queries_total 1000",
        "prefix_cache_hits_total 600",
        f"external_prefix_cache_queries_total {external_queries}",
        "external_prefix_cache_hits_total 200",
    )
    point = scene.point
    assert scene.rate("since_mark", "counter") == (600, 1000, 0.6)
    assert (point.external_query_tokens, point.external_hit_tokens) == (external_queries, 200)


def test_what_a_connector_gave_is_no_hit_of_the_local_counters() -> None:
    scene = Scene()
    scene.kv(stored(99, tokens=(99,) * 4))
    scene.page(
        "prefix_cache_queries_total 0", "prefix_cache_hits_total 0", "external_prefix_cache_hits_total 0", CONFIG
    )
    scene.send("r", tuple(range(513)))
    scene.end("r", 513, cached=512)
    scene.page(
        "prefix_cache_queries_total 513",
        "prefix_cache_hits_total 0",
        "external_prefix_cache_queries_total 1024",
        "external_prefix_cache_hits_total 512",
        CONFIG,
    )
    found = {(each.first, each.second, each.window): each for each in scene.ledger.snapshot().differences[SERVER]}
    assert found["counter", "usage", "since_mark"].causes == ("transferred",)
    assert found["usage", "inferred", "since_mark"].causes == ("transferred",)
    assert scene.notices()["connector_silent"] == {"external_hit_tokens": 512}
    assert scene.record("r").cached_tokens == 512


def test_events_of_another_tier_show_the_connector() -> None:
    scene = Scene()
    scene.page("prefix_cache_queries_total 0", "prefix_cache_hits_total 0", "external_prefix_cache_hits_total 512")
    scene.kv(stored(1), stored(1, medium="CPU", tokens=(), size=0))
    assert "connector_silent" not in scene.notices()


def test_requests_for_prompt_logprobs_are_in_no_denominator() -> None:
    scene = Scene()
    scene.page(
        "prefix_cache_queries_total 0", "prefix_cache_hits_total 0", "external_prefix_cache_queries_total 0", CONFIG
    )
    for number in range(3):
        scene.send(f"r-{number}", tuple(range(401)), skips=True)
        scene.end(f"r-{number}", 401, cached=0)
        assert scene.code(f"r-{number}") == "lookup_skipped"
    scene.page(
        "prefix_cache_queries_total 0",
        "prefix_cache_hits_total 0",
        "external_prefix_cache_queries_total 1203",
        "external_prefix_cache_hits_total 0",
        CONFIG,
    )
    assert scene.rate("since_mark", "usage") is None
    assert scene.rate("since_mark", "counter") == (0, 0, None)
    assert scene.notices() == {}


def test_a_server_that_counts_them_all_the_same_says_why_readings_differ() -> None:
    scene = Scene()
    scene.page("prefix_cache_queries_total 0", "prefix_cache_hits_total 0", CONFIG)
    scene.send("r", tuple(range(401)))
    scene.end("r", 401, cached=0)
    scene.send("skips", tuple(range(401)), skips=True)
    scene.end("skips", 401, cached=0)
    scene.page("prefix_cache_queries_total 802", "prefix_cache_hits_total 0", CONFIG)
    (found,) = scene.ledger.snapshot().differences[SERVER]
    assert "prompt_logprobs" in found.causes


def test_a_counter_that_contradicts_latency_is_not_believed() -> None:
    scene = Scene()
    prompt = tuple(range(40))
    scene.page("prefix_cache_queries_total 0", "prefix_cache_hits_total 0", CONFIG)
    for name, ttft_ms in (("first", 5500.0), ("again", 800.0)):
        scene.send(name, prompt)
        scene.answer(name, ttft_ms)
        assert scene.end(name, 40, cached=None).cached_tokens is None
    scene.page("prefix_cache_queries_total 80", "prefix_cache_hits_total 0", CONFIG)
    found = scene.notices()["counter_contradicts_latency"]
    assert (found["ttft_ratio"], found["hit_tokens"], found["query_tokens"]) == (6.9, 0, 80)
    scene.ledger.mark(SERVER, scene.now)
    assert "counter_contradicts_latency" not in scene.notices()


def test_engines_are_summed_before_anything_is_divided() -> None:
    scene = Scene()
    pages = {
        engine: (
            f'num_requests_running{{engine="{engine}",model_name="m"}} {running}',
            f'prefix_cache_hits_total{{engine="{engine}",model_name="m"}} {hits}',
            f'prefix_cache_queries_total{{engine="{engine}",model_name="m"}} {queries}',
        )
        for engine, running, hits, queries in ((0, 3, 100, 1000), (1, 5, 900, 3000))
    }
    (event,) = [e for e in scene.page(*pages[0], *pages[1]) if isinstance(e, MetricsSampledEvent)]
    assert event.point.running == 8
    assert scene.rate("lifetime", "counter") == (1000, 4000, 0.25)
    assert {name: (p.hit_tokens, p.query_tokens) for name, p in event.engines.items()} == {
        "0": (100, 1000), "1": (900, 3000),
    }  # fmt: skip


def test_exporters_that_answer_in_turn_give_no_rate_and_a_warning_that_goes() -> None:
    scene = Scene()
    for query in (1000, 400, 1100, 450):
        for event in scene.page(f"prefix_cache_queries_total {query}", f"prefix_cache_hits_total {query // 2}"):
            assert not isinstance(event, HitRateUpdated) or all(
                0 <= rate.query_tokens <= 100 for rate in event.rates if rate.window == "since_mark"
            )
    assert "exporters_alternate" in scene.notices()
    assert "several API-server processes" in str(scene.server.metrics_message)
    for query in range(500, 570):
        scene.page(f"prefix_cache_queries_total {query}", f"prefix_cache_hits_total {query // 2}")
    assert scene.notices() == {}
    assert scene.server.metrics_message is None


def test_metrics_that_fail_leave_the_last_values_and_say_so() -> None:
    scene = Scene()
    scene.apply(ServerProbed(SERVER, "up", None, scene.now))
    scene.page("prefix_cache_queries_total 1000", "prefix_cache_hits_total 600")
    scene.apply(MetricsFailed(SERVER, "HTTP 500", 500, scene.now + 1))
    assert (scene.server.state, scene.server.metrics_state) == ("up", "failed")
    assert scene.point.query_tokens == 1000
    assert scene.server.metrics_at_ms == scene.now * 1000
    assert scene.rate("lifetime", "counter") == (600, 1000, 0.6)


@pytest.mark.parametrize(("prompt", "cached"), [(17050, 17051), (17050, -7680)])
def test_figures_that_cannot_be_are_shown_and_excluded(prompt: int, cached: int) -> None:
    scene = Scene()
    scene.kv(stored(1))
    scene.send("r")
    record = scene.end("r", prompt, cached=cached)
    assert (record.cached_tokens, scene.code("r")) == (cached, "inconsistent")
    assert scene.rate("since_mark", "usage") is None


def test_a_scheduler_unit_is_no_block_size() -> None:
    scene = Scene()
    scene.page("num_requests_running 0", 'cache_config_info{block_size="4",num_gpu_blocks="5000"} 1')
    scene.kv(
        *(
            stored(100 + group, group=group, size=size, tokens=tuple(range(size)), kind=kind)
            for group, size, kind in ((0, 256, "mla_attention"), (1, 64, "sliding_window"), (2, 8, "mamba"))
        )
    )
    assert scene.server.block_size == 256
    assert scene.notices() == {"unit_is_no_block": {"scheduler_unit": 4, "block_size": 256}}
    groups = scene.server.streams[0].groups
    assert [(group.group, group.block_size, group.walked) for group in groups] == [
        (0, 256, True), (1, 64, False), (2, 8, False),
    ]  # fmt: skip


def test_usage_that_falls_to_nothing_is_no_eviction() -> None:
    scene = Scene()
    scene.kv(stored(*range(30), tokens=tuple(range(120))))
    scene.page("kv_cache_usage_perc 0.30", "num_requests_running 1", CONFIG)
    assert (scene.point.pool_blocks, scene.point.held_blocks, scene.point.cached_blocks) == (100, 30, 1)
    scene.page("kv_cache_usage_perc 0.0", "num_requests_running 0", CONFIG)
    point = scene.point
    assert (point.pool_blocks, point.held_blocks, point.cached_blocks, point.unwritten_blocks) == (100, 0, 30, 70)


def test_what_of_the_pool_is_not_known_stays_so() -> None:
    scene = Scene()
    scene.page("kv_cache_usage_perc 0.30", "num_requests_running 1", CONFIG)
    point = scene.point
    assert (point.pool_blocks, point.held_blocks, point.cached_blocks, point.unwritten_blocks) == (100, 30, None, None)
    scene.page("kv_cache_usage_perc 0.30")
    assert (scene.point.pool_blocks, scene.point.held_blocks) == (None, None)


def test_every_copy_takes_a_place_in_the_pool_and_other_tiers_take_none() -> None:
    scene = Scene()
    scene.kv(stored(1), stored(1), stored(1, medium="CPU", tokens=(), size=0), removed(99))
    scene.page("kv_cache_usage_perc 0.0", "num_requests_running 0", CONFIG)
    assert (scene.point.cached_blocks, scene.point.unwritten_blocks) == (2, 98)
    tiers = {group.medium: (group.blocks, group.copies) for group in scene.server.streams[0].groups}
    assert tiers == {"GPU": (1, 2), "CPU": (1, 1)}


def test_pools_of_several_engines_are_told_apart_and_together() -> None:
    scene = Scene()
    scene.kv(stored(1, 2), rank=0)
    scene.kv(stored(1), rank=1)
    lines = [
        line
        for engine in (0, 1)
        for line in (
            f'kv_cache_usage_perc{{engine="{engine}"}} 0.0',
            f'num_requests_running{{engine="{engine}"}} 0',
            f'cache_config_info{{engine="{engine}",num_gpu_blocks="101"}} 1',
        )
    ]
    (event,) = [e for e in scene.page(*lines) if isinstance(e, MetricsSampledEvent)]
    assert [event.engines[engine].cached_blocks for engine in ("0", "1")] == [2, 1]
    assert (event.point.pool_blocks, event.point.cached_blocks, event.point.unwritten_blocks) == (200, 3, 197)


def test_a_restart_is_told_by_when_the_counters_were_made() -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.page("prefix_cache_queries_total 1000", "prefix_cache_hits_total 900", "prefix_cache_queries_created -5000")
    made = scene.now + 0.5
    scene.page("prefix_cache_queries_total 1000", "prefix_cache_hits_total 900", "prefix_cache_queries_created 0.5")
    scene.page("prefix_cache_queries_total 100", "prefix_cache_hits_total 10", f"prefix_cache_queries_created {made}")
    assert scene.copies() == {}
    assert scene.rate("since_mark", "counter") == (10, 100, 0.1)


def test_exporters_that_were_made_one_after_the_other_are_no_restart() -> None:
    scene = Scene()
    scene.now = 1000.0
    scene.kv(stored(1))
    for query, created in ((1000, 10.0), (400, 11.0), (1100, 10.0), (450, 11.0)):
        scene.page(
            f"prefix_cache_queries_total {query}",
            "prefix_cache_hits_total 0",
            f"prefix_cache_queries_created {created}",
        )
    assert len(scene.copies()) == 1


def test_readings_that_were_missed_are_no_points() -> None:
    scene = Scene()
    scene.page("prefix_cache_queries_total 10", "prefix_cache_hits_total 0")
    first = scene.now
    scene.now += 8
    scene.tick(scene.now)
    scene.page("prefix_cache_queries_total 20", "prefix_cache_hits_total 0")
    points = scene.ledger.snapshot().metrics[SERVER]
    assert [point.at_ms for point in points] == [first * 1000, scene.now * 1000]
