"""What the core promises to whoever drives it: batching, budgets, preemption, ends of requests, counters."""

import pytest

from app.engine.block_hash import hash_block
from app.engine.cache_events import Lora
from app.engine.core import BlocksCleared, BlocksRemoved, BlocksStored, CoreConfig, CoreRequest, EngineCore
from app.engine.profiles import RTX3090_QWEN25_7B_BF16

from .drive import ask, drain, events_of, filler_token, make_core, progress_of, prompt, run_one

POET = Lora("poet", "/adapters/poet", 1)


def test_last_token_is_always_computed() -> None:
    core = make_core(block_size=4)
    for length, reused in ((3, 0), (4, 0), (5, 4), (8, 4), (9, 8)):
        tokens = prompt(length, start=100 * length)
        assert ask(core, f"cold-{length}", tokens) == 0
        assert ask(core, f"warm-{length}", tokens) == reused


def test_exact_multiple_is_recomputed_and_stored_as_a_copy() -> None:
    core = make_core(block_size=4)
    run_one(core, CoreRequest("a", prompt(8), 1))
    (stored,) = events_of(run_one(core, CoreRequest("b", prompt(8), 1)))
    first = hash_block(None, prompt(4))
    assert isinstance(stored, BlocksStored)
    assert (stored.parent_block_hash, stored.block_hashes) == (first, (hash_block(first, prompt(4, 4)),))
    assert core.pool.copies(stored.block_hashes[0]) == 2


def test_decode_blocks_are_cached_when_their_last_token_is_scheduled() -> None:
    """Prompt of 3, block of 4: the first sampled token fills the block, which the step that computes it stores."""
    core = make_core(block_size=4)
    core.add_request(CoreRequest("a", prompt(3), 3), 0.0)
    results = drain(core)
    assert [len(result.events) for result in results] == [0, 1, 0]
    (stored,) = results[1].events
    assert isinstance(stored, BlocksStored)
    assert stored.token_ids == (*prompt(3), 900_000)


def test_the_last_sampled_token_is_never_stored() -> None:
    core = make_core(block_size=4)
    assert events_of(run_one(core, CoreRequest("a", prompt(3), 1))) == []
    assert ask(core, "next-turn", [*prompt(3), 900_000, 5]) == 0


def test_next_turn_reuses_the_answer() -> None:
    core = make_core(block_size=4)
    run_one(core, CoreRequest("a", prompt(6), 8))
    history = [*prompt(6), *(900_000 + index for index in range(8))]
    assert ask(core, "b", [*history, 1, 2, 3]) == 12


def test_a_prompt_is_computed_in_chunks_of_the_budget() -> None:
    core = make_core(block_size=4, max_num_batched_tokens=10)
    results = run_one(core, CoreRequest("a", prompt(25), 1))
    assert [result.progress[0].scheduled_tokens for result in results] == [10, 10, 5]
    assert [result.progress[0].token_id for result in results] == [None, None, 900_000]
    assert [result.progress[0].first_scheduled for result in results] == [True, False, False]
    stored = [event.block_hashes for event in events_of(results) if isinstance(event, BlocksStored)]
    assert [len(hashes) for hashes in stored] == [2, 3, 1]


def test_decoding_goes_first_and_the_rest_of_the_budget_to_prompts() -> None:
    core = make_core(block_size=4, max_num_batched_tokens=8)
    core.add_request(CoreRequest("a", prompt(4), 4), 0.0)
    first = core.step(0.0)
    core.add_request(CoreRequest("b", prompt(20, start=50), 1), 0.0)
    assert first is not None
    second = core.step(0.0)
    assert second is not None
    assert [(each.request_id, each.scheduled_tokens) for each in second.progress] == [("a", 1), ("b", 7)]
    drain(core)


def test_no_more_requests_run_than_allowed() -> None:
    core = make_core(max_num_seqs=2)
    for index in range(5):
        core.add_request(CoreRequest(f"r{index}", prompt(4, start=10 * index), 3), 0.0)
    results = drain(core)
    assert max(len(result.progress) for result in results) == 2
    order = [each.request_id for result in results for each in result.progress if each.first_scheduled]
    assert order == [f"r{index}" for index in range(5)]


