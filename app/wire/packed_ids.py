"""Token ids as unsigned 32-bit integers of this machine: of a long prompt, a list of Python's own takes milliseconds to
make and eight times the memory. Imports nothing of the project.
"""

from array import array
from collections.abc import Iterable

ID_BYTES = 4
MAX_LISTED_IDS = 4096
"""Longer prompts are handed on packed."""


def pack_ids(token_ids: Iterable[int]) -> bytes | None:
    """The ids packed; None where one doesn't fit."""
    try:
        return array("I", token_ids).tobytes()
    except (OverflowError, TypeError):
        return None


def unpack_ids(packed: bytes) -> tuple[int, ...]:
    """The inverse of `pack_ids`."""
    return tuple(memoryview(packed).cast("I"))
