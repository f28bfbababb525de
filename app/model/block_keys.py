"""What blocks are found by, in the forms that the mirror keeps: packed token ids, extra keys, and hashes as text.

Imports only `ids` and `observations`.
"""

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error

from ..ids import BlockHash, hash_text
from ..observations import BlockStored, ExtraKeys

MAX_PACKERS = 1024
TOKEN_BYTES = 4


def hash_texts(hashes: Sequence[BlockHash]) -> tuple[str, ...]:
    """`hash_text` of many, without a call for each of the usual kind."""
    return tuple([f"{item:016x}" if type(item) is int else hash_text(item) for item in hashes])


_packers: dict[int, Struct] = {}


def pack_tokens(token_ids: tuple[int, ...]) -> bytes | None:
    """Token ids as unsigned 32-bit integers of this machine; None where one doesn't fit."""
    count = len(token_ids)
    packer = _packers.get(count) or _packer(count)
    try:
        return packer.pack(*token_ids)
    except struct_error:
        return None


def _packer(count: int) -> Struct:
    """Event after event has the same few lengths: their packers are kept."""
    packer = Struct(f"={count}I")
    if len(_packers) < MAX_PACKERS:
        _packers[count] = packer
    return packer


def unpack_tokens(packed: bytes) -> tuple[int, ...]:
    """The inverse of `pack_tokens`."""
    return tuple(memoryview(packed).cast("I"))


def block_chunks(event: BlockStored) -> list[bytes] | None:
    """Packed tokens block by block; None for a sparse store."""
    size = event.block_size
    if size <= 0 or len(event.token_ids) != len(event.block_hashes) * size:
        return None
    packed = pack_tokens(event.token_ids)
    if packed is None:
        return None
    if len(event.block_hashes) == 1:
        return [packed]
    width = size * TOKEN_BYTES
    return [packed[start : start + width] for start in range(0, len(packed), width)]


def block_extras(event: BlockStored) -> list[ExtraKeys | None] | None:
    """Extra keys block by block as walks ask for them; None where no block has any."""
    if event.extra_keys is None and event.lora_name is None:
        return None
    listed = event.extra_keys or (None,) * len(event.block_hashes)
    if len(listed) != len(event.block_hashes):
        listed = (*listed, *(None,) * len(event.block_hashes))[: len(event.block_hashes)]
    extras = [with_lora(extra, event.lora_name) for extra in listed]
    return extras if any(extra is not None for extra in extras) else None


def with_lora(extra: ExtraKeys | None, lora_name: str | None) -> ExtraKeys | None:
    """Extra keys that name the adapter, whether the server listed it among them or only beside; None for no keys."""
    if extra is None or extra == (None, None, None):
        return ExtraKeys(None, lora_name, None) if lora_name is not None else None
    return extra if extra.lora_name is not None or lora_name is None else extra._replace(lora_name=lora_name)
