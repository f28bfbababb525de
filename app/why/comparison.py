"""The microscope: a prompt beside the nearest one, around the first token that differs. Imports only its own package
and the model's values.
"""

from dataclasses import dataclass

from ..model.nearest import Comparison
from .glyphs import TokenGroup
from .sections import Section

TOKEN_BYTES = 4
BEFORE_TOKENS = 24
AFTER_TOKENS = 40
MAX_WINDOW_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens `start` to `end` (from 0, `end` not in it) that are shown of a prompt."""

    start: int
    end: int


def window_of(length: int, shared: int, start: int | None, count: int | None) -> Window:
    """The tokens to show of a prompt of `length`: those asked for, else those around the first difference."""
    most = min(count if count is not None else BEFORE_TOKENS + AFTER_TOKENS, MAX_WINDOW_TOKENS)
    first = start if start is not None else shared - BEFORE_TOKENS
    first = max(min(first, length), 0)
    return Window(first, min(first + most, length))


@dataclass(frozen=True, slots=True)
class Difference:
    """The first token that differs; `token` and `block` count from 1.

    Texts are null where they are hidden or not known, and `text_there` where the other prompt had ended.
    """

    token: int
    block: int | None
    section: Section | None
    text_here: str | None
    text_there: str | None


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What was computed because of it: tokens, and what that costs on this server, where it has been measured."""

    tokens: int
    about_ms: float | None
    low_ms: float | None
    high_ms: float | None


def recomputed(comparison: Comparison) -> Recomputed:
    """Tokens that were computed: by the server's word, else all behind the last full block that is shared."""
    length, size = len(comparison.here) // TOKEN_BYTES, comparison.block_size
    if comparison.cached_tokens is not None:
        tokens = length - comparison.cached_tokens
    else:
        whole = comparison.shared_tokens // size * size if size else comparison.shared_tokens
        tokens = length - min(whole, max(length - 1, 0))
    fit = comparison.fit
    if fit is None or fit.token_low_ms <= 0 or not fit.covers(tokens):
        return Recomputed(tokens, None, None, None)
    about, low, high = fit.cost_ms(tokens)
    return Recomputed(tokens, round(about, 1), round(low, 1), round(high, 1))


def first_difference(
    comparison: Comparison,
    section: Section | None,
    here: list[TokenGroup] | None,
    there: list[TokenGroup] | None,
) -> Difference | None:
    """The first token that differs; None where the whole prompt stood in the other one."""
    shared, size = comparison.shared_tokens, comparison.block_size
    if shared * TOKEN_BYTES >= len(comparison.here):
        return None
    return Difference(
        token=shared + 1,
        block=shared // size + 1 if size else None,
        section=section,
        text_here=_text_at(here, shared),
        text_there=_text_at(there, shared),
    )


def _text_at(groups: list[TokenGroup] | None, token: int) -> str | None:
    if groups is None:
        return None
    return next((group.text for group in groups if group.start <= token < group.start + group.count), None)
