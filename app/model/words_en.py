"""What a cause is called in English: a sentence with its numbers, and a second, smaller one with what to do.

Only wording; every number may be missing. Counting in sentences starts at 1. Imports nothing but `words`.
"""

from collections.abc import Callable

from .words import Params, Remarks, Words, number, whole

REMARKS = Remarks(
    inferred="Inferred from KV events: the server didn't report it.",
    by_router="As a router in front of the servers reported it: of a split into prefill and decode nodes, it may be "
    "the decode node's.",
)


def _reused(params: Params) -> Words:
    return _reuse_sentence(params), _join(_loss(params) or _computed_sentence(params), _speed(params))


def _full_hit(params: Params) -> Words:
    computed = whole(params, "computed_tokens")
    counted = f": {_count(computed, 'token')} computed, since" if computed is not None else ";"
    why = f"All that can be reused was{counted} only full blocks are cached."
    return _reuse_sentence(params), _join(why, _speed(params))


def _exact_multiple(params: Params) -> Words:
    size, prompt = whole(params, "block_size"), whole(params, "prompt_tokens")
    computed = whole(params, "computed_tokens")
    if not whole(params, "reused_blocks"):
        text = f"The prompt fills exactly one block of {_some(size)} tokens, which is cached, and can't be reused."
        return text, "The last token is always computed anew, and its block with it. One token more, and it is reused."
    counted = f": {_count(computed, 'token')} computed, since" if computed is not None else ";"
    why = f"All that can be reused was{counted} the last token is always computed anew, and its block with it."
    more = f"The {_some(prompt)} tokens are an exact multiple of the block of {_some(size)}."
    return _reuse_sentence(params), _join(why, more, _speed(params))


def _reuse_sentence(params: Params) -> str:
    reused, blocks = whole(params, "reused_blocks"), whole(params, "prompt_blocks")
    if reused is not None and blocks is not None:
        first = f"Reused {reused} of {_count(blocks, 'block')}."
    else:
        first = f"Reused {_count(params.get('cached_tokens'), 'token')} of {_some(params.get('prompt_tokens'))}."
    ttft, reference = number(params, "ttft_ms"), number(params, "reference_ttft_ms")
    if ttft is None:
        return first
    own = number(params, "engine_ttft_ms")
    clock = f" ({_time(own)} by the server's own clock)" if own is not None else ""
    if reference is None:
        return f"{first} First token after {_time(ttft)}{clock}."
    if ttft >= reference:
        cold = f"; a cold request of about this length took {_time(reference)}."
        return f"{first} First token after {_time(ttft)}{clock}{cold}"
    return f"{first} First token after {_time(ttft)}{clock} instead of {_time(reference)}."


def _computed_sentence(params: Params) -> str | None:
    computed, prompt = whole(params, "computed_tokens"), whole(params, "prompt_tokens")
    if computed is None or prompt is None:
        return None
    return f"{computed} of {_count(prompt, 'token')} {'was' if computed == 1 else 'were'} computed."


def _speed(params: Params) -> str | None:
    """What reuse saved, and why it may not be felt."""
    said: str | None = None
    saved, low, high = (number(params, name) for name in ("saved_ms", "saved_low_ms", "saved_high_ms"))
    if saved is not None and low is not None and high is not None:
        said = f"Saved about {_time(saved)} ({_plain(low)} to {_plain(high)})."
    reason = params.get("not_faster")
    if reason == "queue":
        return _join(
            said, f"Not faster all the same: it waited {_time(number(params, 'queue_ms'))} in the server's queue."
        )
    if reason == "busy":
        return _join(said, "Not faster all the same: other requests ran at the same time.")
    if reason == "tiny":
        return _join(said, "Not faster: what was reused is too little to be felt.")
    share = number(params, "decode_share")
    if share is not None:
        return _join(said, f"{share * 100:.0f} % of the whole time went into the answer, which reuse doesn't shorten.")
    return said


