"""Walks a prompt through the blocks that the server named: which of its blocks are known, which were resident.

A walk goes from the root along (parent, token ids, extra keys), as the server's own lookup goes along hashes. Imports
only `ids`, `observations` and its own package.
"""

from dataclasses import dataclass
from itertools import islice

from ..ids import SaltDigest
from ..observations import ExtraKeys
from .block_keys import TOKEN_BYTES
from .block_slots import ROOT, BlockSlots

MAX_COMPARED_CHILDREN = 4096
"""Children of one block that are compared with a prompt, newest first; a busy branch has thousands."""


def cacheable_tokens(prompt_tokens: int, block_size: int) -> int:
    """At most this many tokens of a prompt can hit: full blocks of all tokens but the last, which is recomputed."""
    return max(prompt_tokens - 1, 0) // block_size * block_size


@dataclass(frozen=True, slots=True)
class PromptKeys:
    """A prompt as walks see it. `packed` holds its token ids (see `pack_tokens`)."""

    packed: bytes
    salt: SaltDigest | None = None
    lora_name: str | None = None

    def extra(self, index: int) -> ExtraKeys | None:
        """The extra keys of block `index`: the salt stands in the first block only, the adapter in each."""
        salt = self.salt if index == 0 else None
        return ExtraKeys(salt, self.lora_name, None) if salt is not None or self.lora_name is not None else None

    def chunk(self, index: int, block_size: int) -> bytes:
        """Packed tokens of block `index`; shorter than a block at the end."""
        width = block_size * TOKEN_BYTES
        return self.packed[index * width : (index + 1) * width]


def known_path(slots: BlockSlots, prompt: PromptKeys, start: int = ROOT, index: int = 0) -> list[int]:
    """Slots of the prompt's full blocks from block `index` on (below slot `start`), as far as they are known,
    resident or not."""
    size = slots.block_size
    path: list[int] = []
    if size is None:
        return path
    width = size * TOKEN_BYTES
    first, later = prompt.extra(0), prompt.extra(1)
    packed, child, slot = prompt.packed, slots.child, start
    for offset in range(index * width, len(packed) - width + 1, width):
        found = child(slot, packed[offset : offset + width], later if offset else first)
        if found is None:
            break
        path.append(found)
        slot = found
    return path


def resident_prefix(slots: BlockSlots, path: list[int], number: int) -> int:
    """How many blocks of `path`, from its start, were all resident after event `number`."""
    for count, slot in enumerate(path):
        if not slots.resident_at(slot, number):
            return count
    return len(path)


def common_tokens(left: bytes, right: bytes, at_least: int = 0) -> int:
    """Tokens that two packed runs share from their start, of which `at_least` are known to be equal."""
    high = min(len(left), len(right)) // TOKEN_BYTES
    low = at_least
    while low < high:
        middle = (low + high + 1) // 2
        if left[low * TOKEN_BYTES : middle * TOKEN_BYTES] == right[low * TOKEN_BYTES : middle * TOKEN_BYTES]:
            low = middle
        else:
            high = middle - 1
    return low


def nearest_child(
    slots: BlockSlots, parent: int, chunk: bytes, extra: ExtraKeys | None, number: int
) -> tuple[int, int] | None:
    """The child of `parent`, known since event `number` or before, that shares the longest run of tokens with
    `chunk`: (its slot, tokens shared). None where no child shares the first token.
    """
    best: tuple[int, int] | None = None
    shared, head = 0, TOKEN_BYTES
    wanted = chunk[:head]
    for child in islice(slots.children(parent), MAX_COMPARED_CHILDREN):
        if len(wanted) < head:
            break
        tokens = slots.tokens[child]
        # Most children differ right there, and nothing else of them has to be looked at.
        if tokens is None or not tokens.startswith(wanted):
            continue
        if slots.extra[child] == extra and slots.known_at(child, number):
            shared = common_tokens(tokens, chunk, shared + 1)
            head = (shared + 1) * TOKEN_BYTES
            wanted = chunk[:head]
            best = (child, shared)
    return best


def elsewhere(slots: BlockSlots, chunk: bytes, extra: ExtraKeys | None, number: int, parent: int = ROOT) -> int | None:
    """A block below `parent` with just these tokens that was resident after event `number`, but under other extra
    keys."""
    plain = slots.child(parent, chunk, None) if extra is not None else None
    if plain is not None and slots.resident_at(plain, number):
        return plain
    if not slots.keyed:
        return None
    for child in islice(slots.children(parent), MAX_COMPARED_CHILDREN):
        if slots.tokens[child] == chunk and slots.extra[child] != extra and slots.resident_at(child, number):
            return child
    return None
