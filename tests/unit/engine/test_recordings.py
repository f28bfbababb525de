"""The core fed with what a real server was fed: it must reuse, store and remove the same blocks, in the same order.

Where a recording doesn't carry a prompt's token ids, its full blocks are those that the events named, and the tail,
which no event ever names, is filled up to the recorded length.
"""

import itertools

import pytest

from app.engine.core import CoreConfig, CoreRequest, EngineCore

from .drive import ask, drain, filler_token, on_the_wire, run_one
from .recorded import OWN_SERVER, Event, Recording, chains, recording

CHAIN_OF: dict[str, dict[str, int]] = {
    "broken_prefix": {"r1": 13, "r2": 14, "r3": 15},
    "salted": {"r1": 16, "r2": 17, "r3": 16},
    "multi_turn": {"r1": 26, "r2": 27, "r3": 27},
    "prompt_logprobs": {"r1": 31, "r2": 32, "r3": 31},
    "reset": {"r1": 34, "r3": 34},
    "evict": {"r1": 0, "r2": 1, "r3": 2, "r4": 3, "r5": 4, "r6": 5, "r7": 4},
    "same_step": {f"race{index}": 25 for index in range(4)},
}
"""The number of the batch whose last block is the last full block of a request's prompt."""


def _core(name: str) -> EngineCore:
    pool = 64 if name in OWN_SERVER else 728
    return EngineCore(CoreConfig(pool, 32), filler_token)


def _request(name: str, request_id: str) -> CoreRequest:
    recorded = recording(name)
    body = recorded.bodies[request_id]
    usage = recorded.usage[request_id]
    length = usage["prompt_tokens"]
    if request_id in recorded.prompts:
        tokens = recorded.prompts[request_id]
    elif isinstance(body.get("prompt"), list):
        tokens = body["prompt"]
    else:
        last = recorded.batches[CHAIN_OF[name][request_id]][-1]["block_hashes"][-1]
        known = chains(name)[last]
        tokens = known + [800_000 + index for index in range(len(known), length)]
    assert len(tokens) == length
    return CoreRequest(
        request_id,
        tuple(tokens),
        usage["completion_tokens"],
        cache_salt=body.get("cache_salt"),
        session_id=body.get("session_id"),
        full_report=body.get("vllm_xargs", {}).get("kv_cache_report_mode") == "full",
        skip_reading_cache="prompt_logprobs" in body,
    )


def _prime(core: EngineCore, name: str, recorded: Recording) -> None:
    """Brings in what earlier recordings left on the same server and this one reuses.

    With full reports the first thing that is told is what was there.
    """
    if recorded.prompts:
        first = recorded.batches[min(recorded.batches)][0]
        ask(core, "prime", [*first["token_ids"], 700_000])
        return
    known = chains(name)
    own = {event_hash for batch in recorded.batches.values() for event in batch for event_hash in event["block_hashes"]}
    parents = {
        event["parent_block_hash"] for batch in recorded.batches.values() for event in batch if "block_size" in event
    }
    for parent in sorted(parents - own - {None}):
        ask(core, f"prime-{parent}", [*known[parent], 700_000])


def _counters(core: EngineCore) -> tuple[int, int]:
    return core.gauges().prefix_cache_queries, core.gauges().prefix_cache_hits


def _deltas(counted: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(after[0] - before[0], after[1] - before[1]) for before, after in itertools.pairwise(counted)]


def _trimmed(batch: list[Event]) -> list[Event]:
    unknown_to_the_core = {"medium", "lora_id", "group_idx", "kv_cache_spec_kind"}
    return [{key: value for key, value in event.items() if key not in unknown_to_the_core} for event in batch]


def _expected(name: str) -> list[list[Event]]:
    batches = [_trimmed(batch) for _number, batch in sorted(recording(name).batches.items())]
    for batch in batches:
        for event in batch:
            if event["type"] == "AllBlocksCleared":
                event.pop("block_hashes", None)
    return batches


@pytest.mark.parametrize(
    "name",
    ["exact_multiple", "broken_prefix", "salted", "multi_turn", "prompt_logprobs", "evict", "shared_prefix_full"],
)
def test_one_after_the_other(name: str) -> None:
    recorded = recording(name)
    core = _core(name)
    _prime(core, name, recorded)
    counted = [_counters(core)]
    batches: list[list[dict[str, object]]] = []
    for request_id, usage in recorded.usage.items():
        request = _request(name, request_id)
        results = run_one(core, request)
        batches += [[on_the_wire(event) for event in result.events] for result in results if result.events]
        last = results[-1].progress[0]
        details = usage["prompt_tokens_details"]
        assert last.cached_tokens == details["cached_tokens"], request_id
        if details.get("created_cache_tokens") is not None:
            assert last.created_cache_tokens == details["created_cache_tokens"], request_id
        assert last.output_tokens == usage["completion_tokens"]
        counted.append(_counters(core))
    assert batches == _expected(name)
    assert _deltas([counted[sent] for sent, _queries, _hits in recorded.counters]) == _deltas(
        [(queries, hits) for _sent, queries, hits in recorded.counters]
    )


def test_same_step() -> None:
    """The first computes; the other three, admitted in the same step, reuse its blocks before they are computed."""
    recorded = recording("same_step")
    core = _core("same_step")
    _prime(core, "same_step", recorded)
    before = _counters(core)
    for request_id in recorded.usage:
        core.add_request(_request("same_step", request_id), 0.0)
    results = drain(core)
    assert {each.request_id for each in results[0].progress} == set(recorded.usage)
    for progress in results[0].progress:
        details = recorded.usage[progress.request_id]["prompt_tokens_details"]
        assert progress.cached_tokens == details["cached_tokens"]
        assert progress.created_cache_tokens == details["created_cache_tokens"]
    batches = [[on_the_wire(event) for event in result.events] for result in results if result.events]
    assert batches == _expected("same_step")
    (_sent, first_queries, first_hits), (_all_sent, last_queries, last_hits) = recorded.counters
    queries, hits = _counters(core)
    assert (queries - before[0], hits - before[1]) == (last_queries - first_queries, last_hits - first_hits)


def test_reset_tells_of_itself_with_the_next_step() -> None:
    recorded = recording("reset")
    core = _core("reset")
    warm = _request("reset", "r1")
    run_one(core, warm)
    assert ask(core, "again", warm.prompt_token_ids) == recorded.usage["r1"]["prompt_tokens_details"]["cached_tokens"]
    assert core.reset_prefix_cache()
    assert core.step(0.0) is None
    results = run_one(core, _request("reset", "r3"))
    assert results[-1].progress[0].cached_tokens == recorded.usage["r3"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert [on_the_wire(event) for event in results[0].events] == _expected("reset")[0]
