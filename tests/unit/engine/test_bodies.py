"""Request bodies: what is read, what is refused and how. Texts as vLLM 0.32 gives them."""

from typing import Any

import pytest

from app.engine.bodies import parse_conversation, parse_json, parse_prompts, parse_token_ids
from app.engine.fields import ApiError
from app.engine.sampling import parse_sampling

USER = [{"role": "user", "content": "x"}]


def sampling(chat: bool = True, header: str | None = None, **body: Any) -> Any:
    return parse_sampling(body, chat=chat, session_header=header)


def test_an_empty_body_has_vllms_defaults() -> None:
    chat, completion = sampling(), sampling(chat=False)
    assert (chat.max_tokens, chat.n, chat.stream, chat.full_report, chat.seed) == (None, 1, False, False, None)
    assert completion.max_tokens == 16


def test_what_the_fields_mean() -> None:
    read = sampling(
        stream=True,
        stream_options={"include_usage": True},
        max_completion_tokens=5,
        max_tokens=9,
        stop="END",
        cache_salt="s",
        vllm_xargs={"kv_cache_report_mode": "full"},
        prompt_logprobs=None,
        temperature=0.5,
        anything={"else": 1},
    )
    assert (read.max_tokens, read.max_tokens_param, read.stop, read.cache_salt) == (
        *(5, "max_completion_tokens", ("END",)),
        "s",
    )
    assert read.include_usage and read.full_report and not read.continuous_usage


@pytest.mark.parametrize(
    ("body", "header", "session"),
    [
        ({"session_id": "body"}, "header", "body"),
        ({}, "header", "header"),
        ({"session_id": ""}, "header", "header"),
        ({"vllm_xargs": {"session_id": "extra"}}, None, "extra"),
        ({"vllm_xargs": {"session_id": 5}}, None, None),
        ({}, None, None),
    ],
)
def test_where_a_session_id_comes_from(body: dict[str, Any], header: str | None, session: str | None) -> None:
    assert sampling(header=header, **body).session_id == session


def test_prompts_of_all_forms() -> None:
    assert parse_prompts({"prompt": "a"}) == ["a"]
    assert parse_prompts({"prompt": ["a", "b"]}) == ["a", "b"]
    assert parse_prompts({"prompt": [1, 2]}) == [[1, 2]]
    assert parse_prompts({"prompt": [[1], [2, 3]]}) == [[1], [2, 3]]


@pytest.mark.parametrize(
    ("raw", "message", "param"),
    [
        (b'{"a":', "JSON decode error", "body.5"),
        (b"", "JSON decode error", "body.0"),
        (b"[1]", "Input should be a valid dictionary", "body"),
        (b"[" * 100_000, "There was an error parsing the body", None),
        (b"\xff\xfe{", "There was an error parsing the body", None),
    ],
)
def test_bodies_that_are_no_object(raw: bytes, message: str, param: str | None) -> None:
    with pytest.raises(ApiError, match=message) as caught:
        parse_json(raw)
    assert (caught.value.status, caught.value.kind, caught.value.param) == (400, "Bad Request", param)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"stream_options": {"include_usage": True}}, "Stream options can only be defined when `stream=True`."),
        ({"stream": "yes"}, "Input should be a valid boolean"),
        ({"max_tokens": "many"}, "Input should be a valid integer"),
        ({"max_tokens": True}, "Input should be a valid integer"),
        ({"seed": 2**63}, "Input should be a valid integer"),
        ({"n": 0}, "n must be at least 1, got 0."),
        ({"n": 1000}, "n must be at most 128"),
        ({"stop": ["a", 1]}, "Input should be a valid string or a list of strings"),
        ({"stop": ""}, "stop cannot contain an empty string"),
        ({"stop": ["a"] * 20}, "At most 16 stop strings"),
        ({"stop_token_ids": ["a"]}, "Input should be a valid list of integers"),
        ({"cache_salt": ""}, "must be a non-empty string if provided"),
        ({"cache_salt": 5}, "must be a non-empty string if provided"),
        ({"cache_salt": "a/b"}, "must be at most 128 characters and must not contain"),
        ({"cache_salt": "a" * 129}, "must be at most 128 characters"),
        ({"vllm_xargs": []}, "Input should be a valid dictionary"),
        ({"session_id": 5}, "Input should be a valid string"),
        ({"stream": True, "prompt_logprobs": 1}, "`prompt_logprobs` are not available when `stream=True`."),
    ],
)
def test_fields_that_cannot_be_used(body: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError, match=message) as caught:
        sampling(**body)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "'loc': 'body.messages', 'msg': 'Field required'"),
        ({"messages": "x"}, "Input should be a valid list"),
        ({"messages": ["x"]}, "'loc': 'body.messages.0'"),
        ({"messages": [{"content": "x"}]}, "body.messages.0.role"),
        ({"messages": USER, "tools": {}}, "body.tools"),
        ({"messages": USER, "continue_final_message": True, "add_generation_prompt": True}, "Cannot set both"),
    ],
)
def test_conversations_that_are_none(body: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError, match=message):
        parse_conversation(body)


@pytest.mark.parametrize("prompt", [None, "", [], [""], [[]], [1, "a"], [-1], [1.5], {"a": 1}, [[1], "a"], [True]])
def test_prompts_that_are_none(prompt: object) -> None:
    with pytest.raises(ApiError):
        parse_prompts({"prompt": prompt})


def test_long_values_are_cut_in_the_message() -> None:
    with pytest.raises(ApiError, match="truncated") as caught:
        sampling(max_tokens="9" * 10_000)
    assert len(caught.value.message) < 500


def test_token_ids_are_required() -> None:
    assert parse_token_ids({"tokens": []}, "tokens") == []
    for body in ({}, {"tokens": "a"}, {"tokens": [-1]}):
        with pytest.raises(ApiError):
            parse_token_ids(body, "tokens")
