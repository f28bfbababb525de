"""Qwen2.5's tokens: known ids, special tokens, any Unicode there and back."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.tokenizer import (
    IM_END,
    IM_START,
    MAX_CHARS_PER_TOKEN,
    SPECIAL_TOKENS,
    IncrementalDecoder,
    Segment,
)

from .qwen import tokenizer

ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=200)


def streamed(token_ids: list[int]) -> list[str]:
    decoder = IncrementalDecoder(tokenizer())
    return [decoder.feed(token_id) for token_id in token_ids]


@pytest.mark.parametrize(
    ("text", "token_ids"),
    [
        ("", []),
        ("Hello", [9707]),
        ("你好", [108386]),
        ("What is the capital of France?", [3838, 374, 279, 6722, 315, 9625, 30]),
        ("system\n", [8948, 198]),
        ("2026", [17, 15, 17, 21]),
    ],
)
def test_known_tokens_of_the_model(text: str, token_ids: list[int]) -> None:
    assert tokenizer().encode_text(text) == token_ids


@given(ANY_TEXT)
@settings(deadline=None, max_examples=300)
def test_any_text_comes_back_in_its_normal_form(text: str) -> None:
    normal = unicodedata.normalize("NFC", text)
    token_ids = tokenizer().encode_text(text)
    assert tokenizer().decode(token_ids) == normal
    assert "".join(streamed(token_ids)) == normal


@given(ANY_TEXT)
@settings(deadline=None, max_examples=200)
def test_no_piece_of_a_stream_holds_half_a_character(text: str) -> None:
    if "\ufffd" not in text:
        assert not any("\ufffd" in piece for piece in streamed(tokenizer().encode_text(text)))


@pytest.mark.parametrize("text", ["𓀀", "👩🏽‍🚀", "ᚠᛇ", "龘", "🏴󠁧󠁢󠁷󠁬󠁳󠁿"])
def test_a_character_of_several_tokens_comes_with_the_last_of_them(text: str) -> None:
    pieces = streamed(tokenizer().encode_text(text))
    assert "".join(pieces) == text
    assert "" in pieces


def test_lone_surrogates_become_the_replacement_character() -> None:
    assert tokenizer().decode(tokenizer().encode_text("a\ud800b")) == "a\ufffdb"


@pytest.mark.parametrize("name", SPECIAL_TOKENS)
def test_the_name_of_a_special_token_in_text_is_text(name: str) -> None:
    token_ids = tokenizer().encode_text(f"a {name} b")
    assert SPECIAL_TOKENS[name] not in token_ids
    assert tokenizer().decode(token_ids) == f"a {name} b"


@pytest.mark.parametrize(("name", "token_id"), SPECIAL_TOKENS.items())
def test_special_tokens_are_single_ids_where_they_are_meant(name: str, token_id: int) -> None:
    assert tokenizer().encode_segments([Segment(name, special=True)]) == [token_id]
    assert tokenizer().encode_text(name, specials=True) == [token_id]
    assert tokenizer().decode([token_id]) == name
    assert tokenizer().token_strings([token_id]) == [name]


def test_text_between_special_tokens_is_cut_as_one() -> None:
    start, end = Segment("<|im_start|>", special=True), Segment("<|im_end|>", special=True)
    pieces = [start, Segment("user\nHel"), Segment("lo"), end]
    assert tokenizer().encode_segments(pieces) == [IM_START, 872, 198, 9707, IM_END]


def test_token_strings_have_the_byte_level_form() -> None:
    token_ids = tokenizer().encode_text("Hello world\n你好")
    assert tokenizer().token_strings(token_ids) == ["Hello", "Ġworld", "Ċ", "ä½łå¥½"]


def test_token_strings_tell_all_bytes_apart() -> None:
    singles = [tokenizer().encode_text(bytes((byte,)).decode("latin-1"))[0] for byte in range(128)]
    strings = tokenizer().token_strings(singles)
    assert len(set(strings)) == 128
    assert all(len(string) == 1 and string.isprintable() for string in strings)


@pytest.mark.parametrize("token_id", [151665, 152063, 10**12, -1])
def test_ids_that_are_no_tokens_have_no_text(token_id: int) -> None:
    assert tokenizer().decode([9707, token_id]) == "Hello"
    assert tokenizer().token_strings([token_id]) == [""]


def test_special_tokens_can_be_left_out_of_text() -> None:
    assert tokenizer().decode([IM_START, 9707, IM_END], skip_specials=True) == "Hello"
    assert streamed([IM_START, 9707, IM_END]) == ["", "Hello", ""]


def test_half_a_character_at_the_edge_of_a_block_is_marked() -> None:
    token_ids = tokenizer().encode_text("龘")
    assert len(token_ids) > 1
    assert "\ufffd" in tokenizer().decode(token_ids[:1])


def test_no_token_is_longer_than_the_bound() -> None:
    assert max(len(tokenizer().decode([token_id])) for token_id in range(151665)) == MAX_CHARS_PER_TOKEN


@pytest.mark.parametrize("unit", ["a", " ", "\n", "^", "你", "🙂", "1", "\u0301"])
def test_long_runs_of_one_character_are_no_trap(unit: str) -> None:
    text = unit * 100_000
    assert tokenizer().decode(tokenizer().encode_text(text)) == unicodedata.normalize("NFC", text)
