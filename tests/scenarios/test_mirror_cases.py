"""What forecasts must make of real servers' habits and of blocks that aren't what they seem, in both forms."""

from dataclasses import replace

import pytest

from app.events import BlocksCleared
from app.ids import RequestId
from app.observations import AdapterLoaded, KvEvent, ServerProbed, WireForm
from tests.scenarios.tables import CLEARED, SERVER, Scene, removed, stored
from tests.scenarios.wire import FORMS

ONE = (0, 1, 2, 3, 4)


@pytest.fixture(autouse=True, params=FORMS)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> WireForm:
    """Each scene is played in both forms of the wire."""
    monkeypatch.setattr(Scene, "wire_form", request.param)
    found: WireForm = request.param
    return found


def copies(scene: Scene) -> int:
    return scene.copies().get((0, "GPU", f"{1:016x}"), 0)


def test_copies_and_what_a_lookup_finds_after_each_step() -> None:
    scene = Scene()
    seen = []
    steps: tuple[KvEvent, ...] = (stored(1), stored(1), removed(1), removed(1), removed(1))
    for number, event in enumerate(steps):
        scene.kv(event)
        scene.send(f"r-{number}", ONE)
        seen.append((copies(scene), scene.record(f"r-{number}").predicted_cached_tokens))
    assert seen == [(1, 4), (2, 4), (1, 4), (0, 0), (0, 0)]
    assert scene.server.streams[0].unknown_removes == 1


def test_drift_is_told_for_each_request_and_each_server_and_three_in_a_row_raise_a_banner() -> None:
    scene = Scene()
    for block in (1, 2, 3):
        tokens = (10 * block,) * 4
        scene.kv(stored(block, tokens=tokens), stored(block, tokens=tokens), removed(block))
    for block in (1, 2, 3):
        scene.send(f"r-{block}", (*(10 * block,) * 4, 99))
        record = scene.end(f"r-{block}", 5, cached=0)
        assert (record.predicted_cached_tokens, record.cached_tokens) == (4, 0)
        score = scene.server.forecasts
        assert score is not None
        assert (score.last_drift_tokens, score.drift_tokens, score.banner) == (4, 4 * block, block == 3)
    assert scene.copies() == {}
    scene.kv(stored(9, tokens=(9,) * 4))
    scene.send("r", (9,) * 5)
    scene.end("r", 5, cached=4)
    after = scene.server.forecasts
    assert after is not None
    assert not after.banner


def test_a_removal_in_one_group_leaves_the_other() -> None:
    scene = Scene()
    scene.kv(stored(1), stored(1, group=1, kind="sliding_window"), removed(1, group=1))
    assert scene.copies() == {(0, "GPU", f"{1:016x}"): 1}
    scene.send("r", ONE)
    assert scene.record("r").predicted_cached_tokens == 4


def resend(scene: Scene, length: int, cached: int) -> int | None:
    """The forecast for a prompt of which every full block is resident."""
    name = f"r-{len(scene.out)}"
    scene.send(name, tuple(range(length)))
    return scene.end(name, length, cached=cached).predicted_cached_tokens


def test_the_dropped_last_block_of_large_units_is_learned() -> None:
    unit = 2144
    scene = Scene()
    scene.kv(stored(*range(1, 9), size=unit, tokens=tuple(range(8 * unit))))
    outcomes = {3784: 0, 7542: 4288, 11292: 8576, 15019: 12864, 18770: 15008}
    first = {length: resend(scene, length, cached) for length, cached in outcomes.items()}
    # Two requests teach it.
    assert first == outcomes | {3784: 2144, 7542: 6432}
    assert {length: resend(scene, length, cached) for length, cached in outcomes.items()} == outcomes
    score = scene.server.forecasts
    assert score is not None
    assert (score.dropped_blocks, score.unit_tokens) == (1, unit)


def test_an_alignment_of_many_blocks_is_learned() -> None:
    size, unit = 1024, 16_384
    scene = Scene()
    blocks = 2 * unit // size
    scene.kv(stored(*range(1, blocks + 1), size=size, tokens=tuple(range(2 * unit))))
    found = [resend(scene, 2 * unit + 1 + extra, cached=16_384) for extra in range(4)]
    assert found == [32_768, 32_768, 16_384, 16_384]


