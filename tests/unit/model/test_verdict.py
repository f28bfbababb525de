import ast
from pathlib import Path

import pytest

from app.model import causes, verdict
from app.model.verdict import CODES, Params, word

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
        ("full_hit", figures(prompt_tokens=416), "Reused 12 of 13 blocks. First token after 34 ms instead of 73 ms.",
         "All that can be reused was: 16 tokens computed, since the last token is always computed anew, and its block "
         "with it."),
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
         "The pool was full, and the blocks unused for longest had to go."),
        ("reset", figures(seconds=None, reason="reset"), "Its prefix was resident until the cache was emptied.", None),
        ("reset", figures(seconds=240.0, reason="restarted"),
         "Its prefix was resident until the server restarted 4 min earlier.", None),
        ("other_salt", figures(salted=1), "The same tokens are cached, but not under this request's cache salt.",
         "Blocks are shared only between requests with the same salt."),
        ("other_adapter", figures(adapter="sql"), "The same tokens are cached, but for the adapter sql.",
         "Blocks are shared only within one adapter."),
        ("other_image", figures(), "The same tokens are cached, but with other images or embeddings.", None),
        ("cache_off", figures(), "Prefix caching is off on this server.",
         "Start vLLM without --no-enable-prefix-caching."),
        ("lookup_skipped", figures(computed_tokens=400),
         "The cache lookup was skipped, because the request asks for log probabilities of its prompt.",
         "400 of 400 tokens were computed."),
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


def test_every_code_that_causes_name_is_worded_and_none_is_left_over() -> None:
    tree = ast.parse(Path(causes.__file__).read_text())
    named: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Cause":
            named |= {
                c.value for c in ast.walk(node.args[0]) if isinstance(c, ast.Constant) and isinstance(c.value, str)
            }
    assert named == set(CODES)


@pytest.mark.parametrize("code", sorted(CODES))
def test_no_sentence_fails_for_want_of_figures(code: str) -> None:
    params: Params = {
        "prompt_tokens": 40, "cached_tokens": 0, "block_size": 32, "missing": "usage", "shared_tokens": 3, "token": 4,
        "block": 1,
    }  # fmt: skip
    worded = word(code, params)
    assert worded.text
    assert "None" not in f"{worded.text} {worded.detail or ''}"


@pytest.mark.parametrize("missing", sorted(verdict._MISSING))
def test_what_is_missing_is_named(missing: str) -> None:
    assert word("unknown", {"missing": missing}).detail


def test_an_unknown_code_is_an_error() -> None:
    with pytest.raises(KeyError):
        word("magic", {})
