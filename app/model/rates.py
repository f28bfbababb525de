"""Hit rates: five named windows, three readings kept apart, each with its numerator and denominator in tokens.

Counters are pooled over a server's engines before anything is divided. Nothing looked up gives no ratio, not 0.
Imports only `events` and `observations`.
"""

from collections import deque
from dataclasses import dataclass, replace
from typing import Literal

from ..events import Basis, RateReading
from ..observations import EngineSample

MINUTE_S = 60.0
LAST_REQUESTS = 1000
CONFIRMED_BY = 3
"""Readings that rise after a fall without an interruption, from which it was a restart. Three exporters that answer in
turn show one or two."""
CLOCKS_APART_S = 30.0
"""How far the clocks of a server and of the dashboard may be apart."""
Window = Literal["last_request", "since_mark", "last_minute", "last_1000_requests", "lifetime"]


@dataclass(frozen=True, slots=True)
class CounterStep:
    """What one reading of a pair of counters adds, and what it says of its exporter."""

    query_tokens: float
    hit_tokens: float
    finding: Literal["ok", "first", "fell", "reset", "restarted", "inconsistent"]


class CounterPair:
    """(queries, hits) of one engine, followed over restarts.

    A fall is one of two things: the process restarted and counts from 0, or scrapes land on several processes in turn.
    What comes next tells: another fall, or a reading at the old level or above, means several processes, and the
    interval is skipped; `CONFIRMED_BY` readings that only rise mean that the counters were reset, and what they counted
    since is added. Where the server was away in between, a fall is a restart at once.
    """

    def __init__(self) -> None:
        self.interrupted = False
        """The server was away since the last reading."""
        self._level: tuple[float, float] | None = None
        self._before_fall: tuple[float, float] | None = None
        """The level before a fall that isn't explained yet."""
        self._rises = 0

    def feed(self, query_tokens: float, hit_tokens: float) -> CounterStep:
        """Takes a reading in."""
        now = (query_tokens, hit_tokens)
        interrupted, self.interrupted = self.interrupted, False
        level, self._level = self._level, now
        if level is None:
            return CounterStep(0, 0, "first")
        fell = query_tokens < level[0] or hit_tokens < level[1]
        if fell and interrupted:
            self._before_fall = None
            return CounterStep(query_tokens, hit_tokens, "restarted")
        if self._before_fall is not None:
            return self._explain(fell, query_tokens, hit_tokens)
        if fell:
            self._before_fall, self._rises = level, 0
            return CounterStep(0, 0, "fell")
        return CounterStep(query_tokens - level[0], hit_tokens - level[1], "ok")

    def _explain(self, fell: bool, query_tokens: float, hit_tokens: float) -> CounterStep:
        """A reading after a fall that isn't explained yet."""
        before = self._before_fall
        if before is not None and query_tokens >= before[0]:
            self._before_fall = None
            return CounterStep(0, 0, "inconsistent")
        if fell:
            self._rises = 0
            return CounterStep(0, 0, "inconsistent")
        self._rises += 1
        if self._rises < CONFIRMED_BY:
            return CounterStep(0, 0, "fell")
        self._before_fall = None
        return CounterStep(query_tokens, hit_tokens, "reset")


@dataclass(slots=True)
class Sum:
    """Tokens that hit of tokens looked up, over some requests."""

    hit: int = 0
    query: int = 0
    requests: int = 0

    def add(self, hit: int, query: int, sign: int = 1) -> None:
        """Adds a request, or takes it out again."""
        self.hit += sign * hit
        self.query += sign * query
        self.requests += sign

    def reading(self, window: Window, basis: Basis, since_ms: float | None = None) -> RateReading:
        """As a reading."""
        return RateReading(window, basis, self.hit, self.query, ratio(self.hit, self.query), self.requests, since_ms)


def ratio(hit: float, query: float) -> float | None:
    """hit / query; None where nothing was looked up."""
    return hit / query if query > 0 else None


