import pytest

from app.ids import BlockHash, GroupIdx, SaltDigest
from app.model.block_cache import BlockCache
from app.model.block_keys import pack_tokens, unpack_tokens, with_lora
from app.model.block_slots import BlockSlots
from app.observations import BlockRemoved, BlockStored, ExtraKeys

SIZE = 4
SALT = SaltDigest("5a")


def stored(
    *hashes: BlockHash,
    parent: BlockHash | None = None,
    first: int = 0,
    tokens: tuple[int, ...] | None = None,
    size: int = SIZE,
    group: int = 0,
    medium: str = "GPU",
    kind: str | None = "full_attention",
    extra: tuple[ExtraKeys | None, ...] | None = None,
    lora: str | None = None,
) -> BlockStored:
    """Blocks of consecutive token ids that start at `first`, where no tokens are given."""
    ids = tuple(range(first, first + len(hashes) * size)) if tokens is None else tokens
    return BlockStored(hashes, parent, ids, size, lora, medium, extra, GroupIdx(group), kind, None)


def removed(*hashes: BlockHash, group: int = 0, medium: str = "GPU") -> BlockRemoved:
    return BlockRemoved(hashes, medium, GroupIdx(group))


def cache(max_blocks: int = 1000, max_removed: int = 1000) -> BlockCache:
    return BlockCache(max_blocks, max_removed)


def walked(kept: BlockCache) -> BlockSlots:
    assert kept.walked is not None
    return kept.walked


def copies_of(kept: BlockCache, block_hash: BlockHash) -> int:
    slot = walked(kept).find(block_hash)
    return 0 if slot is None else walked(kept).copies[slot]


def depth_of(kept: BlockCache, block_hash: BlockHash) -> int:
    slot = walked(kept).find(block_hash)
    assert slot is not None
    return walked(kept).depth[slot]


def test_a_chain_is_resident_with_depths_and_tokens() -> None:
    kept = cache()
    assert kept.store(stored(1, 2, 3), 1.0) == ("stored", (1, 1, 1), 0, SIZE, 3, None, None)
    assert kept.store(stored(4, parent=3, first=12), 2.0).depth == 3
    assert (kept.resident, kept.block_size, kept.orphans) == (4, SIZE, 0)
    assert [depth_of(kept, block_hash) for block_hash in (1, 2, 3, 4)] == [0, 1, 2, 3]


def test_removal_of_what_was_never_stored_is_counted_and_nothing_else() -> None:
    kept = cache()
    assert kept.remove(removed(9), 1.0) == ((), (), 1)
    kept.store(stored(1), 1.0)
    assert kept.remove(removed(9, 1), 2.0) == ((1,), (0,), 1)
    assert (kept.unknown_removes, kept.resident) == (2, 0)


def test_two_stores_and_three_removals_never_go_below_zero() -> None:
    kept = cache()
    states = []
    for event in (stored(1), stored(1), removed(1), removed(1), removed(1)):
        if isinstance(event, BlockStored):
            kept.store(event, 1.0)
        else:
            kept.remove(event, 1.0)
        slot = walked(kept).find(1)
        states.append((copies_of(kept, 1), slot in walked(kept).uncertain))
    assert states == [(1, False), (2, False), (1, True), (0, False), (0, False)]
    assert kept.unknown_removes == 1


def test_a_known_hash_under_a_parent_is_another_copy() -> None:
    kept = cache()
    kept.store(stored(1, 2, 3), 1.0)
    assert kept.store(stored(3, parent=2, first=8), 2.0) == ("stored", (2,), 2, SIZE, 0, None, f"{2:016x}")
    assert kept.remove(removed(3), 3.0).copies == (1,)
    assert copies_of(kept, 3) == 1


def test_resident_blocks_from_the_root_are_a_report_unless_told_otherwise() -> None:
    kept = cache()
    kept.store(stored(1, 2), 1.0)
    assert kept.store(stored(1, 2), 2.0).reading == "report"
    assert copies_of(kept, 1) == 1
    assert kept.store(stored(1, 2), 2.0, "copy").copies == (2, 2)
    assert kept.store(stored(1), 2.0, "report").reading == "report"


def test_a_report_of_blocks_that_are_not_known_teaches_them() -> None:
    kept = cache()
    assert kept.store(stored(1, 2), 1.0, "report").fresh == 2
    assert kept.resident == 2


