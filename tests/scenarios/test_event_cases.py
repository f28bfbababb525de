"""Faults that subscribers to KV events have in the field: from the bytes of the wire to what is resident."""

from typing import Any

import msgspec
import pytest

from app.events import BlocksCleared, BlocksStored
from app.ids import Rank
from app.observations import CacheReset, KvBatch, KvDuplicate, KvGap, KvRanks, KvStreamState, StreamFault, WireForm
from app.wire.kv_events import KvEventDecoder
from app.wire.kv_frames import parse_live, parse_replay
from tests.scenarios.tables import CLEARED, SERVER, Scene, removed, stored
from tests.scenarios.wire import FORMS, SALT_KEY, as_plain

PROMPT = tuple(range(9))


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> WireForm:
    """Each scene is played in both forms of the wire."""
    monkeypatch.setattr(Scene, "wire_form", request.param)
    found: WireForm = request.param
    return found


def told(scene: Scene, payload: bytes, seq: int = 0, rank: int = 0) -> None:
    """A message's payload, decoded and applied as the subscriber does."""
    scene.now += 0.01
    for number, part in enumerate(filter(None, KvEventDecoder(SALT_KEY).parts(payload))):
        scene.apply(
            KvBatch(
                SERVER, Rank(rank), seq, part.events, scene.now, False, part.wire_form, part.malformed,
                part.unknown_types, part=number,
            )
        )  # fmt: skip


def packed(*events: Any, rank: int | None = 0) -> bytes:
    return msgspec.msgpack.encode([1.0, list(events), rank])


def text(block_hash: int) -> str:
    return f"{block_hash:016x}"


def hashes(scene: Scene, rank: int = 0) -> list[str]:
    return [key[2] for key in scene.copies(rank)]


def test_an_outer_map_clears_like_an_outer_array(form: WireForm) -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    told(
        scene,
        bytes.fromhex(
            "83a27473cb3ff0000000000000a66576656e74739181a474797065b0416c6c426c6f636b73436c6561726564"
            "b2646174615f706172616c6c656c5f72616e6b00"
        ),
        seq=1,
    )
    assert scene.copies() == {}


def test_a_hash_is_one_block_signed_or_unsigned(form: WireForm) -> None:
    scene = Scene()
    scene.kv(stored(15760518052499183552))
    told(
        scene,
        bytes.fromhex("93cb3ff00000000000009196ab426c6f636b53746f72656491d3dab89baa7b5857c0c0940102030404c000"),
        seq=1,
    )
    assert len(scene.copies()) == 1
    assert hashes(scene) == [text(15760518052499183552)]


@pytest.mark.parametrize("length", [6, 7, 8, 9, 12])
def test_arrays_of_every_length_are_stores(length: int) -> None:
    scene = Scene()
    items = ["BlockStored", [7], None, [1, 2, 3, 4], 4, None, "GPU", None, None, 0, "full_attention", "what comes next"]
    told(scene, packed(items[:length]))
    assert scene.copies() == {(0, "GPU", text(7)): 1}


def test_a_hash_of_bytes_is_another_block_than_any_number() -> None:
    scene = Scene()
    raw = bytes(range(32))
    for number, block_hash in enumerate((raw, int.from_bytes(raw[-8:], "big"))):
        told(scene, packed(["BlockStored", [block_hash], None, [1, 2, 3, number], 4, None, "GPU"]), seq=number)
    assert sorted(map(len, hashes(scene))) == [16, 64]


@pytest.mark.parametrize("before", [[b""], [b"", b"kv-events"]], ids=["before 0.26", "from 0.26"])
def test_replay_is_read_with_topic_and_without(form: WireForm, before: list[bytes]) -> None:
    scene = Scene()
    ends = [b"\xff" * 8, b""]
    for seq in range(3):
        payload = packed(as_plain(stored(seq + 1, tokens=(seq,) * 4), form))
        frames = parse_replay([*before, seq.to_bytes(8, "big"), payload])
        assert frames is not None
        told(scene, frames.payload, frames.seq)
    assert parse_replay([*before, *ends]) is None
    assert parse_replay([b"", b"", *ends]) is None
    assert len(scene.copies()) == 3
    assert scene.server.streams[0].coverage == "complete"


