"""The ledger's side of KV events: applies batches, gaps and restarts to the mirror.

Imports only `ids`, `observations`, `events` and its own package.
"""

from typing import NamedTuple

from ..events import BlocksCleared, BlocksRemoved, BlocksReused, BlocksStored, Outgoing, StreamGapped, StreamResynced
from ..ids import BlockHash
from ..observations import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    CacheReset,
    KvBatch,
    KvDuplicate,
    KvGap,
    KvRanks,
    KvRestarted,
    KvStreamState,
)
from .block_cache import Stored, StoreReading
from .block_keys import hash_texts
from .ledger_state import LedgerState
from .owners import reading_of
from .rank_book import RankBook
from .request_ledger import RequestLedger
from .requests import Request
from .servers import ServerBook

CLEARS_APART_S = 0.2
"""Clears of what is empty already go out this far apart."""
_ONE = (1,)


class KvLedger:
    """Takes the observations of the event streams."""

    def __init__(self, state: LedgerState, requests: RequestLedger) -> None:
        self._state = state
        self._requests = requests

    def stream_state(self, observed: KvStreamState) -> None:
        """The subscription changed."""
        server = self._state.server(observed.server)
        stream = self._rank(server, observed).stream
        stream.take_state(observed)
        stream.note_coverage(observed.at_s)
        if observed.state == "disconnected":
            server.rates.interrupted()
        self._state.show_server(server, observed.at_s, counters=False)

    def gap(self, gap: KvGap) -> None:
        """Batches were missed."""
        server = self._state.server(gap.server)
        book = self._rank(server, gap)
        book.stream.take_gap(gap)
        book.stream.note_coverage(gap.at_s)
        event = StreamGapped(gap.first_seq, gap.last_seq, gap.recovered)
        self._state.emit(event, gap.at_s, gap.server, gap.rank)
        self._state.show_server(server, gap.at_s, counters=False)

    def restarted(self, restarted: KvRestarted) -> None:
        """Another process publishes now."""
        server = self._state.server(restarted.server)
        book = self._rank(server, restarted)
        book.stream.restarted(restarted.at_s, sequence=True)
        book.stream.note_coverage(restarted.at_s)
        server.rates.interrupted()
        self.empty(server, book, restarted.at_s)
        self._state.show_server(server, restarted.at_s, counters=False)

    def duplicate(self, duplicate: KvDuplicate) -> None:
        """A message came again."""
        self._rank(self._state.server(duplicate.server), duplicate).stream.duplicates += 1

    def ranks(self, observed: KvRanks) -> None:
        """Which ranks' events are looked for."""
        server = self._state.server(observed.server)
        server.expected_ranks = observed.ranks
        self._state.show_server(server, observed.at_s, counters=False)

    def told_to_empty(self, reset: CacheReset) -> None:
        """The server emptied its cache, and its events will say so with its next step: nothing is resident."""
        server = self._state.server(reset.server)
        for book in server.ranks.values():
            blocks = book.cache.clear("reset", reset.at_s)
            book.stream.unconfirmed_clear = book.stream.coverage != "none"
            self._state.joiner.cleared(book)
            self._cleared(book, reset.at_s, blocks, "reset")
        self._state.show_server(server, reset.at_s, counters=False)

    def empty(self, server: ServerBook, book: RankBook, at_s: float) -> None:
        """The server's process is another one: nothing of this rank is resident."""
        blocks = book.cache.clear("restarted", at_s)
        self._cleared(book, at_s, blocks, "restarted")

    def batch(self, batch: KvBatch) -> None:
        """A batch in sequence."""
        state = self._state
        server = state.server(batch.server)
        book = self._rank(server, batch)
        stream = book.stream
        before = _shown_of(book)
        if not stream.take_batch(batch):
            return
        server.heard()
        published_s = stream.published_s(batch)
        timed = published_s is not None and bool(book.open)
        overtaken = state.joiner.overtaken(book, published_s) if published_s is not None and timed else {}
        changed: dict[int, Request] = {}
        at_ms = state.wall_offset_ms + batch.at_s * 1000
        refused, stored_blocks = book.cache.refused, 0
        # Nobody waits for blocks, holds any or is to be told from others: what a batch stores is nobody's.
        quiet = not (server.sessions or server.skipping or book.open or book.expected or book.sharing.holds_any)
        for event in batch.events:
            if type(event) is BlockStored:
                stored_blocks += len(event.block_hashes)
                joining = None if quiet else _Joining(timed, changed)
                if len(event.block_hashes) > 1 or not self._stored_one(server, book, event, batch, at_ms, joining):
                    self._stored(server, book, event, batch, at_ms, joining)
            elif type(event) is BlockRemoved:
                self._removed(book, event, batch)
            elif type(event) is AllBlocksCleared:
                blocks = book.cache.clear("reset", batch.at_s)
                stream.emptied()
                stream.flow.clears += 1
                state.joiner.cleared(book)
                self._cleared(book, batch.at_s, blocks, "reset")
        stream.blocks_stored += stored_blocks
        if stream.unconfirmed_clear and batch.events and not batch.part:
            stream.confirm_clear(told=AllBlocksCleared() in batch.events)
        if book.cache.refused != refused:
            stream.incomplete()
        if timed:
            state.joiner.caught_up(book, overtaken)
        stream.note_coverage(batch.at_s)
        if book.cache.block_size != before[-1]:
            for request in state.requests.running():
                if request.sent.server == server.id and state.joiner.follow(request, server):
                    changed[request.serial] = request
        for _, request in sorted(changed.items()):
            self._requests.blocks_changed(request, batch.at_s)
        if not batch.more and stream.resynced():
            state.emit(StreamResynced(batch.seq), batch.at_s, batch.server, batch.rank)
        if before != _shown_of(book):
            state.show_server(server, batch.at_s, counters=False)

    # --- inside ---

    def _rank(
        self, server: ServerBook, observed: KvBatch | KvDuplicate | KvGap | KvRestarted | KvStreamState
    ) -> RankBook:
        if observed.rank not in server.ranks:
            book = server.rank(observed.rank)
            self._state.joiner.rank_appeared(server, book)
        return server.ranks[observed.rank]

    def _stored_one(
        self,
        server: ServerBook,
        book: RankBook,
        event: BlockStored,
        batch: KvBatch,
        at_ms: float,
        joining: "_Joining | None",
    ) -> bool:
        """Applies a store of a single new block that no request can have to do with; False, and nothing is changed,
        for any other."""
        if joining is not None and (
            event.session_id is not None
            or server.skipping
            or (book.open and not joining.timed)
            or book.sharing.holders(event.block_hashes[0])
            or event.parent_hash in book.expected
        ):
            return False
        one = book.cache.store_one(event, at_ms)
        if one is None:
            return False
        text, parent, depth = one
        named = BlocksStored(
            (text,), parent, depth, event.block_size, event.group_idx, event.medium, _ONE, None, batch.seq
        )
        self._state.out.append(Outgoing(named, at_ms, batch.server, batch.rank, "engine"))
        return True

    def _stored(
        self,
        server: ServerBook,
        book: RankBook,
        event: BlockStored,
        batch: KvBatch,
        at_ms: float,
        joining: "_Joining | None",
    ) -> None:
        """Applies a store. `joining` None: no request can have to do with it."""
        state = self._state
        hashes, _, _, _, _, medium, _, group, _, session, part = event
        reading: StoreReading = "auto"
        owner: Request | None = None
        if joining is not None and (session is not None or server.skipping):
            reading, owner = reading_of(event, server)
        texts = hash_texts(hashes)
        stored = book.cache.store(event, batch.at_s, reading, texts)
        meaning, copies, depth, tokens, fresh, cleared, parent_text = stored
        if cleared is not None:
            book.stream.restarted(batch.at_s, sequence=False)
            self._cleared(book, batch.at_s, cleared, "restarted")
        if joining is not None:
            if part is not None and part.first and owner is None:
                owner = book.part_owner
            owner = self._join(server, book, event, stored, owner, batch, joining)
        if part is not None:
            book.part_owner = owner
            book.part_fresh = fresh + (book.part_fresh if part.first else 0)
        if owner is not None and owner.usage_cached is None:
            again = _stored_again(book, event, stored)
            if again is not None:
                owner.doubtful = (again, meaning == "stored")
        if meaning == "report":
            self._reported(book, owner, event, stored, texts, batch)
            return
        named = BlocksStored(
            texts,
            parent_text,
            depth,
            tokens,
            group,
            medium,
            copies,
            owner.id if owner is not None else None,
            batch.seq,
        )
        state.out.append(Outgoing(named, at_ms, batch.server, batch.rank, "engine"))

    def _join(
        self,
        server: ServerBook,
        book: RankBook,
        event: BlockStored,
        stored: Stored,
        owner: Request | None,
        batch: KvBatch,
        joining: "_Joining",
    ) -> Request | None:
        """Whose the stored blocks are; whoever walks on along them is noted as changed."""
        joiner = self._state.joiner
        held = book.sharing.holds_any
        if held:
            book.count_holders(event.block_hashes)
        if held or owner is not None or book.expected:
            owner, grown = joiner.stored(book, server, event, stored, owner, batch.at_s)
            if owner is not None:
                joining.changed[owner.serial] = owner
            for request in grown:
                joining.changed[request.serial] = request
        if book.open and not joining.timed:
            joiner.advance(book, owner, fresh=stored.fresh > 0, replayed=batch.replayed)
        return owner

    def _reported(
        self,
        book: RankBook,
        owner: Request | None,
        event: BlockStored,
        stored: Stored,
        texts: tuple[str, ...],
        batch: KvBatch,
    ) -> None:
        # The report comes again when a request is scheduled again after preemption.
        if owner is not None:
            reported = (stored.depth or 0) + len(event.block_hashes)
            if owner.announced_blocks >= reported:
                return
            owner.announced_blocks = reported
        book.reused(event.block_hashes)
        reused = BlocksReused(owner.id if owner is not None else None, texts)
        self._state.emit(reused, batch.at_s, batch.server, batch.rank, "engine")

    def _removed(self, book: RankBook, event: BlockRemoved, batch: KvBatch) -> None:
        removed = book.cache.remove(event, batch.at_s)
        book.stream.blocks_removed += len(event.block_hashes)
        if not removed.hashes:
            return
        texts = hash_texts(removed.hashes)
        gone = BlocksRemoved(texts, removed.copies, event.group_idx, event.medium, batch.seq)
        self._state.emit(gone, batch.at_s, batch.server, batch.rank, "engine")

    def _cleared(self, book: RankBook, at_s: float, blocks: int, reason: str) -> None:
        if not blocks and reason == "reset" and at_s - book.stream.cleared_s < CLEARS_APART_S:
            # An engine that clears at every lookup says nothing new.
            return
        book.stream.cleared_s = at_s
        event = BlocksCleared("reset" if reason == "reset" else "restarted", blocks)
        self._state.emit(event, at_s, book.server, book.rank, "engine")


class _Joining(NamedTuple):
    """What joining a batch's blocks to requests needs besides."""

    timed: bool
    """The batch says when it was published."""
    changed: dict[int, Request]
    """Requests whose block table changed, by serial number."""


def _stored_again(book: RankBook, event: BlockStored, stored: Stored) -> tuple[BlockHash, ...] | None:
    """The blocks of a store from the root that were all resident before it; None where it is another store, or parts of
    it are to come."""
    part = event.part
    if part is None:
        return event.block_hashes if event.parent_hash is None and not stored.fresh else None
    is_last = part.first + len(event.block_hashes) == len(part.whole)
    return part.whole if is_last and stored.depth == part.first and not book.part_fresh else None


def _shown_of(book: RankBook) -> tuple[object, ...]:
    """What of a stream goes out at once where a batch changes it; its block size comes last."""
    stream = book.stream
    return (
        stream.state, stream.coverage, stream.silent, stream.malformed, stream.unconfirmed_clear, book.cache.block_size,
    )  # fmt: skip
