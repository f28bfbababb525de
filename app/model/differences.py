"""Where readings of one hit rate disagree by more than a block a request: which, by how much, and a cause that fits.

Only windows over the same requests are compared. Imports only `events`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ..events import Basis, RateReading, ReadingsDifference

COUNTS_ONCE = (0, 32)
"""The first vLLM that counts a request's lookup once; older ones count it again at each try."""
NAMES: dict[Basis, str] = {"counter": "the server's counters", "usage": "the responses' usage", "inferred": "forecasts"}


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
    cause, why = _cause(first.basis, hits, lookups, known)
    tokens, what = (lookups, "looked up") if lookups else (hits, "hit")
    text = (
        f"Over {requests} request{'' if requests == 1 else 's'}, {NAMES[first.basis]} say {abs(tokens)} tokens "
        f"{'more' if tokens > 0 else 'fewer'} {what} than {NAMES[second.basis]}. {why}"
    )
    yield ReadingsDifference(first.window, first.basis, second.basis, hits, lookups, requests, cause, text)


def _cause(first: Basis, hits: int, lookups: int, known: Circumstances) -> tuple[str | None, str]:
    if first == "counter" and (lookups > 0 or (lookups == 0 and hits > 0)) and known.preempted and _counts_tries(known):
        return "retries_counted", "This vLLM counts a request's lookup again when it is scheduled again."
    if first == "counter" and lookups > 0:
        return "elsewhere", "The counters count requests, too, that didn't go through the dashboard."
    if first == "usage" and hits > 0 and not known.complete:
        return "partial_history", "Some history of its blocks is missing, so that forecasts are lower bounds."
    return None, "No known cause fits."


def _counts_tries(known: Circumstances) -> bool:
    parts = (known.version or "").split(".")[:2]
    return len(parts) == 2 and all(part.isdigit() for part in parts) and tuple(map(int, parts)) < COUNTS_ONCE
