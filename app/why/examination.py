"""Requests that should have shared, one after the other: what broke it, in words, and how it could be written.

Imports only its own package.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .breaker_words import BREAKER_WORDS
from .breakers import Breaker, find_breaker
from .remedies import Remedy, remedy
from .request_text import Body


@dataclass(frozen=True, slots=True)
class Finding:
    """What kept request `request` (from 0) from sharing with `against`, its words, and both requests rewritten.

    before_remedy, after_remedy: null where no machine can write it better, or where it is well as it is.
    """

    request: int
    against: int
    breaker: Breaker
    name: str
    advice: str
    translations: dict[str, tuple[str, str]]
    before_remedy: Remedy | None
    after_remedy: Remedy | None


def examine(requests: Sequence[Body]) -> list[Finding]:
    """Each request against the one before it."""
    found: list[Finding] = []
    for number in range(1, len(requests)):
        before, after = requests[number - 1], requests[number]
        breaker = find_breaker(before, after)
        if breaker is None:
            continue
        words = BREAKER_WORDS[breaker.kind]
        found.append(
            Finding(
                number,
                number - 1,
                breaker,
                words.name,
                words.advice,
                {"zh": (words.name_zh, words.advice_zh)},
                remedy(before, breaker, breaker.before),
                remedy(after, breaker, breaker.after),
            )
        )
    return found
