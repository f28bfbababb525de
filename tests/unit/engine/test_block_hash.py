"""Block hashes against every block that the recordings of a real server name."""

import hashlib

import pytest

from app.engine.block_hash import (
    ALGORITHMS,
    NONE_HASH,
    BlockHasher,
    extra_keys_in_event,
    extra_keys_of,
    hash_block,
    low_64_bits,
)

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


KNOWN = {
    "sha256": (
        "57cfd20ce97292a667d700097b3f1988b9b9b0f780d2625ebf56fb8789d4911b",
        "ae785548aa4e938e87de7a85ced41ab426b5dde2c66cdc5912fd45c2b35151ae",
        "cc3aa41fb50430f55081c196c275c387c16bcc99c8e11badc217da45fe6b5216",
        "16a5bb058f9ab18095b28c8a6dc488e1a7e5dc96abecdf600d5daa84f6499599",
    ),
    "sha256_cbor": (
        "20377cec9f51f6bf5ba1fa64649f3b1614e4eee833fd0fc5893f24f6e0accbaf",
        "daa3ccbd907409c20894056c35731671edda9b07fe7962f771628c737dcfa7df",
        "bd974da6b4795d658442a088dba566dff32fcfb0c9c38a3e92aeafac4890bf81",
        "ce47835084412fc3775d68542bca469284f74b66b44f08b80e6373f5d69808b2",
    ),
    "xxhash": (
        "dc45d051a0062f6dfadd06f4455350e5",
        "19f8bd146a8bd111d534e5a32842f399",
        "f812d609c5ecedc40a7bd6022b3bb608",
        "df378ebe1e11340321806cf2b5afc4d5",
    ),
    "xxhash_cbor": (
        "590402640c85269766fbb87c28a2165c",
        "e5fa47a9c659aa4f2314ec5fe3b45f0d",
        "3ff81861480796e5deaa406ffdb70a1a",
        "9aea3a97be5648a5de7d3062fbb362f9",
    ),
}
"""What vLLM 0.32 computes with PYTHONHASHSEED=7: the parent of a first block, and a chain of three blocks."""


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_gives_the_hashes_of_vllm(algorithm: str) -> None:
    hasher = BlockHasher(algorithm, "7")
    poet = ("poet", "poet")
    first = hasher.hash_block(None, [1, 2, 300, 70000])
    second = hasher.hash_block(first, [5, 6, 7, 8], extra_keys_of(0, poet, "s"))
    third = hasher.hash_block(second, [0, 255, 256, 65536], extra_keys_of(2, poet))
    assert tuple(each.hex() for each in (hasher.none_hash, first, second, third)) == KNOWN[algorithm]


def test_only_the_cryptographic_ones_have_a_fixed_seed() -> None:
    same = {algorithm: BlockHasher(algorithm).none_hash == BlockHasher(algorithm).none_hash for algorithm in ALGORITHMS}
    assert same == {"sha256_cbor": True, "sha256": True, "xxhash_cbor": False, "xxhash": False}


def test_an_unknown_algorithm_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no hash algorithm 'md5'; there are: sha256_cbor, "):
        BlockHasher("md5")


def test_images_are_named_with_their_place_in_the_block() -> None:
    keys = extra_keys_of(0, ("poet", "p"), "s", [("abc", 3), ("def", -5)])
    assert keys == (("lora", "poet", "p"), ("mm", "abc", 3), ("mm", "def", -5), ("cache_salt", "s"))
    assert extra_keys_in_event(keys) == ("poet", ("abc", 3), ("def", -5), "s")
