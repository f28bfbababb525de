"""Observations in few words, for scenarios. Times are seconds; prompts are token ids; blocks are of 4 tokens."""

from typing import Any

import pytest

from app.events import Event, MetricsPoint, Outgoing, RequestRecord, ServerRecord
from app.ids import BlockHash, GroupIdx, Rank, RequestId, SaltDigest, ServerId, SessionId
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
    MetricsSampled,
    Observation,
    RequestEnded,
    RequestFirstToken,
    RequestHead,
    RequestPromptTokens,
    RequestStarted,
    RequestUsage,
    WireForm,
)
from app.wire.exposition import read_page
from app.wire.salt import salt_digest
from tests.scenarios.wire import SALT_KEY, through_the_wire

SERVER = ServerId("http://127.0.0.1:8000")
SIZE = 4
LABELS = '{engine="0",model_name="m"}'
CLEARED = AllBlocksCleared()


def stored(
    *hashes: BlockHash,
    parent: BlockHash | None = None,
    tokens: tuple[int, ...] | None = None,
    session: str | None = None,
    salt: str | None = None,
    lora: str | None = None,
    group: int = 0,
    medium: str = "GPU",
    kind: str | None = "full_attention",
    size: int = SIZE,
    other: str | None = None,
) -> BlockStored:
    """Blocks of token ids 0, 1, 2, ... where none are given."""
    ids = tuple(range(len(hashes) * size)) if tokens is None else tokens
    keys: tuple[ExtraKeys | None, ...] | None = None
    if salt is not None:
        keys = (ExtraKeys(SaltDigest(salt), None, None), *(None,) * (len(hashes) - 1))
    if other is not None:
        keys = tuple(ExtraKeys(None, None, other) for _ in hashes)
    name = SessionId(session) if session else None
    return BlockStored(hashes, parent, ids, size, lora, medium, keys, GroupIdx(group), kind, name)


def removed(*hashes: BlockHash, group: int = 0, medium: str = "GPU") -> BlockRemoved:
    return BlockRemoved(hashes, medium, GroupIdx(group))


