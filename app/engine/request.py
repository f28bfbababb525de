"""A request inside the embedded engine: what was asked, and how far it got. Pure."""

from dataclasses import dataclass, field

from .block_hash import BlockDigest, ExtraKeys, extra_keys_of, hash_block
from .free_queue import Block


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
    lora_name: str | None = None
    lora_path: str | None = None
    session_id: str | None = None
    full_report: bool = False
    skip_reading_cache: bool = False
    stop_token_ids: frozenset[int] = field(default_factory=frozenset)


class RequestState:
    """A request on its way through the scheduler. `block_size` 0 means that nothing is hashed (caching is off).

    `digests` has the hash of each full block of prompt and output so far, also of blocks that aren't in the cache.
    `registered_blocks` counts those of `blocks`, from the first on, that are.
    """

    __slots__ = (
        "_block_size",
        "_lora",
        "blocks",
        "cached_tokens",
        "computed_tokens",
        "digests",
        "preemptions",
        "registered_blocks",
        "request",
        "token_ids",
    )

    def __init__(self, request: CoreRequest, block_size: int) -> None:
        self.request = request
        self.token_ids = list(request.prompt_token_ids)
        self.digests: list[BlockDigest] = []
        self.blocks: list[Block] = []
        self.registered_blocks = 0
        self.computed_tokens = 0
        self.cached_tokens = 0
        self.preemptions = 0
        self._block_size = block_size
        self._lora = (request.lora_name, request.lora_path or "") if request.lora_name else None
        self._hash_full_blocks()

    @property
    def output_tokens(self) -> int:
        """Tokens sampled so far."""
        return len(self.token_ids) - len(self.request.prompt_token_ids)

    def append(self, token_id: int) -> None:
        """Takes in a sampled token; a block that it fills gets its hash."""
        self.token_ids.append(token_id)
        self._hash_full_blocks()

    def extra_keys(self, block_index: int) -> ExtraKeys | None:
        """What enters that block's hash beside its tokens."""
        return extra_keys_of(block_index, self._lora, self.request.cache_salt)

    def _hash_full_blocks(self) -> None:
        size = self._block_size
        if not size:
            return
        for index in range(len(self.digests), len(self.token_ids) // size):
            parent = self.digests[-1] if self.digests else None
            tokens = self.token_ids[index * size : (index + 1) * size]
            self.digests.append(hash_block(parent, tokens, self.extra_keys(index)))