def test_a_request_that_does_not_fit_holds_back_those_behind_it() -> None:
    core = make_core(blocks=9, block_size=4)
    core.add_request(CoreRequest("a", prompt(20), 4), 0.0)
    core.add_request(CoreRequest("big", prompt(16, start=100), 1), 0.0)
    core.add_request(CoreRequest("small", prompt(4, start=200), 1), 0.0)
    first = core.step(0.0)
    assert first is not None
    assert [each.request_id for each in first.progress] == ["a"]
    results = drain(core)
    assert [each.request_id for result in results for each in result.progress if each.first_scheduled] == [
        "big",
        "small",
    ]


def test_preemption_takes_the_youngest_and_it_resumes_with_the_same_answer() -> None:
    core = make_core(blocks=8, block_size=4)
    core.add_request(CoreRequest("a", prompt(10), 12), 0.0)
    core.add_request(CoreRequest("b", prompt(10, start=50), 12), 0.0)
    results = drain(core)
    assert [result.preempted for result in results if result.preempted] == [("b",)]
    for request_id in "ab":
        tokens = [each.token_id for each in progress_of(results, request_id) if each.token_id is not None]
        assert tokens == [900_000 + index for index in range(12)]
        assert {each.cached_tokens for each in progress_of(results, request_id)} == {0}
    gauges = core.gauges()
    assert (gauges.preemptions, gauges.running, gauges.waiting) == (1, 0, 0)
    assert (gauges.prefix_cache_queries, gauges.prompt_tokens, gauges.generation_tokens) == (20, 20, 24)


def test_a_full_report_is_told_again_after_preemption() -> None:
    core = make_core(blocks=8, block_size=4)
    ask(core, "seed", (*prompt(4, start=50), 1))
    core.add_request(CoreRequest("a", prompt(10), 12), 0.0)
    core.add_request(CoreRequest("b", prompt(10, start=50), 12, full_report=True), 0.0)
    results = drain(core)
    first = hash_block(None, prompt(4, start=50))
    reports = [each for each in events_of(results) if isinstance(each, BlocksStored) and each.block_hashes[0] == first]
    assert len(reports) >= 2
    assert {each.cached_tokens for each in progress_of(results, "b")} == {4}


def test_stop_tokens_end_a_request() -> None:
    core = make_core()
    results = run_one(core, CoreRequest("a", prompt(5), 10, stop_token_ids=frozenset({900_002})))
    last = results[-1].progress[0]
    assert (last.finish_reason, last.output_tokens, last.finished) == ("stop", 3, True)


def test_the_model_length_ends_a_request() -> None:
    core = make_core(blocks=4, block_size=4)
    assert core.max_model_len == 12
    last = run_one(core, CoreRequest("a", prompt(10), 100))[-1].progress[0]
    assert (last.finish_reason, last.output_tokens) == ("length", 2)


@pytest.mark.parametrize("queued", [True, False])
def test_abort(queued: bool) -> None:
    core = make_core(max_num_seqs=1)
    core.add_request(CoreRequest("a", prompt(9), 50), 0.0)
    core.add_request(CoreRequest("b", prompt(9, start=50), 2), 0.0)
    core.step(0.0)
    core.step(0.0)
    assert core.abort_request("b" if queued else "a", 0.0)
    assert not core.abort_request("b" if queued else "a", 0.0)
    rest = {each.request_id for result in drain(core) for each in result.progress}
    assert rest == ({"a"} if queued else {"b"})
    assert core.gauges().kv_cache_usage_ratio == 0.0
    # What an aborted request computed stays in the cache.
    assert ask(core, "c", prompt(9)) == 8


def test_a_finished_request_holds_its_blocks_until_its_step_is_over() -> None:
    core = EngineCore(CoreConfig(64, 4, profile=RTX3090_QWEN25_7B_BF16), filler_token)
    core.add_request(CoreRequest("a", prompt(9), 1), 0.0)
    result = core.step(0.0)
    assert result is not None
    assert result.progress[0].finished
    assert not core.reset_prefix_cache()
    assert core.has_work()
    core.settle()
    core.settle()
    assert not core.has_work()
    assert core.reset_prefix_cache()
    assert core.gauges().prompt_tokens == 9


def test_an_abort_within_the_last_step_frees_once() -> None:
    core = make_core()
    core.add_request(CoreRequest("a", prompt(9), 1), 0.0)
    core.step(0.0)
    assert core.abort_request("a", 0.0)
    assert core.step(0.0) is None
    assert core.pool.usage_ratio == 0.0


