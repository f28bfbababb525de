"""Where readings of one hit rate disagree by more than a block a request: which, by how much, and a cause that fits.

Only windows over the same requests are compared. Imports only `events`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ..events import Basis, RateReading, ReadingsDifference

COUNTS_ONCE = (0, 32)
"""The first vLLM that counts a request's lookup once; older ones count it again at each try."""
NAMES: dict[Basis, str] = {"counter": "the server's counters", "usage": "the responses' usage", "inferred": "forecasts"}

WHY: dict[str, str] = {
    "retries_counted": "This vLLM counts a request's lookup again when it is scheduled again.",
    "preemption_rereads": "Requests were preempted, and read their blocks again.",
    "prompt_logprobs": "Requests that ask for log probabilities of their prompt are counted by one of the two only.",
    "transferred": "Some of the cache came from another node or tier, which the server's own counters leave out.",
    "elsewhere": "The counters count requests, too, that didn't go through the dashboard.",
    "partial_history": "Some history of its blocks is missing, so that forecasts are lower bounds.",
    "uncertain_copies": "Events left it open whether some blocks were still resident.",
}
"""Every cause, and what it says."""


class Circumstances(NamedTuple):
    """What else is known of a server where its readings are compared."""

    block_size: int | None
    version: str | None
    preempted: bool
    """Its counters say that requests were preempted since the mark."""
    complete: bool
    """No history of its blocks is missing."""
    settled: bool
    """Its counters were read after every request that was seen since the mark had ended, and before the first began."""
    prompt_tokens: float | None = None
    """Prompt tokens since the mark by its counter, each once however often they were looked up."""
    external_hits: bool = False
    """A KV connector gave tokens since the mark."""
    skipped_tokens: int = 0
    """Prompt tokens since the mark of requests that the dashboard saw and whose lookup is skipped."""
    uncertain: bool = False
    """Events left it open whether some blocks are still resident."""


def find_differences(rates: tuple[RateReading, ...], known: Circumstances) -> tuple[ReadingsDifference, ...]:
    """A difference for each window and pair of readings that disagree; none where nothing can be compared."""
    return tuple(_differences(rates, known)) if known.block_size else ()


def _differences(rates: tuple[RateReading, ...], known: Circumstances) -> Iterator[ReadingsDifference]:
    by_name = {(reading.window, reading.basis): reading for reading in rates}
    for (window, basis), counted in by_name.items():
        if basis == "counter" and window == "since_mark" and known.settled:
            other = by_name.get((window, "usage")) or by_name.get((window, "inferred"))
            if other is not None:
                yield from _compare(counted, other, known)
        elif basis == "usage":
            forecast = by_name.get((window, "inferred"))
            if forecast is not None and _same_requests(counted, forecast):
                yield from _compare(counted, forecast, known)


def _same_requests(left: RateReading, right: RateReading) -> bool:
    return left.requests == right.requests and left.query_tokens == right.query_tokens


def _compare(first: RateReading, second: RateReading, known: Circumstances) -> Iterator[ReadingsDifference]:
    requests = second.requests
    hits, lookups = first.hit_tokens - second.hit_tokens, first.query_tokens - second.query_tokens
    if not requests or max(abs(hits), abs(lookups)) <= requests * (known.block_size or 0):
        return
    size = known.block_size or 0
    gap = _Gap(first.basis, second.basis, hits, lookups, second.query_tokens, requests * size)
    causes = tuple(_counter_causes(gap, known) if first.basis == "counter" else _usage_causes(gap, known))
    why = " ".join(WHY[cause] for cause in causes) or "No known cause fits."
    tokens, what = (lookups, "looked up") if lookups else (hits, "hit")
    text = (
        f"Over {requests} request{'' if requests == 1 else 's'}, {NAMES[first.basis]} say {abs(tokens)} tokens "
        f"{'more' if tokens > 0 else 'fewer'} {what} than {NAMES[second.basis]}. {why}"
    )
    cause = causes[0] if causes else None
    yield ReadingsDifference(first.window, first.basis, second.basis, hits, lookups, requests, cause, text, causes)


class _Gap(NamedTuple):
    first: Basis
    second: Basis
    hits: int
    lookups: int
    seen_tokens: int
    """Prompt tokens that went through the dashboard."""
    slack: int


def _counter_causes(gap: _Gap, known: Circumstances) -> Iterator[str]:
    """Why the counters say other than the responses, or than forecasts."""
    others = known.prompt_tokens
    elsewhere = None if others is None else others - gap.seen_tokens - known.skipped_tokens > gap.slack
    more = gap.lookups > 0 or (gap.lookups == 0 and gap.hits > 0)
    if more and not elsewhere and _counts_again(gap, known, elsewhere):
        yield "retries_counted"
        if known.preempted:
            yield "preemption_rereads"
    if known.skipped_tokens and gap.slack < abs(gap.lookups) <= known.skipped_tokens + gap.slack:
        yield "prompt_logprobs"
    if gap.lookups > 0 and (elsewhere or (elsewhere is None and not (known.preempted and _counts_tries(known)))):
        yield "elsewhere"
    if gap.hits < -gap.slack and known.external_hits:
        yield "transferred"


def _counts_again(gap: _Gap, known: Circumstances, elsewhere: bool | None) -> bool:
    """Whether the server looked prompts up more often than they came: told by its own count of prompt tokens, else by
    its release."""
    if elsewhere is False and gap.lookups > known.skipped_tokens + gap.slack:
        return True
    return _counts_tries(known) and known.preempted


def _usage_causes(gap: _Gap, known: Circumstances) -> Iterator[str]:
    """Why responses say other than forecasts."""
    if gap.hits > 0 and known.external_hits:
        yield "transferred"
    if gap.hits > 0 and not known.complete:
        yield "partial_history"
    if gap.hits < 0 and known.uncertain:
        yield "uncertain_copies"


def _counts_tries(known: Circumstances) -> bool:
    parts = (known.version or "").split(".")[:2]
    return len(parts) == 2 and all(part.isdigit() for part in parts) and tuple(map(int, parts)) < COUNTS_ONCE
