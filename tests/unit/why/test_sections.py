import pytest

from app.engine.chat_template import render_chat
from app.why.sections import find_sections, section_at

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "第一个问题"},
    {"role": "assistant", "content": "回答"},
    {"role": "user", "content": "مرحبا"},
]


def rendered(**options: object) -> str:
    return "".join(segment.text for segment in render_chat(MESSAGES, **options))  # type: ignore[arg-type]


def kind_at(text: str, words: str) -> tuple[str, str | None, int | None]:
    found = section_at(find_sections(text), text.index(words))
    assert found is not None
    return found.kind, found.role, found.index


def test_each_message_of_a_chat() -> None:
    text = rendered()
    assert kind_at(text, "Be brief") == ("system", "system", 1)
    assert kind_at(text, "第一个问题") == ("message", "user", 2)
    assert kind_at(text, "回答") == ("message", "assistant", 3)
    assert kind_at(text, "مرحبا") == ("message", "user", 4)
    assert find_sections(text)[-1].kind == "generation_prompt"


def test_tools_stand_behind_the_system_prompt() -> None:
    text = rendered(tools=[TOOL])
    assert kind_at(text, "Be brief")[0] == "system"
    assert kind_at(text, "weather") == ("tools", None, None)


def test_sections_have_no_gaps() -> None:
    text = rendered(tools=[TOOL])
    sections = find_sections(text)
    assert [section.start for section in sections] == [0, *(section.end for section in sections[:-1])]
    assert sections[-1].end == len(text)


def test_a_date_that_the_template_writes_is_the_header() -> None:
    text = (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
        "Today Date: 26 Jul 2024\n\nYou are kind.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )
    assert kind_at(text, "26 Jul")[0] == "header"
    assert kind_at(text, "You are kind") == ("system", "system", 1)
    assert kind_at(text, "Hi") == ("message", "user", 2)
    assert find_sections(text)[-1].kind == "generation_prompt"


def test_an_emptied_thought_belongs_to_the_generation_prompt() -> None:
    text = rendered() + "<think>\n\n</think>\n\n"
    assert find_sections(text)[-1].kind == "generation_prompt"


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("<bos><start_of_turn>user\nHello<end_of_turn>\n<start_of_turn>model\n", "user"),
        ("<s>[INST] Hello [/INST]", "user"),
        ("<|user|>\nHello<|end|>\n<|assistant|>\n", "user"),
        ("<|start|>user<|message|>Hello<|end|><|start|>assistant", "user"),
        ("<｜begin▁of▁sentence｜><｜User｜>Hello<｜Assistant｜>", "user"),
    ],
)
def test_other_templates(text: str, role: str) -> None:
    assert kind_at(text, "Hello")[:2] == ("message", role)


def test_a_template_that_is_not_known_is_read_by_the_texts_of_the_messages() -> None:
    text = "### Be brief.\n### Q: 第一个问题\n### A: 回答\n### Q: مرحبا\n### A:"
    sections = find_sections(text, MESSAGES)
    assert [section.kind for section in sections if section.role] == ["system", "message", "message", "message"]
    assert section_at(sections, len(text) - 1) == sections[-1]
    assert sections[-1].kind == "generation_prompt"


def test_without_either_nothing_is_claimed() -> None:
    assert find_sections("just words") == []
