"""What vLLM lists beside a block's tokens, told apart: salts (digested at once), LoRA names, everything else.

Events list a block's extra keys bare and in this order: the LoRA name, `(multi-modal identifier, offset)` pairs, the
cache salt (first block of a prompt only), digests of prompt embeddings as bytes. Block hashes use tagged forms,
`("cache_salt", salt)`, which are understood here too. Imports `ids`, `observations` and `salt`.
"""

import string
from typing import Any

from ..ids import SaltDigest
from ..observations import ExtraKeys, WireForm
from .salt import salt_digest

_HEX = frozenset(string.hexdigits)


class ExtraKeyReader:
    """Reads `extra_keys` of stored blocks; `salt_key` keys every digest."""

    def __init__(self, salt_key: bytes) -> None:
        self._salt_key = salt_key

    def read(
        self, entries: list[Any], lora_name: str | None, starts_prompt: bool, form: WireForm
    ) -> tuple[ExtraKeys | None, ...]:
        """One value a block. `starts_prompt`: the first entry belongs to block 0 of a prompt."""
        return tuple(
            [
                self._entry(entry, lora_name, starts_prompt and index == 0, form) if entry else None
                for index, entry in enumerate(entries)
            ]
        )

    def _entry(self, entry: Any, lora_name: str | None, first: bool, form: WireForm) -> ExtraKeys:
        keys = list(entry) if isinstance(entry, list) else [entry]
        salt: SaltDigest | None = None
        lora: str | None = None
        rest: list[Any] = []
        if lora_name is not None and keys[0] == lora_name:
            lora = lora_name
            keys = keys[1:]
        for index, key in enumerate(keys):
            match key:
                case ["cache_salt", str(text)]:
                    salt = salt_digest(self._salt_key, text)
                case ["lora", str(name), *_]:
                    lora = name
                case str() if first and not self._is_image(key, index, keys, form):
                    salt = salt_digest(self._salt_key, key)
                case _:
                    rest.append(key)
        other = str(salt_digest(self._salt_key, repr(rest))) if rest else None
        return ExtraKeys(salt, lora, other)

    @staticmethod
    def _is_image(key: str, index: int, keys: list[Any], form: WireForm) -> bool:
        """Whether a bare text of a first block is a multi-modal identifier and not the salt, which comes last.

        Servers that write arrays list the identifier bare, and it is a BLAKE3 hash in 64 hexadecimal digits.
        """
        if any(isinstance(later, str) for later in keys[index + 1 :]):
            return True
        return form == "array" and len(key) == 64 and _HEX.issuperset(key)


class KeyList:
    """The entries of one store's many blocks, read piece by piece."""

    def __init__(
        self, reader: ExtraKeyReader, entries: list[Any], lora_name: str | None, starts_prompt: bool, form: WireForm
    ) -> None:
        self._reader = reader
        self._entries = entries
        self._lora_name = lora_name
        self._starts_prompt = starts_prompt
        self._form = form

    def take(self, first: int, end: int) -> tuple[ExtraKeys | None, ...]:
        """The keys of blocks `first` up to `end`, which isn't included."""
        starts_prompt = self._starts_prompt and first == 0
        return self._reader.read(self._entries[first:end], self._lora_name, starts_prompt, self._form)
