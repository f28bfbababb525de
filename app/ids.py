"""The names that tie readings together, as types. Imports nothing of the project."""

from typing import NewType

ServerId = NewType("ServerId", str)
"""One vLLM process behind one URL: its base URL without a trailing slash."""

Rank = NewType("Rank", int)
"""One data-parallel engine of a server; 0 where there is only one."""

RequestId = NewType("RequestId", str)
"""Issued by the dashboard for each proxied request. Never reused within one run."""

SessionId = NewType("SessionId", str)
"""What `X-Session-ID` carries. Joins a request and its blocks only where the dashboard issued it."""

SaltDigest = NewType("SaltDigest", str)
"""A keyed digest of a cache salt. The salt itself never leaves the decoder."""

GroupIdx = NewType("GroupIdx", int)
"""vLLM's KV cache group; 0 where a model has one."""

BlockHash = int | bytes
"""A block hash as it came: an int in 0..2**64-1 (the low 64 bits of the block's hash), or the raw bytes.

The two forms never compare equal. Outside Python a hash is text: see `hash_text`.
"""


def hash_text(block_hash: BlockHash) -> str:
    """Hexadecimal text of a block hash: 16 digits for the 64-bit form, two a byte for the raw form."""
    return f"{block_hash:016x}" if isinstance(block_hash, int) else block_hash.hex()


def hash_from_text(text: str) -> BlockHash:
    """The inverse of `hash_text`. Raises ValueError where `text` is no such text."""
    return int(text, 16) if len(text) == 16 else bytes.fromhex(text)