def test_a_store_that_mixes_known_and_new_blocks_counts_both() -> None:
    kept = cache()
    kept.store(stored(1, 2), 1.0)
    assert kept.store(stored(1, 2, 3, 4), 2.0) == ("stored", (2, 2, 1, 1), 0, SIZE, 2, None, None)
    assert [depth_of(kept, block_hash) for block_hash in (1, 2, 3, 4)] == [0, 1, 2, 3]


def test_one_hash_twice_in_one_store_is_two_copies() -> None:
    kept = cache()
    kept.store(stored(1, 1, tokens=(7,) * 8), 1.0)
    assert copies_of(kept, 1) == 2
    assert kept.resident == 1


def test_orphans_are_kept_and_attached_when_their_parent_arrives() -> None:
    kept = cache()
    kept.store(stored(3, parent=1, first=4), 1.0)
    kept.store(stored(4, parent=3, first=8), 1.0)
    assert (kept.resident, kept.orphans, depth_of(kept, 4)) == (2, 2, -2)
    kept.store(stored(1), 2.0)
    assert (kept.resident, kept.orphans) == (3, 0)
    assert [depth_of(kept, block_hash) for block_hash in (1, 3, 4)] == [0, 1, 2]


def test_removed_orphans_are_no_longer_counted() -> None:
    kept = cache()
    kept.store(stored(3, 4, parent=1, first=4), 1.0)
    kept.remove(removed(4), 2.0)
    assert (kept.resident, kept.orphans) == (1, 1)
    kept.store(stored(4, parent=3, first=8), 3.0)
    assert kept.orphans == 2


def test_what_was_resident_can_be_asked_as_of_any_event() -> None:
    kept = cache()
    kept.store(stored(1), 1.0)
    kept.remove(removed(1), 2.0)
    kept.store(stored(1), 3.0)
    slots = walked(kept)
    slot = slots.find(1)
    assert slot is not None
    assert [slots.resident_at(slot, number) for number in range(5)] == [False, True, False, True, True]


def test_the_oldest_removed_blocks_are_forgotten() -> None:
    kept = cache(max_removed=2)
    kept.store(stored(1, 2, 3, 4), 1.0)
    kept.remove(removed(4, 3, 2, 1), 2.0)
    slots = walked(kept)
    assert [slots.find(block_hash) is not None for block_hash in (1, 2, 3, 4)] == [True, True, False, False]


def test_a_forgotten_parent_of_a_resident_block_stays_as_a_placeholder_until_that_goes() -> None:
    kept = cache(max_removed=0)
    kept.store(stored(1, 2), 1.0)
    kept.remove(removed(1), 2.0)
    slots = walked(kept)
    assert slots.find(1) is not None
    assert depth_of(kept, 2) == 1
    kept.store(stored(1), 3.0)
    assert slots.child(0, pack_tokens((0, 1, 2, 3)) or b"", None) == slots.find(1)
    kept.remove(removed(1), 4.0)
    kept.remove(removed(2), 5.0)
    assert len(slots) == 0


def test_slots_are_used_again() -> None:
    kept = cache(max_removed=0)
    for number in range(5000):
        kept.store(stored(number, first=number), 1.0)
        kept.remove(removed(number), 1.0)
    assert len(walked(kept).hash) < 3000


def test_sparse_stores_are_resident_and_never_walked() -> None:
    kept = cache()
    kept.store(stored(1, tokens=(1, 2, 3), size=16, kind="mamba"), 1.0)
    kept.store(stored(2, tokens=(), size=0, medium="CPU"), 1.0)
    assert (kept.resident, kept.orphans, kept.walked, kept.block_size) == (2, 0, None, None)
    assert kept.store(stored(1, tokens=(1, 2, 3), size=16, kind="mamba"), 2.0).copies == (2,)


def test_groups_and_media_are_apart() -> None:
    kept = cache()
    kept.store(stored(1, group=0), 1.0)
    kept.store(stored(1, group=1, kind="sliding_window"), 1.0)
    kept.store(stored(1, medium="CPU"), 1.0)
    kept.remove(removed(1, group=1), 2.0)
    assert copies_of(kept, 1) == 1
    kept.remove(removed(1), 3.0)
    assert copies_of(kept, 1) == 0
    assert kept.resident == 1


