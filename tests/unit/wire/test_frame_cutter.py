"""The cutter: what a client gets is the stream without the usage frame, and nothing else changes."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.wire.frame_cutter import MAX_FRAME_BYTES, UsageFrameCutter

USAGE = b'data: {"id":"x","choices":[],"usage":{"prompt_tokens":1},"metrics":{}}'
CONTENT = b'data: {"choices":[{"delta":{"content":"\\"usage\\""}}]}'


def cut(chunks: list[bytes]) -> tuple[bytes, int]:
    cutter = UsageFrameCutter()
    forwarded = b"".join(cutter.feed(chunk) for chunk in chunks)
    return forwarded + cutter.flush(), cutter.cut


def every_split(stream: bytes) -> list[list[bytes]]:
    singles = [stream[i : i + 1] for i in range(len(stream))]
    return [[stream], singles, *([stream[:i], stream[i:]] for i in range(len(stream) + 1))]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_usage_frame_goes_whatever_the_line_ends(end: bytes) -> None:
    before, after = CONTENT + end * 2, b"data: [DONE]" + end * 2
    for chunks in every_split(before + USAGE + end * 2 + after):
        assert cut(chunks) == (before + after, 1), chunks


@pytest.mark.parametrize(
    "stream",
    [
        CONTENT + b"\n\ndata: [DONE]\n\n",
        b'data: {"choices":[{"delta":{}}],"usage":{"prompt_tokens":1}}\n\n',
        b'data: {"choices":[],"usage":null}\n\n',
        b'data: {"usage":{"prompt_tokens":1}}\n\n',
        b'data: {"choices":[],"prompt_filter_results":[]}\n\n',
        b": comment\n" + USAGE + b"\n\n",
        b"event: x\n" + USAGE + b"\n\n",
        b'data: {"choices":[],"usage":{}\n\n',
        USAGE,
        USAGE + b"\n",
        b"",
        b"\n\r\n\r",
        b'data: {"choices":[],"usage":{"x":"' + b"u" * MAX_FRAME_BYTES + b'"}}\n\ndata: [DONE]\n\n',
    ],
    ids=range(13),
)
def test_on_any_doubt_everything_is_forwarded(stream: bytes) -> None:
    splits = (
        every_split(stream) if len(stream) < 1000 else [[stream], [stream[i : i + 999] for i in range(0, 99999, 999)]]
    )
    for chunks in splits:
        assert cut(chunks) == (stream, 0)


def test_at_most_the_incomplete_event_is_held_back() -> None:
    cutter = UsageFrameCutter()
    assert cutter.feed(CONTENT + b"\n\ndata: {") == CONTENT + b"\n\n"
    assert cutter.feed(b"}\n") == b""
    assert cutter.feed(b"\n") == b"data: {}\n\n"
    assert cutter.feed(b"x" * (MAX_FRAME_BYTES + 1)) != b""
    assert cutter.feed(b"y" * 10) == b"x" * 2 + b"y" * 8


PIECES = st.sampled_from(
    [
        USAGE,
        CONTENT,
        b"data: x",
        b"data: [DONE]",
        b": c",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
        b"\r\n\r\n",
        b"data: {",
        b"\xef",
    ]
)


@given(st.lists(PIECES, max_size=20), st.lists(st.integers(0, 900), max_size=8))
def test_chunking_does_not_matter(pieces: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(pieces)
    edges = [0, *sorted(min(at, len(stream)) for at in cuts), len(stream)]
    whole = cut([stream])
    assert cut([stream[a:b] for a, b in itertools.pairwise(edges)]) == whole
    assert cut([stream[i : i + 1] for i in range(len(stream))]) == whole
    if not whole[1]:
        assert whole[0] == stream


@given(
    st.lists(
        st.tuples(
            st.sampled_from([CONTENT, b"data: [DONE]", USAGE, b": ping"]),
            st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r"]),
        )
    )
)
def test_what_is_left_is_the_stream_without_the_declared_frames(events: list[tuple[bytes, bytes]]) -> None:
    stream = b"".join(event + end for event, end in events)
    kept = b"".join(event + end for event, end in events if event != USAGE)
    assert cut([stream]) == (kept, sum(event == USAGE for event, _ in events))
