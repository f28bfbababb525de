"""Whatever arrives, in whatever order: the pool's books balance, and reuse never exceeds what is there."""

from collections import Counter

import hypothesis.strategies as st
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.engine.block_hash import BlockDigest
from app.engine.core import (
    BlocksCleared,
    BlocksRemoved,
    BlocksStored,
    CacheEvent,
    CoreConfig,
    CoreRequest,
    EngineCore,
    StepResult,
)
from app.engine.free_queue import Block, FreeQueue
from app.engine.request import RequestState

from .drive import drain, filler_token

# Few different tokens and small blocks, so that prefixes are shared, blocks collide and the pool overflows.
PROMPTS = st.lists(st.integers(0, 1), min_size=1, max_size=14)
PREFIXES = st.sampled_from([(), (7,) * 4, (7,) * 9, (8,) * 6])


class Engine(RuleBasedStateMachine):
    """Adds, aborts, steps and resets, and keeps its own books from the events alone."""

    @initialize(
        blocks=st.integers(8, 14),
        block_size=st.integers(1, 4),
        budget=st.integers(1, 24),
        seqs=st.integers(1, 4),
        caching=st.booleans(),
    )
    def start(self, blocks: int, block_size: int, budget: int, seqs: int, caching: bool) -> None:
        config = CoreConfig(blocks, block_size, budget, seqs, enable_prefix_caching=caching)
        self.core = EngineCore(config, filler_token)
        self.resident: Counter[BlockDigest] = Counter()
        self.ever_stored: set[BlockDigest] = set()
        self.reported: set[str] = set()
        self.live: dict[str, CoreRequest] = {}
        self.outputs: dict[str, list[int]] = {}
        self.asked_tokens = 0
        self.made = 0

    @rule(
        prefix=PREFIXES,
        tail=PROMPTS,
        max_tokens=st.integers(1, 6),
        salt=st.sampled_from([None, "a"]),
        skip=st.booleans(),
    )
    def add(self, prefix: tuple[int, ...], tail: list[int], max_tokens: int, salt: str | None, skip: bool) -> None:
        tokens = (*prefix, *tail)[: self.core.max_model_len - 1]
        if not tokens:
            return
        self.made += 1
        request = CoreRequest(f"r{self.made}", tokens, max_tokens, cache_salt=salt, skip_reading_cache=skip)
        self.core.add_request(request, 0.0)
        self.live[request.request_id] = request
        self.outputs[request.request_id] = []

    @rule()
    def step(self) -> None:
        result = self.core.step(0.0)
        if result is None:
            assert not self.live
            return
        self._take_in(result)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        request_id = data.draw(st.sampled_from(sorted(self.live)))
        assert self.core.abort_request(request_id, 0.0)
        del self.live[request_id]

    @rule()
    def reset(self) -> None:
        held = self.core.pool.usage_ratio > 0
        assert self.core.reset_prefix_cache() is not held
        if not held:
            self.resident.clear()

    @rule()
    def drain(self) -> None:
        for result in drain(self.core):
            self._take_in(result)
        assert not self.live
        assert self.core.pool.usage_ratio == 0.0

    def _take_in(self, result: StepResult) -> None:
        assert sum(each.scheduled_tokens for each in result.progress) <= self.core.config.max_num_batched_tokens
        assert len(result.progress) <= self.core.config.max_num_seqs
        assert len({each.request_id for each in result.progress}) == len(result.progress)
        assert result.progress or not self.live, "a step that schedules nobody would repeat for ever"
        before = Counter(self.resident)
        for event in result.events:
            self._book(event)
        stored_now = {
            digest for each in result.events if isinstance(each, BlocksStored) for digest in each.block_hashes
        }
        size = self.core.config.block_size
        for progress in result.progress:
            request = self.live[progress.request_id]
            if progress.first_scheduled:
                assert progress.cached_tokens % size == 0
                assert progress.cached_tokens < len(request.prompt_token_ids)
                reused = RequestState(request, size).digests[: progress.cached_tokens // size]
                assert all(before[digest] > 0 or digest in stored_now for digest in reused)
                assert not (progress.cached_tokens and request.skip_reading_cache)
            if progress.token_id is not None:
                self.outputs[progress.request_id].append(progress.token_id)
            if progress.finished:
                assert len(self.outputs[progress.request_id]) == progress.output_tokens <= request.max_tokens
                assert self.outputs[progress.request_id] == [
                    filler_token(request, position) for position in range(progress.output_tokens)
                ]
                del self.live[progress.request_id]

    def _book(self, event: CacheEvent) -> None:
        if isinstance(event, BlocksStored):
            assert len(event.token_ids) == len(event.block_hashes) * self.core.config.block_size
            assert event.parent_block_hash is None or event.parent_block_hash in self.ever_stored
            self.resident.update(event.block_hashes)
            self.ever_stored.update(event.block_hashes)
        elif isinstance(event, BlocksRemoved):
            for digest in event.block_hashes:
                assert self.resident[digest] > 0, "removed, but never stored"
                self.resident[digest] -= 1
        elif isinstance(event, BlocksCleared):
            assert not +self.resident, "a reset comes before anything that is stored after it"

    @invariant()
    def books_balance(self) -> None:
        if not hasattr(self, "core"):
            return
        pool = self.core.pool
        free = {block.block_id for block in pool.free_queue}
        assert len(free) == len(pool.free_queue)
        assert 0 not in free
        held: Counter[int] = Counter()
        for state in self.core.requests():
            assert len({block.block_id for block in state.blocks}) == len(state.blocks)
            held.update(block.block_id for block in state.blocks)
            assert state.registered_blocks <= len(state.blocks)
        for block in pool.blocks[1:]:
            assert block.reference_count == held[block.block_id]
            assert (block.block_id in free) is (block.reference_count == 0)
        assert len(free) + len(held) == len(pool.blocks) - 1
        digests = Counter(block.digest for block in pool.blocks if block.digest is not None)
        assert digests == +self.resident
        assert all(pool.copies(digest) == count for digest, count in digests.items())


Engine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestEngine = Engine.TestCase


@given(st.lists(st.tuples(st.sampled_from(["pop", "append", "prepend", "remove"]), st.integers(0, 7))))
def test_free_queue_behaves_like_a_list(steps: list[tuple[str, int]]) -> None:
    blocks = [Block(index) for index in range(8)]
    queue, model = FreeQueue(), list[Block]()
    for action, index in steps:
        block = blocks[index]
        if action == "pop" and model:
            assert queue.pop() is model.pop(0)
        elif action == "remove" and block in model:
            queue.remove(block)
            model.remove(block)
        elif action == "append" and block not in model:
            queue.append([block])
            model.append(block)
        elif action == "prepend" and block not in model:
            queue.prepend([block])
            model.insert(0, block)
        assert list(queue) == model
        assert len(queue) == len(model)
        assert (block in queue) is (block in model)
