import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from string import Formatter

import pytest

from app import model
from app.model.language import Teller
from app.model.sentences import LOSSES, MISSING, OUTCOMES, WORDS
from app.model.verdict import CODES, Params, word
from app.model.words_en import ENGLISH
from app.model.words_zh import CHINESE

FIGURES: Params = {
    "prompt_tokens": 400, "cached_tokens": 384, "computed_tokens": 16, "block_size": 32, "cached_basis": "usage",
    "prompt_blocks": 13, "reusable_blocks": 12, "reused_blocks": 12, "ttft_ms": 34.4, "reference_ttft_ms": 73.1,
}  # fmt: skip


def figures(**changes: int | float | str | None) -> Params:
    return {**FIGURES, **changes}


@pytest.mark.parametrize(
    ("code", "params", "text", "detail"),
    [
        ("reused", figures(), "Reused 12 of 13 blocks. First token after 34 ms instead of 73 ms.",
         "16 of 400 tokens were computed."),
        ("reused", figures(reference_ttft_ms=None), "Reused 12 of 13 blocks. First token after 34 ms.",
         "16 of 400 tokens were computed."),
        ("reused", figures(ttft_ms=None), "Reused 12 of 13 blocks.", "16 of 400 tokens were computed."),
        ("reused", figures(ttft_ms=90.0),
         "Reused 12 of 13 blocks. First token after 90 ms; a cold request of about this length took 73 ms.",
         "16 of 400 tokens were computed."),
        ("reused", figures(reused_blocks=4, loss="diverges", shared_tokens=149, token=150, block=5, blocks_after=9,
                           ends=0),
         "Reused 4 of 13 blocks. First token after 34 ms instead of 73 ms.",
         "Shares 149 tokens with the nearest known prompt, then differs at token 150, in block 5: 9 blocks from there "
         "on had to be computed."),
        ("reused", figures(reused_blocks=10, loss="evicted", block=11, seconds=12.3),
         "Reused 10 of 13 blocks. First token after 34 ms instead of 73 ms.",
         "Block 11 was resident before, and was evicted 12 s earlier."),
        ("exact_multiple", figures(prompt_tokens=416, computed_tokens=32),
         "Reused 12 of 13 blocks. First token after 34 ms instead of 73 ms.",
         "All that can be reused was: 32 tokens computed, since the last token is always computed anew, and its block "
         "with it. The 416 tokens are an exact multiple of the block of 32."),
        ("full_hit", figures(computed_tokens=7, block_size=16, prompt_tokens=391),
         "Reused 12 of 13 blocks. First token after 34 ms instead of 73 ms.",
         "All that can be reused was: 7 tokens computed, since only full blocks are cached."),
        ("first_seen", figures(shared_tokens=6), "Seen for the first time: all 400 tokens were computed.",
         "It shares 6 tokens with the nearest known prompt, less than one block of 32. Send it again to reuse it."),
        ("too_short", figures(prompt_tokens=20),
         "The prompt has 20 tokens: too short to reuse a block of 32 tokens.",
         "Only full blocks are cached, and the last token is always computed anew."),
        ("too_short", figures(shared_tokens=240, block_size=784),
         "Shares 240 tokens with the nearest known prompt, less than one block of 784 tokens.",
         "Only full blocks are reused: the constant part must fill at least one."),
        ("diverges", figures(shared_tokens=36, token=37, block=2, blocks_after=12, ends=0),
         "Shares 36 tokens with the nearest known prompt, then differs at token 37, in block 2: 12 blocks from there "
         "on had to be computed.",
         "A prefix is reused only up to the first token that differs. Put what changes last."),
        ("evicted", figures(seconds=0.2, block=1),
         "Its prefix was resident before, and was evicted less than a second earlier.",
         "The pool was full, and the blocks unused for longest had to go. More KV memory, or fewer distinct prompts at "
         "once, keeps it."),
        ("evicted", figures(seconds=31.0, block=1, by="r-5, r-7", by_count=3, lost_tokens=384, lost_ms=77.2),
         "Its prefix was resident before, and was evicted 31 s earlier to make room for r-5, r-7 and 1 other: "
         "384 tokens had to be computed again, about 77 ms.",
         "The pool was full, and the blocks unused for longest had to go. More KV memory, or fewer distinct prompts at "
         "once, keeps it."),
        ("reset", figures(seconds=None, reason="reset"), "Its prefix was resident until the cache was emptied.",
         "It is reused again from now on."),
        ("reset", figures(seconds=240.0, reason="restarted"),
         "Its prefix was resident until the server restarted 4 min earlier.", "It is reused again from now on."),
        ("other_salt", figures(salted=1), "The same tokens are cached, but not under this request's cache salt.",
         "Blocks are shared only between requests with the same salt."),
        ("other_adapter", figures(adapter="sql"), "The same tokens are cached, but for the adapter sql.",
         "Blocks are shared only within one adapter."),
        ("other_image", figures(), "The same tokens are cached, but with other images or embeddings.",
         "Put images behind the text that stays the same."),
        ("cache_off", figures(), "Prefix caching is off on this server.",
         "Start vLLM without --no-enable-prefix-caching."),
        ("lookup_skipped", figures(computed_tokens=400),
         "The cache lookup was skipped, because the request asks for log probabilities of its prompt.",
         "400 of 400 tokens were computed. Ask without prompt_logprobs to reuse it."),
        ("inconsistent", figures(cached_tokens=8448, prompt_tokens=768),
         "The server reports 8448 cached of 768 prompt tokens, which can't be.",
         "The figures are shown as they came, and left out of every rate."),
        ("unexplained", figures(reason="no_events"), "Nothing was reused.",
         "Why can't be known without KV events: start vLLM with --kv-events-config."),
        ("unknown", {"missing": "details"}, "How much was reused is not known.",
         "This server does not report cached tokens per request; start vLLM with --enable-prompt-tokens-details."),
        ("failed", {"outcome": "http_error", "status": 404, "error": "No such model."},
         "The server refused the request with status 404.", "No such model."),
    ],
)  # fmt: skip
def test_sentences(code: str, params: Params, text: str, detail: str | None) -> None:
    worded = word(code, params)
    assert (worded.code, worded.text, worded.detail) == (code, text, detail)


