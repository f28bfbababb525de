"""The doctor before engines that leave something out: each lack is found, with its flag, and nothing else is blamed."""

from typing import Any

import pytest

from app.doctor.examine import examine
from app.doctor.findings import Diagnosis
from app.settings import load_settings
from app.sources.kv_endpoints import ENABLING_FLAG
from app.targets import targets_of

from .engines import running

EXPECTED_WHERE_ALL_IS_ON = {
    "server", "version", "metrics", "prefix_caching", "tokenize", "usage_details", "request_metrics", "kv_events",
    "kv_history", "kv_replay", "reuse_reports",
}  # fmt: skip
USAGE_FLAG = "--enable-prompt-tokens-details"
TIMES_FLAG = "--enable-per-request-metrics"


async def diagnosed(*imitate: str, ask_it: bool = True, **options: Any) -> Diagnosis:
    async with running(imitate=imitate, **options) as (engine, _):
        given = {"vllm": engine.base_url, "kv_events": engine.events_endpoint, "kv_replay": engine.replay_endpoint}
        settings = load_settings({}, given)
        return await examine(targets_of(settings)[0], settings, ask_it=ask_it)


def lacking(diagnosis: Diagnosis) -> dict[str, str]:
    """Findings that aren't "on", by code."""
    return {finding.code: finding.status for finding in diagnosis.findings if finding.status != "on"}


async def test_nothing_is_lacking() -> None:
    diagnosis = await diagnosed()

    assert (diagnosis.status, lacking(diagnosis)) == ("ok", {})
    assert {finding.code for finding in diagnosis.findings} == EXPECTED_WHERE_ALL_IS_ON


@pytest.mark.parametrize(
    ("imitate", "code", "flag"),
    [
        ("no-usage-details", "usage_details", USAGE_FLAG),
        ("no-request-metrics", "request_metrics", TIMES_FLAG),
        ("no-events", "kv_events", ENABLING_FLAG),
        ("no-replay", "kv_replay", ENABLING_FLAG),
        ("no-tokenize", "tokenize", None),
    ],
)
async def test_one_thing_is_missing(imitate: str, code: str, flag: str | None) -> None:
    diagnosis = await diagnosed(imitate)

    assert (diagnosis.status, lacking(diagnosis)) == ("missing", {code: "missing"})
    (found,) = [finding for finding in diagnosis.findings if finding.code == code]
    assert found.flag == flag
    assert found.panels


async def test_caching_off_is_told_once_and_the_events_are_not_blamed() -> None:
    diagnosis = await diagnosed(enable_prefix_caching=False)

    assert (diagnosis.status, lacking(diagnosis)["prefix_caching"]) == ("missing", "missing")
    assert "kv_events" not in lacking(diagnosis)


@pytest.mark.parametrize("imitate", ["array-events", "bytes-hashes", "no-replay-topic", "no-session-ids",
                                     "random-hashes", "old-metric-names", "hit-rate-gauge", "no-messages"])  # fmt: skip
async def test_what_is_merely_older_or_written_otherwise_is_on(imitate: str) -> None:
    diagnosis = await diagnosed(imitate)

    assert (diagnosis.status, lacking(diagnosis)) == ("ok", {})


async def test_the_form_of_events_is_told() -> None:
    for imitate, form in ((("array-events",), "array"), ((), "map")):
        (events,) = [each for each in (await diagnosed(*imitate)).findings if each.code == "kv_events"]
        assert events.params["form"] == form
        assert events.params["batches"] == 1


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("vllm-0.26.0", {"version": "unsupported"}),
        ("vllm-0.18.0", {"version": "unsupported", "request_metrics": "unsupported", "reuse_reports": "unsupported"}),
        ("vllm-0.12.0", {"version": "unsupported", "request_metrics": "unsupported", "reuse_reports": "unsupported"}),
        ("vllm-0.10.2", {"version": "unsupported", "request_metrics": "unsupported", "reuse_reports": "unsupported"}),
    ],
)
async def test_what_a_release_lacks_is_not_said_to_be_missing(release: str, expected: dict[str, str]) -> None:
    diagnosis = await diagnosed(release)

    assert (diagnosis.status, lacking(diagnosis)) == ("ok", expected)


async def test_a_release_before_events_has_none_to_turn_on() -> None:
    diagnosis = await diagnosed("vllm-0.8.5")

    assert diagnosis.status == "ok"
    assert lacking(diagnosis) == dict.fromkeys(
        ("version", "usage_details", "request_metrics", "kv_events", "reuse_reports"), "unsupported"
    )
    assert {finding.flag for finding in diagnosis.findings} == {None}


async def test_every_rank_is_listened_to() -> None:
    diagnosis = await diagnosed(data_parallel_size=2)

    assert (diagnosis.status, lacking(diagnosis)) == ("ok", {})
    (ranks,) = [finding for finding in diagnosis.findings if finding.code == "kv_ranks"]
    assert ranks.params == {"heard": 2, "expected": 2}


async def test_unasked_what_only_an_answer_tells_stays_unknown() -> None:
    async with running(imitate=("no-usage-details",)) as (engine, _):
        given = {"vllm": engine.base_url, "kv_events": engine.events_endpoint, "kv_replay": engine.replay_endpoint}
        settings = load_settings({}, given)
        diagnosis = await examine(targets_of(settings)[0], settings, ask_it=False)
        assert engine.ranks.loops[0].core.gauges().prompt_tokens == 0

    assert diagnosis.status == "ok"
    assert lacking(diagnosis) == {"usage_details": "unknown", "request_metrics": "unknown"}
