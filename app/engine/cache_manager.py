"""The cache manager: block tables of requests, lookup of cached prefixes, allocation. Pure.

Order of events within one allocation, as in vLLM: the reuse report comes out of the lookup, then one removal for each
block that is taken and held something, then one store of all the blocks that are full now.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .block_hash import extra_keys_in_event
from .block_pool import BlockPool
from .cache_events import BlocksStored
from .free_queue import Block
from .request import RequestState


@dataclass(frozen=True, slots=True)
class Counting:
    """When queries and hits are counted. The defaults are 0.32's: once a request, when it is first admitted.

    Older servers count each lookup of a waiting request, also where admission then fails (`every_try`), up to 0.10
    those that follow a preemption too, and 0.8 counts blocks instead of tokens: of a prompt, those that could hit.
    """

    every_try: bool = False
    after_preemption: bool = False
    in_blocks: bool = False


COUNTED_ONCE: Final = Counting()


class CacheManager:
    """Block tables, and the counters `queries` and `hits`, in tokens unless `counting` says otherwise."""

    def __init__(
        self, pool: BlockPool, block_size: int, enable_caching: bool = True, counting: Counting = COUNTED_ONCE
    ) -> None:
        self.pool = pool
        self.block_size = block_size
        self.queries = 0
        self.hits = 0
        self._enable_caching = enable_caching
        self._counting = counting

    def look_up(self, state: RequestState) -> list[Block]:
        """The longest cached prefix of a request, without its last token: that is computed anew to get logits.

        With a full report the reused blocks are announced at every lookup, also when admission then fails.
        """
        if not self._looks_up(state):
            return []
        hit: list[Block] = []
        for digest in state.digests[: (len(state.token_ids) - 1) // self.block_size]:
            block = self.pool.find(digest)
            if block is None:
                break
            hit.append(block)
        if hit and state.request.full_report:
            self.pool.announce(self._stored_event(state, 0, len(hit)))
        if self._counting.every_try:
            self._count(state, len(hit))
        return hit

    def admit(self, state: RequestState, hit: Sequence[Block], new_tokens: int) -> bool:
        """Gives a waiting request its reused blocks and those for `new_tokens` more; False, and no effect, if full.

        The whole of its tokens must fit into what is free now, not only the first chunk.
        """
        from_free_queue = sum(1 for block in hit if block.reference_count == 0)
        if self._blocks_for(len(state.token_ids)) - len(hit) + from_free_queue > len(self.pool.free_queue):
            return False
        self.pool.touch(hit)
        state.blocks = list(hit)
        state.registered_blocks = len(hit)
        state.computed_tokens = len(hit) * self.block_size
        if state.preemptions == 0:
            state.cached_tokens = state.computed_tokens
        if self._looks_up(state) and not self._counting.every_try:
            self._count(state, len(hit))
        if not self.extend(state, new_tokens):
            raise AssertionError("a request whose every token fits has room for a part of them")
        return True

    def extend(self, state: RequestState, new_tokens: int) -> bool:
        """Makes room for `new_tokens` beyond the computed ones and caches what is full; False, no effect, if full.

        A block is in the cache as soon as its last token is scheduled, before it is computed: a request that is
        admitted later in the same step can hit it. A sampled token is scheduled one step after it was sampled, so the
        last one of a request never is.
        """
        end = state.computed_tokens + new_tokens
        missing = self._blocks_for(end) - len(state.blocks)
        if missing > len(self.pool.free_queue):
            return False
        if missing > 0:
            state.blocks.extend(self.pool.take(missing))
        if self._enable_caching:
            self._store(state, min(end, len(state.token_ids)) // self.block_size)
        return True

    def free(self, state: RequestState) -> None:
        """Takes a request's blocks away, tail first: the ends of chains go before their heads."""
        self.pool.release(reversed(state.blocks))
        state.blocks = []
        state.registered_blocks = 0
        state.computed_tokens = 0

    def _looks_up(self, state: RequestState) -> bool:
        return self._enable_caching and not state.request.skip_reading_cache

    def _count(self, state: RequestState, hit_blocks: int) -> None:
        if state.preemptions and not self._counting.after_preemption:
            return
        if self._counting.in_blocks:
            self.queries += (len(state.token_ids) - 1) // self.block_size
            self.hits += hit_blocks
        else:
            self.queries += len(state.token_ids)
            self.hits += hit_blocks * self.block_size

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.block_size)

    def _store(self, state: RequestState, full_blocks: int) -> None:
        first = state.registered_blocks
        if first >= full_blocks:
            return
        event = self._stored_event(state, first, full_blocks)
        self.pool.store(state.blocks[first:full_blocks], event.block_hashes, event)
        state.registered_blocks = full_blocks

    def _stored_event(self, state: RequestState, first: int, end: int) -> BlocksStored:
        return BlocksStored(
            block_hashes=tuple(state.digests[first:end]),
            parent_block_hash=state.digests[first - 1] if first else None,
            token_ids=tuple(state.token_ids[first * self.block_size : end * self.block_size]),
            block_size=self.block_size,
            lora=state.request.lora,
            extra_keys=tuple(extra_keys_in_event(state.extra_keys(index)) for index in range(first, end)),
            session_id=state.request.session_id,
        )
