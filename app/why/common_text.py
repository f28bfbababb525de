"""What two texts share: at their start, at their end, and behind a span that differs. Imports nothing."""

WINDOW_CHARS = 24
"""So many characters in a row that stand in both texts are no chance."""
SEARCHED_CHARS = 20_000
"""How far behind a difference two texts are searched for where they are the same again."""


def common_start(a: str, b: str) -> int:
    """Characters that two texts share from their start."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_end(a: str, b: str) -> int:
    """Characters that two texts share at their end."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle :] == b[len(b) - middle :]:
            low = middle
        else:
            high = middle - 1
    return low


def meeting(a: str, b: str, start: int) -> tuple[tuple[int, int], int] | None:
    """((end of the changed span in each), length of what is the same behind it); None where nothing is."""
    tail = common_end(a[start:], b[start:])
    if tail >= WINDOW_CHARS or (tail and start + tail in (len(a), len(b))):
        ends = (len(a) - tail, len(b) - tail)
        if max(ends) - start <= 8 * WINDOW_CHARS:
            return ends, tail
    limit = start + SEARCHED_CHARS
    windows = {a[at : at + WINDOW_CHARS]: at for at in range(min(len(a), limit) - WINDOW_CHARS, start - 1, -1)}
    for at in range(start, min(len(b), limit) - WINDOW_CHARS + 1):
        there = windows.get(b[at : at + WINDOW_CHARS])
        if there is not None:
            return (there, at), common_start(a[there:], b[at:])
    return ((len(a) - tail, len(b) - tail), tail) if tail >= WINDOW_CHARS else None
