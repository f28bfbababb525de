from typing import Any

import pytest

from app.why.breakers import find_breaker
from app.why.span_names import name_span

RULES = "You answer briefly and kindly, in whole sentences, and never guess. " * 6


def chat(system: str, *turns: str, tools: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}]
    messages += [{"role": "assistant" if n % 2 else "user", "content": turn} for n, turn in enumerate(turns)]
    return {"model": "m", "messages": messages, **({"tools": tools} if tools else {})}


def tool(name: str, *keys: str) -> dict[str, Any]:
    properties = {key: {"type": "string"} for key in keys}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


SPANS = [
    ("clock_time", "It is now {}. ", "10:15:01", "10:15:02"),
    ("clock_time", "现在是 {}。", "10:15", "10:16"),
    ("date", "Today is {}. ", "2026-11-29", "2026-11-30"),
    ("date", "Current date: {}\n", "26 Jul 2024", "27 Jul 2024"),
    ("date", "今天是{}。", "2026年11月29日", "2026年11月30日"),
    ("date", "Today is {}, have fun. ", "Monday", "Sunday"),
    ("timestamp", "Generated {} by us. ", "2026-11-30T10:15:01.123456Z", "2026-11-30T10:15:44.987Z"),
    ("timestamp", "ts={} ", "1796050224", "1796050311"),
    ("uuid", "Document {}: ", "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "6fa459ea-ee8a-3ca4-894e-db77e160355e"),
    ("request_id", "request_id: {}\n", "a81f", "b7c2"),
    ("request_id", "[trace={}] ", "zz9", "yy8"),
    ("session_id", '{{"session_id": "{}"}} ', "s-17-blue", "s-18-red"),
    ("counter", "Turn {} of the talk. ", "17", "18"),
    ("user_name", "You are talking to {}. ", "Ada Lovelace", "Grace Hopper"),
    ("user_name", "User: {}\n", "Łukasz", "Zoë"),
    ("user_name", "用户：{}\n", "王小明", "李雷"),
    ("random_id", "Build {} here. ", "9f86d081884c7d65", "60303ae22b998861"),
    ("client_line", "x-anthropic-billing-header: cc_version=2.1.{}; cch=1\n", "37.afe", "38.b0c"),
    ("changing_text", "Mood: {}; ", "cheerful and loud", "somewhat sleepy"),
]


@pytest.mark.parametrize(("kind", "where", "one", "other"), SPANS)
def test_a_span_before_the_constant_part_is_named_and_found(kind: str, where: str, one: str, other: str) -> None:
    found = find_breaker(chat(where.format(one) + RULES, "Hi"), chat(where.format(other) + RULES, "Hello there"))
    assert found is not None
    assert found.kind == kind
    assert found.constant_chars >= len(RULES) - 1
    system = where.format(other) + RULES
    assert system[found.after.start : found.after.end] == found.after.text
    # The span is no more than the word that changed, and some of what surrounds it.
    assert len(found.after.text) <= len(other) + 30
    assert (found.place, found.index) == ("message", 0)


@pytest.mark.parametrize(("kind", "one", "other"), [
    ("trailing_space", RULES.strip(), RULES.strip() + " "),
    ("trailing_space", "a rule\nanother rule\nthird", "a rule \nanother rule\nthird"),
    ("line_endings", "a rule\nanother\n" + RULES, "a rule\r\nanother\r\n" + RULES),
    ("unicode_form", "café " + RULES, "cafe\u0301 " + RULES),
    ("reordered_keys", 'Schema: {"a": 1, "b": [2]} end', 'Schema: {"b": [2], "a": 1} end'),
    ("shuffled_examples", "Examples:\n\nQ: 1 A: 2\n\nQ: 3 A: 4\n\nQ: 5 A: 6",
     "Examples:\n\nQ: 5 A: 6\n\nQ: 1 A: 2\n\nQ: 3 A: 4"),
    ("dropped_thinking", "<think>\nhm\n</think>\n\nAnswer " + RULES, "Answer " + RULES),
])  # fmt: skip
def test_whole_texts_that_are_the_same_but_for_order_or_what_cannot_be_seen(kind: str, one: str, other: str) -> None:
    for before, after in ((one, other), (other, one)):
        found = find_breaker(chat(before, "Hi"), chat(after, "Hi"))
        assert found is not None
        assert found.kind == kind


def test_tools_in_another_order() -> None:
    weather, mail = tool("weather", "city", "day"), tool("mail", "to")
    found = find_breaker(chat(RULES, "Hi", tools=[weather, mail]), chat(RULES, "Hi", tools=[mail, weather]))
    assert found is not None
    assert (found.kind, found.place) == ("reordered_tools", "tools")


def test_keys_of_a_tool_in_another_order() -> None:
    found = find_breaker(
        chat(RULES, "Hi", tools=[tool("weather", "city", "day")]),
        chat(RULES, "Hi", tools=[tool("weather", "day", "city")]),
    )
    assert found is not None
    assert found.kind == "reordered_keys"


def test_examples_as_messages_in_another_order() -> None:
    one = chat(RULES, "2+2?", "4", "3+3?", "6", "4+4?")
    other = chat(RULES, "3+3?", "6", "2+2?", "4", "4+4?")
    found = find_breaker(one, other)
    assert found is not None
    assert found.kind == "shuffled_examples"


def test_thinking_that_is_dropped_from_the_history() -> None:
    one = chat(RULES, "Hi", "Hello", "More?")
    one["messages"][2]["reasoning_content"] = "They greet me."
    found = find_breaker(one, chat(RULES, "Hi", "Hello", "More?"))
    assert found is not None
    assert found.kind == "dropped_thinking"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (chat(RULES, "Hi"), chat(RULES, "Hi")),
        (chat(RULES, "Where is my parcel?"), chat(RULES, "When does the shop close today?")),
        (chat(RULES, "Hi"), chat(RULES, "Hi", "Hello", "And now?")),
        (chat(RULES, "Hi"), chat("Something else altogether is asked of you in this one.", "Bye")),
        ({"prompt": "abc"}, {"prompt": "xyz"}),
        ({"messages": []}, {"messages": []}),
        ({}, {"messages": [{"role": "user", "content": None}]}),
    ],
    ids=["same", "other question", "grown history", "other prompt", "bare", "empty", "odd"],
)
def test_prompts_that_are_just_different_have_no_breaker(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert find_breaker(one, other) is None


def test_a_bare_prompt_has_breakers_too() -> None:
    found = find_breaker({"prompt": f"10:15:01 {RULES}"}, {"prompt": f"10:15:02 {RULES}"})
    assert found is not None
    assert (found.kind, found.place, found.index) == ("clock_time", "prompt", None)


def test_a_megabyte_is_read_in_a_moment() -> None:
    long = "数据行：" + "x" * 1_000_000
    found = find_breaker(chat(f"Now: 10:15 {long}", "Hi"), chat(f"Now: 10:16 {long}", "Hi"))
    assert found is not None
    assert found.kind == "clock_time"


def test_words_that_only_contain_a_number_are_no_date() -> None:
    assert name_span("the first 12 of many long words here", "the second 13 of many long words here", "") == (
        "changing_text"
    )
