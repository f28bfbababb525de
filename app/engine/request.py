"""A request inside the embedded engine: what was asked, and how far it got. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .block_hash import SHA256_CBOR, BlockDigest, BlockHasher, ExtraKeys, extra_keys_of
from .cache_events import Lora
from .free_queue import Block


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in a prompt: the hash of its content, and which tokens stand for it."""

    identifier: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class CoreRequest:
    """One request as the engine sees it: token ids.

    `full_report` is `kv_cache_report_mode: full`. `skip_reading_cache` (prompt_logprobs) looks nothing up but stores.
    A token of `stop_token_ids` ends the request once it is sampled; it counts as an output token.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    max_tokens: int
    cache_salt: str | None = None
    lora: Lora | None = None
    session_id: str | None = None
    full_report: bool = False
    skip_reading_cache: bool = False
    stop_token_ids: frozenset[int] = field(default_factory=frozenset)
    images: tuple[Image, ...] = ()
    """In the order of their places."""


class RequestState:
    """A request on its way through the scheduler. `block_size` 0 means that nothing is hashed (caching is off).

    `digests` has the hash of each full block of prompt and output so far, also of blocks that aren't in the cache; a
    new one has none until `hash_blocks` was called, or those of the same prompt that it is given. `registered_blocks`
    counts those of `blocks`, from the first on, that are.
    """

    __slots__ = (
        "_block_size",
        "_hasher",
        "blocks",
        "cached_tokens",
        "computed_tokens",
        "digests",
        "preemptions",
        "registered_blocks",
        "request",
        "token_ids",
    )

    def __init__(
        self,
        request: CoreRequest,
        block_size: int,
        hasher: BlockHasher = SHA256_CBOR,
        digests: Sequence[BlockDigest] = (),
    ) -> None:
        self.request = request
        self.token_ids = list(request.prompt_token_ids)
        self.digests = list(digests)
        self.blocks: list[Block] = []
        self.registered_blocks = 0
        self.computed_tokens = 0
        self.cached_tokens = 0
        self.preemptions = 0
        self._block_size = block_size
        self._hasher = hasher

    @property
    def output_tokens(self) -> int:
        """Tokens sampled so far."""
        return len(self.token_ids) - len(self.request.prompt_token_ids)

    def append(self, token_id: int) -> None:
        """Takes in a sampled token; a block that it fills gets its hash."""
        self.token_ids.append(token_id)
        self.hash_blocks()

    def hash_blocks(self) -> None:
        """Hashes the full blocks that have no hash yet."""
        size = self._block_size
        if size:
            self._hash_until(len(self.token_ids) // size)

    def hash_steps(self, blocks: int) -> Iterator[None]:
        """The same in steps of so many `blocks`, for a caller with other things to do in between."""
        size = self._block_size
        full = len(self.token_ids) // size if size else 0
        for end in range(len(self.digests) + blocks, full, blocks):
            self._hash_until(end)
            yield
        self._hash_until(full)

    def extra_keys(self, block_index: int) -> ExtraKeys | None:
        """What enters that block's hash beside its tokens."""
        request = self.request
        lora = (request.lora.name, request.lora.path) if request.lora else None
        images = self._images_in(block_index) if request.images else ()
        return extra_keys_of(block_index, lora, request.cache_salt, images)

    def _hash_until(self, end: int) -> None:
        size = self._block_size
        for index in range(len(self.digests), end):
            parent = self.digests[-1] if self.digests else None
            tokens = self.token_ids[index * size : (index + 1) * size]
            self.digests.append(self._hasher.hash_block(parent, tokens, self.extra_keys(index)))

    def _images_in(self, block_index: int) -> list[tuple[str, int]]:
        start, end = block_index * self._block_size, (block_index + 1) * self._block_size
        return [
            (image.identifier, image.offset - start)
            for image in self.request.images
            if image.offset < end and image.offset + image.length > start
        ]