def test_history_that_is_no_longer_kept_makes_forecasts_lower_bounds(form: WireForm) -> None:
    scene = Scene()
    scene.apply(KvGap(SERVER, Rank(0), 0, 39_999, 0, scene.now))
    scene.kv(stored(3, parent=2, tokens=(8, 9, 10, 11)), seq=40_000, replayed=True)
    scene.kv(stored(1), seq=40_001)
    stream = scene.server.streams[0]
    assert (stream.coverage, stream.lost, stream.orphans) == ("partial", 40_000, 1)
    scene.send("r", PROMPT)
    record = scene.record("r")
    assert (record.predicted_cached_tokens, record.predicted_is_lower_bound) == (4, True)
    since = stream.since_ms
    scene.kv(CLEARED)
    cleared = scene.server.streams[0]
    assert cleared.coverage == "complete"
    assert since is not None
    assert cleared.since_ms is not None
    assert cleared.since_ms > since
    scene.kv(stored(1))
    scene.send("again", PROMPT)
    assert not scene.record("again").predicted_is_lower_bound


def test_a_reset_through_the_dashboard_empties_the_picture_before_the_server_says_so(form: WireForm) -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    assert BlocksCleared("reset", 2) in scene.apply(CacheReset(SERVER, scene.now))
    assert scene.copies() == {}
    assert scene.server.streams[0].unconfirmed_clear
    scene.send("r", PROMPT)
    assert scene.record("r").predicted_cached_tokens == 0
    scene.kv(CLEARED, stored(1, 2))
    assert len(scene.copies()) == 2
    stream = scene.server.streams[0]
    assert (stream.unconfirmed_clear, stream.coverage) == (False, "complete")


def test_a_reset_that_events_do_not_confirm_makes_the_picture_partial(form: WireForm) -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.apply(CacheReset(SERVER, scene.now))
    scene.kv(stored(5, tokens=(5,) * 4))
    stream = scene.server.streams[0]
    assert (stream.unconfirmed_clear, stream.coverage) == (False, "partial")


def test_a_clear_that_comes_with_the_next_step_drops_all_and_keeps_what_follows(form: WireForm) -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    age = scene.server.streams[0].last_batch_ms
    assert age == scene.now * 1000
    scene.kv(CLEARED, stored(1))
    assert hashes(scene) == [text(1)]


@pytest.mark.parametrize("first", [1, 7])
def test_a_late_start_is_partial_unless_replay_tells_the_rest(form: WireForm, first: int) -> None:
    scene = Scene()
    scene.kv(stored(2, parent=1, tokens=(4, 5, 6, 7)), seq=first)
    assert scene.server.streams[0].coverage == "partial"
    whole = Scene()
    for seq in range(first):
        whole.kv(stored(100 + seq, tokens=(100 + seq,) * 4), seq=seq, replayed=True)
    whole.kv(stored(1), seq=first)
    assert whole.server.streams[0].coverage == "complete"
    assert whole.server.streams[0].replayed == first


def test_what_overflows_a_queue_is_a_gap(form: WireForm) -> None:
    scene = Scene()
    scene.kv(stored(1), seq=0)
    scene.kv(stored(2, tokens=(2,) * 4), seq=90_000)
    stream = scene.server.streams[0]
    assert (stream.gaps, stream.lost, stream.coverage) == (1, 89_999, "partial")


def test_more_tokens_than_the_hashes_cover_invent_no_chunks(form: WireForm) -> None:
    scene = Scene()
    events = scene.kv(
        stored(1, tokens=tuple(range(1584)), size=528, kind="mamba", group=1), stored(2, tokens=(1, 2, 3, 4))
    )
    assert [event.tokens for event in events if isinstance(event, BlocksStored)] == [None, 4]
    assert scene.copies() == {(1, "GPU", text(1)): 1, (0, "GPU", text(2)): 1}
    groups = scene.server.streams[0].groups
    assert [(group.group, group.kind, group.walked) for group in groups] == [
        (0, "full_attention", True), (1, "mamba", False),
    ]  # fmt: skip