def test_a_skipped_lookup_is_forecast_as_nothing_and_stores_all_the_same() -> None:
    scene = Scene()
    prompt = tuple(range(39))
    scene.kv(stored(1, 2, size=16, tokens=tuple(range(32))))
    scene.send("skips", prompt, skips=True)
    scene.kv(stored(1, 2, size=16, tokens=tuple(range(32))))
    record = scene.end("skips", 39, cached=0)
    assert (record.predicted_cached_tokens, scene.code("skips")) == (0, "lookup_skipped")
    assert set(scene.copies().values()) == {2}
    scene.send("reads", prompt)
    assert scene.end("reads", 39, cached=32).predicted_cached_tokens == 32


def test_salts_keep_equal_prompts_apart_and_are_never_told() -> None:
    scene = Scene()
    prompt = tuple(range(320))
    secret = "tenant-secret"
    scene.kv(stored(*range(1, 21), size=16, tokens=prompt, salt=secret))
    scene.send("other", prompt, salt="s2")
    scene.send("none", prompt)
    scene.send("same", prompt, salt=secret)
    assert [scene.record(name).predicted_cached_tokens for name in ("other", "none", "same")] == [0, 0, 304]
    told = repr([outgoing.event for outgoing in scene.out]) + repr(scene.ledger.snapshot())
    assert secret not in told


def test_blocks_under_a_parent_that_came_by_transfer_are_kept_and_claim_no_more() -> None:
    scene = Scene()
    scene.kv(stored(3, parent=2, tokens=(8, 9, 10, 11)))
    assert scene.copies() == {(0, "GPU", f"{3:016x}"): 1}
    stream = scene.server.streams[0]
    assert (stream.orphans, stream.malformed, stream.coverage) == (1, 0, "complete")
    scene.send("r", tuple(range(13)))
    assert scene.record("r").predicted_cached_tokens == 0


@pytest.mark.parametrize("medium", ["GPU", "gpu"])
@pytest.mark.parametrize("other", ["CPU", "cpu"])
def test_tiers_are_one_whatever_their_case_and_apart_from_each_other(medium: str, other: str) -> None:
    scene = Scene()
    scene.kv(stored(1, medium=medium), stored(1, medium=other))
    assert set(scene.copies()) == {(0, "GPU", f"{1:016x}"), (0, "CPU", f"{1:016x}")}
    scene.kv(removed(1, medium=medium))
    assert set(scene.copies()) == {(0, "CPU", f"{1:016x}")}
    scene.send("r", ONE)
    assert scene.record("r").predicted_cached_tokens == 0


def test_the_events_block_size_counts_and_another_one_is_another_publisher() -> None:
    scene = Scene()
    scene.metrics(0, 0, block_size=16)
    scene.kv(stored(1, 2, size=1072, tokens=tuple(range(2144))))
    assert (scene.server.block_size, scene.ledger.block_columns()[0].tokens) == (1072, (1072, 1072))
    events = scene.kv(stored(3, size=16, tokens=tuple(range(16))))
    assert BlocksCleared("restarted", 2) in events
    assert (scene.server.block_size, len(scene.copies())) == (16, 1)


def test_an_image_is_told_from_another_by_its_keys() -> None:
    scene = Scene()
    scene.kv(stored(1, tokens=(5,) * 4, other="image a"))
    scene.send("r", (5,) * 5, images=True)
    assert scene.record("r").predicted_cached_tokens == 0


def test_without_such_keys_nothing_is_forecast_from_an_image_on() -> None:
    scene = Scene()
    before, picture = (1, 2, 3, 4), (5,) * 12
    scene.kv(stored(1, 2, 3, 4, tokens=(*before, *picture)))
    prompt = (*before, *picture, 6)
    scene.send("text", prompt)
    scene.send("picture", prompt, images=True)
    assert [scene.record(name).predicted_cached_tokens for name in ("text", "picture")] == [16, 4]
    assert scene.record("picture").predicted_is_lower_bound


def test_a_cache_from_a_prefill_node_counts_in_no_rate() -> None:
    scene = Scene()
    scene.send("r", (1,) * 9)
    request = scene.ledger._state.requests.get(RequestId("r"))
    assert request is not None
    request.sent = replace(request.sent, transfers_kv=True)
    record = scene.end("r", 1000, cached=999)
    assert record.transferred and record.cached_tokens == 999
    usage = [reading for reading in scene.ledger.snapshot().rates[SERVER] if reading.basis == "usage"]
    assert all(not reading.query_tokens for reading in usage)


