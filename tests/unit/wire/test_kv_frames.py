"""Which frame is which, in every release's form."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import DecodeError
from app.wire.kv_frames import KvFrames, parse_live, parse_replay, replay_request

SEVEN = b"\0\0\0\0\0\0\0\x07"
END = b"\xff" * 8


def test_live_message() -> None:
    assert parse_live([b"kv-events", SEVEN, b"payload"]) == KvFrames(b"kv-events", 7, b"payload")


def test_live_message_without_topic() -> None:
    assert parse_live([SEVEN, b"payload"]) == KvFrames(b"", 7, b"payload")


@pytest.mark.parametrize(
    "frames",
    [
        [b"", SEVEN, b"payload"],
        [b"", b"kv-events", SEVEN, b"payload"],
        [SEVEN, b"payload"],
        [b"kv-events", SEVEN, b"payload"],
    ],
    ids=["before 0.26", "from 0.26", "delimiter taken off, before 0.26", "delimiter taken off, from 0.26"],
)
def test_replay_answer_is_the_last_two_frames(frames: list[bytes]) -> None:
    answer = parse_replay(frames)
    assert answer is not None
    assert (answer.seq, answer.payload) == (7, b"payload")


@pytest.mark.parametrize(
    "frames",
    [
        [b"", END, b""],
        [b"", b"", END, b""],
        [b"", b"kv-events", END, b""],
        [b"", b"", END, b"x"],
        [b"", b"", SEVEN, b""],
    ],
)
def test_end_of_replay(frames: list[bytes]) -> None:
    assert parse_replay(frames) is None


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b"x"],
        [b"topic", b"short", b"payload"],
        [b"topic", SEVEN, b"x" * 101],
        [b"x"] * 7,
        [b"t" * 5000, SEVEN, b"x"],
    ],
)
def test_nonsense(frames: list[bytes]) -> None:
    with pytest.raises(DecodeError):
        parse_live(frames, max_payload_bytes=100)
    with pytest.raises(DecodeError):
        parse_replay(frames, max_payload_bytes=100)


@pytest.mark.parametrize("frames", [[b"topic", END, b"x"], [b"topic", SEVEN, b""]])
def test_a_live_message_is_never_an_end(frames: list[bytes]) -> None:
    with pytest.raises(DecodeError):
        parse_live(frames)


def test_replay_request_starts_with_the_delimiter() -> None:
    assert replay_request(258) == [b"", b"\0\0\0\0\0\0\x01\x02"]


@given(st.lists(st.binary(max_size=12), max_size=8))
def test_any_frames_parse_or_raise_decode_error(frames: Sequence[bytes]) -> None:
    for parse in (parse_live, parse_replay):
        try:
            parse(frames)
        except DecodeError:
            continue
