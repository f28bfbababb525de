"""Hit rates by each reading, and where readings disagree."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from .envelope import Basis, Event


@dataclass(frozen=True, slots=True)
class RateReading:
    """One hit rate by one reading, with its numerator and denominator.

    window: last_request, since_mark, last_minute, last_1000_requests, or lifetime (the server's).
    basis: counter, usage, or inferred (the forecast).
    hit_tokens: prompt tokens that hit.
    query_tokens: prompt tokens that were looked up.
    ratio: hit_tokens / query_tokens; null where nothing was looked up.
    requests: requests in it, where the reading knows.
    since_ms: start of the window.
    """

    window: Literal["last_request", "since_mark", "last_minute", "last_1000_requests", "lifetime"]
    basis: Basis
    hit_tokens: int
    query_tokens: int
    ratio: float | None
    requests: int | None = None
    since_ms: float | None = None


@dataclass(frozen=True, slots=True)
class ReadingsDifference:
    """Two readings of one hit rate that disagree by more than a block a request.

    window: as in RateReading; both readings are over the same requests.
    first: basis of the one reading: counter or usage.
    second: basis of the other: usage or inferred (the forecast).
    hit_tokens: tokens that hit by the first, less those by the second.
    query_tokens: tokens looked up by the first, less those by the second.
    requests: requests compared.
    cause: the first of `causes`; null where no known cause fits.
    text: all that in a sentence or two, in English.
    causes: every known cause that fits: retries_counted (an older vLLM counts each try), preemption_rereads,
        prompt_logprobs (those requests' lookups are counted by one reading only), transferred (KV from a prefill node
        counts as cached), elsewhere (requests that didn't go through the dashboard), partial_history, uncertain_copies.
    """

    window: Literal["last_request", "since_mark", "last_minute", "last_1000_requests", "lifetime"]
    first: Basis
    second: Basis
    hit_tokens: int
    query_tokens: int
    requests: int
    cause: str | None
    text: str
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HitRateUpdated(Event):
    """Hit rates changed.

    rates: every reading of every window that has one.
    differences: readings that disagree by more than a block a request.
    """

    type: ClassVar[str] = "hit_rate.updated"
    rates: tuple[RateReading, ...]
    differences: tuple[ReadingsDifference, ...] = ()
