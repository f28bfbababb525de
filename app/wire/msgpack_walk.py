"""Finds one's way through a large MessagePack payload, a stretch at a time, without making values of it.

Whoever drives the generators here can let others have their turns: each step takes about half a millisecond, however
large the payload is. Raises ValueError where the bytes are no MessagePack. Imports no neighbour.
"""

import re
from collections.abc import Generator

import msgspec

RUN = 512
"""Plain values that are passed in one go: a compiled pattern takes a fiftieth of the time of a look at each."""
STEP_COST = 16_384
"""Work between two yields, in plain values of a run."""
SINGLE_COST = 16
STRETCH = 4_096
"""Numbers between two marks of a `NumberList`."""

_WHOLE = rb"\xcd..|\xce.{4}|[\x00-\x7f\xe0-\xff]|[\xcc\xd0].|\xd1..|\xd2.{4}|[\xcf\xd3].{8}"
_PLAIN = _WHOLE + rb"|[\xc0\xc2\xc3]|\xc4\x20.{32}|\xca.{4}|\xcb.{8}"
_plain_run = re.compile(rb"(?:%b){%d}+" % (_PLAIN, RUN), re.DOTALL)

_FIXED_SIZES = {
    **dict.fromkeys((0xC0, 0xC2, 0xC3), 1), **dict.fromkeys((0xCC, 0xD0), 2), **dict.fromkeys((0xCD, 0xD1), 3),
    **dict.fromkeys((0xCA, 0xCE, 0xD2), 5), **dict.fromkeys((0xCB, 0xCF, 0xD3), 9),
    0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18,
}  # fmt: skip
_SIZED = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1), 0xD9: (1, 0),
          0xDA: (2, 0), 0xDB: (4, 0)}  # fmt: skip
"""(bytes of the size, bytes between it and what it counts) of binaries, extensions and texts."""
_decoder = msgspec.msgpack.Decoder(list[int])

Walk = Generator[None, None, int]


def array_head(data: bytes, pos: int) -> tuple[int, int] | None:
    """(items, where the first begins) of the array at `pos`; None where something else is there."""
    return _head(data, pos, 0x90, 0xDC)


def map_head(data: bytes, pos: int) -> tuple[int, int] | None:
    """(pairs, where the first begins) of the map at `pos`; None where something else is there."""
    return _head(data, pos, 0x80, 0xDE)


def _head(data: bytes, pos: int, short: int, long: int) -> tuple[int, int] | None:
    if pos >= len(data):
        raise ValueError("it ends too early")
    first = data[pos]
    if first & 0xF0 == short:
        return first & 0x0F, pos + 1
    width = 2 if first == long else 4 if first == long + 1 else 0
    return (int.from_bytes(data[pos + 1 : pos + 1 + width], "big"), pos + 1 + width) if width else None


def end_of(data: bytes, pos: int) -> Walk:
    """Where the value at `pos` ends, whatever is in it."""
    left, spent, singles = 1, 0, 0
    while left:
        if left >= RUN and singles <= 0:
            found = _plain_run.match(data, pos)
            if found:
                pos, left, spent = found.end(), left - RUN, spent + RUN
            else:
                # What isn't plain is seldom alone: the pattern is tried again only after as many.
                singles = RUN
        else:
            pos, inside = _single(data, pos)
            left, spent, singles = left - 1 + inside, spent + SINGLE_COST, singles - 1
        if spent >= STEP_COST:
            spent = 0
            yield
    if pos > len(data):
        raise ValueError("it ends too early")
    return pos


def _single(data: bytes, pos: int) -> tuple[int, int]:
    """(where what is at `pos` ends, or what is in it begins; values that are in it)."""
    if pos >= len(data):
        raise ValueError("it ends too early")
    first = data[pos]
    if first <= 0x7F or first >= 0xE0:
        return pos + 1, 0
    if 0xA0 <= first <= 0xBF:
        return pos + 1 + (first & 0x1F), 0
    size = _FIXED_SIZES.get(first)
    if size is not None:
        return pos + size, 0
    sized = _SIZED.get(first)
    if sized is not None:
        width, between = sized
        counted = int.from_bytes(data[pos + 1 : pos + 1 + width], "big")
        return pos + 1 + width + between + counted, 0
    head = array_head(data, pos)
    if head is not None:
        return head[1], head[0]
    head = map_head(data, pos)
    if head is not None:
        return head[1], 2 * head[0]
    raise ValueError("a byte that begins no value")


class NumberList:
    """A long array of whole numbers within a payload, decoded a piece at a time."""

    def __init__(self, data: bytes, count: int, marks: list[int]) -> None:
        self._data = data
        self._count = count
        self._marks = marks
        """Where every `STRETCH`th number begins, and where the last one ends."""
        self.end = marks[-1]

    def __len__(self) -> int:
        return self._count

    def take(self, first: int, end: int) -> tuple[int, ...]:
        """Numbers `first` up to `end`, which isn't included."""
        end = min(end, self._count)
        if first >= end:
            return ()
        mark, last = first // STRETCH, -(-end // STRETCH)
        count = min(last * STRETCH, self._count) - mark * STRETCH
        head = b"\xdd" + count.to_bytes(4, "big")
        numbers = _decoder.decode(head + self._data[self._marks[mark] : self._marks[last]])
        return tuple(numbers[first - mark * STRETCH : end - mark * STRETCH])


def number_list(data: bytes, pos: int) -> Generator[None, None, NumberList | None]:
    """The array at `pos`, every item of which was looked at; None where one is no whole number."""
    head = array_head(data, pos)
    if head is None:
        return None
    count, pos = head
    marks = [pos]
    for first in range(0, count, STRETCH):
        found = _whole_run(min(STRETCH, count - first)).match(data, pos)
        if not found:
            return None
        pos = found.end()
        marks.append(pos)
        yield
    return NumberList(data, count, marks)


def _whole_run(count: int) -> re.Pattern[bytes]:
    return re.compile(rb"(?:%b){%d}+" % (_WHOLE, count), re.DOTALL)
