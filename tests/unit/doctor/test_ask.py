from typing import Any

import pytest

from app.doctor.ask import Answer, read_answer


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({"usage": {"prompt_tokens": 20, "prompt_tokens_details": {"cached_tokens": 0}}, "metrics": {}},
         Answer(True, True, True)),
        ({"usage": {"prompt_tokens": 20, "prompt_tokens_details": None}}, Answer(False, False, True)),
        ({"usage": {"prompt_tokens": 16}}, Answer(False, False, False)),
        ({"usage": None}, Answer()),
        ({}, Answer()),
        ([], Answer()),
        (None, Answer()),
    ],
)  # fmt: skip
def test_what_an_answer_tells(body: Any, answer: Answer) -> None:
    assert read_answer(body, 16) == answer


def test_without_a_block_size_nothing_is_said_of_blocks() -> None:
    assert not read_answer({"usage": {"prompt_tokens": 2000}}, None).filled_a_block