def test_an_adapters_blocks_are_its_own() -> None:
    scene = Scene()
    scene.kv(stored(1, lora="sql"))
    scene.send("base", ONE)
    scene.send("sql", ONE, lora="sql")
    assert [scene.record(name).predicted_cached_tokens for name in ("base", "sql")] == [0, 4]


def test_what_sharing_saves_in_blocks_bytes_and_tokens() -> None:
    scene = Scene()
    shared = tuple(range(93 * 16))
    scene.metrics(0, 0, block_size=16)
    scene.kv(stored(*range(1, 94), size=16, tokens=shared))
    for number in range(3):
        scene.send(f"r-{number}", (*shared, 5000 + number))
    server = scene.server
    assert (server.shared_blocks, server.shared_bytes, server.saved_tokens) == (186, None, None)
    scene.metrics(0, 0, block_size=16, num_gpu_blocks=1000, block_bytes=1_000_000)
    server = scene.server
    assert (server.block_bytes, server.shared_bytes) == (1_000_000, 186_000_000)
    for number in range(3):
        scene.end(f"r-{number}", 1489, cached=1488)
    server = scene.server
    assert (server.shared_blocks, server.saved_tokens) == (186, 3 * 1488)


def listed(scene: Scene, *adapters: tuple[str, str | None], state: str = "up") -> None:
    """The server lists its model and these adapters, each with where its weights are from."""
    scene.now += 1
    names = tuple(name for name, _ in adapters)
    roots = tuple(root for _, root in adapters)
    scene.apply(
        ServerProbed(
            SERVER, state, None, scene.now, models=("m", *names) if state == "up" else (), adapters=names,  # type: ignore[arg-type]
            adapter_roots=roots,
        )
    )  # fmt: skip


def warm_adapter(*adapters: tuple[str, str | None]) -> Scene:
    """The adapter `a` is listed, and has a block in the cache."""
    scene = Scene()
    listed(scene, *(adapters or (("a", "/old"),)))
    scene.kv(stored(1, lora="a"))
    assert "adapter_reloaded" not in scene.notices()
    return scene


def test_an_adapter_loaded_again_keeps_its_hits_and_gets_a_notice() -> None:
    scene = warm_adapter()
    scene.now += 1
    scene.apply(AdapterLoaded(SERVER, "a", scene.now))
    scene.send("r", ONE, lora="a")
    record = scene.end("r", len(ONE), cached=4)
    assert (record.predicted_cached_tokens, record.cached_tokens) == (4, 4)
    assert scene.notices()["adapter_reloaded"] == {"adapter": "a", "at": "00:00:03 UTC", "at_ms": pytest.approx(3010)}
    (notice,) = scene.server.notices
    assert "Adapter a was loaded again" in notice.text and "old weights" in notice.text


@pytest.mark.parametrize(
    "lists", [[("a", "/new")], [(), ("a", "/old")], [("b", "/b"), ("a", "/old")]], ids=["other root", "gone", "other"]
)
def test_an_adapter_loaded_again_beside_the_dashboard_is_seen_where_it_is_listed(lists: list[tuple[str, str]]) -> None:
    scene = warm_adapter()
    for each in lists:
        listed(scene, *([each] if each else []))
    assert scene.notices()["adapter_reloaded"]["adapter"] == "a"
    scene.kv(CLEARED)
    assert "adapter_reloaded" not in scene.notices()


@pytest.mark.parametrize("root", ["/old", None])
def test_a_first_load_a_listing_that_stays_and_a_restart_are_no_reload(root: str | None) -> None:
    scene = warm_adapter(("a", root))
    listed(scene, ("a", root))
    listed(scene, ("a", root), ("b", "/b"))
    scene.apply(AdapterLoaded(SERVER, "c", scene.now))
    listed(scene, ("a", root), ("b", "/b"), ("c", "/c"))
    assert "adapter_reloaded" not in scene.notices()
    listed(scene, state="down")
    listed(scene, ("a", "/elsewhere"))
    assert "adapter_reloaded" not in scene.notices()


def test_many_adapters_loaded_again_and_again_take_a_bounded_place() -> None:
    scene = warm_adapter()
    for number in range(100):
        for _ in range(2):
            scene.now += 0.1
            scene.apply(AdapterLoaded(SERVER, f"a{number}", scene.now))
    assert [notice.params["adapter"] for notice in scene.server.notices] == [f"a{number}" for number in range(92, 100)]
