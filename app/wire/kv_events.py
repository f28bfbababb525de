"""MessagePack payloads of KV events to the values of `observations`, in every form in the field.

vLLM to about 0.18 writes an event as an array (`["BlockStored", hashes, parent, tokens, ...]`, longer with each
release), later ones as a map with `type`; the batch around it is an array or a map too. The form is told event by
event. The payload is decoded to plain values and picked apart here: three times as fast as typed decoding, and a field
that a later release adds, or fills otherwise, costs nothing.

Cache salts leave this module only as digests. Imports `ids`, `observations` and its neighbours in `wire`.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from ..ids import BlockHash, GroupIdx
from ..observations import AllBlocksCleared, BlockRemoved, BlockStored, KvEvent, WireForm
from .kv_extra_keys import ExtraKeyReader, KeyList
from .kv_frames import DEFAULT_MAX_PAYLOAD_BYTES
from .kv_parts import PART_BLOCKS, in_parts, weight_of
from .kv_values import read_event, split_batch
from .msgpack_walk import NumberList

HASH_MASK = 2**64 - 1
NO_LIMIT = 1 << 62
FEW_BYTES_A_BLOCK = 32
"""A block takes more, with its tokens: what is smaller than a part's blocks would be needn't be cut."""
MAX_NAME_CHARS = 512
_HASH_BYTES = range(16, 65)
_INTS = {int}
_RAW = {bytes}
_CLEARED = AllBlocksCleared()

_new_store = partial(tuple.__new__, BlockStored)
"""`BlockStored` from a tuple of its fields, in a third of the time."""
_FIRST_GROUP = GroupIdx(0)
_ABSENT = [None] * 11
"""Stands for the items that a shorter array event lacks."""


class _Impossible(Exception):
    """An event that can't be true. Counted by `KvEventDecoder.decode`, never seen outside."""


class DecodedBatch(NamedTuple):
    """One message's worth of events, in the server's order."""

    ts: float
    """The server's clock when it published, in seconds since 1970."""
    events: tuple[KvEvent, ...]
    data_parallel_rank: int | None
    malformed: int
    """Events left out because they can't be true or can't be read."""
    unknown_types: int
    wire_form: WireForm | None
    """Of the last event; None where there is none."""


