"""The timing profile against the published prefix-length experiment, from the profile alone and through the core."""

import numpy as np
import pytest

from app.engine.core import CoreConfig, CoreRequest, EngineCore
from app.engine.profiles import INSTANT, PROFILES, RTX3090_QWEN25_7B_BF16, StepWork

from .drive import drain, filler_token, prompt, run_one

PUBLISHED = {353: (111.4, 36.7), 681: (168.7, 43.0), 1337: (279.4, 45.1), 2649: (574.0, 56.1), 3961: (852.7, 62.8)}
"""Mean TTFT in ms by prompt tokens, without and with the cache: Qwen2.5-7B-Instruct, BF16, RTX 3090, blocks of 16."""
PUBLISHED_REDUCTION = {353: 0.671, 681: 0.745, 1337: 0.839, 2649: 0.902, 3961: 0.926}
SLOPES = (207.6, 6.94)
"""Least squares over the table: ms per 1,000 prompt tokens, without and with the cache."""

PROFILE = RTX3090_QWEN25_7B_BF16


def _check(measured: dict[int, tuple[float, float]]) -> None:
    lengths = np.array(list(PUBLISHED))
    for which, slope in enumerate(SLOPES):
        published = [times[which] for times in PUBLISHED.values()]
        assert np.polyfit(lengths / 1000, published, 1)[0] == pytest.approx(slope, abs=0.05)
        fitted = np.polyfit(lengths / 1000, [measured[length][which] for length in PUBLISHED], 1)[0]
        assert fitted == pytest.approx(slope, rel=0.02)
    for length, (cold, warm) in PUBLISHED.items():
        assert measured[length][0] == pytest.approx(cold, rel=0.12)
        assert measured[length][1] == pytest.approx(warm, rel=0.12)
        assert 1 - measured[length][1] / measured[length][0] == pytest.approx(PUBLISHED_REDUCTION[length], abs=0.04)


def _core(caching: bool, budget: int) -> EngineCore:
    config = CoreConfig(
        PROFILE.num_gpu_blocks, PROFILE.block_size, budget, enable_prefix_caching=caching, profile=PROFILE
    )
    return EngineCore(config, filler_token)


def _ttft_ms(core: EngineCore, request_id: str, length: int) -> tuple[float, int]:
    results = run_one(core, CoreRequest(request_id, prompt(length, start=1000 * length), 1))
    return sum(result.duration_ms for result in results), length - results[-1].progress[0].cached_tokens


def test_from_the_profile() -> None:
    measured = {}
    for length in PUBLISHED:
        warm_tokens = (length - 1) % PROFILE.block_size + 1
        cold, warm = (PROFILE.duration_ms(StepWork(tokens, 1, length, 1)) for tokens in (length, warm_tokens))
        measured[length] = (cold, warm)
    _check(measured)


@pytest.mark.parametrize("budget", [512, 2048, 8192])
def test_through_the_core(budget: int) -> None:
    """Whatever the step's token budget is: 3,961 tokens are two chunks with the default of 2,048."""
    off, on = _core(False, budget), _core(True, budget)
    measured = {}
    for length in PUBLISHED:
        cold, computed = _ttft_ms(off, f"off-{length}", length)
        assert computed == length
        first, first_computed = _ttft_ms(on, f"first-{length}", length)
        assert first_computed == length
        assert first == pytest.approx(cold)
        warm = [_ttft_ms(on, f"warm-{length}-{repeat}", length) for repeat in range(5)]
        assert {tokens for _ms, tokens in warm} == {1 if length == 353 else 9}
        measured[length] = (cold, float(np.mean([ms for ms, _tokens in warm])))
    _check(measured)


def test_on_off_experiment() -> None:
    """93 shared blocks and eight questions, the first of them cold: 10,416 of 12,006 tokens are reused."""
    core = _core(True, PROFILE.max_num_batched_tokens)
    for index, length in enumerate((1504, 1501, 1500, 1500, 1500, 1502, 1499, 1500)):
        tokens = prompt(1488) + prompt(length - 1488, start=10_000 * (index + 1))
        results = run_one(core, CoreRequest(f"q{index}", tokens, 64))
        assert sum(result.duration_ms for result in results[1:]) == pytest.approx(63 * 19.7)
    gauges = core.gauges()
    assert (gauges.prefix_cache_hits, gauges.prefix_cache_queries) == (10_416, 12_006)


def test_decode_takes_the_published_time_and_batches_nearly_flat() -> None:
    one = PROFILE.duration_ms(StepWork(0, 0, 0, 1))
    assert one == pytest.approx(19.7)
    assert PROFILE.duration_ms(StepWork(0, 0, 0, 16)) < 1.05 * one


def test_prompts_admitted_together_share_the_fixed_cost() -> None:
    core = _core(True, 2048)
    for index in range(4):
        core.add_request(CoreRequest(f"r{index}", prompt(100, start=1000 * index), 1), 0.0)
    (result,) = drain(core)
    assert result.duration_ms == pytest.approx(33 + 3 * 0.03 + 400 * (0.2005 + 0.00665))


def test_instant_takes_no_time() -> None:
    assert INSTANT.duration_ms(StepWork(5000, 3, 9000, 3)) == 0.0
    assert PROFILES["instant"] is INSTANT
    assert PROFILES["rtx3090-qwen2.5-7b-bf16"].num_gpu_blocks == 5306


def test_the_quantized_profile_says_what_is_assumed() -> None:
    profile = PROFILES["rtx3090-qwen2.5-7b-awq-int4"]
    assert (profile.num_gpu_blocks, profile.block_size, profile.assumed) == (15839, 16, ("prefill",))
    assert profile.duration_ms(StepWork(0, 0, 0, 1)) == pytest.approx(6.84)
    assert PROFILES["rtx3090-qwen2.5-7b-bf16"].assumed == ()


def test_work_saved_by_a_shared_prefix() -> None:
    """Eight requests with 512 tokens in common, in blocks of 16: the published model's prefill tokens."""
    suffixes = (24, 40, 8, 32, 16, 48, 12, 20)
    prompts = [(*range(512), *(1000 * (n + 1) + index for index in range(length))) for n, length in enumerate(suffixes)]
    computed = {}
    for caching in (False, True):
        core = EngineCore(CoreConfig(5306, 16, enable_prefix_caching=caching), filler_token)
        for number, tokens in enumerate(prompts):
            core.add_request(CoreRequest(str(number), tokens, 1), 0.0)
            drain(core)
        gauges = core.gauges()
        computed[caching] = gauges.prompt_tokens - gauges.prompt_tokens_cached
    assert computed == {False: 4296, True: 712}


@pytest.mark.parametrize(("warmed", "hits"), [(True, 11_904), (False, 10_416)])
def test_eight_questions_under_one_system_prompt(warmed: bool, hits: int) -> None:
    """A system prompt of 93 blocks under the published prompt lengths, known before the first question or not."""
    core = EngineCore(CoreConfig(5306, 16), filler_token)
    if warmed:
        run_one(core, CoreRequest("warm-up", prompt(1489), 1))
    before = core.gauges()
    for number, length in enumerate((1504, 1501, 1500, 1500, 1500, 1502, 1499, 1500)):
        question = prompt(length - 1488, start=10_000 * (number + 1))
        run_one(core, CoreRequest(str(number), (*prompt(1488), *question), 1))
    after = core.gauges()
    assert after.prefix_cache_queries - before.prefix_cache_queries == 12_006
    assert after.prefix_cache_hits - before.prefix_cache_hits == hits
