"""Which sentences say a cause: one on what happened, and a smaller one on why, or what to do.

The same in every language; the sentences themselves stand in `words_en` and `words_zh`. Every number may be missing.
Counting in sentences starts at 1. Imports only `language` and `words`.
"""

from collections.abc import Callable

from .language import Teller
from .words import Words

MISSING = ("usage", "details", "details_here", "sequences")
"""Why it isn't known how much was reused: what the response, or the server, doesn't tell."""
OUTCOMES = ("client_gone", "http_error", "stream_error", "empty", "truncated", "timed_out", "server_gone")
"""How a request may fail."""

Word = Callable[[Teller], Words]


def _plain(code: str) -> Word:
    """Of a cause that is always said with the same two sentences."""
    return lambda tell: (tell.say(code), tell.say(f"{code}.detail"))


# --- what was reused ---


def _reused(tell: Teller) -> Words:
    return _reuse(tell), tell.join(_loss(tell) or _computed(tell), _speed(tell))


def _full_hit(tell: Teller) -> Words:
    return _reuse(tell), tell.join(tell.say("full_hit.detail", counted=_counted(tell)), _speed(tell))


def _exact_multiple(tell: Teller) -> Words:
    if not tell.whole("reused_blocks"):
        return tell.say("exact_multiple"), tell.say("exact_multiple.detail")
    why = tell.say("exact_multiple.why", counted=_counted(tell))
    return _reuse(tell), tell.join(why, tell.say("exact_multiple.of"), _speed(tell))


def _counted(tell: Teller) -> str:
    return tell.say("counted" if tell.whole("computed_tokens") is not None else "counted.unknown")


def _reuse(tell: Teller) -> str:
    by_blocks = tell.whole("reused_blocks") is not None and tell.whole("prompt_blocks") is not None
    first = tell.say("reuse.blocks" if by_blocks else "reuse.tokens")
    ttft, reference = tell.number("ttft_ms"), tell.number("reference_ttft_ms")
    if ttft is None:
        return first
    clock = tell.say("reuse.clock") if tell.number("engine_ttft_ms") is not None else ""
    compared = "" if reference is None else ".slower" if ttft >= reference else ".faster"
    return f"{first}{tell.language.joiner}{tell.say(f'reuse.ttft{compared}', clock=clock)}"


def _computed(tell: Teller) -> str | None:
    if tell.whole("computed_tokens") is None or tell.whole("prompt_tokens") is None:
        return None
    return tell.say("computed")


def _speed(tell: Teller) -> str | None:
    """What reuse saved, and why it may not be felt."""
    known = all(tell.number(name) is not None for name in ("saved_ms", "saved_low_ms", "saved_high_ms"))
    saved = tell.say("speed.saved") if known else None
    reason = tell.params.get("not_faster")
    if reason in ("queue", "busy", "tiny"):
        return tell.join(saved, tell.say(f"speed.{reason}"))
    return tell.join(saved, tell.say("speed.decode")) if tell.number("decode_share") is not None else saved


# --- where the prompt departs from what is known ---


def _departure(tell: Teller) -> str:
    if tell.whole("shared_tokens") is None:
        return tell.say("departs")
    if tell.whole("token") is None:
        return tell.say("departs.nowhere")
    where = tell.say("departs.where")
    if tell.has("ends"):
        return tell.say("departs.ends", where=where)
    tail = tell.say("departs.tail" if tell.whole("blocks_after") is not None else "departs.tail.unknown")
    return tell.say("departs.at", where=where, tail=tail)


def _straddle(tell: Teller) -> str:
    lost = tell.say("straddle.lost" if tell.whole("straddling_tokens") is not None else "straddle.lost.unknown")
    return f"{_departure(tell)}{tell.language.joiner}{tell.say('straddle', lost=lost)}"


def _moved(tell: Teller) -> str:
    return tell.say("moved", changed=tell.say("moved.span" if tell.whole("span_tokens") else "moved.something"))


def _first_seen(tell: Teller) -> Words:
    shares = tell.whole("shared_tokens") and tell.whole("block_size") is not None
    return tell.say("first_seen"), tell.say("first_seen.shares" if shares else "first_seen.detail")


def _too_short(tell: Teller) -> Words:
    key = "too_short" if tell.whole("shared_tokens") is None else "too_short.shares"
    return tell.say(key), tell.say(f"{key}.detail")


def _diverges(tell: Teller) -> Words:
    return _departure(tell), tell.say("diverges.detail")


def _variable_first(tell: Teller) -> Words:
    return _moved(tell), tell.say("variable_first.detail")


def _alignment(tell: Teller) -> Words:
    return _straddle(tell), tell.say("alignment.detail")


# --- what the server hasn't got any more, has elsewhere, or leaves ---


def _evicted_as(tell: Teller, key: str) -> str:
    return tell.say(key, when=_when(tell), evictors=_evictors(tell), cost=_cost(tell))


def _evicted(tell: Teller) -> Words:
    return _evicted_as(tell, "evicted"), tell.say("evicted.detail")


def _reset_as(tell: Teller, key: str) -> str:
    restarted = tell.params.get("reason") == "restarted"
    return tell.say(key, when=_when(tell), emptied=tell.say("emptied.restarted" if restarted else "emptied"))


def _reset(tell: Teller) -> Words:
    return _reset_as(tell, "reset"), tell.say("reset.detail")


