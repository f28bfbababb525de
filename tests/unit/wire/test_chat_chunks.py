"""What an event or a body says, in every protocol that is proxied."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.wire.chat_chunks import read_body, read_error, read_event
from app.wire.chat_frames import MAX_REASON_CHARS
from app.wire.said import ANSWER, DONE, NOTHING, REASONING, Said
from app.wire.usage import MAX_TOKEN_COUNT, Usage


def chat(**delta: object) -> bytes:
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}).encode()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (chat(role="assistant", content=""), NOTHING),
        (chat(content="Hi"), ANSWER),
        (chat(content="\n\n"), ANSWER),
        (b'{"choices":[{"delta":{"content":"\\ud83d"}}]}', ANSWER),
        (b'{"error":{"message":"half \\ud83d"}}', Said(error="half ?")),
        (chat(content=None), NOTHING),
        (chat(content=[{"type": "text", "text": "A"}]), ANSWER),
        (chat(content=[{"type": "text", "text": ""}, "x", None]), NOTHING),
        (chat(reasoning="Okay"), REASONING),
        (chat(content=None, reasoning_content="x"), REASONING),
        (chat(refusal="No."), ANSWER),
        (chat(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": ""}}]), ANSWER),
        (chat(tool_calls=[]), NOTHING),
        (chat(function_call={"name": "f"}), ANSWER),
        (chat(), NOTHING),
        (b'{"choices":[],"prompt_filter_results":[]}', NOTHING),
        (b'{"choices":null}', NOTHING),
        (b'{"choices":[{"delta":null}]}', NOTHING),
        (b'{"choices":[{"index":0,"text":" the"}]}', ANSWER),
        (b'{"choices":[{"index":0,"text":""}]}', NOTHING),
        (b'{"object":"text_completion"}', NOTHING),
        (b"[DONE]", DONE),
        (b" [DONE] ", DONE),
        (b"", NOTHING),
        (b'{"type":"response.created","response":{"usage":null}}', NOTHING),
        (b'{"type":"response.in_progress"}', NOTHING),
        (b'{"type":"response.output_item.added","item":{"content":[]}}', NOTHING),
        (b'{"type":"response.output_text.delta","delta":"Hi"}', ANSWER),
        (b'{"type":"response.output_text.delta","delta":""}', NOTHING),
        (b'{"type":"response.reasoning_text.delta","delta":"Hm"}', REASONING),
        (b'{"type":"response.reasoning_summary_text.delta","delta":"Hm"}', REASONING),
        (b'{"type":"response.function_call_arguments.delta","delta":"{"}', ANSWER),
        (b'{"type":"response.output_text.done","text":"Hi"}', NOTHING),
        (b'{"type":"content_block_start","content_block":{"type":"text","text":""}}', NOTHING),
        (b'{"type":"content_block_delta","delta":{"type":"text_delta","text":"A"}}', ANSWER),
        (b'{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"A"}}', REASONING),
        (b'{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":""}}', NOTHING),
        (b'{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}', ANSWER),
        (b'{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"A"}}', NOTHING),
        (b'{"type":"content_block_stop","index":0}', NOTHING),
        (b'{"type":"ping"}', NOTHING),
        (b'{"type":"message_stop"}', DONE),
    ],
)
def test_what_counts_as_a_token(data: bytes, said: Said) -> None:
    assert read_event(data) == said


def test_reasoning_and_answer_in_one_event() -> None:
    assert read_event(chat(content="a", reasoning="b")) == Said(answer=True, reasoning=True)


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ([{"index": 1, "delta": {"content": "A"}}], Said(answer=True, choices=(1,))),
        ([{"index": 1, "text": "A"}, {"index": 0, "text": "B"}], Said(answer=True, choices=(1, 0))),
        ([{"index": 1, "text": ""}, {"index": 0, "text": "B"}], ANSWER),
        ([{"index": "1", "text": "B"}], ANSWER),
        ([{"text": "B"}], ANSWER),
    ],
)
def test_which_choices_had_text(choices: object, said: Said) -> None:
    assert read_event(json.dumps({"choices": choices}).encode()) == said


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, Usage(10, 5, None, None)),
        ({"prompt_tokens": 25, "completion_tokens": 1, "prompt_tokens_details": None}, Usage(25, 1, None, None)),
        ({"prompt_tokens": 25, "prompt_tokens_details": {"cached_tokens": 0}}, Usage(25, None, 0, None)),
        ({"prompt_tokens": 25, "prompt_tokens_details": {"cached_tokens": None}}, Usage(25, None, None, None)),
        (
            {"prompt_tokens": 25, "prompt_tokens_details": {"cached_tokens": 16, "created_cache_tokens": 0}},
            Usage(25, None, 16, 0),
        ),
        ({"prompt_tokens": "25", "completion_tokens": -1}, Usage()),
        ({"prompt_tokens": True, "prompt_tokens_details": [1]}, Usage()),
        (
            {
                "input_tokens": 33,
                "output_tokens": 6,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 32},
            },
            Usage(33, 6, 0, 32),
        ),
        ({"input_tokens": 1, "output_tokens": 6, "cache_read_input_tokens": 32}, Usage(33, 6, 32, None)),
        ({"cache_read_input_tokens": 3604, "output_tokens": 878}, Usage(None, 878, 3604, None)),
        ({}, Usage()),
    ],
)
def test_usage_keeps_unknown_zero_and_more_apart(usage: object, expected: Usage) -> None:
    said = read_event(json.dumps({"choices": [], "usage": usage}).encode())
    assert said == Said(usage=expected)


def test_later_usage_wins_where_it_says_anything() -> None:
    start = read_event(b'{"type":"message_start","message":{"usage":{"input_tokens":3602}}}').usage
    delta = read_event(
        b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},'
        b'"usage":{"cache_read_input_tokens":3604,"output_tokens":878}}'
    )
    assert delta.finish_reason == "end_turn"
    assert start is not None and delta.usage is not None
    assert start.updated(delta.usage) == Usage(3602, 878, 3604, None)


def test_token_ids_of_both_protocols() -> None:
    first = read_event(b'{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"prompt_token_ids":[1,2]}')
    assert first == Said(prompt_token_ids=(1, 2))
    assert read_event(b'{"choices":[{"delta":{"content":"x"},"token_ids":[7]}]}') == Said(answer=True, token_ids=(7,))
    completion = read_event(b'{"choices":[{"index":0,"text":"x","prompt_token_ids":[1],"token_ids":[7]}]}')
    assert completion == Said(answer=True, token_ids=(7,), prompt_token_ids=(1,))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"error":{"message":"out of memory","type":"InternalServerError","code":500}}', "out of memory"),
        (b'{"error":"broken"}', "broken"),
        (b'{"error":{}}', "the server reported an error"),
        (b'{"object":"error","message":"too long","type":"BadRequestError","code":400}', "too long"),
        (b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}', "busy"),
        (b'{"type":"error","code":"x","message":"busy"}', "busy"),
        (b'{"type":"response.failed","response":{"status":"failed","error":{"message":"no"}}}', "no"),
    ],
)
def test_errors_inside_a_stream(data: bytes, message: str) -> None:
    assert read_event(data).error == message


@pytest.mark.parametrize(
    "data",
    [b"{", b"null", b"[]", b"1", b'{"choices":{}}', b'{"choices":[1]}', b'{"choices":[{"delta":"x"}]}', b"\xff",
     b'{"choices":[{"token_ids":["x"]}]}', b'{"usage":5}', b"[" * 100_000, b'{"a":"\xed\xa0\x80"}x'],
)  # fmt: skip
def test_what_is_odd_says_nothing_and_is_marked(data: bytes) -> None:
    said = read_event(data)
    assert said.malformed
    assert said == Said(malformed=said.malformed)
    assert read_body(data).malformed


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["choices", "usage", "delta", "type", "error", "message", "response", "metrics", "object", "output", "content"]


@given(
    st.dictionaries(st.sampled_from(KEYS), json_values, max_size=5),
    st.sampled_from(["", "response.completed", "message_start", "message_delta", "content_block_delta", "error"]),
)
def test_nothing_raises(fields: dict[str, object], kind: str) -> None:
    data = json.dumps({**fields, "type": kind} if kind else fields).encode()
    read_event(data)
    read_body(data)
    read_error(data)


def test_whole_bodies() -> None:
    usage = {"prompt_tokens": 4, "completion_tokens": 6, "prompt_tokens_details": {"cached_tokens": 0}}
    said = read_body(
        json.dumps(
            {
                "choices": [
                    {"message": {"content": "Hi", "tool_calls": []}, "finish_reason": "stop", "token_ids": [5]}
                ],
                "usage": usage,
                "prompt_token_ids": [1, 2],
                "metrics": {"time_to_first_token_ms": 1, "queue_time_ms": 0.5, "mean_itl_ms": None},
            }
        ).encode()
    )
    assert (said.answer, said.finish_reason, said.usage) == (True, "stop", Usage(4, 6, 0, None))
    assert (said.token_ids, said.prompt_token_ids) == ((5,), (1, 2))
    assert said.times is not None and (said.times.ttft_ms, said.times.queue_ms, said.times.mean_itl_ms) == (
        1,
        0.5,
        None,
    )
    response: dict[str, object] = {
        "object": "response",
        "status": "completed",
        "output": [{}],
        "usage": {"input_tokens": 3},
        "error": None,
    }
    assert read_body(json.dumps(response).encode()) == Said(
        answer=True, finish_reason="completed", usage=Usage(prompt_tokens=3), done=True
    )
    message = {"type": "message", "content": [{"text": "x"}], "stop_reason": "end_turn", "usage": {"input_tokens": 3}}
    assert read_body(json.dumps(message).encode()) == Said(
        answer=True, finish_reason="end_turn", usage=Usage(prompt_tokens=3), done=True
    )
    assert read_body(b'{"object":"list","data":[],"usage":{"prompt_tokens":3}}') == Said(usage=Usage(prompt_tokens=3))


def test_error_bodies() -> None:
    assert read_error(b'{"error":{"message":"too long","code":400}}') == "too long"
    assert read_error(b'{"detail":"Not Found"}') == "Not Found"
    assert read_error(b"<html>Bad Gateway</html>") == "<html>Bad Gateway</html>"
    assert read_error(b"") is None
    assert len(read_error(b"x" * 10_000) or "") == 500


def test_what_no_server_can_mean_is_not_said() -> None:
    usage = {
        "prompt_tokens": 10**30,
        "completion_tokens": MAX_TOKEN_COUNT,
        "prompt_tokens_details": {"cached_tokens": -1},
    }
    choice = {"delta": {}, "finish_reason": "f" * 1_000_000}

    said = read_event(json.dumps({"choices": [choice], "usage": usage}).encode())

    assert said.usage == Usage(None, MAX_TOKEN_COUNT, None)
    assert len(said.finish_reason or "") == MAX_REASON_CHARS
