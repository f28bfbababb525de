"""The prompt doctor: what a list of requests could hit in order, what breaks it, and what each fix would gain.

Hits are counted by the engine's own rules (see `accounting`); gains by counting again with the requests rewritten.
Imports only its own package.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from .accounting import BlockAccount, EndlessAccount, Prompt, make_prompt
from .breaker_words import BREAKER_WORDS
from .breakers import Breaker, find_breaker
from .remedies import REMEDY_OF, RemedyKind, remedy
from .request_text import Body, pieces_of
from .span_names import BreakerKind

Stage = Literal["tokenise", "count", "compare", "gains"]
Progress = Callable[[Stage, int, int], None]
"""Told (what is being done, how much of it is done, of how much). May raise, to end it all."""
Tokens = tuple[int, ...]
Tokenise = Callable[[Sequence[Body]], Sequence[Tokens | None]]
"""The tokens of each request's rendered prompt; None where it can't be rendered."""

MIN_LINE_CHARS = 24
"""Shorter lines say nothing about which requests belong together."""
MAX_LINES = 24
MAX_LINE_TEXT = 20_000
MAX_GAINS = 6
LEAST_RATIO = 0.001
"""Share of all prompt tokens below which a breaker's loss isn't worth a word."""
EXAMPLES = 3
REPORT_EVERY = 200


@dataclass(frozen=True, slots=True)
class BreakerTotal:
    """One kind of breaker over all requests.

    lost_tokens: prompt tokens behind it that were the same as before and were computed all the same, about.
    gained_tokens: more tokens that hit with its remedy, counted; None where it has none, or it wasn't counted.
    examples: [number of the request (from 0), of the one before it, what changed there, and here].
    """

    kind: BreakerKind
    name: str
    advice: str
    translations: dict[str, tuple[str, str]]
    requests: int
    lost_tokens: int
    remedy: RemedyKind | None
    gained_tokens: int | None
    examples: list[tuple[int, int, str, str]]


@dataclass(frozen=True, slots=True)
class LintReport:
    """What a list of requests would do, one at a time, from a cold start.

    hit_ratio: hit_tokens / prompt_tokens; None of nothing. unbounded_hit_tokens: hits in a pool that never evicts.
    fixed_hit_tokens: hits with every remedy at once; None where none is needed. left_out: requests without tokens, or
    too long for the pool.
    """

    requests: int
    left_out: int
    block_size: int
    num_gpu_blocks: int
    prompt_tokens: int
    hit_tokens: int
    hit_ratio: float | None
    unbounded_hit_tokens: int
    fixed_hit_tokens: int | None
    breakers: list[BreakerTotal]


def assumed(block_size: int | None, num_gpu_blocks: int | None) -> list[str]:
    """The fields of a report that a server didn't tell (None): its figures rest on usual values there."""
    return [name for name, told in (("block_size", block_size), ("num_gpu_blocks", num_gpu_blocks)) if not told]


def cached_tokens(prompts: Sequence[Prompt | None], num_gpu_blocks: int, block_size: int) -> list[int | None]:
    """What each prompt would hit, in order; None for those without tokens or too long for the pool."""
    account = BlockAccount(num_gpu_blocks, block_size)
    return [account.serve(prompt) if prompt is not None else None for prompt in prompts]


def lint(
    requests: Sequence[Body], tokenise: Tokenise, *, num_gpu_blocks: int, block_size: int, tell: Progress
) -> LintReport:
    """The whole report. `tokenise` is called again for rewritten requests."""
    tell("count", 0, 1)
    desk = _Desk(requests, tokenise, num_gpu_blocks, block_size)
    hits = cached_tokens(desk.prompts, num_gpu_blocks, block_size)
    endless = EndlessAccount(block_size)
    served = [prompt for prompt, hit in zip(desk.prompts, hits, strict=True) if prompt is not None and hit is not None]
    unbounded = sum(endless.serve(prompt) for prompt in served)
    found = _find_all(requests, tell)
    prompt_tokens = sum(len(prompt.token_ids) for prompt in served)
    totals = _total(requests, desk.prompts, hits, found, block_size)
    totals = Counter({kind: lost for kind, lost in totals.items() if lost >= LEAST_RATIO * prompt_tokens})
    hit = _sum(hits)
    gains: dict[BreakerKind, int] = {}
    kinds = [kind for kind, _ in totals.most_common(MAX_GAINS) if kind in REMEDY_OF]
    for done, kind in enumerate(kinds):
        tell("gains", done, len(kinds) + 1)
        gains[kind] = desk.hits_with(found, {kind}) - hit
    helpful = {kind for kind, gain in gains.items() if gain > 0}
    fixed = desk.hits_with(found, helpful) if helpful else None
    tell("gains", 1, 1)
    return LintReport(
        requests=len(requests),
        left_out=hits.count(None),
        block_size=block_size,
        num_gpu_blocks=num_gpu_blocks,
        prompt_tokens=prompt_tokens,
        hit_tokens=hit,
        hit_ratio=hit / prompt_tokens if prompt_tokens else None,
        unbounded_hit_tokens=unbounded,
        fixed_hit_tokens=fixed,
        breakers=[_row(kind, lost, found, gains.get(kind)) for kind, lost in totals.most_common()],
    )


def _sum(hits: Iterable[int | None]) -> int:
    return sum(hit for hit in hits if hit is not None)


