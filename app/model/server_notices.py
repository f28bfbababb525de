"""What a person should know of a server beside its figures: readings that can't both be, and why a rate is zero.

Imports only `events`.
"""

from dataclasses import dataclass

from ..events import Basis, Notice, RateReading, ReadingsDifference

STORM_CLEARS = 50
"""Clears within ten seconds that no person and no trainer sends."""
LATENCY_RATIO = 3.0
"""A repeated prompt that is this much faster was taken from a cache, whatever the counters say."""
ALTERNATING_S = 60.0
"""Exporters that alternated this long ago, and not since, alternate no longer."""


@dataclass(slots=True)
class ServerSigns:
    """What was noticed of one server, and isn't a figure of its record."""

    faster_repeat_ms: tuple[float, float] | None = None
    """(first, again): times to first token of equal prompts of which nobody says what was cached."""
    storm_cached_tokens: int | None = None
    """Cached tokens that a response reported although the cache had just been emptied."""
    shared_tokens: int | None = None
    """The longest prefix that two recent prompts share; None where fewer than two are known."""
    surveyed_s: float = -1e9
    """When prompts were last compared."""
    alternated_s: float | None = None
    """When exporters were last seen to alternate."""

    def marked(self) -> None:
        """The window since the mark begins anew, and what was compared with its counters goes."""
        self.faster_repeat_ms = None

    def note_alternation(self, at_s: float, *, found: bool) -> None:
        """A scrape was taken; `found`: it showed exporters that alternate."""
        if found:
            self.alternated_s = at_s
        elif self.alternated_s is not None and at_s - self.alternated_s > ALTERNATING_S:
            self.alternated_s = None


@dataclass(frozen=True, slots=True)
class NoticeFacts:
    """The figures that notices are made from."""

    rates: tuple[RateReading, ...]
    differences: tuple[ReadingsDifference, ...]
    block_size: int | None
    scheduler_unit: int | None
    recent_clears: int
    external_hit_tokens: float | None
    other_tiers: bool
    """Blocks on other tiers than the GPU were announced."""
    events_known: bool
    caching: bool | None


ALTERNATING = (
    "Counters jump back and forth: several API-server processes answer in turn. Intervals are skipped; "
    "set PROMETHEUS_MULTIPROC_DIR for them, or scrape one process."
)


def find_notices(signs: ServerSigns, facts: NoticeFacts) -> tuple[Notice, ...]:
    """Every notice that holds now."""
    found = (
        _contradiction(signs, facts),
        _storm(signs, facts),
        _zero(signs, facts),
        _tries(facts),
        Notice("exporters_alternate", ALTERNATING) if signs.alternated_s is not None else None,
        _connector(facts),
        _unit(facts),
    )
    return tuple(notice for notice in found if notice is not None)


def _reading(facts: NoticeFacts, basis: Basis) -> RateReading | None:
    return next((r for r in facts.rates if (r.window, r.basis) == ("since_mark", basis)), None)


def _contradiction(signs: ServerSigns, facts: NoticeFacts) -> Notice | None:
    counted = _reading(facts, "counter")
    if signs.faster_repeat_ms is None or counted is None or counted.hit_tokens or not counted.query_tokens:
        return None
    cold_ms, warm_ms = signs.faster_repeat_ms
    ratio = round(cold_ms / warm_ms, 1)
    return Notice(
        "counter_contradicts_latency",
        f"The counters say that nothing hit, but a repeated prompt had its first token {ratio:g} times sooner: their "
        "0 is not to be relied on.",
        {
            "hit_tokens": counted.hit_tokens, "query_tokens": counted.query_tokens,
            "cold_ttft_ms": round(cold_ms, 3), "warm_ttft_ms": round(warm_ms, 3), "ttft_ratio": ratio,
        },
    )  # fmt: skip


def _storm(signs: ServerSigns, facts: NoticeFacts) -> Notice | None:
    if facts.recent_clears < STORM_CLEARS or signs.storm_cached_tokens is None:
        return None
    return Notice(
        "clear_storm",
        f"The server says again and again that its cache was emptied ({facts.recent_clears} times in the last 10 s), "
        f"but {signs.storm_cached_tokens} tokens were cached right after: the block picture can't be relied on.",
        {"clears": facts.recent_clears, "seconds": 10, "cached_tokens": signs.storm_cached_tokens},
    )


def _zero(signs: ServerSigns, facts: NoticeFacts) -> Notice | None:
    """Why nothing hits, where the prompts themselves tell."""
    size, shared = facts.block_size, signs.shared_tokens
    known = [reading for basis in ("counter", "usage") if (reading := _reading(facts, basis)) is not None]
    looked_up = [reading for reading in known if reading.query_tokens]
    if not looked_up or any(reading.hit_tokens for reading in looked_up) or facts.caching is False:
        return None
    if size is None or shared is None or shared >= size:
        return None
    if shared == 0:
        text = "No two of the last prompts begin with the same token: there is nothing to reuse."
        return Notice("no_shared_prefix", text, {"block_size": size})
    return Notice(
        "prefix_below_block",
        f"The longest prefix that two of the last prompts share has {shared} tokens, less than one block of {size}: "
        "nothing can be reused.",
        {"shared_tokens": shared, "block_size": size},
    )


def _tries(facts: NoticeFacts) -> Notice | None:
    if not any("retries_counted" in each.causes for each in facts.differences):
        return None
    counted, used = _reading(facts, "counter"), _reading(facts, "usage")
    if counted is None:
        return None
    return Notice(
        "tries_counted",
        "The counters count a prompt's lookup again at each try: what was saved is taken from the responses' usage.",
        {"query_tokens": counted.query_tokens, "prompt_tokens": None if used is None else used.query_tokens},
    )


def _connector(facts: NoticeFacts) -> Notice | None:
    if not facts.external_hit_tokens or facts.other_tiers or not facts.events_known:
        return None
    return Notice(
        "connector_silent",
        "A KV connector gave tokens, but no events of its blocks come: other tiers than the GPU can't be shown.",
        {"external_hit_tokens": int(facts.external_hit_tokens)},
    )


def _unit(facts: NoticeFacts) -> Notice | None:
    if None in (facts.scheduler_unit, facts.block_size) or facts.scheduler_unit == facts.block_size:
        return None
    return Notice(
        "unit_is_no_block",
        f"The server's configuration names a scheduler unit of {facts.scheduler_unit} tokens, its events blocks of "
        f"{facts.block_size}: blocks are counted as its events have them.",
        {"scheduler_unit": facts.scheduler_unit, "block_size": facts.block_size},
    )
