"""Payloads with the exact bytes of the field, in both wire forms."""

import pickle
import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import DecodeError
from app.ids import hash_text
from app.observations import AllBlocksCleared, BlockRemoved, BlockStored, ExtraKeys, KvEvent
from app.wire.kv_events import DecodedBatch, KvEventDecoder
from app.wire.kv_values import PLAIN_BYTES
from app.wire.salt import salt_digest

KEY = b"k" * 32
STORED_KEYS = (
    "type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name",
    "extra_keys", "group_idx", "kv_cache_spec_kind",
)  # fmt: skip
REMOVED_KEYS = ("type", "block_hashes", "medium", "group_idx")


def decode(payload: bytes) -> DecodedBatch:
    return KvEventDecoder(KEY).decode(payload)


def decode_events(*events: Any) -> DecodedBatch:
    return decode(msgspec.msgpack.encode([1.0, list(events), 0]))


def both_forms(**fields: Any) -> list[Any]:
    """The event as a map, and as an array that ends where its fields end."""
    keys = REMOVED_KEYS if fields["type"] == "BlockRemoved" else STORED_KEYS
    last = max(keys.index(key) for key in fields)
    return [fields, [fields.get(key) for key in keys[: last + 1]]]


def stored(hashes: list[Any], tokens: list[int], size: int, **more: Any) -> list[Any]:
    fields = {
        "type": "BlockStored", "block_hashes": hashes, "parent_block_hash": None, "token_ids": tokens,
        "block_size": size, "lora_id": None, "medium": "GPU",
    }  # fmt: skip
    return both_forms(**(fields | more))


def only_stored(batch: DecodedBatch) -> BlockStored:
    (event,) = batch.events
    assert isinstance(event, BlockStored)
    return event


def test_outer_batch_as_a_map() -> None:
    payload = bytes.fromhex(
        "83a27473cb3ff0000000000000a66576656e74739181a474797065b0416c6c426c6f636b73436c6561726564"
        "b2646174615f706172616c6c656c5f72616e6b00"
    )
    assert decode(payload) == DecodedBatch(1.0, (AllBlocksCleared(),), 0, 0, 0, "map")


def test_signed_and_unsigned_hash_are_one_block() -> None:
    signed = bytes.fromhex("93cb3ff00000000000009196ab426c6f636b53746f72656491d3dab89baa7b5857c0c0940102030404c000")
    from_signed = only_stored(decode(signed))
    from_unsigned = only_stored(decode(signed.replace(b"\xd3\xda\xb8", b"\xcf\xda\xb8")))
    assert from_signed == from_unsigned
    assert from_signed.block_hashes == (15760518052499183552,)
    assert hash_text(from_signed.block_hashes[0]) == "dab89baa7b5857c0"
    assert (from_signed.token_ids, from_signed.block_size, from_signed.medium) == ((1, 2, 3, 4), 4, "GPU")


def test_signed_parents_and_removals_are_the_same_key_too() -> None:
    for event in stored([1], [1, 2], 2, parent_block_hash=-1):
        assert only_stored(decode_events(event)).parent_hash == 2**64 - 1
    for event in both_forms(type="BlockRemoved", block_hashes=[-1], medium="GPU"):
        assert decode_events(event).events == (BlockRemoved((2**64 - 1,), "GPU", 0),)  # type: ignore[arg-type]


@pytest.mark.parametrize("length", [6, 7, 8, 9, 12, 15])
def test_arrays_of_every_length(length: int) -> None:
    items = ["BlockStored", [5, 6], 4, [1, 2, 3, 4], 2, None, "gpu", "adapter", "new", {"new": 1}, 3, 4, 5, 6, "s"]
    event = only_stored(decode_events(items[:length]))
    assert (event.block_hashes, event.parent_hash, event.token_ids, event.block_size) == ((5, 6), 4, (1, 2, 3, 4), 2)
    assert event.medium == "GPU"
    assert event.lora_name == ("adapter" if length > 7 else None)


def test_hash_as_raw_bytes() -> None:
    payload = bytes.fromhex(
        "93cb3ff00000000000009188a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391c420000102030405060708"
        "090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f6964739401"
        "020304aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c000"
    )
    event = only_stored(decode(payload))
    assert event.block_hashes == (bytes(range(32)),)
    assert hash_text(event.block_hashes[0]) == bytes(range(32)).hex()
    assert len(hash_text(event.block_hashes[0])) == 64