def _loss(params: Params) -> str | None:
    """Why the rest of a prompt wasn't reused, in a sentence."""
    code = params.get("loss")
    found = LOSSES.get(code) if isinstance(code, str) else None
    return found(params) if found is not None else None


def _rest_evicted(params: Params) -> str:
    how = f"evicted{_earlier(params)}{_evictors(params)}{_cost(params)}"
    return f"Block {_some(params.get('block'))} was resident before, and was {how}."


def _rest_reset(params: Params) -> str:
    return f"The rest was resident until {_emptied(params)}{_earlier(params)}."


def _rest_unexplained(params: Params) -> str:
    return f"Block {_some(params.get('block'))} seemed to be resident too, but the server didn't reuse it."


def _departure(params: Params) -> str:
    shared = whole(params, "shared_tokens")
    if shared is None:
        return "It departs from the nearest known prompt."
    counted, token = _count(shared, "token"), whole(params, "token")
    if token is None:
        return f"All {counted} stood in an earlier prompt."
    where = f"token {token}, in block {_some(params.get('block'))}"
    if params.get("ends"):
        return f"The nearest earlier prompt ends after {counted}: new from {where}."
    after = whole(params, "blocks_after")
    tail = f": {_count(after, 'block')} from there on had to be computed." if after is not None else "."
    return f"Shares {counted} with the nearest known prompt, then differs at {where}{tail}"


def _straddle(params: Params) -> str:
    straddling = whole(params, "straddling_tokens")
    lost = f"the {_count(straddling, 'token')} in it" if straddling is not None else "those in it"
    return f"{_departure(params)} That block wasn't full, so {lost} had to be computed again."


def _moved(params: Params) -> str:
    constant, token = whole(params, "constant_tokens"), whole(params, "token")
    span = whole(params, "span_tokens")
    changed = (
        f"{_count(span, 'token')} from token {_some(token)} on" if span else f"Something before token {_some(token)}"
    )
    return (
        f"{changed} changed, and {_count(constant, 'token')} after that are the same as before: they were computed "
        "again because of what stands before them."
    )


def _first_seen(params: Params) -> Words:
    text = f"Seen for the first time: all {_count(params.get('prompt_tokens'), 'token')} were computed."
    shared, size = whole(params, "shared_tokens"), whole(params, "block_size")
    if shared and size is not None:
        return text, (
            f"It shares {_count(shared, 'token')} with the nearest known prompt, less than one block of {size}. "
            "Send it again to reuse it."
        )
    return text, "Send it again to reuse it."


def _too_short(params: Params) -> Words:
    size, shared = _some(params.get("block_size")), whole(params, "shared_tokens")
    if shared is not None:
        text = f"Shares {_count(shared, 'token')} with the nearest known prompt, less than one block of {size} tokens."
        return text, "Only full blocks are reused: the constant part must fill at least one."
    text = (
        f"The prompt has {_count(params.get('prompt_tokens'), 'token')}: too short to reuse a block of {size} tokens."
    )
    return text, "Only full blocks are cached, and the last token is always computed anew."


def _diverges(params: Params) -> Words:
    return _departure(params), "A prefix is reused only up to the first token that differs. Put what changes last."


def _variable_first(params: Params) -> Words:
    return _moved(params), "Put what changes behind what stays: a prefix is reused only up to the first difference."


def _alignment(params: Params) -> Words:
    return _straddle(params), "Only full blocks are cached; a smaller block size loses less at each end."


def _evicted(params: Params) -> Words:
    return (
        f"Its prefix was resident before, and was evicted{_earlier(params)}{_evictors(params)}{_cost(params)}.",
        "The pool was full, and the blocks unused for longest had to go. More KV memory, or fewer distinct prompts at "
        "once, keeps it.",
    )


def _reset(params: Params) -> Words:
    return f"Its prefix was resident until {_emptied(params)}{_earlier(params)}.", "It is reused again from now on."


