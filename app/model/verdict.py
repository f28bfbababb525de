"""Words a cause: one sentence with its numbers, and a second, smaller one. Only wording; `causes` finds the cause.

Counting in sentences starts at 1. Imports only `events`.
"""

from collections.abc import Callable

from ..events import Verdict

Params = dict[str, int | float | str | None]
Words = tuple[str, str | None]


def word(code: str, params: Params) -> Verdict:
    """The verdict for a code of `CODES`. Raises KeyError for another."""
    text, detail = CODES[code](params)
    if params.get("cached_basis") == "inferred" and code not in ("failed", "lookup_skipped", "cache_off"):
        source = "Inferred from KV events: the server didn't report it."
        detail = f"{detail} {source}" if detail else source
    return Verdict(code, text, detail, params)


def _reused(params: Params) -> Words:
    return _reuse_sentence(params), _loss_sentence(params) or _computed_sentence(params)


def _full_hit(params: Params) -> Words:
    return _reuse_sentence(params), f"All that can be reused was{_inevitable(params)}."


def _inevitable(params: Params) -> str:
    """Why a full hit computes something all the same: the tail is no full block, or its last token ends one."""
    computed, prompt, size = params.get("computed_tokens"), params.get("prompt_tokens"), params.get("block_size")
    counted = f": {_count(computed, 'token')} computed, since" if isinstance(computed, int) else ";"
    if not isinstance(prompt, int) or not isinstance(size, int) or not size or prompt % size:
        return f"{counted} only full blocks are cached"
    return f"{counted} the last token is always computed anew, and its block with it"


def _reuse_sentence(params: Params) -> str:
    if params.get("reused_blocks") is not None and params.get("prompt_blocks") is not None:
        first = f"Reused {params['reused_blocks']} of {_count(params['prompt_blocks'], 'block')}."
    else:
        first = f"Reused {_count(params.get('cached_tokens'), 'token')} of {params.get('prompt_tokens', 'unknown')}."
    ttft, reference = params.get("ttft_ms"), params.get("reference_ttft_ms")
    if not isinstance(ttft, int | float):
        return first
    if not isinstance(reference, int | float):
        return f"{first} First token after {_time(ttft)}."
    if ttft >= reference:
        return f"{first} First token after {_time(ttft)}; a cold request of about this length took {_time(reference)}."
    return f"{first} First token after {_time(ttft)} instead of {_time(reference)}."


def _computed_sentence(params: Params) -> str | None:
    computed, prompt = params.get("computed_tokens"), params.get("prompt_tokens")
    if not isinstance(computed, int) or not isinstance(prompt, int):
        return None
    return f"{computed} of {_count(prompt, 'token')} {'was' if computed == 1 else 'were'} computed."


def _loss_sentence(params: Params) -> str | None:
    loss = params.get("loss")
    if loss == "evicted":
        return f"Block {params['block']} was resident before, and was evicted{_earlier(params)}."
    if loss == "reset":
        return f"The rest was resident until the cache was emptied{_earlier(params)}."
    if loss == "unexplained":
        return f"Block {params['block']} seemed to be resident too, but the server didn't reuse it."
    if loss == "diverges":
        return _departure(params)
    return None


def _departure(params: Params) -> str:
    shared = _count(params["shared_tokens"], "token")
    if params.get("token") is None:
        return f"All {shared} stood in an earlier prompt."
    where = f"token {params['token']}, in block {params['block']}"
    if params.get("ends"):
        return f"The nearest earlier prompt ends after {shared}: new from {where}."
    after = params.get("blocks_after")
    tail = f": {_count(after, 'block')} from there on had to be computed." if isinstance(after, int) else "."
    return f"Shares {shared} with the nearest known prompt, then differs at {where}{tail}"


def _first_seen(params: Params) -> Words:
    text = f"Seen for the first time: all {_count(params.get('prompt_tokens'), 'token')} were computed."
    shared, size = params.get("shared_tokens"), params.get("block_size")
    if isinstance(shared, int) and shared > 0 and isinstance(size, int):
        return text, (
            f"It shares {_count(shared, 'token')} with the nearest known prompt, less than one block of {size}. "
            "Send it again to reuse it."
        )
    return text, "Send it again to reuse it."


def _too_short(params: Params) -> Words:
    size = params.get("block_size")
    shared, prompt = params.get("shared_tokens"), params.get("prompt_tokens")
    if isinstance(shared, int):
        text = f"Shares {_count(shared, 'token')} with the nearest known prompt, less than one block of {size} tokens."
        return text, "Only full blocks are reused: the constant part must fill at least one."
    text = f"The prompt has {_count(prompt, 'token')}: too short to reuse a block of {size} tokens."
    return text, "Only full blocks are cached, and the last token is always computed anew."


def _diverges(params: Params) -> Words:
    return _departure(params), "A prefix is reused only up to the first token that differs. Put what changes last."