@pytest.mark.parametrize("value", [b"", b"8 bytes!", b"x" * 65, "text", 1.5, None, True, [1]])
def test_what_is_no_hash_is_malformed(value: object) -> None:
    for event in [*stored([value], [1, 2], 2), *both_forms(type="BlockRemoved", block_hashes=[value], medium="GPU")]:
        assert decode_events(event) == DecodedBatch(1.0, (), 0, 1, 0, "map" if isinstance(event, dict) else "array")


def test_tokens_that_span_more_blocks_than_hashes_stay_sparse() -> None:
    for event in stored([9], list(range(1584)), 528, extra_keys=[None]):
        batch = decode_events(event, ["AllBlocksCleared"])
        store = batch.events[0]
        assert isinstance(store, BlockStored)
        assert (store.block_hashes, len(store.token_ids), store.block_size) == ((9,), 1584, 528)
        assert len(batch.events) == 2
        assert batch.malformed == 0


def test_tier_event_without_tokens_and_block_size() -> None:
    for event in stored([1], [], 0, medium="CPU"):
        store = only_stored(decode_events(event))
        assert (store.block_hashes, store.token_ids, store.block_size, store.medium) == ((1,), (), 0, "CPU")


def test_impossible_event_leaves_the_others_alone() -> None:
    for event in stored([1, 2, 3, 4], [1, 2, 3], 256):
        good = stored([5], [1, 2], 2)[0]
        batch = decode_events(good, event, {"type": "AllBlocksCleared"})
        assert [type(item) for item in batch.events] == [BlockStored, AllBlocksCleared]
        assert batch.malformed == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"block_hashes": None}, {"block_hashes": {}}, {"parent_block_hash": "x"}, {"token_ids": None},
        {"token_ids": ["a", "b"]}, {"token_ids": [1.0, 2.0]}, {"block_size": -1},
        {"block_size": None}, {"block_size": 2.0}, {"medium": 7}, {"medium": "M" * 600},
    ],
)  # fmt: skip
def test_fields_of_the_wrong_kind_are_malformed(fields: dict[str, Any]) -> None:
    for event in stored([1], [1, 2], 2, **fields):
        batch = decode_events(event)
        assert (batch.events, batch.malformed) == ((), 1)


def test_a_flood_of_clears_is_handed_on() -> None:
    assert decode_events(*[["AllBlocksCleared"]] * 200).events == (AllBlocksCleared(),) * 200


def test_the_form_is_told_event_by_event() -> None:
    as_map, as_array = stored([1], [1, 2], 2)
    batch = decode_events(as_map, as_array, as_map, as_array)
    assert len(set(batch.events)) == 1
    assert batch.wire_form == "array"
    assert decode_events(as_array, as_map).wire_form == "map"
    assert decode_events().wire_form is None


@pytest.mark.parametrize(
    ("medium", "tier"), [("GPU", "GPU"), ("gpu", "GPU"), ("CPU", "CPU"), ("cpu", "CPU"), (None, "GPU")]
)
def test_media(medium: str | None, tier: str) -> None:
    for event in [
        *stored([1], [1], 1, medium=medium),
        *both_forms(type="BlockRemoved", block_hashes=[1], medium=medium),
    ]:
        (decoded,) = decode_events(event).events
        assert not isinstance(decoded, AllBlocksCleared)
        assert decoded.medium == tier


def test_copies_elsewhere_are_a_tier_of_their_own() -> None:
    event = stored([1], [1], 1)[0] | {"locality": "REMOTE"}
    assert only_stored(decode_events(event)).medium == "REMOTE GPU"


def test_groups_of_several_block_sizes() -> None:
    for group, block_size in enumerate((256, 64, 8, 4)):
        for event in stored(
            [1], list(range(block_size)), block_size, group_idx=group, kv_cache_spec_kind="mla_attention"
        ):
            store = only_stored(decode_events(event))
            assert (store.group_idx, store.block_size, store.kind) == (group, block_size, "mla_attention")


def test_unknown_types_are_counted() -> None:
    batch = decode_events({"type": "BlockMoved"}, ["BlockPinned", 1], ["AllBlocksCleared"])
    assert (len(batch.events), batch.unknown_types, batch.malformed) == (1, 2, 0)


