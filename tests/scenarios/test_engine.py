"""The ledger beside the embedded engine's core: what it forecasts and mirrors, against what the pool really did."""

from dataclasses import replace
from random import Random

import pytest

from app.engine.core import BlocksRemoved, BlocksStored, CacheEvent, CoreConfig, CoreRequest, EngineCore
from app.ids import GroupIdx, Rank, RequestId, SaltDigest, SessionId
from app.model.invariants import violations
from app.model.ledger import Ledger, LedgerLimits
from app.observations import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    ExtraKeys,
    KvBatch,
    KvEvent,
    RequestEnded,
    RequestFirstToken,
    RequestHead,
    RequestPromptTokens,
    RequestStarted,
    RequestUsage,
)
from tests.scenarios.tables import SERVER

BLOCK = 8
BLOCKS = 24


def next_token(request: CoreRequest, position: int) -> int:
    return 1000 + (sum(request.prompt_token_ids) + position) % 500


def told(event: CacheEvent) -> KvEvent:
    """The engine's event as the subscriber would hand it on: the low 64 bits of each hash, salts as digests."""
    if isinstance(event, BlocksStored):
        keys = tuple(ExtraKeys(SaltDigest(str(key[0])), None, None) if key else None for key in event.extra_keys)
        return BlockStored(
            tuple(int.from_bytes(digest[-8:], "big") for digest in event.block_hashes),
            int.from_bytes(event.parent_block_hash[-8:], "big") if event.parent_block_hash is not None else None,
            event.token_ids,
            event.block_size,
            event.lora.name if event.lora else None,
            "GPU",
            keys if any(keys) else None,
            GroupIdx(0),
            "full_attention",
            SessionId(event.session_id) if event.session_id else None,
        )
    if isinstance(event, BlocksRemoved):
        hashes = tuple(int.from_bytes(digest[-8:], "big") for digest in event.block_hashes)
        return BlockRemoved(hashes, "GPU", GroupIdx(0))
    return AllBlocksCleared()


class Pair:
    """An engine and a ledger. Batches that a request causes may reach the ledger after the next one was sent."""

    def __init__(self, seed: int, *, late: bool, sessions: bool, timed: bool = True) -> None:
        self.random = Random(seed)
        self.engine = EngineCore(CoreConfig(num_gpu_blocks=BLOCKS, block_size=BLOCK), next_token)
        self.ledger = Ledger(LedgerLimits(), 0.0)
        self.late, self.sessions, self.timed = late, sessions, timed
        self.now = 1.0
        self.seq = 0
        self.held: list[KvBatch] = []
        self.prompts = [tuple(self.random.randrange(500) for _ in range(70)) for _ in range(3)]

    def prompt(self) -> tuple[int, ...]:
        """Shared prefixes of any length, with or without a tail of their own, exact multiples among them."""
        shared = self.random.choice(self.prompts)[: self.random.choice((4, 8, 16, 24, 31, 40, 64, 70))]
        tail = tuple(self.random.randrange(500) for _ in range(self.random.choice((0, 0, 1, 5, 8, 16))))
        return shared + tail

    def flush(self) -> None:
        for batch in self.held:
            self.ledger.apply(replace(batch, at_s=self.now))
        self.held.clear()

    def run(self, number: int) -> tuple[int, int | None]:
        """One request alone. Returns (cached tokens, forecast)."""
        prompt = self.prompt()
        name = RequestId(f"r-{number}")
        salt = self.random.choice((None, None, None, "a", "b"))
        session = f"s-{number}" if self.sessions else None
        if self.random.random() < 0.03:
            self.engine.reset_prefix_cache()
        self.now += 1
        started = RequestStarted(
            SERVER, name, "/v1/completions", "client", self.now, streamed=True,
            session_id=SessionId(session) if session else None, salt=SaltDigest(salt) if salt else None,
        )  # fmt: skip
        self.ledger.apply(started)
        self.ledger.apply(RequestPromptTokens(name, prompt, "tokenize", self.now))
        self.flush()
        request = CoreRequest(
            name, prompt, max_tokens=self.random.choice((1, 1, 3, 20)), cache_salt=salt, session_id=session,
            full_report=self.sessions and self.random.random() < 0.5,
        )  # fmt: skip
        self.engine.add_request(request, self.now)
        cached = completion = 0
        while (result := self.engine.step(self.now)) is not None:
            self.now += 0.01
            if result.events:
                events = tuple(told(event) for event in result.events)
                batch = KvBatch(
                    SERVER, Rank(0), self.seq, events, self.now, published_s=1e9 + self.now if self.timed else None
                )
                self.seq += 1
                # The last step's events may be overtaken by the answer's end, and by the next request.
                finishes = any(step.finished for step in result.progress)
                reset = AllBlocksCleared() in events
                if finishes and self.late and not reset and self.random.random() < 0.5:
                    self.held.append(batch)
                else:
                    self.ledger.apply(batch)
            for step in result.progress:
                if step.token_id is not None and step.output_tokens == 1:
                    self.ledger.apply(RequestHead(name, 200, self.now))
                    self.ledger.apply(RequestFirstToken(name, self.now))
                cached, completion = step.cached_tokens, step.output_tokens
        self.ledger.apply(RequestUsage(name, len(prompt), completion, cached, self.now))
        self.ledger.apply(RequestEnded(name, "ok", self.now))
        summary = self.ledger.request(name)
        assert summary is not None
        assert summary.record.cached_tokens == cached
        return cached, summary.record.predicted_cached_tokens

    def mirrored(self) -> dict[str, int]:
        """Copies by hash, as the ledger has them."""
        columns = self.ledger.block_columns()
        return {text: copies for column in columns for text, copies in zip(column.hash, column.copies, strict=True)}

    def resident(self) -> dict[str, int]:
        """Copies by hash, as the pool has them."""
        pool = self.engine.pool
        return {digest[-8:].hex(): pool.copies(digest) for digest in pool._cached}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sessions", [False, True], ids=["tokens", "sessions"])
@pytest.mark.parametrize("late", [False, True], ids=["in time", "late"])
def test_forecast_equals_outcome_for_every_request_of_a_sequence(seed: int, sessions: bool, late: bool) -> None:
    pair = Pair(seed, late=late, sessions=sessions)
    results = [pair.run(number) for number in range(200)]
    assert sum(cached > 0 for cached, _ in results) > 50
    # Before the first batch nothing is known of the server.
    assert [forecast for _, forecast in results[1:]] == [cached for cached, _ in results[1:]]
    pair.flush()
    assert violations(pair.ledger) == []
    assert pair.mirrored() == pair.resident()
    record = pair.ledger.server(SERVER)
    assert record is not None
    assert (record.streams[0].unknown_removes, record.streams[0].orphans) == (0, 0)


@pytest.mark.parametrize("sessions", [False, True], ids=["tokens", "sessions"])
def test_forecast_equals_outcome_where_nobody_says_when_batches_were_published(sessions: bool) -> None:
    pair = Pair(7, late=False, sessions=sessions, timed=False)
    results = [pair.run(number) for number in range(200)]
    assert [forecast for _, forecast in results] == [cached for cached, _ in results]
    assert pair.mirrored() == pair.resident()
