"""Stop strings in a stream of tokens."""

import pytest

from app.engine.choice_text import ChoiceText

from .qwen import tokenizer


def run(text: str, stops: list[str]) -> tuple[list[str], str | None]:
    choice = ChoiceText(tokenizer(), stops)
    token_ids = tokenizer().encode_text(text)
    pieces: list[str] = []
    for position, token_id in enumerate(token_ids):
        pieces.append(choice.feed(token_id, finished=position == len(token_ids) - 1))
        if choice.stopped_by is not None:
            break
    return pieces, choice.stopped_by


@pytest.mark.parametrize(
    ("text", "stops", "shown", "stopped_by"),
    [
        ("one two three", [], "one two three", None),
        ("one two three", ["two"], "one ", "two"),
        ("one two three", ["e t"], "on", "e t"),
        ("one two three", ["nothing of it"], "one two three", None),
        ("one two three", ["three", "two"], "one ", "two"),
        ("你好，世界。", ["世"], "你好，", "世"),
        ("stop", ["stop"], "", "stop"),
    ],
)
def test_text_ends_before_the_stop_string(text: str, stops: list[str], shown: str, stopped_by: str | None) -> None:
    pieces, stopped = run(text, stops)
    assert ("".join(pieces), stopped) == (shown, stopped_by)


def test_what_might_begin_a_stop_string_is_held_back() -> None:
    pieces, _ = run("one two three", ["two and a half"])
    assert pieces[0] == ""
    assert "".join(pieces) == "one two three"
