"""A large event that is taken in part by part: in the end it is what it would have been as one."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from app.events import BlocksReused, BlocksStored
from app.ids import Rank
from app.model.ledger import LedgerLimits
from app.observations import AllBlocksCleared, BlockRemoved, BlockStored, KvBatch, KvEvent, WireForm
from app.wire.kv_events import KvEventDecoder
from app.wire.kv_parts import PART_BLOCKS, TOKENS_A_BLOCK
from tests.scenarios.tables import SERVER, SIZE, Scene, removed, stored
from tests.scenarios.wire import FORMS, SALT_KEY, as_plain

PROMPT = tuple(range(6 * SIZE + 1))
CHAIN = (1, 2, 3, 4, 5, 6)
Play = Callable[["Cut"], None]


class Cut(Scene):
    """Hands events of more than `most` blocks on in parts."""

    def __init__(self, most: int, form: WireForm) -> None:
        super().__init__(LedgerLimits())
        self.most = most
        self.form = form

    def kv(self, *events: KvEvent, rank: int = 0, seq: int | None = None, replayed: bool = False) -> list[Any]:
        number = self.seq.get(rank, -1) + 1 if seq is None else seq
        self.seq[rank] = number
        self.now += 0.01
        payload = msgspec.msgpack.encode([1.0, [as_plain(event, self.form) for event in events], rank])
        parts = [part for part in KvEventDecoder(SALT_KEY).parts(payload, self.most) if part is not None]
        out = []
        for index, part in enumerate(parts):
            out += self.apply(
                KvBatch(
                    SERVER, Rank(rank), number, part.events, self.now, replayed, part.wire_form, part=index,
                    more=index < len(parts) - 1,
                )
            )  # fmt: skip
        return out


def fresh_chain(scene: Cut) -> None:
    scene.kv(stored(*CHAIN))


def report_of_reuse(scene: Cut) -> None:
    scene.kv(stored(*CHAIN))
    scene.send("a", PROMPT, session="a")
    scene.kv(stored(*CHAIN, session="a" if scene.form == "map" else None))
    scene.answer("a")


def copies_of_a_chain(scene: Cut) -> None:
    scene.kv(stored(*CHAIN))
    scene.send("a", PROMPT, skips=True)
    scene.kv(stored(*CHAIN))
    scene.end("a", len(PROMPT), cached=0)


def a_chain_half_of_which_is_there(scene: Cut) -> None:
    scene.kv(stored(1, 2, 3))
    scene.kv(stored(*CHAIN))


def copies_that_usage_tells_from_a_report(scene: Cut) -> None:
    scene.kv(stored(*CHAIN))
    scene.send("a", PROMPT)
    scene.kv(stored(*CHAIN))
    scene.end("a", len(PROMPT), cached=0)


def a_request_that_waited(scene: Cut) -> None:
    scene.send("a", PROMPT)
    scene.kv(stored(*CHAIN))
    scene.end("a", len(PROMPT), cached=0)


def a_request_without_tokens(scene: Cut) -> None:
    scene.send("a", session="a")
    scene.kv(stored(*CHAIN, session="a" if scene.form == "map" else None))
    scene.end("a", len(PROMPT), cached=0)


def a_prompt_that_was_evicted_and_is_computed_again(scene: Cut) -> None:
    scene.kv(stored(*CHAIN))
    scene.kv(removed(*reversed(CHAIN)))
    scene.send("a", PROMPT)
    scene.kv(stored(*CHAIN))
    scene.end("a", len(PROMPT), cached=0)


def an_orphan_whose_parent_comes(scene: Cut) -> None:
    scene.kv(stored(*CHAIN[1:], parent=1, tokens=tuple(range(SIZE, 6 * SIZE))))
    scene.kv(stored(1))


def salted(scene: Cut) -> None:
    scene.kv(stored(*CHAIN, salt="s"))
    scene.send("a", PROMPT, salt="s")


def another_tier_without_tokens(scene: Cut) -> None:
    scene.kv(stored(*CHAIN))
    scene.kv(stored(*CHAIN, tokens=(), size=0, medium="CPU"))
    scene.kv(removed(*CHAIN, medium="CPU"))


def a_store_whose_tokens_are_not_its_blocks(scene: Cut) -> None:
    scene.kv(stored(*CHAIN, tokens=tuple(range(100)), kind="mamba", group=1))


SCENES: tuple[Play, ...] = (
    fresh_chain, report_of_reuse, copies_of_a_chain, a_chain_half_of_which_is_there,
    copies_that_usage_tells_from_a_report, a_request_that_waited, a_request_without_tokens,
    a_prompt_that_was_evicted_and_is_computed_again, an_orphan_whose_parent_comes, salted, another_tier_without_tokens,
    a_store_whose_tokens_are_not_its_blocks,
)  # fmt: skip


def played(play: Play, most: int, form: WireForm) -> Cut:
    scene = Cut(most, form)
    scene.salt = lambda text: Scene.salt(scene, text)  # type: ignore[method-assign]
    scene.wire_form = form
    play(scene)
    scene.tick(scene.now + 0.5)
    return scene


def picture(scene: Cut) -> Any:
    """Everything that a browser starts from, but for the numbers that parts change."""
    snapshot = scene.ledger.snapshot()
    blocks = [
        sorted(zip(c.hash, c.depth, c.tokens, c.group, c.medium, c.copies, c.requests, c.reuses, strict=True), key=repr)
        for c in snapshot.blocks
    ]
    streams = [(s.batches, s.blocks_stored, s.blocks_removed, s.orphans, s.coverage) for s in scene.server.streams]
    return blocks, streams, snapshot.requests, snapshot.rates


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("most", [1, 2, 4, 5])
@pytest.mark.parametrize("play", SCENES, ids=lambda play: play.__name__)
def test_parts_come_to_what_the_whole_would(play: Play, most: int, form: WireForm) -> None:
    assert picture(played(play, most, form)) == picture(played(play, 1000, form))


@pytest.mark.parametrize("form", FORMS)
def test_a_snapshot_between_two_parts_is_what_the_events_told_until_then(form: WireForm) -> None:
    scene = Cut(2, form)
    told: list[str] = []
    for part in range(3):
        event = stored(*CHAIN)
        parts = list(filter(None, KvEventDecoder(SALT_KEY).parts(_packed(form, event), 2)))
        events = scene.apply(KvBatch(SERVER, Rank(0), 0, parts[part].events, scene.now, part=part, more=part < 2))
        told += [text for each in events if isinstance(each, BlocksStored) for text in each.hash]
        assert [text for columns in scene.ledger.block_columns() for text in columns.hash] == told
    assert len(told) == len(CHAIN)


@pytest.mark.parametrize("form", FORMS)
def test_a_large_report_is_told_once_although_it_comes_again(form: WireForm) -> None:
    scene = Cut(2, form)
    scene.kv(stored(*CHAIN))
    scene.send("a", PROMPT, session="a")
    report = stored(*CHAIN, session="a" if form == "map" else None)
    reused = [each for each in scene.kv(report) if isinstance(each, BlocksReused)]
    assert [text for each in reused for text in each.hash] == [f"{each:016x}" for each in CHAIN]
    if form == "map":
        assert not any(isinstance(each, BlocksReused) for each in scene.kv(report))
        assert {each.request for each in reused} == {"a"}


def _packed(form: WireForm, *events: KvEvent) -> bytes:
    return msgspec.msgpack.encode([1.0, [as_plain(event, form) for event in events], 0])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 16, 528, 2144])
def test_no_part_is_much_work(form: WireForm, size: int) -> None:
    count = 65_536 if size <= 16 else 4_000
    chain = tuple(range(2**63, 2**63 + count))
    event = stored(*chain, tokens=(70_000,) * (count * size), size=size)
    payload = _packed(form, event, removed(*chain), stored(5, tokens=(1,) * size, size=size))
    parts = list(KvEventDecoder(SALT_KEY).parts(payload))
    taken = [each for part in parts if part is not None for each in part.events]
    for part in parts:
        stores = [each for each in part.events if isinstance(each, BlockStored)] if part is not None else []
        assert sum(len(each.block_hashes) for each in stores) <= PART_BLOCKS
        assert sum(len(each.token_ids) for each in stores) <= max(PART_BLOCKS * TOKENS_A_BLOCK, size)
        removals = [each for each in part.events if isinstance(each, BlockRemoved)] if part is not None else []
        assert sum(len(each.block_hashes) for each in removals) <= PART_BLOCKS
    stores = [each for each in taken if isinstance(each, BlockStored)]
    assert tuple(each for store in stores for each in store.block_hashes) == (*chain, 5)
    assert sum(len(store.token_ids) for store in stores) == (count + 1) * size
    assert [store.parent_hash for store in stores[1:-1]] == [store.block_hashes[-1] for store in stores[:-2]]
    # What there is of bytes before the first part is looked through in steps, too.
    walked = parts.index(next(filter(None, parts)))
    assert walked >= len(payload) // 100_000


def test_a_flood_of_small_events_comes_in_parts() -> None:
    events: list[KvEvent] = [AllBlocksCleared()] * 3000
    parts = list(filter(None, KvEventDecoder(SALT_KEY).parts(_packed("map", *events))))
    assert max(len(part.events) for part in parts) <= PART_BLOCKS
    assert sum(len(part.events) for part in parts) == 3000


@pytest.mark.parametrize("form", FORMS)
def test_keys_of_many_blocks_are_read_however_many_bytes_they_take(form: WireForm) -> None:
    count = 20_000
    plain = as_plain(stored(*range(count), tokens=(70_000,) * (count * SIZE)), form)
    keys = [[[f"{number:064x}", 0]] for number in range(count)]
    if form == "map":
        plain["extra_keys"] = keys
    else:
        plain[8] = keys
    decoder = KvEventDecoder(SALT_KEY)
    parts = list(filter(None, decoder.parts(msgspec.msgpack.encode([1.0, [plain], 0]))))
    told = [
        key for part in parts for each in part.events if isinstance(each, BlockStored) for key in each.extra_keys or ()
    ]
    assert len({key.other for key in told if key is not None}) == count