def test_a_tier_event_without_tokens_adds_the_tier(form: WireForm) -> None:
    scene = Scene()
    scene.kv(stored(1), stored(1, tokens=(), size=0, medium="cpu"))
    assert scene.copies() == {(0, "GPU", text(1)): 1, (0, "CPU", text(1)): 1}
    scene.kv(removed(1))
    assert scene.copies() == {(0, "CPU", text(1)): 1}


def test_a_storm_of_clears_is_followed_told_a_few_times_and_doubted(form: WireForm) -> None:
    scene = Scene()
    scene.kv(stored(1, 2))
    scene.metrics(0, 0)
    scene.tick(scene.now)
    cleared = 0
    for _ in range(200):
        cleared += sum(isinstance(event, BlocksCleared) for event in scene.kv(CLEARED))
    assert cleared <= 11
    assert scene.copies() == {}
    scene.send("r", PROMPT)
    scene.end("r", 9, cached=8)
    assert scene.notices()["clear_storm"] == {"clears": 200, "seconds": 10, "cached_tokens": 8}
    scene.now += 30
    scene.notices()
    scene.now += 1
    assert "clear_storm" not in scene.notices()


def test_an_impossible_event_leaves_the_others_and_is_counted(form: WireForm) -> None:
    scene = Scene()
    impossible = as_plain(stored(1, 2, 3, 4, tokens=(1, 2, 3), size=256), form)
    told(scene, packed(impossible, as_plain(stored(7), form)))
    stream = scene.server.streams[0]
    assert (hashes(scene), stream.malformed, stream.coverage) == ([text(7)], 1, "partial")


def test_forms_may_change_from_event_to_event() -> None:
    scene = Scene()
    for seq in range(4):
        event = stored(seq + 1, tokens=(seq,) * 4)
        told(scene, packed(as_plain(event, FORMS[seq % 2])), seq)
        assert scene.server.streams[0].wire_form == FORMS[seq % 2]
    told(scene, packed(as_plain(removed(1), "map"), as_plain(removed(2), "array")), 4)
    assert hashes(scene) == [text(3), text(4)]


def test_types_that_nobody_knows_are_counted_and_change_nothing(form: WireForm) -> None:
    scene = Scene()
    strange = {"type": "BlockMoved", "x": 1} if form == "map" else ["BlockMoved", 1]
    told(scene, packed(strange, as_plain(stored(1), form)))
    stream = scene.server.streams[0]
    assert (stream.unknown_types, stream.coverage, len(scene.copies())) == (1, "complete", 1)


def test_messages_that_come_again_are_counted_and_left_out(form: WireForm) -> None:
    scene = Scene()
    scene.kv(stored(1), seq=0)
    scene.apply(KvDuplicate(SERVER, Rank(0), 0, scene.now))
    scene.kv(stored(1), seq=0)
    scene.tick(scene.now)
    stream = scene.server.streams[0]
    assert (stream.duplicates, stream.batches, list(scene.copies().values())) == (2, 1, [1])


def test_a_message_in_parts_is_one_batch(form: WireForm) -> None:
    scene = Scene()
    events = [as_plain(stored(*range(n, n + 600), tokens=tuple(range(n, n + 2400))), form) for n in range(1, 2400, 600)]
    for seq in (0, 0):
        told(scene, packed(*events), seq)
    stream = scene.server.streams[0]
    assert (stream.batches, stream.duplicates, stream.blocks_stored, len(scene.copies())) == (1, 1, 2400, 2400)
    assert set(scene.copies().values()) == {1}


def test_what_comes_over_a_stream_a_second(form: WireForm) -> None:
    scene = Scene()
    scene.kv(stored(1))
    scene.tick(scene.now)
    assert (scene.server.streams[0].batches_per_s, scene.server.streams[0].blocks_per_s) == (None, None)
    start = scene.now
    for number in range(20):
        scene.now = start + number * 0.1
        scene.kv(stored(10 + number, tokens=(10 + number,) * 4), removed(10 + number))
    scene.tick(start + 2.0)
    stream = scene.server.streams[0]
    assert (stream.batches_per_s, stream.blocks_per_s) == (10.0, 20.0)
    for second in range(3, 15):
        scene.tick(start + second)
    assert scene.server.streams[0].batches_per_s == 0.0


