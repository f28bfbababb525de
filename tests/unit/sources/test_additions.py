"""What is added to a request, and towards whom."""

from dataclasses import replace

import pytest

from app.events import ServerRecord
from app.ids import ServerId
from app.settings import Mode
from app.sources.additions import is_vllm_itself, may_name_session, vllm_version, wanted
from app.wire.body_facts import read_body_facts
from app.wire.request_reading import Wanted, read_request
from app.wire.splice import spliced

UP = ServerRecord(ServerId("s"), state="up", version="0.32.0")
READ = replace(UP, metrics_state="ok", num_gpu_blocks=728, block_size=32)
BODY = b'{"model":"m","stream":true}'


@pytest.mark.parametrize(
    ("record", "itself"),
    [
        (None, False),
        (UP, True),
        (READ, True),
        (replace(UP, metrics_state="failed"), True),
        # A router has a version of its own, and metrics, but no cache.
        (replace(UP, version="0.1.8", metrics_state="ok"), False),
        (replace(UP, version=None), False),
        (replace(UP, state="not_vllm"), False),
    ],
)
def test_routers_are_told_from_servers(record: ServerRecord | None, itself: bool) -> None:
    assert is_vllm_itself(record) is itself
    facts = read_body_facts(BODY, b"k" * 32)
    assert may_name_session("observe", facts, record) is itself
    assert not may_name_session("off", facts, record)
    assert (wanted("/v1/completions", "enrich", record, reports=True) is not None) is itself


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("0.32.0", (0, 32, 0)), ("0.11.0rc1.dev3+g1", (0, 11, 0)), ("dev", ()), ("", ())],
)
def test_versions(version: str, numbers: tuple[int, ...]) -> None:
    assert vllm_version(replace(UP, version=version)) == numbers


@pytest.mark.parametrize(
    ("version", "reports", "asked"), [("0.32.0", False, False), ("0.32.0", True, True), ("0.18.0", True, False)]
)
def test_the_full_report_is_asked_for_only_where_set(version: str, reports: bool, asked: bool) -> None:
    fields = wanted("/v1/chat/completions", "enrich", replace(READ, version=version), reports=reports)
    reading = read_request(BODY, b"k" * 32, fields, with_label=False)
    sent = b"".join(spliced((BODY,), reading.inserts))
    assert (b'"vllm_xargs":{"kv_cache_report_mode":"full"}' in sent) is asked
    assert b'"return_token_ids":true' in sent


@pytest.mark.parametrize(
    ("mode", "path"),
    [
        ("off", "/v1/completions"),
        ("observe", "/v1/completions"),
        ("enrich", "/v1/responses"),
        ("enrich", "/v1/messages"),
    ],
)
def test_where_nothing_is_added_to_the_body(mode: Mode, path: str) -> None:
    assert wanted(path, mode, READ, reports=True) is None
    assert read_request(BODY, b"k" * 32, None, with_label=False).inserts == ()


def test_what_is_no_object_gets_nothing() -> None:
    for body in (b"[1]", b"", b'{"a":1,"a":2}'):
        assert read_request(body, b"k" * 32, Wanted(token_ids=True, full_report=False), with_label=False).inserts == ()
