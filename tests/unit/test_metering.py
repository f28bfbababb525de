import json
import re
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from app.events import Outgoing, RequestFailed, RequestFinished, RequestRecord, ServerRecord, StreamHealth
from app.ids import Rank, RequestId, ServerId
from app.metering import Metering
from tests.processes import ROOT

SERVER = ServerId("http://127.0.0.1:8000")
RECORD = RequestRecord(
    RequestId("r-1"), SERVER, Rank(0), "m", 0.0, "client", "/v1/chat/completions", True, outcome="ok", status=200,
    prompt_tokens=200, cached_tokens=160, predicted_cached_tokens=192, block_size=16, reusable_blocks=12,
    reused_blocks=10, ttft_ms=34.0,
)  # fmt: skip


def samples(metering: Metering) -> dict[tuple[str, ...], float]:
    """Every sample by its name and its labels' values in order, read by Prometheus's own parser."""
    page = generate_latest(metering.registry).decode()  # type: ignore[no-untyped-call]
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(page)  # type: ignore[no-untyped-call]
        for sample in family.samples
    }


@pytest.fixture
def metering() -> Metering:
    stream = StreamHealth(Rank(0), "connected", "partial", batches=5, gaps=2, lost=1)
    server = ServerRecord(SERVER, state="up", streams=(stream,))
    return Metering((("clients", "Browsers connected", lambda: 3),), lambda: [server])


def test_a_request_counts_where_it_belongs(metering: Metering) -> None:
    metering.observe([Outgoing(RequestFinished(RECORD), 0.0, SERVER)])
    found = samples(metering)
    assert found["prefixscope_requests_total", "client", SERVER, "ok"] == 1
    assert found["prefixscope_prompt_tokens_total", "cached", SERVER] == 160
    assert found["prefixscope_prompt_tokens_total", "computed", SERVER] == 40
    assert found["prefixscope_forecasts_total", SERVER, "over"] == 1
    assert found["prefixscope_forecast_error_blocks_sum", SERVER] == 2
    assert found["prefixscope_ttft_seconds_bucket", "0.04", SERVER, "warm"] == 1
    assert found["prefixscope_ttft_seconds_bucket", "0.02", SERVER, "warm"] == 0


@pytest.mark.parametrize(
    ("change", "absent"),
    [
        ({"ttft_ms": None}, "prefixscope_ttft_seconds_count"),
        ({"predicted_cached_tokens": None}, "prefixscope_forecasts_total"),
        ({"predicted_is_lower_bound": True}, "prefixscope_forecasts_total"),
        ({"prompt_tokens": None, "cached_tokens": None}, "prefixscope_prompt_tokens_total"),
    ],
)
def test_what_is_not_known_is_not_counted_as_zero(metering: Metering, change: dict[str, object], absent: str) -> None:
    metering.observe([Outgoing(RequestFinished(replace(RECORD, **change)), 0.0, SERVER)])  # type: ignore[arg-type]
    assert absent not in {name for name, *_ in samples(metering)}


def test_unknown_cached_tokens_are_unknown(metering: Metering) -> None:
    metering.observe([Outgoing(RequestFinished(replace(RECORD, cached_tokens=None)), 0.0, SERVER)])
    found = samples(metering)
    assert found["prefixscope_prompt_tokens_total", SERVER, "unknown"] == 200
    assert ("prefixscope_prompt_tokens_total", "computed", SERVER) not in found


def test_a_failure_counts_by_its_outcome_alone(metering: Metering) -> None:
    failed = replace(RECORD, outcome="truncated")
    metering.observe([Outgoing(RequestFailed(failed), 0.0, SERVER)])
    found = samples(metering)
    assert found["prefixscope_requests_total", "client", SERVER, "truncated"] == 1
    assert ("prefixscope_prompt_tokens_total", "cached", SERVER) not in found


def test_stream_health_and_gauges_are_read_when_asked(metering: Metering) -> None:
    found = samples(metering)
    assert found["prefixscope_clients",] == 3
    assert found["prefixscope_kv_gaps_total", "0", SERVER] == 2
    assert found["prefixscope_kv_coverage_complete", "0", SERVER] == 0
    assert found["prefixscope_server_up", SERVER] == 1


def test_the_grafana_dashboard_asks_for_what_is_there(metering: Metering) -> None:
    dashboard = json.loads((ROOT / "docker/grafana/dashboards/prefixscope.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    ours = {name for query in queries for name in re.findall(r"prefixscope_\w+", query)}
    metering.observe([Outgoing(RequestFinished(RECORD), 0.0, SERVER)])
    metering.loop_lag.observe(0.001)
    gauges = {"prefixscope_streams"}  # the runtime's, as `clients` is
    assert len(ours) > 6
    assert ours <= {name for name, *_ in samples(metering)} | gauges