def test_a_reset_waits_for_a_step_and_an_abort_brings_one() -> None:
    core = make_core()
    assert core.reset_prefix_cache()
    assert not core.has_work()
    core.add_request(CoreRequest("a", prompt(9), 1), 0.0)
    core.abort_request("a", 0.0)
    (result,) = drain(core)
    assert (result.events, result.progress) == ((BlocksCleared(),), ())


def test_gauges_between_steps() -> None:
    core = make_core(blocks=11, block_size=4, max_num_seqs=1)
    core.add_request(CoreRequest("a", prompt(9), 3), 0.0)
    core.add_request(CoreRequest("b", prompt(9), 3), 0.0)
    core.step(0.0)
    core.settle()
    gauges = core.gauges()
    assert (gauges.running, gauges.waiting) == (1, 1)
    assert gauges.kv_cache_usage_ratio == pytest.approx(0.3)
    drain(core)
    gauges = core.gauges()
    assert (gauges.running, gauges.waiting, gauges.kv_cache_usage_ratio) == (0, 0, 0.0)
    assert (gauges.prefix_cache_hits, gauges.prompt_tokens_cached, gauges.generation_tokens) == (8, 8, 6)


def test_without_caching_nothing_is_reused_counted_or_told() -> None:
    core = make_core(enable_prefix_caching=False)
    assert ask(core, "a", prompt(20)) == ask(core, "b", prompt(20)) == 0
    results = run_one(core, CoreRequest("c", prompt(20), 5, full_report=True))
    assert events_of(results) == []
    assert results[0].progress[0].created_cache_tokens == 0
    assert core.gauges().prefix_cache_queries == 0


def test_skipping_the_lookup_still_stores_and_is_not_counted() -> None:
    core = make_core(block_size=4)
    ask(core, "a", prompt(9))
    queries = core.gauges().prefix_cache_queries
    results = run_one(core, CoreRequest("b", prompt(9), 1, skip_reading_cache=True, full_report=True))
    (stored,) = events_of(results)
    assert isinstance(stored, BlocksStored)
    assert len(stored.block_hashes) == 2
    assert results[0].progress[0].cached_tokens == 0
    assert core.gauges().prefix_cache_queries == queries


def test_salts_and_loras_do_not_share() -> None:
    core = make_core(block_size=4)
    for index, (salt, lora) in enumerate([(None, None), ("a", None), ("b", None), (None, POET), ("a", POET)]):
        assert ask(core, f"cold-{index}", prompt(9), cache_salt=salt, lora=lora) == 0
        assert ask(core, f"warm-{index}", prompt(9), cache_salt=salt, lora=lora) == 8


def test_eviction_takes_the_tail_of_the_oldest_chain_first() -> None:
    core = make_core(blocks=7, block_size=4)
    run_one(core, CoreRequest("a", prompt(13), 1))
    run_one(core, CoreRequest("b", prompt(9, start=50), 1))
    second = hash_block(hash_block(None, prompt(4)), prompt(4, 4))
    third = hash_block(second, prompt(4, 8))
    results = run_one(core, CoreRequest("c", prompt(9, start=90), 1))
    removed = [each for each in events_of(results) if isinstance(each, BlocksRemoved)]
    assert [each.block_hashes[0] for each in removed] == [third, second]
    assert ask(core, "d", prompt(13)) == 4


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (CoreRequest("new", (), 1), "a prompt has 1 to"),
        (CoreRequest("new", prompt(252), 1), "a prompt has 1 to 251 tokens, not 252"),
        (CoreRequest("new", prompt(4), 0), "max_tokens"),
        (CoreRequest("old", prompt(4), 1), "id old is in use"),
    ],
)
def test_what_can_not_be_served_is_refused(request_: CoreRequest, message: str) -> None:
    core = make_core(blocks=64, block_size=4)
    core.add_request(CoreRequest("old", prompt(4), 1), 0.0)
    with pytest.raises(ValueError, match=message):
        core.add_request(request_, 0.0)
    drain(core)


@pytest.mark.parametrize("settings", [{"max_num_batched_tokens": 0}, {"max_num_seqs": 0}, {"block_size": 0}])
def test_impossible_settings_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        make_core(**settings)
