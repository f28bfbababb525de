"""Streams that other tools read wrongly, as people reported: their exact bytes, cut in every way, at their times."""

# ruff: noqa: E501

import json
from typing import NamedTuple

import pytest

from app.ids import RequestId, ServerId
from app.observations import Malformed, Observation, RequestFirstToken, RequestUsage
from app.sources.response_tap import ResponseTap
from app.wire.sse import SseDecoder

STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


class Fault(NamedTuple):
    """Events with the seconds at which each was complete, and what is right.

    first_s, answer_s: the first token, and the first of the answer, where reasoning came before it.
    usage: prompt, completion and cached tokens. texts: the contents that are in the stream.
    """

    events: list[tuple[float, bytes]]
    first_s: float | None
    answer_s: float | None = None
    usage: tuple[int | None, int | None, int | None] | None = None
    texts: tuple[str, ...] = ()
    outcome: str = "ok"


FAULTS = {
    "a role frame isn't the first token": Fault(
        [
            (0.9, b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'),
            (2.2, b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'),
            (2.3, STOP + DONE),
        ],
        2.2, texts=("", "Hi"),
    ),
    "reasoning counts, and the answer is a second figure": Fault(
        [
            (0.4, b'data: {"choices":[{"index":0,"delta":{"reasoning":"Okay"},"finish_reason":null}]}\n\n'),
            (9.0, b'data: {"choices":[{"index":0,"delta":{"content":"\\n\\n"},"finish_reason":null}]}\n\n'),
            (9.1, STOP + DONE),
        ],
        0.4, 9.0, texts=("\n\n",),
    ),
    "the older key of reasoning, with null contents": Fault(
        [
            (0.001, b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'),
            (1.175, b'data: {"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"x"}}]}\n\n'),
            (1.2, b'data: {"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"y"}}]}\n\n'),
            (183.581, b'data: {"choices":[{"index":0,"delta":{"content":"A"}}]}\n\n'),
            (183.6, STOP + DONE),
        ],
        1.175, 183.581, texts=("", "A"),
    ),
    "structural events of the responses protocol": Fault(
        [
            (0.005, b'event: response.created\ndata: {"type":"response.created","response":{"status":"in_progress"}}\n\n'),
            (0.006, b'event: response.in_progress\ndata: {"type":"response.in_progress"}\n\n'),
            (0.007, b'event: response.output_item.added\ndata: {"type":"response.output_item.added","item":{}}\n\n'),
            (0.7, b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hi"}\n\n'),
            (
                0.8,
                b'event: response.completed\ndata: {"type":"response.completed","response":{"status":"completed",'
                b'"usage":{"input_tokens":9,"output_tokens":1,"input_tokens_details":{"cached_tokens":0}}}}\n\n',
            ),
        ],
        0.7, usage=(9, 1, 0),
    ),
    "structural events of the messages form; later counts win": Fault(
        [
            (0.1, b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":3602}}}\n\n'),
            (0.2, b'event: content_block_start\ndata: {"type":"content_block_start","content_block":{"text":""}}\n\n'),
            (0.3, b'event: ping\ndata: {"type":"ping"}\n\n'),
            (0.5, b'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"A"}}\n\n'),
            (
                0.6,
                b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},'
                b'"usage":{"cache_read_input_tokens":3604,"output_tokens":878}}\n\n',
            ),
            (0.7, b'event: message_stop\ndata: {"type":"message_stop"}\n\n'),
        ],
        0.5, usage=(3602, 878, 3604),
    ),
    "the first token stays the first": Fault(
        [
            *((at_s, b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n') for at_s in (0.1, 0.2, 0.3)),
            (0.4, STOP + DONE),
        ],
        0.1, texts=("a", "a", "a"),
    ),
    "the usage frame has no choices": Fault(
        [
            (0.1, b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'),
            (0.2, STOP),
            (
                0.3,
                b'data: {"id":"x","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}\n\n',
            ),
            (0.4, DONE),
        ],
        0.1, usage=(10, 5, None), texts=("a",),
    ),
    "a frame without choices comes first": Fault(
        [
            (0.1, b'data: {"choices":[],"prompt_filter_results":[]}\n\n'),
            (0.2, b'data: {"choices":[{"index":0,"delta":{"content":"A"}}]}\n\n'),
            (0.3, STOP + DONE),
        ],
        0.2, texts=("A",),
    ),
    "line separators of Unicode are text": Fault(
        [
            (0.1, b'data: {"choices":[{"delta":{"content":"a\xe2\x80\xa8b"}}]}\n\n'),
            (0.2, b'data: {"choices":[{"delta":{"content":"\xe2\x80\xa9\xc2\x85\x7f"}}]}\n\n'),
            (0.3, STOP + DONE),
        ],
        0.1, texts=("a\u2028b", "\u2029\x85\x7f"),
    ),
    "a character in two reads": Fault(
        [(0.1, b'data: {"choices":[{"delta":{"content":"\xea\xb9\xb0"}}]}\n\n'), (0.2, STOP + DONE)], 0.1, texts=("깰",)
    ),
    "line ends of two bytes": Fault(
        [
            (0.1, b'data: {"choices":[{"delta":{"content":"A"}}]}\r\n\r\n'),
            (0.2, b'data: {"choices":[{"delta":{"content":"B"}}]}\r\n\r\n'),
            (0.3, STOP + DONE),
        ],
        0.1, texts=("A", "B"),
    ),
    "line ends of a carriage return alone": Fault(
        [
            (0.1, b'data: {"choices":[{"delta":{"content":"A"}}]}\r\r'),
            (0.2, b'data: {"choices":[{"delta":{"content":"B"}}]}\r\r'),
            (0.3, STOP.replace(b"\n", b"\r") + DONE.replace(b"\n", b"\r")),
        ],
        0.1, texts=("A", "B"),
    ),
    "no space after the colon, and data in two lines": Fault(
        [
            (0.1, b'data:{"choices":[{"delta":{"content":"A"}}]}\n\n'),
            (0.2, b'data: {"choices":\ndata:[{"delta":{"content":"B"}}]}\n\n'),
            (0.3, STOP),
            (0.4, b"data:[DONE]\n\n"),
        ],
        0.1, texts=("A", "B"),
    ),
    "cached tokens that aren't said are unknown": Fault(
        [
            (0.1, b'data: {"choices":[{"delta":{"content":"A"},"finish_reason":"stop"}]}\n\n'),
            (
                0.2,
                b'data: {"choices":[],"usage":{"prompt_tokens":25,"completion_tokens":1,"prompt_tokens_details":null}}\n\n',
            ),
        ],
        0.1, usage=(25, 1, None), texts=("A",),
    ),
    "cached tokens of 0 are said": Fault(
        [
            (0.1, b'data: {"choices":[{"delta":{"content":"A"},"finish_reason":"stop"}]}\n\n'),
            (0.2, b'data: {"choices":[],"usage":{"prompt_tokens":25,"prompt_tokens_details":{"cached_tokens":0}}}\n\n'),
        ],
        0.1, usage=(25, None, 0), texts=("A",),
    ),
    "the end mark alone is no token, and yet an answer": Fault(
        [
            (0.1, b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'),
            (0.2, b'data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop","token_ids":[2]}]}\n\n'),
            (0.3, b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}\n\n' + DONE),
        ],
        None, usage=(9, 1, None), texts=("", ""),
    ),
    "a tool call's first piece": Fault(
        [
            (0.1, b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[]}}]}\n\n'),
            (0.2, b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}}]}\n\n'),
            (0.3, STOP + DONE),
        ],
        0.2,
    ),
    "a refusal": Fault(
        [(0.1, b'data: {"choices":[{"index":0,"delta":{"refusal":"No."}}]}\n\n'), (0.2, STOP + DONE)], 0.1
    ),
}  # fmt: skip


def listen(pieces: list[tuple[float, bytes]]) -> tuple[ResponseTap, list[Observation]]:
    seen: list[Observation] = []
    tap = ResponseTap(ServerId("s"), RequestId("r"), seen.append, tells_output=True, max_held_bytes=1 << 20)
    tap.head(200, b"text/event-stream", b"", 0.0)
    for at_s, piece in pieces:
        tap.feed(piece, at_s)
    tap.end(pieces[-1][0])
    return tap, seen


def check(fault: Fault, pieces: list[tuple[float, bytes]]) -> None:
    tap, seen = listen(pieces)
    tokens = [(o.at_s, o.answer) for o in seen if isinstance(o, RequestFirstToken)]
    if fault.first_s is None:
        assert tokens == []
    elif fault.answer_s is None:
        assert tokens == [(fault.first_s, True)]
    else:
        assert tokens == [(fault.first_s, False), (fault.answer_s, True)]
    usages = [(o.prompt_tokens, o.completion_tokens, o.cached_tokens) for o in seen if isinstance(o, RequestUsage)]
    assert usages == ([] if fault.usage is None else [fault.usage])
    assert tap.outcome() == fault.outcome
    assert not [o for o in seen if isinstance(o, Malformed)]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_every_cut_gives_the_same(fault: Fault) -> None:
    check(fault, fault.events)
    for number, (at_s, event) in enumerate(fault.events):
        for cut in range(1, len(event)):
            if event[:cut].endswith((b"\n\n", b"\r\r", b"\r\n\r")):
                continue  # It is complete already.
            halves = [(at_s - 0.0005, event[:cut]), (at_s, event[cut:])]
            check(fault, [*fault.events[:number], *halves, *fault.events[number + 1 :]])
    check(
        fault,
        [(at_s, bytes([byte])) for at_s, event in fault.events for byte in event],
    )


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_every_text_comes_out_as_it_went_in(fault: Fault, size: int) -> None:
    stream = b"".join(event for _, event in fault.events)
    decoder = SseDecoder(1 << 20)
    events = [event for at in range(0, len(stream), size) for event in decoder.feed(stream[at : at + size])]
    frames = [json.loads(event.data) for event in [*events, *decoder.flush()] if event.data != b"[DONE]"]
    deltas = [choice.get("delta", {}) for frame in frames for choice in frame.get("choices", [])]
    assert tuple(text for delta in deltas if (text := delta.get("content")) is not None) == fault.texts
