"""The body of a `/tokenize` call is the request's own text, field by field."""

import json

import pytest

from app.errors import DecodeError
from app.wire.tokenize_call import (
    CHAT_PATH,
    COMPLETIONS_PATH,
    detokenize_answer,
    tokenize_answer,
    tokenize_call,
)


def call(path: str, body: str) -> str:
    made = tokenize_call(path, body.encode())
    assert isinstance(made, bytes)
    return made.decode()


def test_fields_that_decide_the_prompt_go_over_as_they_are() -> None:
    messages = '[{"role":"user","content":"\\u00e9 1e3","reasoning_content":"abc","z":1.50,"a":[ 1 ]}]'
    tools = '[{"type":"function","function":{"name":"b","parameters":{"b":1,"a":2}}}]'
    body = (
        f'{{"temperature": 0.5, "messages": {messages}, "stream": true, "tools": {tools}, "model": "m",'
        '"chat_template_kwargs":{"enable_thinking":false},"add_generation_prompt":false,'
        '"continue_final_message":true,"cache_salt":"s","chat_template":"{{ x }}","add_special_tokens":true}'
    )
    made = call(CHAT_PATH, body)
    assert messages in made
    assert tools in made
    assert set(json.loads(made)) == {
        "messages", "tools", "model", "chat_template_kwargs", "add_generation_prompt", "continue_final_message",
        "chat_template", "add_special_tokens",
    }  # fmt: skip


def test_what_is_absent_stays_absent() -> None:
    assert call(CHAT_PATH, '{"messages":[]}') == '{"messages":[]}'


def test_fields_that_the_template_sees_are_moved_into_its_arguments() -> None:
    made = json.loads(call(CHAT_PATH, '{"messages":[],"reasoning_effort":"high","documents":[{"text":"d"}]}'))
    assert made["chat_template_kwargs"] == {
        "documents": [{"text": "d"}], "reasoning_effort": "high", "enable_thinking": True,
    }  # fmt: skip
    made = json.loads(
        call(CHAT_PATH, '{"messages":[],"reasoning_effort":"none","chat_template_kwargs":{"enable_thinking":true}}')
    )
    assert made["chat_template_kwargs"] == {"enable_thinking": True, "reasoning_effort": "none"}
    assert json.loads(call(CHAT_PATH, '{"messages":[],"documents":null}')) == {"messages": []}


def test_completions() -> None:
    assert call(COMPLETIONS_PATH, '{"model":"m","prompt":"a b","max_tokens":3}') == '{"model":"m","prompt":"a b"}'
    assert call(COMPLETIONS_PATH, '{"prompt":["only \\u4e2d"]}') == '{"prompt":"only 中"}'


@pytest.mark.parametrize(("prompt", "tokens"), [("[1,2,3]", (1, 2, 3)), ("[[4,5]]", (4, 5))])
def test_token_ids_in_the_request_need_no_call(prompt: str, tokens: tuple[int, ...]) -> None:
    assert tokenize_call(COMPLETIONS_PATH, f'{{"prompt":{prompt}}}'.encode()) == tokens


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (COMPLETIONS_PATH, '{"prompt":["a","b"]}'),
        (COMPLETIONS_PATH, '{"prompt":[[1],[2]]}'),
        (COMPLETIONS_PATH, '{"prompt":[]}'),
        (COMPLETIONS_PATH, '{"prompt":[1,"a"]}'),
        (COMPLETIONS_PATH, "{}"),
        (CHAT_PATH, "{}"),
        ("/v1/responses", '{"input":"x"}'),
    ],
)
def test_what_has_no_single_prompt(path: str, body: str) -> None:
    assert tokenize_call(path, body.encode()) is None


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'{"prompt":1}', b'{"prompt":' + b"[" * 100_000])
def test_what_is_no_request(body: bytes) -> None:
    with pytest.raises(DecodeError):
        tokenize_call(COMPLETIONS_PATH, body)


def test_answers() -> None:
    assert tokenize_answer(b'{"count":2,"max_model_len":10,"tokens":[7,8],"token_strs":null}') == (7, 8)
    assert detokenize_answer(b'{"prompt":"a"}') == "a"
    for bad in (b"", b"{}", b'{"tokens":["a"]}', b'{"tokens":' + b"[" * 100_000):
        with pytest.raises(DecodeError):
            tokenize_answer(bad)
        with pytest.raises(DecodeError):
            detokenize_answer(bad)
