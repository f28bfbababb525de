"""A recorded stream of requests as what-if questions see it: which blocks each looks up, as numbers. Pure.

A block is its content and all before it: a number stands for (number of the block before, tokens, extra keys), so that
streams of several servers mix whatever each server's hashes are. Imports only `model`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..model.block_keys import TOKEN_BYTES
from ..model.prefix_match import cacheable_tokens
from ..model.recorded import RecordedPrompt


class Lookup(NamedTuple):
    """One request. `blocks` are its full blocks, each known by a number; the first `reusable` of them may hit.

    `rest` is 1 where it takes one block more than it leaves in the cache, for a last block that isn't full.
    """

    blocks: tuple[int, ...]
    reusable: int
    rest: int
    prompt_tokens: int

    @property
    def places(self) -> int:
        """Blocks that it holds while it runs."""
        return len(self.blocks) + self.rest


class Stream(NamedTuple):
    """Requests in order of arrival, all of one block size. `left_out` had another one, or no room."""

    block_size: int
    lookups: tuple[Lookup, ...]
    left_out: int

    @property
    def prompt_tokens(self) -> int:
        """What every rate here is a share of, as a server counts it."""
        return sum(lookup.prompt_tokens for lookup in self.lookups)

    @property
    def distinct_blocks(self) -> int:
        """Blocks that differ: a pool of so many, and one for the rest, never evicts."""
        return len({block for lookup in self.lookups for block in lookup.blocks})

    @property
    def smallest_pool(self) -> int:
        """Blocks that its largest request holds while it runs."""
        return max((lookup.places for lookup in self.lookups), default=0)


def stream_of(prompts: Sequence[RecordedPrompt], max_blocks: int) -> Stream | None:
    """The newest of `prompts` (oldest first) of the block size that most have, `max_blocks` blocks together at most;
    None where there is none."""
    sizes = Counter(prompt.block_size for prompt in prompts)
    if not sizes:
        return None
    size = sizes.most_common(1)[0][0]
    chosen: list[RecordedPrompt] = []
    blocks = 0
    for prompt in reversed(prompts):
        if prompt.block_size != size:
            continue
        blocks += len(prompt.keys.packed) // (size * TOKEN_BYTES)
        if blocks > max_blocks:
            break
        chosen.append(prompt)
    chosen.reverse()
    return Stream(size, tuple(_numbered(chosen, size)), len(prompts) - len(chosen))


def _numbered(prompts: Iterable[RecordedPrompt], size: int) -> Iterable[Lookup]:
    number_of: dict[tuple[object, ...], int] = {}
    width = size * TOKEN_BYTES
    for prompt in prompts:
        packed, first, later = prompt.keys.packed, prompt.keys.extra(0), prompt.keys.extra(1)
        blocks: list[int] = []
        # Two models never share: the root is the model's own.
        key: tuple[object, ...] = (prompt.model,)
        number = number_of.setdefault(key, len(number_of))
        for start in range(0, len(packed) - width + 1, width):
            key = (number, packed[start : start + width], later if start else first)
            number = number_of.setdefault(key, len(number_of))
            blocks.append(number)
        reusable = 0 if prompt.skips_lookup else cacheable_tokens(prompt.prompt_tokens, size) // size
        yield Lookup(tuple(blocks), min(reusable, len(blocks)), int(len(packed) % width > 0), prompt.prompt_tokens)
