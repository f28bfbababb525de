from dataclasses import replace
from typing import Any, get_args

import pytest

from app.doctor.facts import Facts, facts_of, request_metrics_of
from app.doctor.findings import EXIT_STATUS, Diagnosis, diagnose, worst
from app.doctor.words import Code, Finding
from app.events import Notice, RequestRecord, ServerRecord, StreamHealth
from app.ids import Rank, RequestId, ServerId
from app.sources.kv_endpoints import ENABLING_FLAG, nothing_publishes

SERVER = ServerId("http://gpu:8000")
STREAM = StreamHealth(
    Rank(0), "connected", "complete", endpoint="tcp://gpu:5557", batches=3, wire_form="map", replay_available=True
)
ALL_ON = Facts(
    SERVER, "up", version="0.32.0", models=("m",), metrics="ok", counters=True, prefix_caching=True, tokenize=True,
    usage_details=True, request_metrics=True, streams=(STREAM,),
)  # fmt: skip


def finding(code: Code, **changed: Any) -> Finding:
    """The finding of that code for a server that has everything but what is `changed`."""
    (found,) = [each for each in diagnose(replace(ALL_ON, **changed)).findings if each.code == code]
    return found


def stream(**changed: Any) -> tuple[StreamHealth, ...]:
    return (replace(STREAM, **changed),)


def test_all_on() -> None:
    diagnosis = diagnose(ALL_ON)

    assert diagnosis.status == "ok"
    assert {each.status for each in diagnosis.findings} == {"on"}
    assert all(each.flag is None for each in diagnosis.findings)


def test_the_codes_are_a_closed_list_in_a_fixed_order() -> None:
    order = list(get_args(Code))
    everything = replace(ALL_ON, ranks_expected=2, exposed=("gpu:5557",))
    codes = [each.code for each in diagnose(everything).findings]

    assert codes == order


@pytest.mark.parametrize(
    ("changed", "code", "flag"),
    [
        ({"metrics": "failed", "metrics_message": "HTTP 404"}, "metrics", None),
        ({"counters": False}, "metrics", None),
        ({"prefix_caching": False}, "prefix_caching", "--enable-prefix-caching"),
        ({"tokenize": False}, "tokenize", None),
        ({"usage_details": False}, "usage_details", "--enable-prompt-tokens-details"),
        ({"request_metrics": False}, "request_metrics", "--enable-per-request-metrics"),
        ({"streams": stream(state="disconnected", coverage="none")}, "kv_events", ENABLING_FLAG),
        ({"streams": stream(state="off", coverage="none")}, "kv_events", ENABLING_FLAG),
        ({"streams": stream(state="silent", coverage="none", message="No events.")}, "kv_events", ENABLING_FLAG),
        ({"streams": stream(replay_available=False)}, "kv_replay", ENABLING_FLAG),
    ],
)
def test_what_is_missing_comes_with_its_flag_and_its_panels(
    changed: dict[str, Any], code: Code, flag: str | None
) -> None:
    found = finding(code, **changed)

    assert (found.status, found.flag) == ("missing", flag)
    assert found.panels
    assert found.text.endswith((".", "HTTP 404"))
    assert diagnose(replace(ALL_ON, **changed)).status == "missing"