def _other_salt(params: Params) -> Words:
    text = "The same tokens are cached, but not under this request's cache salt."
    if not params.get("salted"):
        text = "The same tokens are cached, but under a cache salt, and this request has none."
    return text, "Blocks are shared only between requests with the same salt."


def _other_adapter(params: Params) -> Words:
    adapter = params.get("adapter")
    whose = f"for the adapter {adapter}" if adapter else "for the base model"
    return f"The same tokens are cached, but {whose}.", "Blocks are shared only within one adapter."


def _other_model(params: Params) -> Words:
    model = params.get("other_model")
    whose = f"for the model {model}" if model else "for another model"
    return f"The same tokens were computed before, but {whose}.", "Blocks are shared only within one model."


def _other_image(params: Params) -> Words:
    return (
        "The same tokens are cached, but with other images or embeddings.",
        "Put images behind the text that stays the same.",
    )


def _other_rank(params: Params) -> Words:
    other, rank = params.get("other_rank"), params.get("rank")
    text = f"Its prefix is resident on rank {_some(other)}, but rank {_some(rank)} served the request."
    return (
        text,
        "Each data-parallel rank has a cache of its own: route by prefix or session, or let each rank warm up once.",
    )


def _other_server(params: Params) -> Words:
    text = f"Its prefix is resident on another server, {_some(params.get('other_server'))}."
    return text, "Blocks are never shared between processes: route by prefix or session."


def _still_computing(params: Params) -> Words:
    by = params.get("by")
    whose = f"by request {by}, which ran" if by else "by a request that ran"
    text = f"Its prefix was still being computed {whose} at the same time."
    return text, "Send the first request of a burst alone, and the others once its first token is there."


def _coarse_alignment(params: Params) -> Words:
    unit, dropped = whole(params, "unit_tokens"), whole(params, "dropped_blocks")
    matched = whole(params, "matched_tokens")
    found = f"{_count(matched, 'token')} match what is cached" if matched is not None else "More matches what is cached"
    rules = []
    if dropped:
        rules.append(f"drops the last {_count(dropped, 'matched block')}")
    if unit is not None and unit != whole(params, "block_size"):
        rules.append(f"reuses multiples of {unit} tokens only")
    habit = f"this server {' and '.join(rules)}" if rules else "this server reuses less than matches"
    return f"{found}, but {habit}.", "Learned from its answers. Speculative decoding and hybrid models do so."


def _cache_off(params: Params) -> Words:
    return "Prefix caching is off on this server.", "Start vLLM without --no-enable-prefix-caching."


def _lookup_skipped(params: Params) -> Words:
    text = "The cache lookup was skipped, because the request asks for log probabilities of its prompt."
    return text, _join(_computed_sentence(params), "Ask without prompt_logprobs to reuse it.")


def _inconsistent(params: Params) -> Words:
    text = (
        f"The server reports {_some(params.get('cached_tokens'))} cached of {_some(params.get('prompt_tokens'))} "
        "prompt tokens, which can't be."
    )
    return text, "The figures are shown as they came, and left out of every rate."


def _unexplained(params: Params) -> Words:
    text, reason = "Nothing was reused.", params.get("reason")
    if reason == "seemed_resident":
        return text, "Its first block seemed to be resident when it was sent: the server says otherwise."
    if reason == "no_events":
        return text, "Why can't be known without KV events: start vLLM with --kv-events-config."
    if reason == "sequences":
        return text, MISSING["sequences"]
    if reason == "mismatch":
        return text, (
            "Why can't be known: the token ids at hand aren't the server's "
            f"({_some(params.get('found_tokens'))} against {_some(params.get('prompt_tokens'))})."
        )
    return text, "Why can't be known without the prompt's token ids."