def test_only_full_attention_is_walked() -> None:
    kept = cache()
    kept.store(stored(1, group=0, kind="sliding_window"), 1.0)
    assert kept.walked is None
    kept.store(stored(2, group=1, kind="mla_attention", size=8), 1.0)
    assert (kept.block_size, kept.walked_group) == (8, 1)


def test_another_block_size_means_another_process() -> None:
    kept = cache()
    kept.store(stored(1, 2), 1.0)
    assert kept.store(stored(9, size=8), 2.0).cleared == 2
    assert (kept.resident, kept.block_size) == (1, 8)


def test_clearing_keeps_the_old_picture_for_what_was_sent_before() -> None:
    kept = cache()
    kept.store(stored(1, 2), 1.0)
    assert kept.clear("reset", 2.0) == 2
    assert (kept.resident, kept.walked) == (0, None)
    old = kept.walked_at(1)
    assert old is not None
    assert old.find(1) is not None
    assert kept.walked_at(2) is None


def test_a_storm_of_clears_keeps_few_pictures() -> None:
    kept = cache()
    for number in range(200):
        kept.store(stored(number), 1.0)
        kept.clear("reset", 1.0)
        kept.clear("reset", 1.0)
    assert len(kept.epochs) <= 4


def test_above_the_bound_nothing_is_taken_in() -> None:
    kept = cache(max_blocks=2)
    kept.store(stored(1, 2, 3), 1.0)
    assert (kept.resident, kept.refused) == (2, 1)
    kept.store(stored(9), 1.0)
    assert (kept.resident, kept.refused) == (2, 2)
    kept.remove(removed(2), 1.0)
    kept.store(stored(9), 1.0)
    assert copies_of(kept, 9) == 1


def test_raw_hashes_are_not_integers() -> None:
    kept = cache()
    raw = (1).to_bytes(32, "big")
    kept.store(stored(1), 1.0)
    kept.store(stored(raw, first=50), 1.0)
    kept.remove(removed(1), 2.0)
    assert (copies_of(kept, raw), copies_of(kept, 1)) == (1, 0)


def test_token_ids_that_do_not_fit_make_a_store_sparse() -> None:
    kept = cache()
    kept.store(stored(1, tokens=(2**40, 1, 2, 3)), 1.0)
    kept.store(stored(2, tokens=(-1, 1, 2, 3)), 1.0)
    assert (kept.resident, kept.walked) == (2, None)


def test_usage_corrects_copies() -> None:
    kept = cache()
    kept.store(stored(1), 1.0)
    kept.store(stored(1), 1.0)
    kept.remove(removed(1), 2.0)
    assert kept.correct(1, 0, 3.0) == 1
    assert not walked(kept).uncertain
    assert kept.correct(1, 1, 3.0) == 2
    assert kept.correct(1, -1, 3.0) == 1
    assert kept.correct(1, -1, 3.0) == 0
    assert kept.correct(1, -1, 3.0) is None
    assert kept.resident == 0


@pytest.mark.parametrize(
    ("extra", "lora", "expected"),
    [
        (None, None, None),
        (ExtraKeys(None, None, None), None, None),
        (None, "a", ExtraKeys(None, "a", None)),
        (ExtraKeys(SALT, None, None), "a", ExtraKeys(SALT, "a", None)),
        (ExtraKeys(None, "a", None), "a", ExtraKeys(None, "a", None)),
    ],
)
def test_the_adapter_counts_wherever_the_server_names_it(
    extra: ExtraKeys | None, lora: str | None, expected: ExtraKeys | None
) -> None:
    assert with_lora(extra, lora) == expected


def test_packing_is_reversible() -> None:
    assert unpack_tokens(pack_tokens((0, 1, 2**32 - 1)) or b"") == (0, 1, 2**32 - 1)


def test_a_store_of_nothing_changes_nothing() -> None:
    kept = cache()
    assert kept.store(stored(), 1.0).copies == ()
    assert kept.resident == 0


def test_a_block_without_room_costs_its_neighbours_nothing() -> None:
    kept = cache(max_blocks=2)
    kept.store(stored(2, 3, parent=1, first=4), 1.0)

    assert kept.store(stored(1, 2), 2.0).copies == (0, 2)
    assert (kept.refused, copies_of(kept, 1), copies_of(kept, 2), copies_of(kept, 3)) == (1, 0, 2, 1)
