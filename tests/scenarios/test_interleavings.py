"""Any interleaving of stores, removals, clears, gaps, restarts and requests: what always holds, holds.

Two witnesses follow along: a count of copies kept by the simplest rules, and a browser that only sees events.
"""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from app.events import BlocksCleared, BlocksRemoved, BlocksStored, Outgoing, RequestFailed, RequestFinished
from app.ids import GroupIdx, Rank, RequestId, SaltDigest, SessionId
from app.model.invariants import violations
from app.model.ledger import Ledger, LedgerLimits
from app.observations import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    EngineSample,
    ExtraKeys,
    KvBatch,
    KvEvent,
    KvGap,
    KvRestarted,
    MetricsSampled,
    Observation,
    RequestEnded,
    RequestFirstToken,
    RequestHead,
    RequestOutputTokens,
    RequestPromptTokens,
    RequestStarted,
    RequestUsage,
)
from app.wire.kv_parts import in_parts
from tests.scenarios.tables import SERVER

SIZE = 2
Key = tuple[int, int, str, str]

# A prompt is a path through a small tree of blocks, so that prefixes are shared often.
paths = st.lists(st.integers(0, 2), min_size=0, max_size=4).map(tuple)
tails = st.integers(0, SIZE - 1)
salts = st.sampled_from([None, None, "a"])
ranks = st.sampled_from([0, 0, 0, 1])
groups = st.sampled_from([0, 0, 0, 1])


def block_hash(path: tuple[int, ...], salt: str | None) -> int:
    """One hash for each path: as a real hash, it stands for everything before it."""
    number = 7 if salt is None else 8
    for step in path:
        number = number * 5 + step + 1
    return number