class KvEventDecoder:
    """Decodes payloads. `salt_key` keys the digests: the same as the proxy's, so that both agree."""

    def __init__(self, salt_key: bytes, max_payload_bytes: int = DEFAULT_MAX_PAYLOAD_BYTES) -> None:
        self._extra_keys = ExtraKeyReader(salt_key)
        self._max_payload_bytes = max_payload_bytes

    def decode(self, payload: bytes) -> DecodedBatch:
        """The batch in `payload`, whole. Raises DecodeError, and nothing else, where it isn't a batch of events."""
        (batch,) = (part for part in self.parts(payload, NO_LIMIT) if part is not None)
        return batch

    def parts(self, payload: bytes, most_blocks: int = PART_BLOCKS) -> Iterator[DecodedBatch | None]:
        """The same in one or more parts of `most_blocks` blocks or less, and of a few tokens each; events that are
        larger are cut. A None is a step on the way to the next part.

        Raises DecodeError before the first part, or not at all.
        """
        ts, events, rank, is_large = yield from split_batch(payload, self._max_payload_bytes)
        is_one_part = not is_large and len(payload) <= most_blocks * FEW_BYTES_A_BLOCK
        decoded: list[KvEvent] = []
        malformed = unknown_types = weight = 0
        form: WireForm | None = None
        for event in events:
            if is_large:
                event = yield from read_event(payload, event)
            try:
                if type(event) is dict:
                    form = "map"
                    known = self._from_map(event)
                elif type(event) is list and event:
                    form = "array"
                    known = self._from_array(event)
                else:
                    raise _Impossible
            except (_Impossible, RecursionError):
                malformed += 1
                continue
            if known is None:
                unknown_types += 1
                continue
            if is_one_part:
                decoded.append(known)
                continue
            for piece in in_parts(known, most_blocks):
                cost = weight_of(piece)
                if weight and weight + cost > most_blocks:
                    yield DecodedBatch(ts, tuple(decoded), rank, malformed, unknown_types, form)
                    decoded, malformed, unknown_types, weight = [], 0, 0, 0
                decoded.append(piece)
                weight += cost
        yield DecodedBatch(ts, tuple(decoded), rank, malformed, unknown_types, form)

    def _from_map(self, event: dict[Any, Any]) -> KvEvent | None:
        get = event.get
        tag = get("type")
        if tag == "BlockStored":
            hashes = _hashes(get("block_hashes"))
            store = self._stored(
                hashes, get("parent_block_hash"), get("token_ids"), get("block_size"), get("lora_id"),
                _medium(get("medium"), get("locality")), get("lora_name"), get("group_idx"),
                get("kv_cache_spec_kind"), get("session_id"),
            )  # fmt: skip
            keys = get("extra_keys")
            if not keys or (type(keys) is list and not any(keys)):
                return store
            if type(keys) is list and len(keys) == len(hashes):
                return self._with_keys(store, keys, "map")
            # Which block has which keys can't be told: resident, but not to be matched by tokens.
            return store._replace(token_ids=())
        if tag == "BlockRemoved":
            return _removed(get("block_hashes"), get("medium"), get("group_idx"), get("locality"))
        return _other(tag)

    def _from_array(self, event: list[Any]) -> KvEvent | None:
        """Items that later releases appended, or filled otherwise, are left alone."""
        tag = event[0]
        if tag == "BlockStored":
            _, raw_hashes, parent, tokens, size, lora_id, medium, lora_name, keys, group_idx, kind, *_ = event + _ABSENT
            hashes = _hashes(raw_hashes)
            store = self._stored(
                hashes, parent, tokens, size, lora_id, _medium(medium, None), lora_name, group_idx, kind, None
            )
            if type(keys) is list and len(keys) == len(hashes) and any(keys):
                return self._with_keys(store, keys, "array")
            return store
        if tag == "BlockRemoved":
            _, raw_hashes, medium, group_idx, *_ = event + _ABSENT
            return _removed(raw_hashes, medium, group_idx, None)
        return _other(tag)

    def _stored(
        self, hashes: tuple[BlockHash, ...], parent: Any, tokens: Any, block_size: Any, lora_id: Any, medium: str,
        lora_name: Any, group_idx: Any, kind: Any, session_id: Any,
    ) -> BlockStored:  # fmt: skip
        if type(parent) is int:
            parent &= HASH_MASK
        elif parent is not None:
            (parent,) = _hashes([parent])
        if type(tokens) is NumberList:
            token_ids: Any = tokens
        elif type(tokens) is list and _are_whole(tokens):
            token_ids = tuple(tokens)
        else:
            raise _Impossible
        if type(block_size) is not int or block_size < 0 or 0 < len(tokens) < len(hashes) * block_size:
            raise _Impossible
        if lora_name is not None or lora_id is not None:
            lora_name = _lora(lora_name, lora_id)
        if type(group_idx) is not int:
            group_idx = _FIRST_GROUP
        if kind is not None:
            kind = _name(kind)
        if session_id is not None:
            session_id = _name(session_id)
        return _new_store(
            (hashes, parent, token_ids, block_size, lora_name, medium, None, group_idx, kind, session_id, None)
        )

    def _with_keys(self, store: BlockStored, keys: list[Any], form: WireForm) -> BlockStored:
        many = KeyList(self._extra_keys, keys, store.lora_name, store.parent_hash is None, form)
        # Where tokens are still in their bytes, keys are read with them, part by part.
        tokens: Any = store.token_ids
        extra_keys: Any = many if type(tokens) is NumberList else many.take(0, len(keys))
        return store._replace(extra_keys=extra_keys)


def _are_whole(tokens: list[Any]) -> bool:
    """Whether all are whole numbers: the sum of anything else is something else, or none, and it is found ten times as
    fast as by looking at each."""
    try:
        return type(sum(tokens)) is int
    except TypeError:
        return False


def _other(tag: Any) -> KvEvent | None:
    """A clear, or None for a type that isn't known."""
    if type(tag) is not str:
        raise _Impossible
    return _CLEARED if tag == "AllBlocksCleared" else None


def _removed(hashes: Any, medium: Any, group_idx: Any, locality: Any) -> BlockRemoved:
    return BlockRemoved(
        _hashes(hashes),
        _medium(medium, locality),
        GroupIdx(group_idx) if type(group_idx) is int and group_idx else _FIRST_GROUP,
    )


def _hashes(values: Any) -> tuple[BlockHash, ...]:
    """Ints modulo 2**64, so that a signed and an unsigned writer name the same block; raw bytes as they are."""
    if type(values) is not list:
        raise _Impossible
    if len(values) == 1 and type(values[0]) is int:
        return (values[0] & HASH_MASK,)
    kinds = set(map(type, values))
    if kinds == _INTS:
        return tuple([value & HASH_MASK for value in values]) if min(values) < 0 else tuple(values)
    if kinds <= _RAW and all(len(value) in _HASH_BYTES for value in values):
        return tuple(values)
    raise _Impossible


def _medium(medium: Any, locality: Any) -> str:
    """The storage tier in upper case. Copies that another machine holds are a tier of their own: "REMOTE GPU"."""
    if medium == "GPU" and locality is None:
        return "GPU"
    if medium is None:
        medium = "GPU"
    elif type(medium) is not str or len(medium) > MAX_NAME_CHARS:
        raise _Impossible
    return f"REMOTE {medium}".upper() if locality == "REMOTE" else medium.upper()


def _lora(name: Any, number: Any) -> str | None:
    """Older servers give adapters only by number; a name keeps their blocks apart from the base model's."""
    return _name(name) or (f"lora_id {number}" if type(number) is int and number else None)


def _name(value: Any) -> str | None:
    return value if type(value) is str and len(value) <= MAX_NAME_CHARS else None
