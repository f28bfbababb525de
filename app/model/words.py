"""A cause's numbers and names, and how they are read. Imports nothing of the project."""

Params = dict[str, int | float | str | None]
"""The numbers and names of a cause. Any may be missing or None: unknown."""
Words = tuple[str, str | None]
"""A sentence, and a smaller one: why, or what to do."""


def whole(params: Params, name: str) -> int | None:
    """A count; None where it isn't known."""
    value = params.get(name)
    return value if isinstance(value, int) else None


def number(params: Params, name: str) -> float | None:
    """A measure; None where it isn't known."""
    value = params.get(name)
    return float(value) if isinstance(value, int | float) else None