class RequestWindows:
    """One reading's sums over requests. An entry is (at_s, hit tokens, prompt tokens)."""

    def __init__(self, basis: Basis) -> None:
        self._basis = basis
        self._marked = Sum()
        self._minute = Sum()
        self._recent = Sum()
        self._minute_entries: deque[tuple[float, int, int]] = deque()
        self._recent_entries: deque[tuple[int, int]] = deque()
        self._last: tuple[int, int] | None = None
        self._any = False

    def ended(self, at_s: float, hit: int | None, query: int | None) -> None:
        """A request ended that counts; None where this reading doesn't know."""
        if hit is None or query is None:
            self._last = None
            return
        self._any = True
        self._last = (hit, query)
        self._marked.add(hit, query)
        self._minute.add(hit, query)
        self._recent.add(hit, query)
        self._minute_entries.append((at_s, hit, query))
        self._recent_entries.append((hit, query))
        if len(self._recent_entries) > LAST_REQUESTS:
            self._recent.add(*self._recent_entries.popleft(), sign=-1)

    def came_late(self, at_s: float, hit: int, query: int, *, marked: bool, last: bool) -> None:
        """What this reading didn't know of a request when that ended, at `at_s`. marked: it ended since the mark; last:
        no other ended since."""
        known = self._last
        marked_sum = replace(self._marked)
        self.ended(at_s, hit, query)
        if not marked:
            self._marked = marked_sum
        if not last:
            self._last = known

    def mark(self) -> None:
        """Starts the window since the mark anew."""
        self._marked = Sum()

    def readings(self, at_s: float, mark_ms: float | None) -> list[RateReading]:
        """The windows of this reading, none before the first request."""
        while self._minute_entries and self._minute_entries[0][0] <= at_s - MINUTE_S:
            _, hit, query = self._minute_entries.popleft()
            self._minute.add(hit, query, sign=-1)
        if not self._any:
            return []
        found = []
        if self._last is not None:
            hit, query = self._last
            found.append(RateReading("last_request", self._basis, hit, query, ratio(hit, query), 1))
        found.append(self._marked.reading("since_mark", self._basis, mark_ms))
        found.append(self._minute.reading("last_minute", self._basis))
        found.append(self._recent.reading("last_1000_requests", self._basis))
        return found


