"""Replies: deterministic, in the prompt's language, ended or not as asked."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.chat_template import render_chat
from app.engine.reply import is_chinese, last_question, write_reply
from app.engine.tokenizer import END_OF_TEXT, IM_END

from .qwen import tokenizer


def chat(question: str, system: str = "Rules.") -> list[int]:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    return tokenizer().encode_segments(render_chat(messages))


def tokens_of(prompt: list[int], count: int = 200, **options: Any) -> list[int]:
    reply = write_reply(tokenizer(), prompt, **options)
    return [reply.token(position) for position in range(count)]


def words_of(prompt: list[int], **options: Any) -> str:
    return tokenizer().decode(tokens_of(prompt, **options), skip_specials=True)


@given(st.lists(st.integers(0, 151000), min_size=1, max_size=40), st.integers(0, 5))
@settings(deadline=None, max_examples=30)
def test_the_same_prompt_and_seed_give_the_same_tokens(prompt: list[int], seed: int) -> None:
    assert tokens_of(prompt, seed=seed) == tokens_of(prompt, seed=seed)


def test_a_token_does_not_depend_on_what_was_asked_before() -> None:
    prompt = chat("Why?")
    whole = tokens_of(prompt, 60)
    reply = write_reply(tokenizer(), prompt)
    assert [reply.token(position) for position in (59, 3, 0)] == [whole[59], whole[3], whole[0]]


def test_seeds_choices_and_prompts_tell_replies_apart() -> None:
    replies = {
        words_of(chat("Why?")),
        words_of(chat("Why not?")),
        words_of(chat("Why?"), seed=1),
        words_of(chat("Why?"), seed=2),
        words_of(chat("Why?"), choice=1),
    }
    assert len(replies) >= 4


@pytest.mark.parametrize(
    ("question", "chinese"),
    [("汉武帝的主要功绩有哪些？", True), ("What is 2+2?", False), ("用 Python 写一个排序算法", True), ("", False)],
)
def test_the_reply_is_in_the_last_questions_language(question: str, chinese: bool) -> None:
    assert (
        is_chinese(words_of(chat(question, system="你是一个专业的助手。" if not chinese else "Be brief."))) is chinese
    )


@pytest.mark.parametrize(
    ("text", "chinese"), [("日本語でお願いします", False), ("GPU", False), ("什么是 KV cache？", True), ("🙂", False)]
)
def test_what_counts_as_chinese(text: str, chinese: bool) -> None:
    assert is_chinese(text) is chinese


def test_the_last_question_of_a_chat_and_of_a_plain_prompt() -> None:
    assert last_question(tokenizer(), chat("one <|im_end|> two")) == "one <|im_end|> two"
    assert last_question(tokenizer(), tokenizer().encode_text("Once upon a time")) == "Once upon a time"


@pytest.mark.parametrize(("prompt", "end"), [(chat("Hi"), IM_END), ([9707], END_OF_TEXT)])
def test_a_reply_ends_by_itself_after_a_few_sentences(prompt: list[int], end: int) -> None:
    for seed in range(30):
        tokens = tokens_of(prompt, seed=seed)
        assert 20 <= tokens.index(end) <= 75
        assert set(tokens[tokens.index(end) :]) == {end}
        assert tokenizer().decode(tokens[: tokens.index(end)])[-1] in ".。"


def test_ignore_eos_goes_on_for_ever() -> None:
    tokens = tokens_of(chat("Hi"), 5000, ignore_eos=True)
    assert not {IM_END, END_OF_TEXT} & set(tokens)


def test_min_tokens_hold_the_end_back() -> None:
    assert tokens_of(chat("Hi"), 400, min_tokens=300).index(IM_END) >= 300


def test_a_longer_answer_begins_like_a_shorter_one() -> None:
    prompt = chat("Hi")
    assert tokens_of(prompt, 10) == tokens_of(prompt, 40)[:10]
