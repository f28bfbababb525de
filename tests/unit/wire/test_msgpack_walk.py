"""Walking through MessagePack finds what decoding finds, in steps, and raises ValueError for what is none."""

from collections.abc import Generator
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.wire.kv_events import KvEventDecoder
from app.wire.kv_values import WHOLE_BYTES
from app.wire.msgpack_walk import RUN, STRETCH, end_of, number_list

Value = TypeVar("Value")
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=40)
    | st.binary(max_size=300)
    | st.builds(msgspec.msgpack.Ext, st.integers(-128, 127), st.binary(max_size=20)),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=6), inner, max_size=6),
    max_leaves=40,
)


def run(steps: Generator[None, None, Value]) -> tuple[Value, int]:
    """What they come to, and how many there were."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: Value = done.value
            return found, count
        count += 1


@given(values, st.binary(max_size=3), st.binary(max_size=3))
def test_the_end_of_a_value_is_where_it_ends(value: Any, before: bytes, behind: bytes) -> None:
    packed = msgspec.msgpack.encode(value)
    assert run(end_of(before + packed + behind, len(before)))[0] == len(before) + len(packed)


@pytest.mark.parametrize(
    "item", [1, 200, 70_000, 2**63, -1, -200, -70_000, None, True, 1.5, b"\xc4" * 32, b"", "text", [], {}, [1, "a"]]
)
def test_long_lists_of_anything_are_walked_in_steps(item: Any) -> None:
    for count in (RUN - 1, RUN, 20 * RUN + 3, 100_000):
        packed = msgspec.msgpack.encode([item] * count)
        end, steps = run(end_of(packed + b"\x01", 0))
        assert end == len(packed)
        assert steps >= count // 40_000


@given(st.lists(st.integers(-(2**63), 2**64 - 1), max_size=60), st.integers(0, 70), st.integers(0, 70))
def test_numbers_are_taken_from_anywhere(some: list[int], first: int, end: int) -> None:
    numbers = some * (2 * STRETCH // 60)
    packed = b"\x00" + msgspec.msgpack.encode(numbers) + b"\x00"
    found, _ = run(number_list(packed, 1))
    assert found is not None
    assert found.end == len(packed) - 1
    assert len(found) == len(numbers)
    for shift in (0, STRETCH - 20, STRETCH):
        assert found.take(first + shift, end + shift) == tuple(numbers[first + shift : end + shift])


@pytest.mark.parametrize("odd", [None, True, 1.0, "1", [1], b"1"])
def test_a_list_with_anything_else_in_it_is_no_list_of_numbers(odd: Any) -> None:
    assert run(number_list(msgspec.msgpack.encode([*range(5000), odd]), 0))[0] is None
    assert run(number_list(msgspec.msgpack.encode({"a": odd}), 0))[0] is None


@pytest.mark.parametrize(
    "packed", [b"", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\xd9", b"\xd9\x05a", b"\x93\x01", b"\xcd\x01"]
)
def test_what_ends_too_early_raises(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r"ends too early|begins no value"):
        run(end_of(packed, 0))


@given(st.data())
def test_damaged_large_messages_are_read_or_raise_a_decode_error(data: st.DataObject) -> None:
    from app.errors import DecodeError

    tokens = list(range(20_000, 70_000))
    event = ["BlockStored", list(range(50_000 // 16)), None, tokens, 16, None, "GPU", None, None, 0, None]
    other = {"type": "BlockStored", "block_hashes": [1], "parent_block_hash": None, "token_ids": [1], "block_size": 1}
    payload = bytearray(msgspec.msgpack.encode([1.0, [event, other], 0]))
    assert len(payload) > WHOLE_BYTES
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.sampled_from([*range(60), *range(len(payload) - 120, len(payload)), 9_500, 9_600]))
        payload[place] = data.draw(st.integers(0, 255))
    try:
        batch = KvEventDecoder(b"k" * 32).decode(bytes(payload))
    except DecodeError:
        return
    assert isinstance(batch.events, tuple)
