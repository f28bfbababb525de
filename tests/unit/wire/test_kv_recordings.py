"""Every KV-event message that a real vLLM 0.32.0 sent, decoded; some of what is in them asserted by value."""

import base64
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from app.observations import AllBlocksCleared, BlockRemoved, BlockStored, ExtraKeys
from app.wire.kv_events import DecodedBatch, KvEventDecoder
from app.wire.kv_frames import KvFrames, parse_live
from app.wire.salt import salt_digest

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"
KEY = b"recordings"

ARRAY_KEYS = {
    "BlockStored": (
        "type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name",
        "extra_keys", "group_idx", "kv_cache_spec_kind",
    ),
    "BlockRemoved": ("type", "block_hashes", "medium", "group_idx"),
    "AllBlocksCleared": ("type",),
}  # fmt: skip

# (messages, blocks stored, blocks removed, clears)
COUNTS = {
    "broken_prefix": (3, 7, 0, 0),
    "cjk": (1, 9, 0, 0),
    "client_gone": (1, 1, 0, 0),
    "evict": (6, 68, 6, 0),
    "exact_multiple": (7, 14, 0, 0),
    "multi_turn": (2, 2, 0, 0),
    "n_and_logprobs": (2, 1, 2, 0),
    "not_streamed": (1, 5, 0, 0),
    "prompt_logprobs": (2, 8, 0, 0),
    "reset": (1, 5, 0, 1),
    "responses_stream": (1, 1, 0, 0),
    "salted": (2, 10, 0, 0),
    "same_step": (1, 1, 0, 0),
    "session_header": (1, 1, 0, 0),
    "shared_prefix": (3, 7, 0, 0),
    "shared_prefix_full": (3, 15, 0, 0),
    "stream_plain": (1, 1, 0, 0),
}


def messages(name: str) -> Iterator[tuple[KvFrames, DecodedBatch]]:
    decoder = KvEventDecoder(KEY)
    for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["kind"] == "kv_frames":
            frames = parse_live([base64.b64decode(frame) for frame in record["b64"]])
            yield frames, decoder.decode(frames.payload)


def counts(name: str) -> tuple[int, int, int, int]:
    total: Counter[str] = Counter()
    for _frames, batch in messages(name):
        total["messages"] += 1
        for event in batch.events:
            match event:
                case BlockStored():
                    total["stored"] += len(event.block_hashes)
                case BlockRemoved():
                    total["removed"] += len(event.block_hashes)
                case AllBlocksCleared():
                    total["cleared"] += 1
    return total["messages"], total["stored"], total["removed"], total["cleared"]


def test_no_recording_is_left_out() -> None:
    with_events = {path.stem for path in RECORDINGS.glob("*.jsonl") if any(messages(path.stem))}
    assert with_events == set(COUNTS)


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_every_message_decodes(name: str) -> None:
    assert counts(name) == COUNTS[name]
    for frames, batch in messages(name):
        assert frames.topic == b"kv-events"
        assert (batch.malformed, batch.unknown_types, batch.wire_form, batch.data_parallel_rank) == (0, 0, "map", 0)
        for event in batch.events:
            if isinstance(event, BlockStored):
                assert len(event.token_ids) == len(event.block_hashes) * event.block_size
                assert (event.block_size, event.medium, event.group_idx, event.kind) == (32, "GPU", 0, "full_attention")


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_the_array_form_of_a_recording_means_the_same(name: str) -> None:
    decoder = KvEventDecoder(KEY)
    for frames, batch in messages(name):
        ts, events, rank = msgspec.msgpack.decode(frames.payload)
        arrays = [[event.get(key) for key in ARRAY_KEYS[event["type"]]] for event in events]
        as_arrays = decoder.decode(msgspec.msgpack.encode([ts, arrays, rank]))
        assert as_arrays.wire_form == "array"
        assert as_arrays.events == tuple(
            event._replace(session_id=None) if isinstance(event, BlockStored) else event for event in batch.events
        )


def test_sequence_of_shared_prefix() -> None:
    assert [frames.seq for frames, _batch in messages("shared_prefix")] == [6, 7, 8]


def test_salts_are_digests() -> None:
    first, second = (batch.events[0] for _frames, batch in messages("salted"))
    assert isinstance(first, BlockStored)
    assert isinstance(second, BlockStored)
    assert first.extra_keys == (ExtraKeys(salt_digest(KEY, "tenant-a"), None, None), None, None, None, None)
    assert second.extra_keys == (ExtraKeys(salt_digest(KEY, "tenant-b"), None, None), None, None, None, None)
    assert first.token_ids == second.token_ids
    assert not set(first.block_hashes) & set(second.block_hashes)


def test_reports_and_stores_carry_the_session() -> None:
    (_, first), (_, second), (_, third) = messages("shared_prefix_full")
    sessions = [e.session_id for batch in (first, second, third) for e in batch.events if isinstance(e, BlockStored)]
    assert sessions == ["session-0", "session-0", "session-1", "session-1", "session-2"]
    assert [e.parent_hash for e in first.events if isinstance(e, BlockStored)] == [None, 11034846900938587343]


def test_the_clear_comes_before_the_store() -> None:
    ((_, batch),) = messages("reset")
    assert [type(event) for event in batch.events] == [AllBlocksCleared, BlockStored]


def test_evictions_come_one_by_one_before_the_store() -> None:
    *_, (_, batch), _last = messages("evict")
    assert batch.events[:3] == (
        BlockRemoved((11669393769367853839,), "GPU", 0),  # type: ignore[arg-type]
        BlockRemoved((5379931403308237449,), "GPU", 0),  # type: ignore[arg-type]
        BlockRemoved((9027818485377641281,), "GPU", 0),  # type: ignore[arg-type]
    )