def test_what_was_inferred_says_so() -> None:
    assert str(word("full_hit", figures(cached_basis="inferred")).detail).endswith(
        "Inferred from KV events: the server didn't report it."
    )


EVERYTHING: Params = {
    **FIGURES, "loss": "diverges", "shared_tokens": 149, "token": 150, "block": 5, "blocks_after": 9, "ends": 0,
    "seconds": 12.3, "by": "r-5, r-7", "by_count": 3, "lost_tokens": 640, "lost_ms": 128.0, "reason": "restarted",
    "salted": 1, "adapter": "sql", "other_model": "m2", "other_rank": 1, "rank": 0, "other_server": "http://b:8000",
    "matched_tokens": 4288, "unit_tokens": 2144, "dropped_blocks": 1, "straddling_tokens": 21, "constant_tokens": 900,
    "span_tokens": 8, "missing": "usage", "found_tokens": 13, "outcome": "http_error", "status": 404, "error": "No.",
    "engine_ttft_ms": 20.0, "saved_ms": 125.0, "saved_low_ms": 110.0, "saved_high_ms": 140.0, "queue_ms": 900.0,
    "not_faster": "queue", "decode_share": 0.95,
}  # fmt: skip


def each_set_of_params() -> Iterator[Params]:
    """Everything known, nothing known, each thing missing or None in turn, and each word that decides a sentence."""
    yield EVERYTHING
    yield {}
    yield dict.fromkeys(EVERYTHING)
    for name in EVERYTHING:
        yield EVERYTHING | {name: None}
        yield {name: EVERYTHING[name]}
    for loss in LOSSES:
        yield EVERYTHING | {"loss": loss}
        yield {"loss": loss}
    for reason in ("seemed_resident", "no_events", "sequences", "mismatch", "no_tokens", "reset", "restarted"):
        yield EVERYTHING | {"reason": reason}
    for reason in ("queue", "busy", "tiny"):
        yield EVERYTHING | {"not_faster": reason}
    for missing in MISSING:
        yield {"missing": missing}
    for outcome in OUTCOMES:
        yield {"outcome": outcome}
    yield {"outcome": "client_gone", "closed_after_ms": 12.5}
    for seconds in (0.4, 300):
        yield EVERYTHING | {"seconds": seconds}
    for ttft_ms in (34.4, 80.0):
        yield figures(ttft_ms=ttft_ms)
    yield EVERYTHING | {"ends": 1, "cached_basis": "inferred"}


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_is_worded_in_each_language_whatever_is_known(code: str) -> None:
    for params in each_set_of_params():
        worded = word(code, params)
        chinese, detail = worded.translations["zh"]
        for text in (worded.text, worded.detail, chinese, detail):
            assert text is None or (text and "None" not in text and "  " not in text)
        assert worded.text.endswith((".", "!", "?"))
        assert chinese.endswith("。")
        assert (worded.detail is None) == (detail is None)
        assert chinese != worded.text