FAULTS: tuple[StreamFault, ...] = (
    "not_enabled", "not_bound", "wrong_port", "wrong_topic", "rank_port", "unusable_address", "lost",
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_every_known_fault_of_a_stream_is_a_diagnosis_until_it_is_mended(fault: StreamFault) -> None:
    scene = Scene()
    state = "connected" if fault == "wrong_topic" else "disconnected"
    observed = KvStreamState(SERVER, Rank(1), state, "tcp://h:5558", "What is wrong.", scene.now, fault=fault)  # type: ignore[arg-type]
    scene.apply(observed)
    diagnosis = scene.server.streams[0].diagnosis
    assert diagnosis is not None
    assert (diagnosis.code, diagnosis.text) == (fault, "What is wrong.")
    assert diagnosis.params == {"endpoint": "tcp://h:5558", "rank": 1}
    scene.apply(KvStreamState(SERVER, Rank(1), "connected", "tcp://h:5558", None, scene.now))
    assert scene.server.streams[0].diagnosis is None


@pytest.mark.parametrize("by_counters", [False, True], ids=["through the dashboard", "by the counters alone"])
def test_no_events_although_prompts_flow(by_counters: bool) -> None:
    scene = Scene()
    scene.apply(KvStreamState(SERVER, Rank(0), "connected", "tcp://h:5557", None, scene.now))
    scene.metrics(0, 0, block_size=4)
    if by_counters:
        scene.metrics(5000, 1000, block_size=4)
    else:
        scene.send("r", PROMPT)
        scene.end("r", 9, cached=0)
    scene.tick(scene.now + 6)
    stream = scene.server.streams[0]
    assert (stream.state, stream.coverage) == ("silent", "none")
    assert stream.diagnosis is not None
    assert stream.diagnosis.code == "unexplained"
    for word in ("--kv-events-config", "binds", "port + r", "topic"):
        assert word in stream.diagnosis.text
    scene.kv(stored(1))
    assert scene.server.streams[0].diagnosis is None


def test_prompts_that_all_hit_are_no_silence() -> None:
    scene = Scene()
    scene.apply(KvStreamState(SERVER, Rank(0), "connected", "tcp://h:5557", None, scene.now))
    scene.metrics(0, 0, block_size=4)
    scene.metrics(5000, 4900, block_size=4)
    scene.tick(scene.now + 60)
    assert scene.server.streams[0].state == "connected"


def test_ranks_expected_and_heard(form: WireForm) -> None:
    scene = Scene()
    scene.apply(KvRanks(SERVER, (Rank(0),), scene.now))
    assert (scene.server.ranks_expected, scene.server.ranks_heard) == (1, 0)
    scene.apply(KvRanks(SERVER, tuple(map(Rank, range(4))), scene.now))
    for rank in range(4):
        scene.apply(KvStreamState(SERVER, Rank(rank), "connected", f"tcp://h:{5557 + rank}", None, scene.now))
    for rank in (0, 2, 3):
        scene.kv(stored(1), rank=rank)
    assert (scene.server.ranks_expected, scene.server.ranks_heard) == (4, 3)
    scene.apply(KvStreamState(SERVER, Rank(3), "disconnected", "tcp://h:5560", "Lost.", scene.now, fault="lost"))
    assert scene.server.ranks_heard == 2
    assert [len(scene.copies(rank)) for rank in range(4)] == [1, 0, 1, 1]


def test_a_rank_that_this_server_does_not_have_is_not_shown() -> None:
    scene = Scene()
    scene.apply(KvStreamState(SERVER, Rank(0), "connecting", "tcp://h:5557", None, scene.now))
    scene.apply(KvRanks(SERVER, (Rank(2), Rank(3)), scene.now))
    scene.apply(KvStreamState(SERVER, Rank(0), "off", None, None, scene.now))
    scene.kv(stored(1), rank=2)
    assert [stream.rank for stream in scene.server.streams] == [2]


@pytest.mark.parametrize("frames", [[b"t", b"\0" * 8, b"\x80\x04"], [b"t", b"\0" * 8, b"\xc1"]])
def test_bytes_that_are_no_events_change_nothing(frames: list[bytes]) -> None:
    from app.errors import DecodeError

    scene = Scene()
    with pytest.raises(DecodeError):
        told(scene, parse_live(frames).payload)
    assert scene.ledger.block_columns() == ()
