import re
from time import process_time
from typing import Any

import pytest

from app.why.breakers import find_breaker
from app.why.sections import find_sections, section_at
from app.why.template_dates import template_dates

RULES = "You answer briefly and kindly, in whole sentences, and never guess. " * 4
RENDERED = {
    "Llama 3.1": (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
        "Today Date: {}\n\n" + RULES + "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>",
        ("26 Jul 2024", "27 Jul 2024"),
    ),
    "SmolLM3": (
        "<|im_start|>system\n## Metadata\n\n"
        "Knowledge Cutoff Date: June 2025\nToday Date: {}\nReasoning Mode: /think\n\n"
        + RULES + "<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n",
        ("08 July 2025", "19 July 2025"),
    ),
    "gpt-oss": (
        "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
        "Knowledge cutoff: 2024-06\n"
        "Current date: {}\n\nReasoning: medium\n<|end|><|start|>developer<|message|>" + RULES + "<|end|>",
        ("2025-08-05", "2025-08-06"),
    ),
    "Granite": (
        "<|start_of_role|>system<|end_of_role|>Knowledge Cutoff Date: April 2024.\nToday's Date: {}.\n" + RULES
        + "<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>Hi<|end_of_text|>\n",
        ("April 12, 2025", "April 13, 2025"),
    ),
    "Mistral": (
        "<s>[SYSTEM_PROMPT]Your knowledge base was last updated on 2023-10-01.\nThe current date is {}.\n\n" + RULES
        + "[/SYSTEM_PROMPT][INST]Hi[/INST]",
        ("2025-01-30", "2025-01-31"),
    ),
    "of one's own for Qwen": (
        "<|im_start|>system\n当前日期：{}\n" + RULES + "<|im_end|>\n<|im_start|>user\n你好<|im_end|>\n",
        ("2026年11月29日", "2026年11月30日"),
    ),
    "with a clock": (
        "<|im_start|>system\nCurrent time: {}\n" + RULES + "<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n",
        ("10:15:01", "10:15:42"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RENDERED)
def test_a_date_that_the_template_wrote(name: str) -> None:
    template, (one, other) = RENDERED[name]
    found = find_breaker({"prompt": template.format(one)}, {"prompt": template.format(other)})
    assert found is not None
    assert (found.kind, found.after.text) == ("template_date", other)
    section = section_at(find_sections(template.format(other)), template.index("{}"))
    assert section is not None
    assert section.kind == "header"


def test_a_date_that_the_client_wrote_is_not_the_templates() -> None:
    template = "<|im_start|>system\n" + RULES + "Today Date: {}\n" + RULES + "<|im_end|>\n"
    found = find_breaker({"prompt": template.format("26 Jul 2024")}, {"prompt": template.format("27 Jul 2024")})
    assert found is not None
    assert found.kind == "date"


def test_a_date_that_is_handed_to_the_template() -> None:
    def body(date: str) -> dict[str, Any]:
        messages = [{"role": "system", "content": RULES}, {"role": "user", "content": "Hi"}]
        return {"model": "m", "messages": messages, "chat_template_kwargs": {"date_string": date}}

    found = find_breaker(body("26 Jul 2024"), body("27 Jul 2024"))
    assert found is not None
    assert (found.kind, found.place, found.after.text) == ("template_date", "template", "27 Jul 2024")
    assert find_breaker(body("26 Jul 2024"), body("26 Jul 2024")) is None
    assert template_dates({"chat_template_kwargs": {"enable_thinking": True, "style": "update"}}) == {}


@pytest.mark.parametrize("filler", ["\n", " ", "a", "<", "# Tools", "日"])
def test_sections_of_a_megabyte_take_time_in_proportion_to_it(filler: str) -> None:
    def spent_s(characters: int) -> float:
        text = f"<|im_start|>system\n{filler * (characters // len(filler))}<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        started_s = process_time()
        sections = find_sections(text)
        spent = process_time() - started_s
        assert re.sub("tools", "system", sections[0].kind) == "system"
        assert sections[-1].role == "user"
        return spent

    def least_s(characters: int) -> float:
        return min(spent_s(characters) for _ in range(3))  # the garbage of other tests may be collected within one

    assert least_s(1_000_000) < 40 * max(least_s(100_000), 0.002)