@pytest.mark.parametrize(
    ("changed", "code", "status"),
    [
        ({"metrics": "unknown"}, "metrics", "unknown"),
        ({"prefix_caching": None}, "prefix_caching", "unknown"),
        ({"tokenize": None}, "tokenize", "unknown"),
        ({"usage_details": None}, "usage_details", "unknown"),
        ({"request_metrics": None}, "request_metrics", "unknown"),
        ({"streams": ()}, "kv_events", "unknown"),
        ({"streams": stream(state="connecting")}, "kv_events", "unknown"),
        ({"streams": stream(replay_available=None)}, "kv_replay", "unknown"),
        ({"version": "0.12.0"}, "version", "unsupported"),
        ({"version": "0.12.0", "request_metrics": None}, "request_metrics", "unsupported"),
        ({"version": "0.12.0", "request_metrics": False}, "request_metrics", "unsupported"),
        ({"version": "0.12.0"}, "reuse_reports", "unsupported"),
        ({"version": None}, "version", "unknown"),
        ({"version": "0.1.dev1+g1234"}, "version", "unknown"),
        ({"streams": stream(coverage="partial", lost=4)}, "kv_history", "warning"),
        ({"ranks_expected": 4}, "kv_ranks", "warning"),
        ({"exposed": ("gpu:5557",)}, "events_exposed", "warning"),
    ],
)
def test_what_is_unknown_unsupported_or_a_warning_is_not_missing(
    changed: dict[str, Any], code: Code, status: str
) -> None:
    assert finding(code, **changed).status == status
    assert diagnose(replace(ALL_ON, **changed)).status == "ok"


@pytest.mark.parametrize("state", ["down", "not_vllm", "unauthorized", "unknown"])
def test_of_a_server_that_cannot_be_reached_only_that_is_said(state: Any) -> None:
    diagnosis = diagnose(replace(ALL_ON, state=state, message="Nothing answers."))

    assert diagnosis.status == "unreachable"
    (only,) = diagnosis.findings
    assert (only.code, only.status, only.text) == ("server", "missing", "Nothing answers.")


def test_the_flag_is_not_said_twice() -> None:
    found = finding(
        "kv_events", streams=stream(state="disconnected", message=nothing_publishes("tcp://gpu:5557", True))
    )

    assert ENABLING_FLAG not in found.text
    assert "this flag" in found.text


def test_a_diagnosis_of_silence_is_taken_over() -> None:
    notice = Notice("wrong_topic", "Other topics are published there.", {"topic": "kv"})
    found = finding("kv_events", streams=stream(state="silent", diagnosis=notice))

    assert (found.reason, found.text) == ("wrong_topic", notice.text)


def test_the_worst_stream_is_named() -> None:
    lost = replace(STREAM, rank=Rank(1), state="disconnected", endpoint="tcp://gpu:5558", message=None)
    found = finding("kv_events", streams=(STREAM, lost))

    assert found.status == "missing"
    assert found.params == {"rank": 1, "endpoint": "tcp://gpu:5558"}


def test_the_worst_server_is_the_status_of_all() -> None:
    states = [Diagnosis("a", "ok", None), Diagnosis("b", "unreachable", None), Diagnosis("c", "missing", None)]

    assert worst(states) == "unreachable"
    assert worst(states[::2]) == "missing"
    assert worst([]) == "ok"
    assert EXIT_STATUS == {"ok": 0, "missing": 1, "unreachable": 2}


@pytest.mark.parametrize(
    ("state", "not_exported", "counters"),
    [
        ("ok", (), True),
        ("ok", ("query_tokens",), True),
        ("ok", ("query_tokens", "lifetime_hit_ratio"), False),
        ("failed", ("query_tokens", "lifetime_hit_ratio"), None),
    ],
)
def test_counters_are_missing_only_where_a_page_without_them_was_read(
    state: Any, not_exported: tuple[str, ...], counters: bool | None
) -> None:
    record = ServerRecord(SERVER, metrics_state=state, not_exported=not_exported)

    assert facts_of(record).counters is counters


def test_whether_responses_say_the_servers_times() -> None:
    def record(**given: Any) -> RequestRecord:
        return RequestRecord(RequestId("r"), SERVER, None, "m", 0.0, "client", "/v1/chat/completions", True, **given)

    running, no_usage = record(), record(outcome="ok")
    without = record(outcome="ok", completion_tokens=3)
    told = record(outcome="ok", completion_tokens=3, engine_ttft_ms=1.0)

    assert request_metrics_of([]) is None
    assert request_metrics_of([running, no_usage]) is None
    assert request_metrics_of([without, no_usage]) is False
    assert request_metrics_of([without, told]) is True