_Found = dict[int, tuple[int, Breaker]]
"""By the number of a request: the number of the earlier one that it should have shared with, and what broke it."""


def _find_all(requests: Sequence[Body], tell: Progress) -> _Found:
    """The breaker of each request that has one, against the latest request that has most lines in common with it."""
    found: _Found = {}
    latest: dict[int, int] = {}
    for number, body in enumerate(requests):
        if number % REPORT_EVERY == 0:
            tell("compare", number, len(requests))
        lines = _lines(body)
        votes = Counter(latest[line] for line in lines if line in latest)
        if votes:
            partner = max(votes, key=lambda other: (votes[other], other))
            breaker = find_breaker(requests[partner], body)
            if breaker is not None:
                found[number] = (partner, breaker)
        for line in lines:
            latest[line] = number
    return found


def _lines(body: Body) -> list[int]:
    """Hashes of a request's lines, by which requests that belong together find each other."""
    found: list[int] = []
    for piece in pieces_of(body):
        found.extend(_lines_of(piece.text))
        if len(found) >= MAX_LINES:
            break
    return found[:MAX_LINES]


@lru_cache(maxsize=4096)
def _lines_of(text: str) -> tuple[int, ...]:
    """White space and case, which a breaker may be in, count for nothing; long lines are read in pieces, so that a
    change spoils only one of them."""
    found: list[int] = []
    for line in text[:MAX_LINE_TEXT].splitlines():
        plain = "".join(line.split()).casefold()
        parts = [plain[:64], *(_anchored(plain, at) for at in range(0, len(plain), 200))]
        found.extend(hash(part) for part in parts if len(part) >= MIN_LINE_CHARS)
        if len(found) >= MAX_LINES:
            break
    return tuple(found)


def _anchored(plain: str, at: int) -> str:
    """A part of a line that begins at the same words wherever these lie: behind the next full stop or comma."""
    ends = [plain.find(mark, at, at + 200) for mark in (".", ",", "。", "，", ":", "：")]
    start = min((end for end in ends if end >= 0), default=at - 1) + 1
    return plain[start : start + 64]


def _total(
    requests: Sequence[Body], prompts: Sequence[Prompt | None], hits: Sequence[int | None], found: _Found, size: int
) -> Counter[BreakerKind]:
    """About how many tokens each kind lost: those of the constant part, by its share of the request's characters."""
    totals: Counter[BreakerKind] = Counter()
    for number, (_, breaker) in found.items():
        prompt, hit = prompts[number], hits[number]
        if prompt is None or hit is None:
            continue
        length = len(prompt.token_ids)
        characters = sum(len(piece.text) for piece in pieces_of(requests[number])) or 1
        constant = round(length * min(breaker.constant_chars / characters, 1.0))
        lost = min(constant, max(length - 1 - hit, 0)) // size * size
        totals[breaker.kind] += max(lost, 0)
    return Counter({kind: lost for kind, lost in totals.items() if lost > 0})


def _row(kind: BreakerKind, lost: int, found: _Found, gained: int | None) -> BreakerTotal:
    words = BREAKER_WORDS[kind]
    cases = [(number, partner, breaker) for number, (partner, breaker) in found.items() if breaker.kind == kind]
    return BreakerTotal(
        kind=kind,
        name=words.name,
        advice=words.advice,
        translations={"zh": (words.name_zh, words.advice_zh)},
        requests=len(cases),
        lost_tokens=lost,
        remedy=REMEDY_OF.get(kind),
        gained_tokens=gained,
        examples=[
            (number, partner, breaker.before.text[:80], breaker.after.text[:80])
            for number, partner, breaker in cases[:EXAMPLES]
        ],
    )


class _Desk:
    """The prompts of the requests, and of rewritten ones."""

    def __init__(self, requests: Sequence[Body], tokenise: Tokenise, num_gpu_blocks: int, block_size: int) -> None:
        self._requests = requests
        self._tokenise = tokenise
        self._num_gpu_blocks = num_gpu_blocks
        self._block_size = block_size
        self._usual_model = next((body["model"] for body in requests if body.get("model")), "")
        self.prompts = self._prompts(requests)

    def hits_with(self, found: _Found, kinds: set[BreakerKind]) -> int:
        """Tokens that hit where every request with a breaker of `kinds`, and the one before it, has the remedy."""
        changed: dict[int, dict[str, Any]] = {}
        for number, (partner, breaker) in found.items():
            if breaker.kind not in kinds:
                continue
            for which, span in ((number, breaker.after), (partner, breaker.before)):
                done = remedy(self._requests[which], breaker, span, diff=False) if which not in changed else None
                if done is not None:
                    changed[which] = done.request
        numbers = sorted(changed)
        prompts = list(self.prompts)
        for number, prompt in zip(numbers, self._prompts([changed[number] for number in numbers]), strict=True):
            prompts[number] = prompt
        return _sum(cached_tokens(prompts, self._num_gpu_blocks, self._block_size))

    def _prompts(self, requests: Sequence[Body]) -> list[Prompt | None]:
        tokens = self._tokenise(requests)
        return [
            make_prompt(token_ids, self._block_size, self._keys(body)) if token_ids else None
            for body, token_ids in zip(requests, tokens, strict=True)
        ]

    def _keys(self, body: Body) -> str:
        """Blocks are shared only within one model or adapter, and under one salt."""
        return f"{body.get('model') or self._usual_model}\0{body.get('cache_salt') or ''}"