@pytest.mark.parametrize("event", [None, 1, "AllBlocksCleared", [], {}, [1], {"type": 3}, [["BlockStored"]]])
def test_what_is_no_event_is_malformed(event: object) -> None:
    batch = decode_events(event, ["AllBlocksCleared"])
    assert (len(batch.events), batch.malformed) == (1, 1)


# --- extra keys ------------------------------------------------------------------------------------------------------


def keys_of(entries: list[Any], **more: Any) -> list[tuple[ExtraKeys | None, ...] | None]:
    hashes = list(range(1, len(entries) + 1))
    return [
        only_stored(decode_events(event)).extra_keys
        for event in stored(hashes, hashes, 1, **({"extra_keys": entries} | more))
    ]


def test_salt_becomes_a_digest() -> None:
    digest = salt_digest(KEY, "tenant-a")
    for keys in keys_of([["tenant-a"], None, None]) + keys_of([[["cache_salt", "tenant-a"]], None, None]):
        assert keys == (ExtraKeys(digest, None, None), None, None)


def test_no_keys_at_all() -> None:
    assert keys_of([None, None]) == [None, None]
    assert keys_of([[], None]) == [None, None]


def test_lora_name_comes_first() -> None:
    for keys in keys_of([["sql", "salt"], ["sql"]], lora_name="sql"):
        assert keys == (ExtraKeys(salt_digest(KEY, "salt"), "sql", None), ExtraKeys(None, "sql", None))
    as_map, as_array = stored([1], [1], 1, lora_id=7)
    assert only_stored(decode_events(as_map)).lora_name == only_stored(decode_events(as_array)).lora_name == "lora_id 7"


def test_images_are_told_apart_without_being_named() -> None:
    (first, second) = (keys_of([[["cat", 5]], [["cat", -11]]])[0], keys_of([[["dog", 5]], [["dog", -11]]])[0])
    assert first is not None
    assert second is not None
    others = {keys.other for keys in (*first, *second) if keys is not None}
    assert len(others) == 4
    assert not any("cat" in str(other) for other in others)
    assert all(keys is not None and keys.salt is None for keys in (*first, *second))


def test_salt_beside_an_image() -> None:
    for keys in keys_of([[["cat", 5], "pepper"], [["cat", -1]]]):
        assert keys is not None
        assert keys[0] is not None
        assert keys[1] is not None
        assert keys[0].salt == salt_digest(KEY, "pepper")
        assert keys[0].other is not None
        assert keys[1].salt is None


def test_bare_image_identifiers_of_array_events_are_no_salt() -> None:
    identifier = "ab" * 32
    keys = keys_of([[identifier, "pepper"], [identifier]])[1]
    assert keys is not None
    assert keys[0] is not None
    assert keys[0].salt == salt_digest(KEY, "pepper")
    assert keys[0].other is not None
    alone = keys_of([[identifier]])[1]
    assert alone is not None
    assert alone[0] == ExtraKeys(None, None, keys[0].other)


def test_text_in_a_later_block_is_no_salt() -> None:
    for keys in keys_of([["x"]], parent_block_hash=9):
        assert keys is not None
        assert keys[0] is not None
        assert keys[0].salt is None


def test_keys_that_fit_no_block_leave_the_store_sparse() -> None:
    as_map, as_array = stored([1, 2], [1, 2], 1, extra_keys=[["salt"]])
    assert only_stored(decode_events(as_map)).token_ids == ()
    assert only_stored(decode_events(as_array)).token_ids == (1, 2)