class ServerRates:
    """The hit rates of one server."""

    def __init__(self) -> None:
        self._pairs: dict[str, CounterPair] = {}
        self._usage = RequestWindows("usage")
        self._forecast = RequestWindows("inferred")
        self._mark_s: float | None = None
        self._marked = [0.0, 0.0]
        self._minute: deque[tuple[float, float, float]] = deque()
        self._lifetime: tuple[float, float] | None = None
        self._sampled_s: float | None = None
        self._first_sent_s: float | None = None
        self._last_ended_s: float | None = None
        self._created_s: dict[str, float] = {}
        self.skipped_tokens = 0
        """Prompt tokens since the mark of requests whose prompt isn't looked up."""

    @property
    def settled(self) -> bool:
        """Whether counters and requests since the mark can be compared: the window began before the first of them was
        sent, and the counters were read after the last of them had ended."""
        if self._mark_s is None or self._sampled_s is None or self._first_sent_s is None or self._last_ended_s is None:
            return False
        return self._mark_s <= self._first_sent_s and self._last_ended_s < self._sampled_s

    def sampled(self, at_s: float, engines: tuple[EngineSample, ...], wall_offset_ms: float | None = None) -> set[str]:
        """Takes a scrape in. Returns what it found besides growth: "reset", "restarted" (the server was away before
        it, or says that it counts since later), "inconsistent". `wall_offset_ms` turns `at_s` into time of day."""
        findings: set[str] = set()
        query_sum = hit_sum = 0.0
        total = [0.0, 0.0]
        seen = False
        for engine in engines:
            if engine.query_tokens is None or engine.hit_tokens is None:
                continue
            seen = True
            total[0] += engine.query_tokens
            total[1] += engine.hit_tokens
            pair = self._pairs.setdefault(engine.engine, CounterPair())
            pair.interrupted |= self._is_made_anew(engine, wall_offset_ms)
            step = pair.feed(engine.query_tokens, engine.hit_tokens)
            findings.add(step.finding)
            query_sum += step.query_tokens
            hit_sum += step.hit_tokens
        if not seen:
            return set()
        self._lifetime = (total[0], total[1])
        self._sampled_s = at_s
        if self._mark_s is None:
            self._mark_s = at_s
        self._marked[0] += query_sum
        self._marked[1] += hit_sum
        if query_sum or hit_sum:
            self._minute.append((at_s, query_sum, hit_sum))
        return findings & {"reset", "restarted", "inconsistent"}

    def _is_made_anew(self, engine: EngineSample, wall_offset_ms: float | None) -> bool:
        """Whether its counters say that they were made since the scrape before: several exporters that answer in turn
        were all made long before."""
        created_s = engine.counters_created_s
        if created_s is None:
            return False
        before_s, self._created_s[engine.engine] = self._created_s.get(engine.engine), created_s
        if before_s is None or created_s <= before_s or wall_offset_ms is None or self._sampled_s is None:
            return False
        return created_s >= wall_offset_ms / 1000 + self._sampled_s - CLOCKS_APART_S

    def interrupted(self) -> None:
        """The server went away: counters that are lower afterwards were reset."""
        for pair in self._pairs.values():
            pair.interrupted = True

    def request_ended(
        self,
        at_s: float,
        prompt_tokens: int | None,
        usage_cached: int | None,
        predicted: int | None,
        sent_s: float | None = None,
    ) -> None:
        """A request ended whose prompt was looked up. A None is "not known"."""
        sent_s = at_s if sent_s is None else sent_s
        self._first_sent_s = sent_s if self._first_sent_s is None else min(self._first_sent_s, sent_s)
        self._last_ended_s = at_s
        self._usage.ended(at_s, usage_cached, prompt_tokens)
        self._forecast.ended(at_s, predicted, prompt_tokens)

    def forecast_came(self, ended_s: float, predicted: int, prompt_tokens: int | None) -> None:
        """The forecast of a request that ended without one is known now."""
        if prompt_tokens is None:
            return
        marked = self._mark_s is None or ended_s >= self._mark_s
        self._forecast.came_late(ended_s, predicted, prompt_tokens, marked=marked, last=ended_s == self._last_ended_s)

    def lookup_skipped(self, prompt_tokens: int) -> None:
        """A request ended whose prompt wasn't looked up."""
        self.skipped_tokens += prompt_tokens

    def mark(self, at_s: float) -> None:
        """Starts the window since the mark anew, from the last scrape and the next request on."""
        self._mark_s = at_s
        self._marked = [0.0, 0.0]
        self._first_sent_s = self._last_ended_s = None
        self.skipped_tokens = 0
        self._usage.mark()
        self._forecast.mark()

    def readings(self, at_s: float, wall_offset_ms: float) -> tuple[RateReading, ...]:
        """Every reading of every window that has one."""
        mark_ms = None if self._mark_s is None else wall_offset_ms + self._mark_s * 1000
        found: list[RateReading] = []
        if self._lifetime is not None:
            while self._minute and self._minute[0][0] <= at_s - MINUTE_S:
                self._minute.popleft()
            query = sum(entry[1] for entry in self._minute)
            hit = sum(entry[2] for entry in self._minute)
            found.append(_counted("since_mark", self._marked[1], self._marked[0], mark_ms))
            found.append(_counted("last_minute", hit, query, None))
            found.append(_counted("lifetime", self._lifetime[1], self._lifetime[0], None))
        found.extend(self._usage.readings(at_s, mark_ms))
        found.extend(self._forecast.readings(at_s, mark_ms))
        return tuple(found)


def _counted(window: Window, hit: float, query: float, since_ms: float | None) -> RateReading:
    return RateReading(window, "counter", int(hit), int(query), ratio(hit, query), None, since_ms)