def tokens_of(path: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(token for step in path for token in (step, step + 10))


class Interleavings(RuleBasedStateMachine):
    """A ledger with tight bounds, told whatever comes."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(LedgerLimits(max_requests=6, max_removed_blocks=5, max_blocks=12), 0.0)
        self.now = 1.0
        self.seq = {0: -1, 1: -1}
        self.seen: dict[Key, int] = {}
        self.running: list[RequestId] = []
        self.lengths: dict[RequestId, int] = {}
        self.sent = 0
        self.ends: dict[RequestId | None, int] = {}

    # --- witnesses ---

    def tell(self, observation: Observation) -> None:
        for outgoing in self.ledger.apply(observation):
            self.see(outgoing)

    def see(self, outgoing: Outgoing) -> None:
        event, rank = outgoing.event, outgoing.rank or 0
        if isinstance(event, BlocksStored | BlocksRemoved):
            for text, copies in zip(event.hash, event.copies, strict=True):
                key: Key = (rank, event.group, event.medium, text)
                assert copies >= 0
                if copies:
                    self.seen[key] = copies
                else:
                    self.seen.pop(key, None)
        elif isinstance(event, BlocksCleared):
            gone = [key for key in self.seen if key[0] == rank]
            assert len(gone) == event.blocks
            for key in gone:
                del self.seen[key]
        elif isinstance(event, RequestFinished | RequestFailed):
            self.ends[event.record.id] = self.ends.get(event.record.id, 0) + 1

    def batch(
        self, rank: int, *events: KvEvent, replayed: bool = False, late_s: float | None = None, most: int = 100
    ) -> None:
        """A message; events of more than `most` blocks come in parts."""
        self.seq[rank] += 1
        self.now += 0.01
        published_s = None if late_s is None else self.now - late_s
        cut = [part for event in events for part in in_parts(event, most)]
        parts: list[tuple[KvEvent, ...]] = [(part,) for part in cut] if len(cut) > len(events) else [events]
        for number, part in enumerate(parts):
            self.tell(
                KvBatch(
                    SERVER, Rank(rank), self.seq[rank], part, self.now, replayed, published_s=published_s, part=number,
                    more=number < len(parts) - 1,
                )
            )  # fmt: skip

    # --- what may happen ---

    @initialize(late=st.booleans())
    def first_batch(self, late: bool) -> None:
        self.seq[0] = 3 if late else -1
        self.batch(0)

    @rule(
        rank=ranks,
        group=groups,
        path=paths.filter(bool),
        start=st.integers(0, 3),
        salt=salts,
        session=st.booleans(),
        late_s=st.sampled_from([None, 0.0, 0.5]),
        replayed=st.booleans(),
        most=st.integers(1, 4),
    )
    def store(
        self,
        rank: int,
        group: int,
        path: tuple[int, ...],
        start: int,
        salt: str | None,
        session: bool,
        late_s: float | None,
        replayed: bool,
        most: int,
    ) -> None:
        start = min(start, len(path) - 1)
        hashes = tuple(block_hash(path[: end + 1], salt) for end in range(start, len(path)))
        keys = None
        if salt is not None and start == 0:
            keys = (ExtraKeys(SaltDigest(salt), None, None), *(None,) * (len(hashes) - 1))
        owner = SessionId(str(self.running[-1])) if session and self.running else None
        event = BlockStored(
            hashes,
            block_hash(path[:start], salt) if start else None,
            tokens_of(path)[start * SIZE :],
            SIZE,
            None,
            "GPU",
            keys,
            GroupIdx(group),
            "sliding_window" if group else "full_attention",
            owner,
        )
        self.batch(rank, event, late_s=late_s, replayed=replayed, most=most)

    @rule(rank=ranks, group=groups, path=paths.filter(bool), salt=salts)
    def sparse_store(self, rank: int, group: int, path: tuple[int, ...], salt: str | None) -> None:
        event = BlockStored((block_hash(path, salt),), None, (), 0, None, "CPU", None, GroupIdx(group), None, None)
        self.batch(rank, event)

    @rule(rank=ranks, group=groups, paths=st.lists(paths.filter(bool), min_size=1, max_size=3), salt=salts)
    def remove(self, rank: int, group: int, paths: list[tuple[int, ...]], salt: str | None) -> None:
        hashes = tuple(block_hash(path, salt) for path in paths)
        self.batch(rank, BlockRemoved(hashes, "GPU", GroupIdx(group)), most=2)

    @rule(rank=ranks)
    def clear(self, rank: int) -> None:
        self.batch(rank, AllBlocksCleared())

    @rule(rank=ranks, missed=st.integers(1, 3), recovered=st.integers(0, 3))
    def gap(self, rank: int, missed: int, recovered: int) -> None:
        first = self.seq[rank] + 1
        recovered = min(recovered, missed)
        self.tell(KvGap(SERVER, Rank(rank), first, first + missed - 1, recovered, self.now))
        self.seq[rank] += missed - recovered
        for _ in range(recovered):
            self.batch(rank, replayed=True)

    @rule(rank=ranks)
    def restart(self, rank: int) -> None:
        self.tell(KvRestarted(SERVER, Rank(rank), self.now))
        self.seq[rank] = -1

    @rule(query=st.integers(0, 50), hit=st.integers(0, 50))
    def scrape(self, query: int, hit: int) -> None:
        self.now += 1
        sample = EngineSample("0", query_tokens=query, hit_tokens=min(hit, query), block_size=SIZE)
        self.tell(MetricsSampled(SERVER, (sample,), self.now))

    @rule(path=paths, tail=tails, salt=salts, known=st.booleans(), skips=st.booleans())
    def send(self, path: tuple[int, ...], tail: int, salt: str | None, known: bool, skips: bool) -> None:
        self.now += 0.1
        self.sent += 1
        name = RequestId(f"r-{self.sent}")
        self.tell(
            RequestStarted(
                SERVER, name, "/v1/completions", "client", self.now, streamed=True, session_id=SessionId(str(name)),
                salt=SaltDigest(salt) if salt else None, skips_cache_read=skips,
            )
        )  # fmt: skip
        self.running.append(name)
        prompt = tokens_of(path) + (99,) * tail
        self.lengths[name] = len(prompt)
        if known and prompt:
            self.tell(RequestPromptTokens(name, prompt, "tokenize", self.now))

    @rule(index=st.integers(0, 5))
    def first_token(self, index: int) -> None:
        if self.running:
            name = self.running[index % len(self.running)]
            self.now += 0.1
            self.tell(RequestHead(name, 200, self.now))
            self.tell(RequestFirstToken(name, self.now))

    @rule(index=st.integers(0, 5), output=st.lists(st.integers(0, 12), max_size=6))
    def output(self, index: int, output: list[int]) -> None:
        if self.running:
            name = self.running[index % len(self.running)]
            self.tell(RequestOutputTokens(name, tuple(output), self.now))

    @rule(
        index=st.integers(0, 5),
        cached=st.one_of(st.none(), st.integers(0, 10)),
        outcome=st.sampled_from(["ok", "ok", "ok", "client_gone", "http_error"]),
    )
    def end(self, index: int, cached: int | None, outcome: str) -> None:
        if not self.running:
            return
        name = self.running.pop(index % len(self.running))
        self.now += 0.1
        if cached is not None:
            self.tell(RequestUsage(name, max(self.lengths[name], 1), 2, cached, self.now))
        self.tell(RequestEnded(name, outcome, self.now))  # type: ignore[arg-type]
        self.tell(RequestEnded(name, "ok", self.now))

    @rule(seconds=st.sampled_from([0.1, 3.0, 61.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        for outgoing in self.ledger.tick(self.now):
            self.see(outgoing)

    # --- what always holds ---

    @invariant()
    def nothing_is_violated(self) -> None:
        assert violations(self.ledger) == []

    @invariant()
    def a_snapshot_equals_what_the_events_told(self) -> None:
        held: dict[Key, int] = {}
        for columns in self.ledger.snapshot().blocks:
            for group, medium, text, copies in zip(
                columns.group, columns.medium, columns.hash, columns.copies, strict=True
            ):
                held[columns.rank, group, medium, text] = copies
        assert held == self.seen

    @invariant()
    def every_request_ends_once(self) -> None:
        assert all(count == 1 for count in self.ends.values())

    @invariant()
    def no_hit_beyond_what_was_resident(self) -> None:
        for summary in self.ledger.snapshot().requests:
            predicted, reusable = summary.record.predicted_cached_tokens, summary.record.reusable_blocks
            if predicted is not None and reusable is not None:
                assert predicted <= reusable * SIZE


Interleavings.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestInterleavings = Interleavings.TestCase
