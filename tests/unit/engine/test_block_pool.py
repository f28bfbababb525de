"""The block pool's rules, one by one."""

import pytest

from app.engine.block_hash import hash_block
from app.engine.block_pool import BlockPool
from app.engine.cache_events import BlocksCleared, BlocksRemoved, BlocksStored
from app.engine.free_queue import Block, FreeQueue


def _digest(number: int) -> bytes:
    return hash_block(None, (number,))


def _store(pool: BlockPool, blocks: list[Block], *numbers: int) -> None:
    digests = tuple(map(_digest, numbers))
    pool.store(blocks, digests, BlocksStored(digests, None, numbers, 1, None, (None,) * len(numbers), None))


def _free_ids(pool: BlockPool) -> list[int]:
    return [block.block_id for block in pool.free_queue]


def test_block_0_serves_nobody() -> None:
    pool = BlockPool(4)
    assert _free_ids(pool) == [1, 2, 3]
    assert [block.block_id for block in pool.take(3)] == [1, 2, 3]
    with pytest.raises(ValueError, match="1 blocks asked for, 0 free"):
        pool.take(1)
    with pytest.raises(ValueError, match="null block"):
        BlockPool(1)


def test_usage_counts_held_blocks_only() -> None:
    pool = BlockPool(5)
    blocks = pool.take(2)
    assert pool.usage_ratio == 0.5
    _store(pool, blocks, 1, 2)
    pool.release(reversed(blocks))
    assert pool.usage_ratio == 0.0


def test_cached_blocks_go_last_and_tail_first_the_others_next() -> None:
    pool = BlockPool(6)
    blocks = pool.take(4)
    _store(pool, blocks[:2], 1, 2)
    pool.release(reversed(blocks))
    assert _free_ids(pool) == [4, 3, 5, 2, 1]


def test_without_caching_every_block_goes_next() -> None:
    pool = BlockPool(5, enable_caching=False)
    pool.release(reversed(pool.take(2)))
    assert _free_ids(pool) == [2, 1, 3, 4]


def test_taking_a_cached_block_evicts_it_and_says_so() -> None:
    pool = BlockPool(3)
    blocks = pool.take(2)
    _store(pool, blocks, 1, 2)
    pool.release(reversed(blocks))
    pool.drain_events()
    pool.take(1)
    assert pool.drain_events() == (BlocksRemoved((_digest(2),)),)
    assert pool.find(_digest(2)) is None
    assert pool.find(_digest(1)) is blocks[0]


def test_touch_takes_a_block_out_of_the_free_queue_and_counts() -> None:
    pool = BlockPool(4)
    (block,) = pool.take(1)
    _store(pool, [block], 1)
    pool.release([block])
    assert block in pool.free_queue
    pool.touch([block])
    pool.touch([block])
    assert (block.reference_count, block in pool.free_queue) == (2, False)
    pool.release([block])
    assert block not in pool.free_queue
    pool.release([block])
    assert _free_ids(pool) == [2, 3, 1]
    with pytest.raises(ValueError, match="free already"):
        pool.release([block])


def test_one_hash_may_have_several_blocks_and_the_oldest_is_found() -> None:
    pool = BlockPool(4)
    first, second = pool.take(2)
    _store(pool, [first], 1)
    _store(pool, [second], 1)
    assert (pool.copies(_digest(1)), pool.find(_digest(1))) == (2, first)
    pool.release([first])
    pool.release([second])
    pool.drain_events()
    pool.take(2)
    assert pool.drain_events() == (BlocksRemoved((_digest(1),)),)
    assert (pool.copies(_digest(1)), pool.find(_digest(1))) == (1, second)


def test_a_cached_block_is_not_stored_twice() -> None:
    pool = BlockPool(3)
    blocks = pool.take(1)
    _store(pool, blocks, 1)
    with pytest.raises(ValueError, match="in the cache already"):
        _store(pool, blocks, 2)


def test_reset_needs_every_block_free_and_keeps_their_order() -> None:
    pool = BlockPool(4)
    blocks = pool.take(2)
    _store(pool, blocks, 1, 2)
    assert not pool.reset()
    pool.release(reversed(blocks))
    pool.drain_events()
    order = _free_ids(pool)
    assert pool.reset()
    assert pool.drain_events() == (BlocksCleared(),)
    assert pool.find(_digest(1)) is None
    assert _free_ids(pool) == order
    pool.take(3)
    assert pool.drain_events() == ()


def test_free_queue_refuses_what_it_does_not_hold() -> None:
    queue = FreeQueue()
    with pytest.raises(IndexError):
        queue.pop()
    with pytest.raises(ValueError, match="not in the free queue"):
        queue.remove(Block(1))
    queue.append([Block(1)])
    queue.prepend([Block(2), Block(3)])
    assert ([block.block_id for block in queue], len(queue)) == ([2, 3, 1], 3)
    assert repr(queue.pop()) == "Block(2, references=0, cached=False)"
