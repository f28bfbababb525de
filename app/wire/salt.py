"""Digests of cache salts: equal salts stay comparable, the salt itself never leaves a decoder.

The key is made once a run and handed to everything that decodes (request bodies, KV events), so that digests of
both agree, and nobody can look a guessed salt up in what the dashboard shows. Imports only `ids`.
"""

from hashlib import blake2b

from ..ids import SaltDigest

KEY_BYTES = 32
"""How long a key should be; blake2b takes 1 to 64 bytes."""


def salt_digest(key: bytes, salt: str) -> SaltDigest:
    """32 hexadecimal digits (16 bytes of keyed BLAKE2b). Lone surrogates, which JSON can carry, are digested too."""
    return SaltDigest(blake2b(salt.encode("utf-8", "surrogatepass"), digest_size=16, key=key).hexdigest())
