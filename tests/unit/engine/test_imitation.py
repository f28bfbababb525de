"""What is left out or said in an older way: the table of releases, and what each switch does to events and counters."""

from typing import Any

import msgspec
import pytest

from app.engine.cache_events import Lora
from app.engine.core import BlocksCleared, BlocksRemoved, BlocksStored, CacheEvent, CoreConfig, CoreRequest, EngineCore
from app.engine.imitation import SWITCHES, VERSIONS, Imitation, imitation_of
from app.engine.kv_wire import EventEncoder

from .drive import drain, filler_token, prompt

DIGEST = bytes(range(32))
LOW = int.from_bytes(DIGEST[-8:], "big")
POET = Lora("poet", "/adapters/poet", 3)
STORED = BlocksStored((DIGEST,), None, (1, 2), 2, POET, (("poet", "salt"),), "session")
EVENTS: tuple[CacheEvent, ...] = (BlocksCleared(), STORED, BlocksRemoved((DIGEST,)))


def on_the_wire(*names: str, events: tuple[CacheEvent, ...] = EVENTS) -> list[Any]:
    wall_s, found, rank = msgspec.msgpack.decode(EventEncoder(2, imitation_of(names)).batch(events, 1.5))
    assert (wall_s, rank) == (1.5, 2)
    return list(found)


@pytest.mark.parametrize("name", ["vllm-0.10.2", "vllm-0.12.0"])
def test_arrays_up_to_0_12_end_with_the_medium(name: str) -> None:
    assert on_the_wire(name) == [
        ["AllBlocksCleared"],
        ["BlockStored", [LOW], None, [1, 2], 2, 3, "GPU"],
        ["BlockRemoved", [LOW], "GPU"],
    ]


def test_arrays_of_0_18_name_adapters_and_salts() -> None:
    cleared, stored, removed = on_the_wire("vllm-0.18.0")
    assert stored == ["BlockStored", [LOW], None, [1, 2], 2, 3, "GPU", "poet", [["poet", "salt"]]]
    assert (cleared, removed) == (["AllBlocksCleared"], ["BlockRemoved", [LOW], "GPU"])


def test_arrays_with_the_fields_of_0_32_leave_out_the_last_ones_only() -> None:
    _, stored, removed = on_the_wire("array-events")
    assert stored[7:] == ["poet", [["poet", "salt"]], 0, "full_attention", None, None, None, "session"]
    assert removed == ["BlockRemoved", [LOW], "GPU", 0]
    _, stored, _ = on_the_wire("array-events", "no-session-ids")
    assert stored[7:] == ["poet", [["poet", "salt"]], 0, "full_attention"]


def test_maps_of_0_26_have_no_session() -> None:
    _, stored, _ = on_the_wire("vllm-0.26.0")
    assert stored["type"] == "BlockStored" and "session_id" not in stored and stored["group_idx"] == 0
    assert "session_id" in on_the_wire("vllm-0.32.0")[1]


def test_hashes_can_be_bytes() -> None:
    _, stored, removed = on_the_wire("bytes-hashes")
    assert stored["block_hashes"] == removed["block_hashes"] == [DIGEST]


@pytest.mark.parametrize("name", SWITCHES)
def test_every_switch_changes_something(name: str) -> None:
    assert imitation_of([name]) != Imitation()
    assert imitation_of([name, ""]) == imitation_of([name])


def test_a_version_and_switches_in_any_order() -> None:
    assert imitation_of(["no-replay", "vllm-0.12.0"]) == imitation_of(["vllm-0.12.0", "no-replay"])
    assert imitation_of([]) == VERSIONS["vllm-0.32.0"] == Imitation()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["vllm-0.9"], "'vllm-0.9' can't be imitated; there are: vllm-0.32.0, "),
        (["vllm-0.12.0", "vllm-0.18.0"], "one version can be imitated at a time, not vllm-0.12.0 and vllm-0.18.0"),
    ],
)
def test_what_is_not_there_is_one_clear_line(names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        imitation_of(names)


def crowded(name: str) -> EngineCore:
    """Two requests with a prefix of one block in the cache, of which one is preempted; a third waits behind them."""
    imitation = imitation_of([name])
    config = CoreConfig(8, 4, counting=imitation.counting, unhashed_first=imitation.unhashed_first)
    core = EngineCore(config, filler_token)
    core.add_request(CoreRequest("seed", (*prompt(4, start=50), 1), 1), 0.0)
    drain(core)
    core.add_request(CoreRequest("a", prompt(10), 12), 0.0)
    core.add_request(CoreRequest("b", prompt(10, start=50), 12), 0.0)
    drain(core)
    assert core.gauges().preemptions == 1
    return core


def test_counters_of_0_32_and_of_servers_that_count_every_lookup() -> None:
    counted = {
        name: (crowded(name).gauges().prefix_cache_queries, crowded(name).gauges().prefix_cache_hits)
        for name in ("vllm-0.32.0", "vllm-0.12.0", "vllm-0.10.2", "vllm-0.8.5")
    }
    assert counted["vllm-0.32.0"] == counted["vllm-0.12.0"] == (5 + 10 + 10, 4)
    # After its preemption b is looked up again, with its answer so far, until there is room.
    queries, hits = counted["vllm-0.10.2"]
    assert queries > 25 and hits > 4
    assert counted["vllm-0.8.5"][1] == hits // 4


def test_each_try_of_a_request_that_does_not_fit_is_a_query_of_older_servers() -> None:
    queries = {}
    for name in ("vllm-0.32.0", "vllm-0.12.0"):
        core = EngineCore(CoreConfig(9, 4, counting=imitation_of([name]).counting), filler_token)
        core.add_request(CoreRequest("a", prompt(20), 4), 0.0)
        core.add_request(CoreRequest("big", prompt(16, start=100), 1), 0.0)
        steps = len(drain(core))
        queries[name] = core.gauges().prefix_cache_queries
    assert queries["vllm-0.32.0"] == 36
    assert queries["vllm-0.12.0"] == 20 + 16 * steps


@pytest.mark.parametrize(("name", "order"), [("vllm-0.32.0", [2, 3, 4, 5, 1]), ("vllm-0.18.0", [3, 4, 5, 2, 1])])
def test_older_pools_keep_one_order_for_all_blocks(name: str, order: list[int]) -> None:
    """Block 2, the tail of the prompt, has no hash: it is reused first, or after the blocks that were never used."""
    core = EngineCore(CoreConfig(6, 4, unhashed_first=imitation_of([name]).unhashed_first), filler_token)
    core.add_request(CoreRequest("a", prompt(6), 1), 0.0)
    drain(core)
    assert [block.block_id for block in core.pool.free_queue] == order
