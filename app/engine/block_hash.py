"""Block hashes as vLLM 0.32 makes them with `sha256_cbor`: a chain of SHA-256 over canonical CBOR. Imports no IO."""

from typing import TypeAlias

BlockDigest: TypeAlias = bytes
"""The whole hash of a block: 32 bytes."""

ExtraKeys: TypeAlias = tuple[tuple[str, ...], ...]
"""What enters a block's hash beside its tokens, tagged: `(("lora", name, path), ("cache_salt", salt))`."""


def low_64_bits(digest: BlockDigest) -> int:
    """The form in which a hash goes out in events by default: its last 8 bytes, big endian."""
    return int.from_bytes(digest[-8:], "big")
