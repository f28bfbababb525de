"""What both languages of the verdicts share: how a cause's numbers are read. Imports nothing of the project."""

from typing import NamedTuple

Params = dict[str, int | float | str | None]
"""The numbers and names of a cause. Any may be missing or None: unknown."""
Words = tuple[str, str | None]
"""A sentence, and a smaller one: why, or what to do."""


class Remarks(NamedTuple):
    """What is said beside any cause: that its figures are `inferred`, or a router's."""

    inferred: str
    by_router: str


def whole(params: Params, name: str) -> int | None:
    """A count; None where it isn't known."""
    value = params.get(name)
    return value if isinstance(value, int) else None


def number(params: Params, name: str) -> float | None:
    """A measure; None where it isn't known."""
    value = params.get(name)
    return float(value) if isinstance(value, int | float) else None
