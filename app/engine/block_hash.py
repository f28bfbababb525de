"""Block hashes as vLLM 0.32 makes them with `sha256_cbor`: a chain of SHA-256 over canonical CBOR. Imports no IO.

A block's hash covers its own tokens and its parent's hash, so it names the whole prefix that ends with the block.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import cbor2

BlockDigest: TypeAlias = bytes
"""The whole hash of a block: 32 bytes."""

ExtraKeys: TypeAlias = tuple[tuple[str, ...], ...]
"""What enters a block's hash beside its tokens, tagged: `(("lora", name, path), ("cache_salt", salt))`."""


def _sha256_cbor(value: Any) -> BlockDigest:
    return hashlib.sha256(cbor2.dumps(value, canonical=True)).digest()


NONE_HASH: Final = _sha256_cbor("vllm-none-hash")
"""The parent of a first block, where PYTHONHASHSEED is not set."""


def hash_block(
    parent: BlockDigest | None, token_ids: Sequence[int], extra_keys: ExtraKeys | None = None
) -> BlockDigest:
    """The hash of one full block. `parent` is None for the first block of a prompt."""
    return _sha256_cbor((parent or NONE_HASH, tuple(token_ids), extra_keys))


def extra_keys_of(
    block_index: int, lora: tuple[str, str] | None = None, cache_salt: str | None = None
) -> ExtraKeys | None:
    """The extra keys of a block: LoRA (name, path) in every block, the salt in the first only; None where none."""
    keys: list[tuple[str, ...]] = []
    if lora is not None:
        keys.append(("lora", *lora))
    if cache_salt and block_index == 0:
        keys.append(("cache_salt", cache_salt))
    return tuple(keys) or None


def extra_keys_in_event(keys: ExtraKeys | None) -> tuple[str, ...] | None:
    """Extra keys as events show them: without tags, bare LoRA name and bare salt."""
    return None if keys is None else tuple(key[1] for key in keys)


def low_64_bits(digest: BlockDigest) -> int:
    """The form in which a hash goes out in events by default: its last 8 bytes, big endian."""
    return int.from_bytes(digest[-8:], "big")
