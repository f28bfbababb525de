from typing import Any

import pytest

from app.why.breaker_words import BREAKER_WORDS
from app.why.breakers import find_breaker
from app.why.common_text import common_start
from app.why.remedies import REMEDY_OF, remedy
from app.why.request_text import pieces_of
from tests.unit.why.test_breakers import RULES, SPANS, chat, tool


def healed(one: dict[str, Any], other: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both requests with their remedies, where one needs none as it is."""
    found = find_breaker(one, other)
    assert found is not None
    before, after = remedy(one, found, found.before), remedy(other, found, found.after)
    assert before is not None or after is not None
    for done in (before, after):
        assert done is None or (done.diff and done.changes and done.changes_zh)
    return before.request if before else one, after.request if after else other


def shared(one: dict[str, Any], other: dict[str, Any]) -> int:
    left, right = (chr(0).join(piece.text for piece in pieces_of(body)) for body in (one, other))
    return common_start(left, right)


@pytest.mark.parametrize(("kind", "where", "first", "second"), SPANS)
@pytest.mark.parametrize("newline", ["", "\n"])
def test_what_changes_is_moved_behind_what_stays(kind: str, where: str, first: str, second: str, newline: str) -> None:
    one, other = (chat(where.format(value) + newline + RULES, "Hi") for value in (first, second))
    left, right = healed(one, other)
    # Where no line or sentence ends with what changed, the next sentence goes with it.
    assert shared(left, right) >= len(RULES) * (0.8 if not newline else 0.99) > shared(one, other)
    said = " ".join(piece.text for piece in pieces_of(right))
    assert (second in said) == (REMEDY_OF[kind] == "move_behind")  # type: ignore[index]


@pytest.mark.parametrize(("one", "other"), [
    (chat(RULES.strip(), "Hi"), chat(RULES, "Hi")),
    (chat("a\nb\n" + RULES, "Hi"), chat("a\r\nb\r\n" + RULES, "Hi")),
    (chat("café " + RULES, "Hi"), chat("cafe\u0301 " + RULES, "Hi")),
    (chat('S: {"a": 1, "b": [2]} end', "Hi"), chat('S: {"b": [2], "a": 1} end', "Hi")),
    (chat("Examples:\n\nQ 1\n\nQ 2\n\nQ 3", "Hi"), chat("Examples:\n\nQ 3\n\nQ 1\n\nQ 2", "Hi")),
    (chat(RULES, "2+2?", "4", "3+3?", "6", "4+4?"), chat(RULES, "3+3?", "6", "2+2?", "4", "4+4?")),
    (chat(RULES, "Hi", tools=[tool("w", "a"), tool("m", "b")]),
     chat(RULES, "Hi", tools=[tool("m", "b"), tool("w", "a")])),
    (chat(RULES, "Hi", tools=[tool("w", "a", "b")]), chat(RULES, "Hi", tools=[tool("w", "b", "a")])),
])  # fmt: skip
def test_both_requests_are_the_same_afterwards(one: dict[str, Any], other: dict[str, Any]) -> None:
    left, right = healed(one, other)
    assert pieces_of(left) == pieces_of(right)


def test_the_request_that_was_given_is_left_alone() -> None:
    one, other = chat(f"Now: 10:15. {RULES}", "Hi"), chat(f"Now: 10:16. {RULES}", "Hi")
    copy = chat(f"Now: 10:16. {RULES}", "Hi")
    healed(one, other)
    assert other == copy


def test_a_sentence_of_a_long_line_is_moved_and_no_more() -> None:
    one, other = (chat(f"{RULES}It is {time} now. {RULES}", "Hi") for time in ("10:15", "10:16"))
    _, right = healed(one, other)
    assert right["messages"][0]["content"] == RULES + RULES
    assert right["messages"][1]["content"] == "Hi\n\nIt is 10:16 now."


def test_a_bare_prompt_ends_with_what_changes() -> None:
    _, right = healed({"prompt": f"10:15:01\n{RULES}"}, {"prompt": f"10:15:02\n{RULES}"})
    assert right["prompt"] == f"{RULES}\n10:15:02"


def test_every_breaker_is_named_in_both_languages() -> None:
    for kind, words in BREAKER_WORDS.items():
        assert all(words), kind
    assert set(REMEDY_OF) == set(BREAKER_WORDS) - {"dropped_thinking", "template_date"}
