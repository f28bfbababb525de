"""Metrics pages of every release, of the recordings, and damaged ones."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from app.observations import EngineSample
from app.wire.exposition import MAX_ENGINES, KnownLabels, page_steps, read_page

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
LABELS = '{engine="0",model_name="m"}'


def only(page: str) -> EngineSample:
    (sample,) = read_page(page.encode()).engines
    return sample


@pytest.mark.parametrize(
    "page",
    [
        f"vllm:gpu_cache_usage_perc{LABELS} 0.25\n",
        f"vllm:kv_cache_usage_perc{LABELS} 0.25\n",
        f"vllm:gpu_cache_usage_perc{LABELS} 0.25\nvllm:kv_cache_usage_perc{LABELS} 0.25\n",
        f"vllm:kv_cache_usage_perc{LABELS} 0.25\nvllm:gpu_cache_usage_perc{LABELS} 0.25\n",
    ],
)
def test_usage_under_either_name_is_never_summed(page: str) -> None:
    assert only(page) == EngineSample("0", "m", kv_usage_ratio=0.25)


def test_what_is_not_exported_is_none() -> None:
    assert only(f"vllm:num_requests_running{LABELS} 0\n") == EngineSample("0", "m", running=0.0)
    assert read_page(b"python_gc_objects_collected_total 3\n").engines == ()


def test_the_old_hit_rate_gauge_is_kept_apart_from_counters() -> None:
    assert only(f"vllm:gpu_prefix_cache_hit_rate{LABELS} 0.6\n") == EngineSample("0", "m", lifetime_hit_ratio=0.6)
    assert only(f"vllm:gpu_prefix_cache_hit_rate{LABELS} -1\n") == EngineSample("0", "m")


@pytest.mark.parametrize("suffix", ["", "_total"])
@pytest.mark.parametrize("prefix", ["", "gpu_"])
def test_counters_under_every_name(prefix: str, suffix: str) -> None:
    page = (
        f"vllm:{prefix}prefix_cache_queries{suffix}{LABELS} 2000\nvllm:{prefix}prefix_cache_hits{suffix}{LABELS} 900\n"
    )
    assert only(page) == EngineSample("0", "m", query_tokens=2000.0, hit_tokens=900.0)


def test_both_names_of_a_counter_are_one_reading() -> None:
    page = "".join(
        f"vllm:{prefix}prefix_cache_{name}_total{LABELS} {value}\n"
        for prefix in ("gpu_", "")
        for name, value in (("queries", 9), ("hits", 4))
    )
    assert only(page) == EngineSample("0", "m", query_tokens=9.0, hit_tokens=4.0)


def test_counters_in_blocks_become_tokens_where_the_block_size_is_known() -> None:
    page = (
        "# HELP vllm:gpu_prefix_cache_queries_total GPU prefix cache queries, in terms of number of queried blocks.\n"
        f"vllm:gpu_prefix_cache_queries_total{LABELS} 20\nvllm:gpu_prefix_cache_hits_total{LABELS} 5\n"
    )
    assert only(page) == EngineSample("0", "m")
    sample = only(page + 'vllm:cache_config_info{block_size="16",engine="0"} 1\n')
    assert (sample.query_tokens, sample.hit_tokens) == (320.0, 80.0)


def test_families_that_only_begin_alike_are_left_out() -> None:
    page = (
        f"vllm:prompt_tokens_total{LABELS} 7\n"
        'vllm:prompt_tokens_by_source_total{engine="0",model_name="m",source="local_compute"} 5\n'
        f"vllm:prompt_tokens_cached_total{LABELS} 2\n"
        'vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="device"} 99\n'
        f"vllm:external_prefix_cache_hits_rate{LABELS} 98\n"
        f"vllm:request_time_per_output_token_seconds_bucket{LABELS} 97\n"
    )
    assert only(page) == EngineSample("0", "m", prompt_tokens=7.0, cached_prompt_tokens=2.0)


def test_one_sample_an_engine() -> None:
    page = "".join(
        f'vllm:{name}{{engine="{engine}",model_name="m"}} {value}\n'
        for name, values in (
            ("num_requests_running", (3, 5)), ("prefix_cache_hits_total", (100, 900)),
            ("prefix_cache_queries_total", (1000, 3000)),
        )
        for engine, value in enumerate(values)
    )  # fmt: skip
    assert read_page(page.encode()).engines == (
        EngineSample("0", "m", running=3.0, hit_tokens=100.0, query_tokens=1000.0),
        EngineSample("1", "m", running=5.0, hit_tokens=900.0, query_tokens=3000.0),
    )


def test_further_labels_stay_in_the_name_of_the_engine() -> None:
    page = "".join(f'vllm:num_requests_running{{engine="0",model_name="m",pod="{pod}"}} 1\n' for pod in "ab")
    assert [sample.engine for sample in read_page(page.encode()).engines] == ['0{pod="a"}', '0{pod="b"}']


def test_each_page_of_alternating_processes_is_read_as_it_is() -> None:
    page = "vllm:prefix_cache_queries_total{} {}\nvllm:prefix_cache_queries_created{} 1.7e9\n"
    readings = [only(page.format(LABELS, value, LABELS)) for value in (1000, 400, 1100, 450)]
    assert [sample.query_tokens for sample in readings] == [1000.0, 400.0, 1100.0, 450.0]
    assert {sample.counters_created_s for sample in readings} == {1.7e9}


def test_config_is_handed_on_as_the_server_says_it() -> None:
    page = (
        f"vllm:num_requests_running{LABELS} 1\n"
        'vllm:cache_config_info{block_size="4",num_gpu_blocks="5000",user_specified_block_size="True",engine="0"} 1\n'
    )
    assert only(page) == EngineSample("0", "m", running=1.0, block_size=4, num_gpu_blocks=5000)


def test_config_alone_and_with_nothing_resolved() -> None:
    line = 'vllm:cache_config_info{block_size="None",num_gpu_blocks="None",enable_prefix_caching="False"} 1.0\n'
    assert only(line) == EngineSample("0", prefix_caching=False)


def test_external_lookups_are_readings_of_their_own() -> None:
    page = (
        f"vllm:prefix_cache_queries_total{LABELS} 1000\nvllm:external_prefix_cache_queries_total{LABELS} 400\n"
        f"vllm:prefix_cache_hits_total{LABELS} 600\nvllm:external_prefix_cache_hits_total{LABELS} 200\n"
    )
    sample = only(page)
    assert (sample.query_tokens, sample.hit_tokens) == (1000, 600)
    assert (sample.external_query_tokens, sample.external_hit_tokens) == (400, 200)


@pytest.mark.parametrize(
    "family", ["inter_token_latency_seconds", "time_per_output_token_seconds", "request_time_per_output_token_seconds"]
)
def test_times_per_token_under_every_name(family: str) -> None:
    page = f'vllm:{family}_bucket{{engine="0",model_name="m",le="0.1"}} 9\n' + "".join(
        f"vllm:{family}_{part}{LABELS} {value}\n" for part, value in (("sum", 3.0), ("count", 60.0))
    )
    assert only(page) == EngineSample("0", "m", tpot_s_sum=3.0, tpot_count=60.0)


def test_what_a_release_no_longer_exports_is_none() -> None:
    sample = only(f"vllm:num_requests_running{LABELS} 1\n")
    assert (sample.swapped, sample.tpot_s_sum, sample.external_hit_tokens, sample.asleep) == (None,) * 4
    assert only(f"vllm:num_requests_swapped{LABELS} 0\n").swapped == 0


@pytest.mark.parametrize(("awake", "asleep"), [(1, False), (0, True)])
def test_sleep_is_told_by_engine(awake: int, asleep: bool) -> None:
    state = 'vllm:engine_sleep_state{{engine="1",model_name="m",sleep_state="{}"}} {}\n'
    page = (
        "".join(f'vllm:num_requests_running{{engine="{engine}",model_name="m"}} 1\n' for engine in (0, 1))
        + state.format("awake", awake)
        + state.format("discard_all", 1 - awake)
        + state.format("weights_offloaded", 0)
    )
    assert [sample.asleep for sample in read_page(page.encode()).engines] == [None, asleep]


@pytest.mark.parametrize(
    ("memory", "override", "expected"),
    [("1073741824", "None", 1474920), ("1073741824", "64", None), ("None", "None", None)],
)
def test_memory_of_a_block(memory: str, override: str, expected: int | None) -> None:
    labels = f'kv_cache_memory_bytes="{memory}",num_gpu_blocks="728",num_gpu_blocks_override="{override}"'
    assert only(f'vllm:cache_config_info{{{labels},engine="0"}} 1\n').block_bytes == expected


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf"])
def test_non_finite_values_are_missing(text: str) -> None:
    page = f"vllm:num_requests_running{LABELS} {text}\nvllm:num_requests_waiting{LABELS} 2\n"
    assert only(page) == EngineSample("0", "m", waiting=2.0)


def test_a_percentage_is_no_ratio() -> None:
    assert only(f"vllm:kv_cache_usage_perc{LABELS} 40\n").kv_usage_ratio is None


@pytest.mark.parametrize(
    "bad",
    [
        'vllm:num_requests_running{engine="1",model_name="m"} many',
        'vllm:num_requests_running{engine="1",model_name="m"}',
        'vllm:num_requests_running{engine="1,model_name="m"} 3',
        'vllm:num_requests_running{engine="1"x} 3',
    ],
)
def test_a_malformed_line_is_counted_and_the_rest_read(bad: str) -> None:
    page = f"vllm:num_requests_running{LABELS} 1\n{bad}\nvllm:num_requests_waiting{LABELS} 2"
    exposition = read_page(page.encode())
    assert exposition.malformed_lines == 1
    assert EngineSample("0", "m", running=1.0, waiting=2.0) in exposition.engines


def test_line_ends_and_missing_last_newline() -> None:
    assert only(f"vllm:num_requests_running{LABELS} 1\r\nvllm:num_requests_waiting{LABELS} 2\r") == EngineSample(
        "0", "m", running=1.0, waiting=2.0
    )


def test_bytes_that_are_no_text() -> None:
    running = b"vllm:num_requests_running" + LABELS.encode() + b" 1\n"
    page = b"\xff\xfe\n" + running + b'vllm:num_requests_waiting{engine="\xff"} 1\n'
    assert EngineSample("0", "m", running=1.0) in read_page(page).engines


# Untyped in their own package.
text_page: Callable[[CollectorRegistry], bytes] = generate_latest
openmetrics_page: Callable[[CollectorRegistry], bytes] = generate_openmetrics


def registry() -> CollectorRegistry:
    made = CollectorRegistry()
    labels = ["engine", "model_name"]
    hits = Counter("vllm:prefix_cache_hits", "Hits.", labels, registry=made)
    queries = Counter("vllm:prefix_cache_queries", "Queries.", labels, registry=made)
    usage = Gauge("vllm:kv_cache_usage_perc", "Usage.", labels, registry=made)
    for engine in ("0", "1"):
        hits.labels(engine, 'a "model"\\').inc(16, exemplar={"trace_id": "t"})
        queries.labels(engine, 'a "model"\\').inc(32)
        usage.labels(engine, 'a "model"\\').set(0.5)
    return made


def test_text_and_openmetrics_say_the_same() -> None:
    made = registry()
    text = read_page(text_page(made), "text/plain; version=0.0.4")
    opened = read_page(openmetrics_page(made), OPENMETRICS)
    assert text.malformed_lines == opened.malformed_lines == 0
    assert text.engines == opened.engines
    assert [(s.engine, s.model_name, s.query_tokens, s.hit_tokens, s.kv_usage_ratio) for s in opened.engines] == [
        ("0", 'a "model"\\', 32.0, 16.0, 0.5),
        ("1", 'a "model"\\', 32.0, 16.0, 0.5),
    ]
    assert all(sample.counters_created_s for sample in opened.engines)


def recorded(name: str) -> list[EngineSample]:
    records = [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines()]
    return [only(record["text"]) for record in records if record["kind"] == "metrics"]


def test_every_recorded_page() -> None:
    pages = 0
    for path in sorted(RECORDINGS.glob("*.jsonl")):
        for sample in recorded(path.stem):
            pages += 1
            assert (sample.engine, sample.model_name, sample.block_size) == ("0", "smollm2-135m", 32)
            assert (sample.prefix_caching, sample.hash_algo) == (True, "sha256_cbor")
            assert sample.num_gpu_blocks == (64 if path.stem == "evict" else 728)
            readings = [
                sample.running, sample.waiting, sample.kv_usage_ratio, sample.query_tokens, sample.hit_tokens,
                sample.prompt_tokens, sample.cached_prompt_tokens, sample.generation_tokens, sample.preemptions,
            ]  # fmt: skip
            assert all(reading is not None for reading in readings)
    assert pages == 25


def test_recorded_values() -> None:
    assert recorded("broken_prefix") == [
        EngineSample(
            "0", "smollm2-135m", running=0.0, waiting=0.0, kv_usage_ratio=0.0, query_tokens=2167.0, hit_tokens=1312.0,
            prompt_tokens=2167.0, cached_prompt_tokens=1312.0, generation_tokens=106.0, preemptions=0.0, block_size=32,
            num_gpu_blocks=728, prefix_caching=True, hash_algo="sha256_cbor", ttft_s_sum=6.441424608230591,
            ttft_count=15.0, block_bytes=1474920,
        )
    ]  # fmt: skip
    first, *_ = recorded("client_gone")
    assert (first.running, first.kv_usage_ratio) == (1.0, 0.0027510316368638543)


PIECES = [
    b"vllm:num_requests_running", b"vllm:cache_config_info", b"_total", b"{", b"}", b'engine="', b'"', b",", b"=", b" ",
    b"1", b"\n", b"#", b"\xff", b"\\", b"NaN",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_any_page_is_read(pieces: list[bytes]) -> None:
    page = b"".join(pieces)
    read_page(page)
    read_page(page, OPENMETRICS)


def test_a_large_page_is_read_in_many_steps() -> None:
    page = "".join(f'vllm:num_requests_running{{engine="{n}",model_name="m"}} 1\n' for n in range(400)).encode()
    assert sum(1 for _ in page_steps(page)) > 25
    assert len(read_page(page).engines) == 400


def test_engines_beyond_any_servers_are_left_out() -> None:
    page = "".join(f'vllm:num_requests_running{{engine="{n}"}} 1\n' for n in range(2000)).encode()
    assert len(read_page(page).engines) == MAX_ENGINES


def test_the_last_step_is_short_too() -> None:
    page = "".join(
        f'vllm:num_requests_running{{engine="{n}"}} 1\nvllm:cache_config_info{{engine="x{n}",block_size="16"}} 1\n'
        for n in range(200)
    ).encode()
    assert sum(1 for _ in page_steps(page)) > 400  # One for each line of the config, and one for each engine.


@pytest.mark.parametrize("name", ["broken_prefix", "evict", "shared_prefix_full"])
def test_known_labels_change_nothing_but_the_cost(name: str) -> None:
    records = [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines()]
    known: KnownLabels = {}
    for record in records:
        if record["kind"] == "metrics":
            page = record["text"].encode()
            assert read_page(page, known=known) == read_page(page)
    assert known


def test_a_known_line_with_something_behind_its_value() -> None:
    known: KnownLabels = {}
    for text in ("1", "2", "3 1700000000000", "many", "4"):
        page = f"vllm:num_requests_running{LABELS} {text}\n".encode()
        assert read_page(page, known=known) == read_page(page)


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=12), min_size=2, max_size=4))
def test_any_pages_are_read_alike_with_known_labels(pages: list[list[bytes]]) -> None:
    known: KnownLabels = {}
    for pieces in pages:
        page = b"".join(pieces)
        assert read_page(page, known=known) == read_page(page)


def test_known_lines_keep_their_place() -> None:
    known: KnownLabels = {}
    lines = [f'vllm:num_requests_running{{engine="{n}",model_name="m"}} 1\n' for n in range(3)]
    read_page(lines[2].encode(), known=known)
    assert [sample.engine for sample in read_page("".join(lines).encode(), known=known).engines] == ["0", "1", "2"]