def _evicted(params: Params) -> Words:
    return (
        f"Its prefix was resident before, and was evicted{_earlier(params)}.",
        "The pool was full, and the blocks unused for longest had to go.",
    )


def _reset(params: Params) -> Words:
    how = "the server restarted" if params.get("reason") == "restarted" else "the cache was emptied"
    return f"Its prefix was resident until {how}{_earlier(params)}.", None


def _other_salt(params: Params) -> Words:
    text = "The same tokens are cached, but not under this request's cache salt."
    if not params.get("salted"):
        text = "The same tokens are cached, but under a cache salt, and this request has none."
    return text, "Blocks are shared only between requests with the same salt."


def _other_adapter(params: Params) -> Words:
    adapter = params.get("adapter")
    whose = f"for the adapter {adapter}" if adapter else "for the base model"
    return f"The same tokens are cached, but {whose}.", "Blocks are shared only within one adapter."


def _other_image(params: Params) -> Words:
    return "The same tokens are cached, but with other images or embeddings.", None


def _cache_off(params: Params) -> Words:
    return "Prefix caching is off on this server.", "Start vLLM without --no-enable-prefix-caching."


def _lookup_skipped(params: Params) -> Words:
    text = "The cache lookup was skipped, because the request asks for log probabilities of its prompt."
    return text, _computed_sentence(params)


def _inconsistent(params: Params) -> Words:
    text = (
        f"The server reports {params.get('cached_tokens')} cached of {params.get('prompt_tokens')} prompt tokens, "
        "which can't be."
    )
    return text, "The figures are shown as they came, and left out of every rate."


def _unexplained(params: Params) -> Words:
    text = "Nothing was reused."
    reason = params.get("reason")
    if reason == "seemed_resident":
        return text, "Its first block seemed to be resident when it was sent: the server says otherwise."
    if reason == "no_events":
        return text, "Why can't be known without KV events: start vLLM with --kv-events-config."
    if reason == "sequences":
        return text, _MISSING["sequences"]
    if reason == "mismatch":
        return text, (
            f"Why can't be known: the token ids at hand aren't the server's ({params.get('found_tokens')} against "
            f"{params.get('prompt_tokens')})."
        )
    return text, "Why can't be known without the prompt's token ids."


_MISSING = {
    "usage": (
        "The response carried no usage. Ask for it with stream_options.include_usage, or let the dashboard: "
        "--mode enrich."
    ),
    "details": (
        "This server does not report cached tokens per request; start vLLM with --enable-prompt-tokens-details."
    ),
    "details_here": (
        "The server left out the cached tokens of this request, although it reports them for others: probably 0."
    ),
    "sequences": "Several sequences in one call can't be told apart.",
}


def _unknown(params: Params) -> Words:
    return "How much was reused is not known.", _MISSING[str(params["missing"])]


_OUTCOMES = {
    "client_gone": "The client closed the connection before the answer was complete.",
    "http_error": "The server refused the request.",
    "stream_error": "The server reported an error within the stream.",
    "empty": "The server ended the answer without content.",
    "truncated": "The answer broke off before its end.",
    "timed_out": "The server didn't answer in time.",
    "server_gone": "The connection to the server was lost.",
}


def _failed(params: Params) -> Words:
    outcome, status = str(params.get("outcome")), params.get("status")
    text = _OUTCOMES.get(outcome, "The request failed.")
    if outcome == "http_error" and status is not None:
        text = f"The server refused the request with status {status}."
    error = params.get("error")
    return text, str(error) if error else None


CODES: dict[str, Callable[[Params], Words]] = {
    "reused": _reused,
    "full_hit": _full_hit,
    "first_seen": _first_seen,
    "too_short": _too_short,
    "diverges": _diverges,
    "evicted": _evicted,
    "reset": _reset,
    "other_salt": _other_salt,
    "other_adapter": _other_adapter,
    "other_image": _other_image,
    "cache_off": _cache_off,
    "lookup_skipped": _lookup_skipped,
    "inconsistent": _inconsistent,
    "unexplained": _unexplained,
    "unknown": _unknown,
    "failed": _failed,
}
"""Every code, and what words it."""


def _count(number: int | float | str | None, noun: str) -> str:
    if number is None:
        return f"an unknown number of {noun}s"
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _time(ms: int | float) -> str:
    if ms < 10:
        return f"{ms:.1f} ms"
    return f"{ms:.0f} ms" if ms < 10_000 else f"{ms / 1000:.1f} s"


def _earlier(params: Params) -> str:
    """How long before the send; nothing where only the order is known."""
    seconds = params.get("seconds")
    if not isinstance(seconds, int | float):
        return ""
    if seconds < 1:
        return " less than a second earlier"
    return f" {seconds:.0f} s earlier" if seconds < 120 else f" {seconds / 60:.0f} min earlier"
