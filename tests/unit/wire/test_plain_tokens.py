"""Stepping over plain tokens counts exactly what parsing them would, and stops at everything else."""

import json

from hypothesis import given
from hypothesis import strategies as st

from app.wire.chat_chunks import read_event
from app.wire.plain_tokens import MAX_EXAMPLE_BYTES, PlainTokens
from app.wire.said import ANSWER
from app.wire.sse import SseDecoder


def event(text: str, finish: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": finish, **more}
    return json.dumps({"id": "c", "choices": [choice]}, separators=(",", ":"), ensure_ascii=False).encode()


def frame(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


def taught(data: bytes) -> PlainTokens:
    plain = PlainTokens()
    plain.learn(data)
    return plain


EXAMPLE = event("Hi")
OTHERS = [
    event(""),
    event("x", "stop"),
    event("x", token_ids=[1]),
    event("x", index=1),
    b'{"id":"c","choices":[],"usage":{"prompt_tokens":1}}',
    b"[DONE]",
    b'{"id":"c","choices":[{"index":0,"delta":{"content":"a\\',
    b'{"id":"c","choices":[{"index":0,"delta":{"content":"a\\x"},"logprobs":null,"finish_reason":null}]}',
    b'{"id":"c","choices":[{"index":0,"delta":{"content":"a\x01"},"logprobs":null,"finish_reason":null}]}',
    b'{"id":"c","choices":[{"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null}]} ',
]


def test_a_run_is_skipped_up_to_what_differs() -> None:
    run = [
        frame(event(text))
        for text in ("a", 'quo"te', "back\\slash", "new\nline", "깰😀", "{}", '"},"finish_reason":"stop"')
    ]
    for other in OTHERS:
        chunk = b"".join(run) + frame(other) + frame(EXAMPLE)
        assert taught(EXAMPLE).skip(chunk) == (len(run), len(b"".join(run))), other


def test_a_long_run_ends_where_its_texts_are_not_texts() -> None:
    for odd in (b"a\\", b"a\\x", b"a\x01", b'a"', b""):
        bad = frame(EXAMPLE).replace(b"Hi", odd)
        for before in (0, 1, 3, 10):
            stream = frame(EXAMPLE) * before + bad + frame(EXAMPLE) * 10
            assert taught(EXAMPLE).skip(stream) == (before, before * len(frame(EXAMPLE))), odd
    assert taught(EXAMPLE).skip(b"\n" + frame(EXAMPLE) * 20) == (0, 0)
    assert taught(EXAMPLE).skip(frame(EXAMPLE) * 20, len(frame(EXAMPLE))) == (19, 20 * len(frame(EXAMPLE)))


def test_an_incomplete_event_is_left() -> None:
    whole = frame(EXAMPLE)
    for end in range(len(whole)):
        assert taught(EXAMPLE).skip(whole + whole[:end]) == (1, len(whole))
    assert taught(EXAMPLE).skip(whole.replace(b"\n", b"\r\n")) == (0, 0)
    assert taught(EXAMPLE).skip(b": ping\n\n") == (0, 0)


def test_nothing_is_skipped_before_there_is_an_example() -> None:
    assert PlainTokens().skip(frame(EXAMPLE)) == (0, 0)
    assert taught(b'{"choices":[{"delta":{"refusal":"x"}}]}').skip(frame(EXAMPLE)) == (0, 0)
    two = event("x", extra={"content": "y"})
    assert taught(two).skip(frame(two)) == (0, 0)
    completion = b'{"choices":[{"index":0,"text":" the","finish_reason":null}]}'
    assert taught(completion).skip(frame(completion) * 3) == (3, 3 * len(frame(completion)))


def test_a_long_text_is_no_example() -> None:
    assert taught(event("a" * MAX_EXAMPLE_BYTES)).skip(frame(event("a"))) == (0, 0)
    assert taught(event("a" * (MAX_EXAMPLE_BYTES // 2))).skip(frame(event("a"))) == (1, len(frame(event("a"))))


def test_a_stream_that_keeps_changing_is_not_learned_for_ever() -> None:
    plain = PlainTokens()
    for index in range(10):
        plain.learn(event("x", index=index))
    assert plain.skip(frame(event("x", index=3)))[0] == 1
    assert plain.skip(frame(event("x", index=9)))[0] == 0


texts = st.text(max_size=6) | st.sampled_from(['"', "\\", '\\"', "\u2028", '","finish_reason":"stop","x":"'])


@given(st.lists(st.tuples(texts, st.sampled_from([None, None, None, "stop"])), max_size=20))
def test_it_counts_what_parsing_counts(events: list[tuple[str, str | None]]) -> None:
    stream = b"".join(frame(event(text, finish)) for text, finish in events)
    decoder = SseDecoder(1 << 20)
    said = [read_event(heard.data) for heard in decoder.feed(stream) + decoder.flush()]
    tokens, end = taught(EXAMPLE).skip(stream)
    assert said[:tokens] == [ANSWER] * tokens
    assert stream[:end].count(b"\n\n") == tokens
    assert len(said) == tokens or said[tokens] is not ANSWER