def _when(tell: Teller) -> str:
    """How long before the send; nothing where only the order is known."""
    seconds = tell.number("seconds")
    if seconds is None:
        return ""
    if seconds < 1:
        return tell.say("when.just")
    if seconds < 120:
        return tell.say("when.seconds", n=f"{seconds:.0f}")
    return tell.say("when.minutes", n=f"{seconds / 60:.0f}")


def _evictors(tell: Teller) -> str:
    by = tell.params.get("by")
    if not by:
        return ""
    unnamed = (tell.whole("by_count") or 0) - (str(by).count(",") + 1)
    more = tell.language.say("evictors.more", {"others": unnamed}) if unnamed > 0 else ""
    return tell.say("evictors", more=more)


def _cost(tell: Teller) -> str:
    if tell.whole("lost_tokens") is None:
        return ""
    return tell.say("cost", time=tell.say("cost.time") if tell.number("lost_ms") is not None else "")


def _still_computing_as(tell: Teller, key: str) -> str:
    return tell.say(key, whose=tell.say("computing.by" if tell.has("by") else "computing.by.unknown"))


def _still_computing(tell: Teller) -> Words:
    return _still_computing_as(tell, "still_computing"), tell.say("still_computing.detail")


def _other_salt(tell: Teller) -> Words:
    return tell.say("other_salt" if tell.has("salted") else "other_salt.unsalted"), tell.say("other_salt.detail")


def _other_adapter(tell: Teller) -> Words:
    return tell.say("other_adapter" if tell.has("adapter") else "other_adapter.base"), tell.say("other_adapter.detail")


def _other_model(tell: Teller) -> Words:
    known = tell.has("other_model")
    return tell.say("other_model" if known else "other_model.unknown"), tell.say("other_model.detail")


def _coarse_alignment(tell: Teller) -> Words:
    found = tell.say("coarse.matched" if tell.whole("matched_tokens") is not None else "coarse.matched.unknown")
    rules = [tell.say("coarse.drops")] if tell.whole("dropped_blocks") else []
    unit = tell.whole("unit_tokens")
    if unit is not None and unit != tell.whole("block_size"):
        rules.append(tell.say("coarse.unit"))
    habit = tell.say("coarse.and").join(rules) or tell.say("coarse.less")
    return tell.say("coarse_alignment", found=found, habit=habit), tell.say("coarse_alignment.detail")


# --- what isn't known, or went wrong ---


def _lookup_skipped(tell: Teller) -> Words:
    return tell.say("lookup_skipped"), tell.join(_computed(tell), tell.say("lookup_skipped.detail"))


def _unexplained(tell: Teller) -> Words:
    text, reason = tell.say("unexplained"), tell.params.get("reason")
    if reason == "sequences":
        return text, tell.say("missing.sequences")
    known = reason in ("seemed_resident", "no_events", "mismatch")
    return text, tell.say(f"unexplained.{reason}" if known else "unexplained.no_tokens")


def _unknown(tell: Teller) -> Words:
    missing = tell.params.get("missing")
    return tell.say("unknown"), tell.say(f"missing.{missing if missing in MISSING else 'details'}")


def _failed(tell: Teller) -> Words:
    outcome, error = tell.params.get("outcome"), tell.params.get("error")
    text = tell.say(f"failed.{outcome}" if outcome in OUTCOMES else "failed")
    if outcome == "http_error" and tell.params.get("status") is not None:
        text = tell.say("failed.status")
    if error is None and tell.number("closed_after_ms") is not None:
        return text, tell.say("failed.closed")
    return text, str(error) if error else None


WORDS: dict[str, Word] = {
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
    "other_image": _plain("other_image"),
    "other_rank": _plain("other_rank"),
    "other_server": _plain("other_server"),
    "still_computing": _still_computing,
    "coarse_alignment": _coarse_alignment,
    "cache_off": _plain("cache_off"),
    "lookup_skipped": _lookup_skipped,
    "inconsistent": _plain("inconsistent"),
    "unexplained": _unexplained,
    "unknown": _unknown,
    "failed": _failed,
}
"""Every code, and what words it."""

LOSSES: dict[str, Callable[[Teller], str]] = {
    "evicted": lambda tell: _evicted_as(tell, "rest.evicted"),
    "reset": lambda tell: _reset_as(tell, "rest.reset"),
    "unexplained": lambda tell: tell.say("rest.unexplained"),
    "diverges": _departure,
    "first_seen": _departure,
    "too_short": _departure,
    "alignment": _straddle,
    "variable_first": _moved,
    "still_computing": lambda tell: _still_computing_as(tell, "rest.still_computing"),
    "coarse_alignment": lambda tell: _coarse_alignment(tell)[0],
    "other_rank": lambda tell: tell.say("rest.other_rank"),
    "other_server": lambda tell: tell.say("rest.other_server"),
    "other_salt": lambda tell: _other_salt(tell)[0],
    "other_adapter": lambda tell: _other_adapter(tell)[0],
    "other_image": lambda tell: tell.say("other_image"),
}
"""The causes that may end a hit early, and how that is said beside what was reused."""


def _loss(tell: Teller) -> str | None:
    """Why the rest of a prompt wasn't reused, in a sentence."""
    code = tell.params.get("loss")
    found = LOSSES.get(code) if isinstance(code, str) else None
    return found(tell) if found is not None else None