@pytest.mark.parametrize("code", sorted(set(CODES) - {"failed"}))
def test_each_cause_says_why_or_what_to_do(code: str) -> None:
    assert word(code, EVERYTHING).detail


@pytest.mark.parametrize("code", sorted(CODES))
def test_languages_agree_on_every_number(code: str) -> None:
    worded = word(code, EVERYTHING)
    chinese, detail = worded.translations["zh"]
    assert numbers(f"{worded.text} {worded.detail}") == numbers(f"{chinese} {detail}")


def numbers(text: str) -> list[str]:
    digits = "".join(letter if letter.isdigit() or letter == "." else " " for letter in text)
    return sorted(number.strip(".") for number in digits.split() if number.strip("."))


def test_both_languages_have_the_same_sentences_of_the_same_numbers() -> None:
    assert set(CHINESE.sentences) == set(ENGLISH.sentences)
    for key, template in ENGLISH.sentences.items():
        assert names_in(CHINESE.sentences[key]) == names_in(template), key


def names_in(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


class Watched(dict[str, str]):
    """Sentences that remember which of them were asked for."""

    def __init__(self, sentences: Mapping[str, str]) -> None:
        super().__init__(sentences)
        self.asked: set[str] = set()

    def __getitem__(self, key: str) -> str:
        self.asked.add(key)
        return super().__getitem__(key)


def test_every_sentence_is_said_of_some_cause() -> None:
    watched = Watched(ENGLISH.sentences)
    language = replace(ENGLISH, sentences=watched)
    for words in WORDS.values():
        for params in each_set_of_params():
            words(Teller(language, params))
    assert set(watched) - watched.asked == {"inferred", "by_router"}


def test_the_explanation_is_that_of_the_loss_where_only_a_part_missed() -> None:
    assert word("evicted", {}).anchor == "why-evicted"
    assert word("reused", {"loss": "variable_first"}).anchor == "why-variable-first"


def test_the_basis_says_where_the_cause_is_read() -> None:
    assert word("full_hit", figures()).basis == "usage"
    assert word("evicted", figures()).basis == "inferred"
    assert word("cache_off", figures()).basis == "counter"
    assert word("unknown", {}).basis is None


def test_every_code_that_causes_name_is_worded_and_none_is_left_over() -> None:
    named: set[str] = set()
    for path in Path(model.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Cause":
                named |= {
                    c.value for c in ast.walk(node.args[0]) if isinstance(c, ast.Constant) and isinstance(c.value, str)
                }
    assert named == set(CODES)


def test_an_unknown_code_is_an_error() -> None:
    with pytest.raises(KeyError):
        word("magic", {})
