import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.core import CoreConfig, CoreRequest, EngineCore
from app.why.accounting import BlockAccount, EndlessAccount, make_prompt
from app.why.lint import lint
from app.why.request_text import Body, pieces_of

RULES = [f"Rule {n}: answer briefly and kindly, and never guess anything at all." for n in range(12)]


def tokenise(requests: Sequence[Body]) -> list[tuple[int, ...] | None]:
    """A token a character: good enough for accounting."""
    return [tuple(map(ord, "\x00".join(piece.text for piece in pieces_of(body)))) or None for body in requests]


def silent(stage: str, done: int, total: int) -> None:
    assert 0 <= done <= max(total, 1)


def ask(system: str, question: str) -> Body:
    return {"messages": [{"role": "system", "content": system}, {"role": "user", "content": question}]}


def engine_hits(prompts: list[tuple[int, ...]], blocks: int, size: int) -> list[int | None]:
    """What the embedded engine's core gives, one request after the other, with one token of output."""
    core = EngineCore(CoreConfig(blocks, size), lambda request, position: 7)
    hits: list[int | None] = []
    for number, prompt in enumerate(prompts):
        if len(prompt) >= core.max_model_len:
            hits.append(None)
            continue
        core.add_request(CoreRequest(str(number), prompt, 1), 0.0)
        cached = None
        while (step := core.step(0.0)) is not None:
            for progress in step.progress:
                cached = progress.cached_tokens
        hits.append(cached)
    return hits


def account_hits(prompts: list[tuple[int, ...]], blocks: int, size: int) -> list[int | None]:
    account = BlockAccount(blocks, size)
    return [account.serve(make_prompt(prompt, size)) for prompt in prompts]


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=40).map(tuple), max_size=30),
    st.integers(2, 24),
    st.sampled_from([1, 2, 4]),
)
def test_hits_are_exactly_those_of_the_embedded_engine(prompts: list[tuple[int, ...]], blocks: int, size: int) -> None:
    assert account_hits(prompts, blocks, size) == engine_hits(prompts, blocks, size)


@pytest.mark.parametrize("blocks", [40, 200, 2000])
def test_growing_conversations_over_a_pool_that_is_too_small_agree_too(blocks: int) -> None:
    rng = random.Random(blocks)
    talks = [[rng.randrange(9) for _ in range(100)] for _ in range(12)]
    prompts: list[tuple[int, ...]] = []
    for _ in range(400):
        talk = talks[rng.randrange(12)]
        if len(talk) > 350:
            del talk[100:]
        talk += [rng.randrange(9) for _ in range(rng.randrange(5, 60))]
        prompts.append(tuple(talk))
    assert account_hits(prompts, blocks, 8) == engine_hits(prompts, blocks, 8)


def test_an_endless_pool_hits_whatever_was_seen() -> None:
    account = EndlessAccount(4)
    prompts = [make_prompt(tuple(range(start, start + 9)), 4) for start in (0, 100, 200, 0)]
    assert [account.serve(prompt) for prompt in prompts] == [0, 0, 0, 8]


def test_salts_and_models_share_nothing() -> None:
    body = ask("\n".join(RULES), "Hi")
    requests = [body, body, dict(body) | {"cache_salt": "a"}, dict(body) | {"model": "m"}, dict(body) | {"model": "n"}]
    report = lint(requests, tokenise, num_gpu_blocks=1000, block_size=16, tell=silent)
    length = report.prompt_tokens // 5
    # The same twice; a request that names no model goes to the usual one.
    assert report.hit_tokens == 2 * ((length - 1) // 16 * 16)


def test_breakers_are_ranked_by_what_they_lose_and_gains_are_counted() -> None:
    rules = "\n".join(RULES)
    requests = [ask(f"Now: 10:15:{n:02d}\n{rules}", f"Question {n}?") for n in range(20)]
    requests += [ask(f"Speak about ships. {RULES[n % 2]}\nrequest_id: a{n}f{n}\nMore: {rules}", "?") for n in range(6)]
    report = lint(requests, tokenise, num_gpu_blocks=10_000, block_size=16, tell=silent)
    first = report.breakers[0]
    assert (first.kind, first.requests, first.remedy) == ("clock_time", 19, "move_behind")
    assert first.examples[0][:2] == (1, 0)
    assert first.gained_tokens is not None
    assert first.gained_tokens > 0.9 * first.lost_tokens > 0
    assert [row.lost_tokens for row in report.breakers] == sorted(
        (r.lost_tokens for r in report.breakers), reverse=True
    )
    assert report.fixed_hit_tokens is not None
    assert report.fixed_hit_tokens >= report.hit_tokens + first.gained_tokens


def test_clean_requests_have_nothing_to_fix() -> None:
    requests = [ask("\n".join(RULES), f"Question {n} of many?") for n in range(30)]
    report = lint(requests, tokenise, num_gpu_blocks=10_000, block_size=16, tell=silent)
    assert report.breakers == []
    assert report.fixed_hit_tokens is None
    assert report.hit_ratio is not None
    assert report.hit_ratio > 0.9


def test_a_small_pool_says_what_a_larger_one_would_give() -> None:
    requests = [ask(f"{n % 5} " + "\n".join(RULES), "Hi") for n in range(20)]
    report = lint(requests, tokenise, num_gpu_blocks=80, block_size=16, tell=silent)
    assert report.unbounded_hit_tokens > report.hit_tokens
    assert report.left_out == 0


def test_what_has_no_tokens_or_is_too_long_is_left_out() -> None:
    requests: list[Body] = [ask("\n".join(RULES), "Hi"), {"messages": []}]
    report = lint(requests, tokenise, num_gpu_blocks=10, block_size=16, tell=silent)
    assert (report.requests, report.left_out, report.hit_ratio) == (2, 2, None)


def test_it_can_be_cancelled_from_its_progress() -> None:
    def cancel(stage: str, done: int, total: int) -> None:
        if stage == "compare":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lint([ask("a", "b")] * 3, tokenise, num_gpu_blocks=100, block_size=16, tell=cancel)
