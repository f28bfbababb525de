"""Block hashes as vLLM 0.32 makes them: a chain of hashes over a canonical form of each block. Imports no IO.

A block's hash covers its own tokens and its parent's hash, so it names the whole prefix that ends with the block.
"""

import hashlib
import os
import pickle
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import cbor2
import xxhash

BlockDigest: TypeAlias = bytes
"""The whole hash of a block: 32 bytes, with xxhash 16."""

ExtraKey: TypeAlias = tuple[str | int, ...]
ExtraKeys: TypeAlias = tuple[ExtraKey, ...]
"""What enters a block's hash beside its tokens, tagged, in vLLM's order: `(("lora", name, path),
("mm", identifier, offset), ("cache_salt", salt))`."""

ALGORITHMS: Final = ("sha256_cbor", "sha256", "xxhash_cbor", "xxhash")
DEFAULT_ALGORITHM: Final = ALGORITHMS[0]
FIXED_SEED: Final = "vllm-none-hash"
"""What a cryptographic chain starts from in vLLM 0.32, where PYTHONHASHSEED is not set."""


class BlockHasher:
    """One algorithm with its seed. `none_hash` is the parent of a first block.

    Without a `seed` the cryptographic algorithms take the fixed one, the same in every process. xxhash is not collision
    resistant, so its seed is drawn at random and its hashes differ from process to process, as in vLLM. The forms
    without `_cbor` hash Python's pickle of a block: no other language can compute them.
    """

    def __init__(self, algorithm: str = DEFAULT_ALGORITHM, seed: str | None = None) -> None:
        """Raises ValueError for an unknown algorithm."""
        if algorithm not in ALGORITHMS:
            raise ValueError(f"there is no hash algorithm {algorithm!r}; there are: {', '.join(ALGORITHMS)}")
        self.algorithm = algorithm
        self._serialize = _cbor if algorithm.endswith("_cbor") else _pickle
        self._digest = xxhash.xxh3_128_digest if algorithm.startswith("xxhash") else _sha256
        if seed is None:
            seed = os.urandom(32).hex() if algorithm.startswith("xxhash") else FIXED_SEED
        self.none_hash = self._digest(self._serialize(seed))

    def hash_block(
        self, parent: BlockDigest | None, token_ids: Sequence[int], extra_keys: ExtraKeys | None = None
    ) -> BlockDigest:
        """The hash of one full block. `parent` is None for the first block of a prompt."""
        return self._digest(self._serialize((parent or self.none_hash, tuple(token_ids), extra_keys)))


def _cbor(value: Any) -> bytes:
    return cbor2.dumps(value, canonical=True)


def _pickle(value: Any) -> bytes:
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


SHA256_CBOR: Final = BlockHasher()
NONE_HASH: Final = SHA256_CBOR.none_hash
hash_block: Final = SHA256_CBOR.hash_block


def extra_keys_of(
    block_index: int,
    lora: tuple[str, str] | None = None,
    cache_salt: str | None = None,
    images: Sequence[tuple[str, int]] = (),
) -> ExtraKeys | None:
    """The extra keys of a block: LoRA (name, path) in every block, the salt in the first only; None where none.

    `images` are those that this block has tokens of: identifier, and offset from the block's first token.
    """
    keys: list[ExtraKey] = []
    if lora is not None:
        keys.append(("lora", *lora))
    keys += [("mm", identifier, offset) for identifier, offset in images]
    if cache_salt and block_index == 0:
        keys.append(("cache_salt", cache_salt))
    return tuple(keys) or None


EventKey: TypeAlias = str | tuple[str | int, ...]


def extra_keys_in_event(keys: ExtraKeys | None) -> tuple[EventKey, ...] | None:
    """Extra keys as events show them: without tags, bare LoRA name and bare salt, (identifier, offset) of an image."""
    if keys is None:
        return None
    return tuple(key[1:] if key[0] == "mm" else str(key[1]) for key in keys)


def low_64_bits(digest: BlockDigest) -> int:
    """The form in which a hash goes out in events by default: its last 8 bytes, big endian."""
    return int.from_bytes(digest[-8:], "big")
