import pytest

from app.ids import SaltDigest
from app.model.block_cache import BlockCache
from app.model.block_keys import pack_tokens
from app.model.block_slots import ROOT, BlockSlots
from app.model.prefix_match import (
    PromptKeys,
    cacheable_tokens,
    common_tokens,
    elsewhere,
    known_path,
    nearest_child,
    resident_prefix,
)
from app.observations import ExtraKeys

from .test_block_cache import removed, stored, walked


def prompt(*tokens: int, salt: str | None = None, lora: str | None = None) -> PromptKeys:
    return PromptKeys(packed(*tokens), SaltDigest(salt) if salt else None, lora)


def packed(*tokens: int) -> bytes:
    return pack_tokens(tokens) or b""


def prefix(slots: BlockSlots, keys: PromptKeys, number: int) -> int:
    return resident_prefix(slots, known_path(slots, keys), number)


@pytest.mark.parametrize(
    ("length", "size", "expected"), [(0, 32, 0), (1, 32, 0), (32, 32, 0), (33, 32, 32), (64, 32, 32), (65, 32, 64)]
)
def test_the_last_token_is_always_recomputed(length: int, size: int, expected: int) -> None:
    assert cacheable_tokens(length, size) == expected


def test_walks_as_of_an_event() -> None:
    kept = BlockCache(100, 100)
    kept.store(stored(1, 2), 1.0)
    kept.store(stored(3, parent=2, first=8), 1.0)
    kept.remove(removed(2), 1.0)
    keys = prompt(*range(13))
    assert [prefix(walked(kept), keys, number) for number in range(4)] == [0, 2, 3, 1]
    assert len(known_path(walked(kept), keys)) == 3


def test_salts_stand_in_the_first_block_and_adapters_in_each() -> None:
    kept = BlockCache(100, 100)
    salted = ExtraKeys(SaltDigest("5a"), None, None)
    tuned = ExtraKeys(None, "sql", None)
    kept.store(stored(1, 2, extra=(salted, None)), 1.0)
    kept.store(stored(3, 4, extra=(tuned, tuned)), 1.0)
    slots = walked(kept)
    tokens = tuple(range(8))
    assert known_path(slots, prompt(*tokens)) == []
    assert len(known_path(slots, prompt(*tokens, salt="5a"))) == 2
    assert len(known_path(slots, prompt(*tokens, lora="sql"))) == 2
    assert known_path(slots, prompt(*tokens, salt="5b")) == []


def test_other_images_under_the_same_placeholders_do_not_match() -> None:
    kept = BlockCache(100, 100)
    kept.store(stored(1, 2, extra=(None, ExtraKeys(None, None, "image-a"))), 1.0)
    assert len(known_path(walked(kept), prompt(*range(8)))) == 1


@pytest.mark.parametrize(("left", "right", "expected"), [("", "", 0), ("abc", "abd", 2), ("abc", "abcd", 3)])
def test_common_tokens(left: str, right: str, expected: int) -> None:
    assert common_tokens(packed(*map(ord, left)), packed(*map(ord, right))) == expected


def test_equal_bytes_across_a_token_border_are_no_common_token() -> None:
    assert common_tokens(packed(0x01000000, 5), packed(0x02000000, 5)) == 0


def test_the_nearest_child_shares_most_tokens() -> None:
    kept = BlockCache(100, 100)
    kept.store(stored(1, tokens=(1, 2, 9, 9)), 1.0)
    kept.store(stored(2, tokens=(1, 2, 3, 9)), 1.0)
    kept.store(stored(3, tokens=(1, 8, 8, 8)), 1.0)
    slots = walked(kept)
    assert nearest_child(slots, ROOT, packed(1, 2, 3, 4), None, 3) == (slots.find(2), 3)
    assert nearest_child(slots, ROOT, packed(1, 2, 3, 4), None, 1) == (slots.find(1), 2)
    assert nearest_child(slots, ROOT, packed(7, 2, 3, 4), None, 3) is None
    assert nearest_child(slots, ROOT, packed(1, 2), None, 3) == (slots.find(2), 2)


def test_equal_tokens_under_other_keys_are_found() -> None:
    kept = BlockCache(100, 100)
    kept.store(stored(1, extra=(ExtraKeys(SaltDigest("5a"), None, None),)), 1.0)
    slots = walked(kept)
    assert elsewhere(slots, packed(0, 1, 2, 3), None, 1) == slots.find(1)
    assert elsewhere(slots, packed(0, 1, 2, 3), None, 0) is None
