"""An experiment carried out on paper: a plan against block accounting, without a server or a clock. Pure.

It tells how many requests a run has, and lets a definition be tested by what it must find.
"""

import itertools
from collections.abc import Callable

from .accounting import Accounting
from .definition import FRESH, Experiment, Request
from .sample import Sample
from .setting import Setting

Timing = Callable[[Request, int, int], float]
"""Milliseconds to the first token of a request with (prompt tokens, cached tokens)."""
CHAT_TOKEN_CHARS = 2
MOST_REQUESTS = 20_000


def rehearse(experiment: Experiment, setting: Setting, timing: Timing | None = None) -> list[Sample]:
    """The samples of a server that keeps everything and answers with the id 7."""
    accounting = Accounting(setting.block_size)
    samples: list[Sample] = []
    plan = experiment.plan(setting)
    answers: tuple[Sample, ...] | None = None
    for number in itertools.count():
        try:
            batch = plan.send(answers) if answers is not None else next(plan)
        except StopIteration:
            break
        found: list[Sample] = []
        for request in batch.requests:
            sample = _answered(request, accounting, len(samples), number, timing)
            samples.append(sample)
            found.append(sample)
        answers = tuple(found)
        if len(samples) > MOST_REQUESTS:
            break
    return samples


def _answered(request: Request, accounting: Accounting, index: int, batch: int, timing: Timing | None) -> Sample:
    ids = request.prompt.token_ids or written(request)
    fresh = request.side == "off" or request.space == FRESH
    cached = 0 if fresh else accounting.expect(request.space, ids)
    answer = (7,) * request.max_tokens
    if not fresh:
        accounting.store(request.space, ids, answer)
    ttft_ms = timing(request, len(ids), cached) if timing else 1.0
    return Sample(
        index=index, batch=batch, arm=request.arm, role=request.role, side=request.side, x=request.x,
        repeat=request.repeat, label=request.label, space=request.space, prompt_tokens=len(ids), cached_tokens=cached,
        cached_basis="usage", expected_cached=cached, completion_tokens=request.max_tokens, ttft_ms=ttft_ms,
        total_ms=ttft_ms, prompt_ids=ids, answer_ids=answer, answer_text="An answer. ",
    )  # fmt: skip


def written(request: Request) -> tuple[int, ...]:
    """A chat as made-up ids: one of every two characters, tools first, as templates have them."""
    text = f"{request.prompt.tools}" if request.prompt.tools else ""
    text += "".join(f"<{message['role']}>{message['content']}" for message in request.prompt.messages)
    return tuple(hash_of(text[begin : begin + CHAT_TOKEN_CHARS]) for begin in range(0, len(text), CHAT_TOKEN_CHARS))


def hash_of(text: str) -> int:
    """The same in every process, unlike `hash`."""
    return int.from_bytes(text.encode("utf-8", "replace"), "big") % 100_003
