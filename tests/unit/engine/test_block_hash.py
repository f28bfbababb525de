"""Block hashes against every block that the recordings of a real server name."""

import hashlib

import pytest

from app.engine.block_hash import NONE_HASH, extra_keys_in_event, extra_keys_of, hash_block, low_64_bits

from .recorded import OWN_SERVER, RECORDINGS, recording

NAMES = sorted(path.stem for path in RECORDINGS.glob("*.jsonl"))


def _check(names: list[str]) -> int:
    batches = [each for name in names for each in recording(name).batches.items()]
    digests: dict[int | None, bytes | None] = {None: None}
    checked = 0
    for _number, batch in sorted(batches, key=lambda each: each[0]):
        for event in batch:
            if event["type"] != "BlockStored":
                continue
            parent = digests[event["parent_block_hash"]]
            first = 0 if parent is None else 1
            for index, block_hash in enumerate(event["block_hashes"]):
                size = event["block_size"]
                keys = event["extra_keys"][index]
                salt = keys[0] if keys else None
                tokens = event["token_ids"][index * size : (index + 1) * size]
                parent = hash_block(parent, tokens, extra_keys_of(first + index, None, salt))
                assert low_64_bits(parent) == block_hash
                digests[block_hash] = parent
                checked += 1
    return checked


def test_every_recorded_hash() -> None:
    assert _check([name for name in NAMES if name not in OWN_SERVER]) > 80
    assert _check(["evict"]) == 5 * 13 + 3


def test_first_parent_is_the_hash_of_a_fixed_text() -> None:
    assert hashlib.sha256(b"\x6e" + b"vllm-none-hash").digest() == NONE_HASH


@pytest.mark.parametrize("parent", [None, bytes(range(32))])
def test_salt_counts_in_the_first_block_only(parent: bytes | None) -> None:
    tokens = range(16)
    assert hash_block(parent, tokens, extra_keys_of(0, None, "a")) != hash_block(parent, tokens, extra_keys_of(0))
    assert hash_block(parent, tokens, extra_keys_of(1, None, "a")) == hash_block(parent, tokens, extra_keys_of(1))


def test_lora_comes_before_the_salt_and_counts_in_every_block() -> None:
    assert extra_keys_of(0, ("poet", "/loras/poet"), "s") == (("lora", "poet", "/loras/poet"), ("cache_salt", "s"))
    assert extra_keys_of(7, ("poet", "/loras/poet"), "s") == (("lora", "poet", "/loras/poet"),)
    assert extra_keys_in_event(extra_keys_of(0, ("poet", "/loras/poet"), "s")) == ("poet", "s")
    assert extra_keys_in_event(None) is None


def test_an_empty_salt_is_none() -> None:
    assert extra_keys_of(0, None, "") is None


def test_hash_of_tuples_and_lists_agree() -> None:
    assert hash_block(None, [1, 2, 300, 70000]) == hash_block(None, (1, 2, 300, 70000))
