"""Facts of request bodies: read tolerantly, salts only as digests, text only where asked for."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.wire.body_facts import LABEL_CHARS, MODEL_CHARS, NO_FACTS, BodyFacts, read_body_facts
from app.wire.salt import salt_digest

KEY = b"k" * 32


def facts(with_label: bool = False, **fields: Any) -> BodyFacts:
    return read_body_facts(json.dumps(fields).encode(), KEY, with_label=with_label)


def test_an_ordinary_chat() -> None:
    said = facts(
        model="m",
        messages=[{"role": "user", "content": "Hi"}],
        stream=True,
        max_tokens=8,
        stream_options={"include_usage": True},
    )
    assert said == BodyFacts(is_object=True, model="m", stream=True, max_tokens=8, wants_usage=True)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b'{"model": "m"} x', b"\xff\xfe", b"{" * 100_000])
def test_what_is_no_object_has_no_facts(body: bytes) -> None:
    assert read_body_facts(body, KEY, with_label=True) == NO_FACTS


def test_of_a_models_name_the_start_is_kept() -> None:
    assert facts(model="m" * 1_000_000).model == "m" * MODEL_CHARS


def test_odd_fields_are_as_if_they_were_not_there() -> None:
    odd = facts(
        True, model=5, stream="yes", max_tokens="8", n=-1, cache_salt=["s"], messages=3, prompt={}, vllm_xargs=[],
        stream_options="x", session_id=7, return_token_ids=1,
    )  # fmt: skip
    assert odd == BodyFacts(is_object=True)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_completion_tokens": 5, "max_tokens": 9}, 5),
        ({"max_output_tokens": 6}, 6),
        ({"max_tokens": 0}, 0),
        ({}, None),
    ],
)
def test_max_tokens(fields: dict[str, Any], expected: int | None) -> None:
    assert facts(**fields).max_tokens == expected


@pytest.mark.parametrize(
    ("prompt", "sequences", "token_ids"),
    [
        ("one", 1, None),
        (["one", "two"], 2, None),
        (["one"], 1, None),
        ([1, 2, 3], 1, (1, 2, 3)),
        ([[1, 2], [3]], 2, None),
        ([[1, 2]], 1, (1, 2)),
        ([], 1, None),
        ([1, "x"], 1, None),
        (None, 1, None),
    ],
)
def test_prompts(prompt: object, sequences: int, token_ids: tuple[int, ...] | None) -> None:
    said = facts(prompt=prompt)
    assert (said.sequences, said.prompt_token_ids) == (sequences, token_ids)
    assert facts(prompt=prompt, n=3).sequences == 3 * sequences


def test_a_salt_leaves_as_a_digest_only() -> None:
    said = facts(cache_salt="tenant-secret")
    assert said.salt == salt_digest(KEY, "tenant-secret")
    assert "tenant-secret" not in repr(said)
    assert said.salt is not None and len(said.salt) == 32
    assert salt_digest(b"other key", "tenant-secret") != said.salt
    assert facts(cache_salt="other").salt != said.salt
    assert facts(cache_salt="").salt is None
    assert salt_digest(KEY, "\ud800") != salt_digest(KEY, "\ud801")


@pytest.mark.parametrize(
    ("fields", "skips"),
    [
        ({"prompt_logprobs": 1}, True),
        ({"prompt_logprobs": 0}, True),
        ({"prompt_logprobs": None}, False),
        ({"echo": True, "logprobs": 1, "prompt": "x"}, True),
        ({"echo": True, "prompt": "x"}, False),
        ({"echo": True, "messages": []}, True),
        ({"echo": False, "logprobs": 1}, False),
        ({"logprobs": 5}, False),
    ],
)
def test_when_the_cache_lookup_is_skipped(fields: dict[str, Any], skips: bool) -> None:
    assert facts(**fields).skips_cache_read is skips


def test_images() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    content = [{"type": "text", "text": "What\n is  it?"}, picture]
    said = facts(True, messages=[{"role": "user", "content": content}])
    assert said.has_images
    assert said.label == "What is it?"
    assert facts(input=[{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]).has_images
    assert not facts(messages=[{"role": "user", "content": [{"type": "text", "text": "image_url"}]}]).has_images


def test_sessions_of_the_client() -> None:
    assert facts(session_id="s").names_session
    assert facts(vllm_xargs={"session_id": "s"}).names_session
    assert not facts(session_id="").names_session
    assert facts(vllm_xargs={"kv_cache_report_mode": "full"}).wants_full_report
    assert facts(return_token_ids=True).wants_token_ids


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"messages": [{"role": "user", "content": "first"}, {"role": "user", "content": "last"}]}, "last"),
        ({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}, "q"),
        ({"messages": [{"role": "system", "content": "s"}]}, None),
        ({"messages": [{"role": "user", "content": None}]}, None),
        ({"prompt": " Once\tupon "}, "Once upon"),
        ({"prompt": [1, 2]}, None),
        ({"input": "Say hi."}, "Say hi."),
        ({"input": [{"role": "user", "content": "Say hi."}]}, "Say hi."),
    ],
)
def test_labels(fields: dict[str, Any], label: str | None) -> None:
    assert facts(True, **fields).label == label
    assert facts(False, **fields).label is None


def test_a_label_is_short() -> None:
    label = facts(True, messages=[{"role": "user", "content": "字" * 10_000}]).label
    assert label is not None and len(label) == LABEL_CHARS and label.endswith("…")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["messages", "prompt", "input", "n", "cache_salt", "echo", "logprobs", "vllm_xargs", "stream_options", "model"]


@given(st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=6))
def test_no_object_is_too_odd(fields: dict[str, Any]) -> None:
    assert facts(True, **fields).is_object


@pytest.mark.parametrize(
    ("params", "transfers"),
    [
        ({"do_remote_prefill": True, "remote_engine_id": "e"}, True),
        ({"remote_block_ids": [1]}, True),
        ({"do_remote_decode": True, "do_remote_prefill": False}, False),
        ({}, False),
        (None, False),
        ("x", False),
    ],
)
def test_a_cache_that_comes_from_a_prefill_node(params: object, transfers: bool) -> None:
    assert facts(kv_transfer_params=params).transfers_kv is transfers
