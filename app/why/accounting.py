"""Which prompts would have hit what, one after the other, in a pool of a given size: the embedded engine's own block
accounting, without time, HTTP or text.

Each prompt is computed whole, and one token is sampled, before the next is looked at. Blocks are told apart by a hash
of their own, faster than vLLM's; which blocks are equal, and so what hits and what is evicted, is the same. Imports the
engine's pure pool.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from ..engine.block_pool import BlockPool
from ..engine.cache_events import BlocksStored
from ..engine.free_queue import Block

_NOBODY_LISTENS = BlocksStored((), None, (), 0, None, (), None)
"""The pool announces what it stores; nobody is told here."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as the pool sees it: its tokens, and a hash for each full block, of its tokens and of all before it."""

    token_ids: tuple[int, ...]
    digests: tuple[bytes, ...]

    def reusable(self, block_size: int) -> int:
        """Blocks that can hit at most: the last token is always computed anew."""
        return max(len(self.token_ids) - 1, 0) // block_size


def make_prompt(token_ids: Sequence[int], block_size: int, keys: str = "") -> Prompt:
    """A prompt. `keys`: what makes equal tokens other blocks, such as salt and adapter."""
    packed = array("I", token_ids).tobytes()
    width = block_size * array("I").itemsize
    parent = keys.encode("utf-8", "replace")
    digests: list[bytes] = []
    for at in range(0, len(packed) - width + 1, width):
        parent = blake2b(parent + packed[at : at + width], digest_size=16).digest()
        digests.append(parent)
    return Prompt(tuple(token_ids), tuple(digests))


class BlockAccount:
    """A cold pool of `num_gpu_blocks` (the null block included) blocks of `block_size` tokens."""

    def __init__(self, num_gpu_blocks: int, block_size: int) -> None:
        self.block_size = block_size
        self._pool = BlockPool(num_gpu_blocks)
        self._room = (num_gpu_blocks - 1) * block_size

    def serve(self, prompt: Prompt) -> int | None:
        """Tokens of this prompt that hit; None where the pool can't hold it with its answer.

        What `engine.cache_manager` does for a request that is alone, without the events of each block.
        """
        if len(prompt.token_ids) >= self._room:
            return None
        pool, hit = self._pool, list[Block]()
        for digest in prompt.digests[: prompt.reusable(self.block_size)]:
            block = pool.find(digest)
            if block is None:
                break
            hit.append(block)
        pool.touch(hit)
        fresh = pool.take(-(-len(prompt.token_ids) // self.block_size) - len(hit))
        full = prompt.digests[len(hit) :]
        pool.store(fresh[: len(full)], full, _NOBODY_LISTENS)
        # The ends of chains go before their heads.
        pool.release([*reversed(fresh), *reversed(hit)])
        pool.drain_events()
        return len(hit) * self.block_size


class EndlessAccount:
    """The same for a pool that never evicts."""

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self._seen: set[bytes] = set()

    def serve(self, prompt: Prompt) -> int:
        """Tokens of this prompt that hit."""
        hit = 0
        for digest in prompt.digests[: prompt.reusable(self.block_size)]:
            if digest not in self._seen:
                break
            hit += 1
        self._seen.update(prompt.digests)
        return hit * self.block_size
