"""The decoder of server-sent events: any chunking gives the same events."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.wire.sse import SseDecoder, SseEvent

LIMIT = 1 << 20


def decode(chunks: list[bytes], limit: int = LIMIT) -> list[SseEvent]:
    decoder = SseDecoder(limit)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.flush()


def every_split(stream: bytes) -> list[list[bytes]]:
    """Whole, byte by byte, and every way to cut it in two."""
    singles = [stream[i : i + 1] for i in range(len(stream))]
    return [[stream], singles, *([stream[:i], stream[i:]] for i in range(len(stream) + 1))]


CASES = {
    "plain": (b"data: a\n\ndata: b\n\n", [SseEvent(b"a"), SseEvent(b"b")]),
    "named": (b"event: x\ndata: a\n\ndata: b\n\n", [SseEvent(b"a", b"x"), SseEvent(b"b")]),
    "crlf": (b"data: {A}\r\n\r\ndata: {B}\r\n\r\n", [SseEvent(b"{A}"), SseEvent(b"{B}")]),
    "cr only": (b"data: {A}\r\rdata: {B}\r\r", [SseEvent(b"{A}"), SseEvent(b"{B}")]),
    "mixed ends": (b"data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", [SseEvent(b"a"), SseEvent(b"b"), SseEvent(b"c")]),
    "no space after the colon": (b"data:{}\n\ndata:[DONE]\n\n", [SseEvent(b"{}"), SseEvent(b"[DONE]")]),
    "one space only": (b"data:  a\n\n", [SseEvent(b" a")]),
    "several data lines": (b'data: {"a":\ndata: 1}\n\n', [SseEvent(b'{"a":\n1}')]),
    "empty data": (b"data\n\ndata:\n\n", [SseEvent(b""), SseEvent(b"")]),
    "comments, ids, retries": (b": ping\n\n:\nid: 1\nretry: 5\ndata: a\n\n: end\n\n", [SseEvent(b"a")]),
    "byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [SseEvent(b"a")]),
    "a second mark is part of a name": (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
    "no end": (b"data: a\n\ndata: [DONE]", [SseEvent(b"a"), SseEvent(b"[DONE]")]),
    "no blank line at the end": (b"data: [DONE]\r\n", [SseEvent(b"[DONE]")]),
    "nothing": (b"", []),
    "blank lines": (b"\n\r\n\n\r\r\n", []),
    "line separators of other kinds": (
        b"data: a\xe2\x80\xa8b\xe2\x80\xa9c\xc2\x85d\x0be\x0cf\x1cg\n\n",
        [SseEvent(b"a\xe2\x80\xa8b\xe2\x80\xa9c\xc2\x85d\x0be\x0cf\x1cg")],
    ),
    "split character": ("data: 깰😀\n\n".encode(), [SseEvent("깰😀".encode())]),
    "name without data": (b"event: x\n\ndata: a\n\n", [SseEvent(b"a")]),
}


@pytest.mark.parametrize("name", CASES)
def test_any_chunking_gives_the_same_events(name: str) -> None:
    stream, events = CASES[name]
    for chunks in every_split(stream):
        assert decode(chunks) == events, chunks


PIECES = st.sampled_from(
    [b"data: x", b"data:", b"data: {}", b"event: e", b": c", b"id: 3", b"\n", b"\n\n", b"\r", b"\r\n", b"\r\n\r\n",
     b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\xc2\x85", b"junk", b"\x00"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30), st.lists(st.integers(0, 200), max_size=8))
def test_chunking_does_not_matter(pieces: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(pieces)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert decode(chunks) == decode([stream]) == decode([stream[i : i + 1] for i in range(len(stream))])


def test_an_event_is_given_out_with_the_byte_that_completes_it() -> None:
    decoder = SseDecoder(LIMIT)
    assert decoder.feed(b"data: a\r\n\r") == [SseEvent(b"a")]
    assert decoder.feed(b"\ndata: b\r\n") == []
    assert decoder.feed(b"\r") == [SseEvent(b"b")]


def test_a_line_above_the_limit_ends_the_decoding() -> None:
    stream = b"data: a\n\ndata: " + b"x" * 100 + b"\n\ndata: b\n\n"
    for chunks in every_split(stream):
        decoder = SseDecoder(50)
        events = [event for chunk in chunks for event in decoder.feed(chunk)]
        assert events == [SseEvent(b"a")]
        assert decoder.gave_up
        assert decoder.flush() == []


def test_many_lines_of_one_event_are_bounded_together() -> None:
    decoder = SseDecoder(50)
    for _ in range(100):
        assert decoder.feed(b"data: 0123456789\n") == []
    assert decoder.gave_up


def test_lines_without_content_are_bounded_too() -> None:
    decoder = SseDecoder(50)
    for _ in range(100):
        assert decoder.feed(b"data:\n") == []
    assert decoder.gave_up


def test_a_line_of_a_megabyte_in_small_reads() -> None:
    stream = b"data: " + b"1," * 600_000 + b"\n\n"
    chunks = [stream[i : i + 1400] for i in range(0, len(stream), 1400)]
    assert decode(chunks, 64 << 20) == [SseEvent(stream[6:-2])]