class Scene:
    """A ledger, fed step by step, that checks its invariants after each."""

    wire_form: WireForm | None = None
    """Events pass through bytes of this form; None: they are handed on as they are."""

    def __init__(self, limits: LedgerLimits | None = None) -> None:
        self.ledger = Ledger(limits or LedgerLimits(), 0.0)
        self.out: list[Outgoing] = []
        self.now = 1.0
        self.seq: dict[int, int] = {}

    def apply(self, *observations: Observation) -> list[Event]:
        """Events that came out."""
        fresh: list[Outgoing] = []
        for observation in observations:
            fresh.extend(self.ledger.apply(observation))
            assert violations(self.ledger) == []
        self.out.extend(fresh)
        return [outgoing.event for outgoing in fresh]

    def tick(self, at_s: float) -> list[Event]:
        fresh = self.ledger.tick(at_s)
        self.out.extend(fresh)
        return [outgoing.event for outgoing in fresh]

    def kv(self, *events: KvEvent, rank: int = 0, seq: int | None = None, replayed: bool = False) -> list[Event]:
        """One batch, the next in sequence."""
        number = self.seq.get(rank, -1) + 1 if seq is None else seq
        self.seq[rank] = number
        self.now += 0.01
        if self.wire_form is None:
            return self.apply(KvBatch(SERVER, Rank(rank), number, events, self.now, replayed, "map"))
        if self.wire_form == "array" and any(isinstance(e, BlockStored) and e.session_id for e in events):
            pytest.skip("servers that write arrays name no sessions")
        read = through_the_wire(events, self.wire_form, rank)
        return self.apply(
            KvBatch(
                SERVER, Rank(rank), number, read.events, self.now, replayed, read.wire_form, read.malformed,
                read.unknown_types,
            )
        )  # fmt: skip

    def salt(self, text: str) -> SaltDigest:
        """A salt as requests carry it."""
        return SaltDigest(text) if self.wire_form is None else salt_digest(SALT_KEY, text)

    def page(self, *lines: str, content_type: str = "text/plain") -> list[Event]:
        """A page of metrics, one second later; `vllm:` and the labels of engine 0 are added where a line has none."""
        self.now += 1.0
        full = [line if line.startswith("#") else f"vllm:{line}" for line in lines]
        labelled = [line if "{" in line or line[0] == "#" else line.replace(" ", LABELS + " ", 1) for line in full]
        read = read_page("\n".join((*labelled, "")).encode(), content_type)
        return self.apply(MetricsSampled(SERVER, read.engines, self.now, read.malformed_lines))

    def rate(self, window: str, basis: str) -> tuple[int, int, float | None] | None:
        """(hit tokens, looked up, ratio) of a reading, as the last event told it."""
        self.tick(self.now)
        for reading in self.ledger.snapshot().rates[SERVER]:
            if (reading.window, reading.basis) == (window, basis):
                return reading.hit_tokens, reading.query_tokens, reading.ratio
        return None

    @property
    def server(self) -> ServerRecord:
        """The server as it goes out."""
        found = self.ledger.server(SERVER)
        assert found is not None
        return found

    @property
    def point(self) -> MetricsPoint:
        """The last reading of metrics."""
        return self.ledger.snapshot().metrics[SERVER][-1]

    def notices(self) -> dict[str, dict[str, int | float | str | None]]:
        """Params by code, after a tick."""
        self.tick(self.now)
        return {notice.code: notice.params for notice in self.server.notices}

    def metrics(self, query: float, hit: float, **fields: Any) -> list[Event]:
        self.now += 1.0
        return self.apply(
            MetricsSampled(SERVER, (EngineSample("0", query_tokens=query, hit_tokens=hit, **fields),), self.now)
        )

    def send(
        self,
        name: str,
        prompt: tuple[int, ...] | None = None,
        *,
        session: str | None = None,
        salt: str | None = None,
        lora: str | None = None,
        skips: bool = False,
        sequences: int = 1,
        images: bool = False,
        server: ServerId = SERVER,
        model: str = "m",
    ) -> list[Event]:
        """A request is sent; its tokens are known at once where given."""
        self.now += 0.1
        request = RequestId(name)
        events = self.apply(
            RequestStarted(
                server,
                request,
                "/v1/completions",
                "page",
                self.now,
                model=model,
                streamed=True,
                sequences=sequences,
                session_id=SessionId(session) if session else None,
                salt=self.salt(salt) if salt else None,
                skips_cache_read=skips,
                has_images=images,
                lora_name=lora,
                show_text=True,
            )
        )
        if prompt is not None:
            events += self.tell(name, prompt)
        return events

    def tell(self, name: str, prompt: tuple[int, ...]) -> list[Event]:
        """The prompt's tokens are known."""
        return self.apply(RequestPromptTokens(RequestId(name), prompt, "tokenize", self.now))

    def answer(self, name: str, ttft_ms: float = 10.0) -> list[Event]:
        """Head and first token."""
        self.now += ttft_ms / 1000
        request = RequestId(name)
        return self.apply(RequestHead(request, 200, self.now), RequestFirstToken(request, self.now))

    def end(
        self, name: str, length: int | None = None, cached: int | None = None, completion: int | None = 1
    ) -> RequestRecord:
        """Usage and the end. Without `length` there is no usage."""
        request = RequestId(name)
        if self.record(name).ttft_ms is None:
            self.answer(name)
        self.now += 0.01
        if length is not None:
            self.apply(RequestUsage(request, length, completion, cached, self.now))
        self.apply(RequestEnded(request, "ok", self.now))
        return self.record(name)

    def record(self, name: str) -> RequestRecord:
        summary = self.ledger.request(RequestId(name))
        assert summary is not None
        return summary.record

    def states(self, name: str) -> str:
        """First letters of the block table's states: r, c, p (partial or pending), d."""
        summary = self.ledger.request(RequestId(name))
        assert summary is not None
        return "" if summary.block_table is None else "".join(state[0] for state in summary.block_table.state)

    def copies(self, rank: int = 0) -> dict[tuple[int, str, str], int]:
        """(group, medium, hash): copies of each resident block."""
        found: dict[tuple[int, str, str], int] = {}
        for columns in self.ledger.block_columns():
            if columns.rank == rank:
                keys = zip(columns.group, columns.medium, columns.hash, strict=True)
                found.update(zip(keys, columns.copies, strict=True))
        return found

    def code(self, name: str) -> str | None:
        verdict = self.record(name).verdict
        return verdict.code if verdict else None

    def params(self, name: str) -> dict[str, int | float | str | None]:
        verdict = self.record(name).verdict
        assert verdict is not None
        return verdict.params