# --- hostile input ---------------------------------------------------------------------------------------------------


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        raise AssertionError("unpickled")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07builtin\x94.",
        pickle.dumps([1.0, [], 0]),
        b"\x91" * 10_000,
        b"\x93\xcb" + struct.pack(">d", 1.0) + b"\x91" * 10_000,
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff" * 1000,
        b"\x92\xc0\x90",
        b"\x92\x01\x01",
        b"\x91\x01",
        b"\x01",
        b"\x81\x90\x01",
        b"\xd6\xff" + b"\xff" * 4,
        b"\x92\x01\x90 and more",
        msgspec.msgpack.encode({"ts": 1.0}),
    ],
)
def test_what_is_no_batch_raises_decode_error(payload: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(payload)


def test_two_hundred_megabytes_are_not_looked_at() -> None:
    with pytest.raises(DecodeError):
        decode(bytes(200_000_000))


def test_deep_nesting_inside_an_event_is_contained() -> None:
    for depth in (100, 400, 900):
        entry: Any = []
        for _ in range(depth):
            entry = [entry]
        inner = b"\x91" * depth + b"\x90"
        payload = msgspec.msgpack.encode([1.0, [{"type": "BlockMoved", "x": 1}], 0]).replace(
            b"\xa1x\x01", b"\xa1x" + inner
        )
        try:
            assert decode(payload).unknown_types == 1
        except DecodeError:
            assert depth > 400


def test_large_honest_events_pass_in_both_forms() -> None:
    tokens = [70_000 + index for index in range(300_000)]
    hashes = [2**63 + index for index in range(300_000 // 16)]
    expected: set[KvEvent] = set()
    for event in stored(hashes, tokens, 16):
        payload = msgspec.msgpack.encode([1.0, [event], 3])
        assert len(payload) > PLAIN_BYTES
        batch = decode(payload)
        store = only_stored(batch)
        assert (store.token_ids, store.block_hashes, batch.data_parallel_rank) == (tuple(tokens), tuple(hashes), 3)
        expected.add(store)
    assert len(expected) == 1
    outer_map = {"ts": 1.0, "events": stored(hashes, tokens, 16), "data_parallel_rank": 3}
    assert set(decode(msgspec.msgpack.encode(outer_map)).events) == expected


@pytest.mark.parametrize("item", [b"\x80", b"\x90", b"\xa0"])
def test_a_large_message_of_empty_things_is_refused(item: bytes) -> None:
    many = b"\xdd" + (3_000_000).to_bytes(4, "big") + item * 3_000_000
    with pytest.raises(DecodeError):
        decode(b"\x92\x01" + many)
    event = decode(b"\x92\x01\x91\x92\xabBlockStored" + many)
    assert (event.events, event.malformed) == ((), 1)
    with pytest.raises(DecodeError):
        decode(many)


@pytest.mark.parametrize("form", ["map", "array"])
def test_a_large_message_comes_in_parts_that_make_up_the_whole(form: str) -> None:
    events: list[Any] = []
    for number in range(40):
        fields = [[number * 100 + block for block in range(100)], None, list(range(1600)), 16, None, "GPU"]
        names = ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium")
        as_map = {"type": "BlockStored", **dict(zip(names, fields, strict=True))}
        events.append(as_map if form == "map" else ["BlockStored", *fields])
    events[7] = ["no such", "event"]
    payload = msgspec.msgpack.encode([1.0, events, 0])
    decoder = KvEventDecoder(KEY)
    whole = decoder.decode(payload)
    parts = [part for part in decoder.parts(payload, 1000) if part is not None]
    assert [len(part.events) for part in parts] == [10, 10, 10, 9]
    assert tuple(event for part in parts for event in part.events) == whole.events
    assert [part.unknown_types for part in parts] == [1, 0, 0, 0]
    assert {part.wire_form for part in parts} <= {form, "array"}


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=6), inner, max_size=6),
    max_leaves=20,
)
near_events = st.one_of(
    st.lists(plain_values, max_size=12).map(lambda items: ["BlockStored", *items]),
    st.lists(plain_values, max_size=4).map(lambda items: ["BlockRemoved", *items]),
    st.fixed_dictionaries(
        {"type": st.just("BlockStored"), "block_hashes": st.lists(st.integers(-(2**63), 2**64 - 1), max_size=3)},
        optional=dict.fromkeys(STORED_KEYS[2:], plain_values),
    ),
)


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_raise_decode_error(payload: bytes) -> None:
    try:
        decode(payload)
    except DecodeError:
        return


@given(st.lists(near_events | plain_values, max_size=4), plain_values)
def test_any_values_in_a_batch_are_decoded_or_counted(events: list[Any], rank: Any) -> None:
    batch = decode(msgspec.msgpack.encode([0.5, events, rank]))
    assert len(batch.events) + batch.malformed + batch.unknown_types == len(events)


@given(st.data())
def test_damaged_bytes_never_raise_anything_else(data: st.DataObject) -> None:
    payload = bytearray(msgspec.msgpack.encode([1.0, stored([1, 2], [1, 2, 3, 4], 2, extra_keys=[["s"], None]), 0]))
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode(bytes(payload))
    except DecodeError:
        return