MISSING = {
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
    return "How much was reused is not known.", MISSING.get(str(params.get("missing")), MISSING["details"])


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
    error, closed = params.get("error"), number(params, "closed_after_ms")
    if error is None and closed is not None:
        return text, (
            f"The server's connection was closed {_time(closed)} after the request was sent; "
            "when the server stopped, only its own running requests tell."
        )
    return text, str(error) if error else None


WORDS: dict[str, Callable[[Params], Words]] = {
    "reused": _reused,
    "full_hit": _full_hit,
    "exact_multiple": _exact_multiple,
    "first_seen": _first_seen,
    "too_short": _too_short,
    "diverges": _diverges,
    "variable_first": _variable_first,
    "alignment": _alignment,
    "evicted": _evicted,
    "reset": _reset,
    "other_salt": _other_salt,
    "other_adapter": _other_adapter,
    "other_model": _other_model,
    "other_image": _other_image,
    "other_rank": _other_rank,
    "other_server": _other_server,
    "still_computing": _still_computing,
    "coarse_alignment": _coarse_alignment,
    "cache_off": _cache_off,
    "lookup_skipped": _lookup_skipped,
    "inconsistent": _inconsistent,
    "unexplained": _unexplained,
    "unknown": _unknown,
    "failed": _failed,
}
"""Every code, and what words it."""

LOSSES: dict[str, Callable[[Params], str]] = {
    "evicted": _rest_evicted,
    "reset": _rest_reset,
    "unexplained": _rest_unexplained,
    "diverges": _departure,
    "first_seen": _departure,
    "too_short": _departure,
    "alignment": _straddle,
    "variable_first": _moved,
    "still_computing": lambda params: _still_computing(params)[0].replace("Its prefix", "The rest"),
    "coarse_alignment": lambda params: _coarse_alignment(params)[0],
    "other_rank": lambda params: _other_rank(params)[0].replace("Its prefix", "More of it"),
    "other_server": lambda params: _other_server(params)[0].replace("Its prefix", "More of it"),
    "other_salt": lambda params: _other_salt(params)[0],
    "other_adapter": lambda params: _other_adapter(params)[0],
    "other_image": lambda params: _other_image(params)[0],
}
"""The causes that may end a hit early, and how that is said beside what was reused."""


def _emptied(params: Params) -> str:
    return "the server restarted" if params.get("reason") == "restarted" else "the cache was emptied"


def _evictors(params: Params) -> str:
    by, count = params.get("by"), whole(params, "by_count") or 0
    if not by:
        return ""
    shown = str(by).count(",") + 1
    more = f" and {_count(count - shown, 'other')}" if count > shown else ""
    return f" to make room for {by}{more}"


def _cost(params: Params) -> str:
    tokens, ms = whole(params, "lost_tokens"), number(params, "lost_ms")
    if tokens is None:
        return ""
    cost = f", about {_time(ms)}" if ms is not None else ""
    return f": {_count(tokens, 'token')} had to be computed again{cost}"


def _join(*sentences: str | None) -> str | None:
    return " ".join(sentence for sentence in sentences if sentence) or None


def _some(value: int | float | str | None) -> int | float | str:
    return "unknown" if value is None else value


def _count(value: int | float | str | None, noun: str) -> str:
    if value is None:
        return f"an unknown number of {noun}s"
    return f"{value} {noun}" if value == 1 else f"{value} {noun}s"


def _time(ms: float | None) -> str:
    if ms is None:
        return "some time"
    return f"{_plain(ms)} ms" if ms < 10_000 else f"{ms / 1000:.1f} s"


def _plain(ms: float) -> str:
    return f"{ms:.1f}" if abs(ms) < 10 else f"{ms:.0f}"


def _earlier(params: Params) -> str:
    """How long before the send; nothing where only the order is known."""
    seconds = number(params, "seconds")
    if seconds is None:
        return ""
    if seconds < 1:
        return " less than a second earlier"
    return f" {seconds:.0f} s earlier" if seconds < 120 else f" {seconds / 60:.0f} min earlier"
