import asyncio
import itertools
import json
from typing import Any

import pytest

from app.events import Hello, Outgoing, ScenarioAdvanced, ScenarioState, Snapshot
from app.hub.fanout import HEARTBEAT, MESSAGES_AT_ONCE, Hub, Subscription

INSTANCE = "run-1"


class FakeClock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def wall_ms(self) -> float:
        return self.now_s * 1000


class Counter:
    """A stand-in for the ledger: its state is the number of the last event that it gave away."""

    def __init__(self, clock: FakeClock) -> None:
        self.last = 0
        self.cost_s = 0.0
        """How long a snapshot takes."""
        self._clock = clock

    def events(self, count: int) -> list[Outgoing]:
        events = []
        for _ in range(count):
            self.last += 1
            events.append(Outgoing(ScenarioAdvanced(ScenarioState(self.last, 0, "", True)), 0.0))
        return events

    def snapshot(self) -> Snapshot:
        self._clock.now_s += self.cost_s
        return Snapshot((), (), (), {}, {}, ScenarioState(self.last, 0, "", True))


class Rig:
    def __init__(self, backlog: int = 100, queue: int = 20, heartbeat_s: float = 30) -> None:
        self.clock = FakeClock()
        self.counter = Counter(self.clock)
        hello = Hello("prefixscope", "0", INSTANCE, backlog, demo=False, show_prompts=False)
        self.hub = Hub(hello, queue, heartbeat_s, self.counter.snapshot, self.clock)

    def publish(self, count: int) -> None:
        self.hub.publish(self.counter.events(count))


async def take(subscription: Subscription, until_seq: int) -> list[dict[str, Any]]:
    """Messages up to the one numbered `until_seq`."""
    messages: list[dict[str, Any]] = []
    async with asyncio.timeout(5):
        while not messages or messages[-1]["seq"] < until_seq:
            messages.extend(json.loads(message) for message in await subscription.take())
    return messages


def state_after(messages: list[dict[str, Any]]) -> int:
    """What a browser makes of it: a snapshot replaces everything, an event must be the next one."""
    state: int | None = None
    for message in messages:
        if message["type"] == "snapshot":
            state = message["data"]["scenario"]["step"]
        elif message["type"] == "scenario.advanced":
            step: int = message["data"]["scenario"]["step"]
            assert state is None or step == state + 1
            state = step
    assert state is not None
    return state


def assert_strictly_increasing(messages: list[dict[str, Any]]) -> None:
    numbers = [message["seq"] for message in messages]
    assert all(before < after for before, after in itertools.pairwise(numbers)), numbers


async def test_a_new_browser_gets_hello_then_the_snapshot_then_events() -> None:
    rig = Rig()
    rig.publish(3)
    subscription = rig.hub.subscribe()

    first = await take(subscription, rig.hub.seq)
    rig.publish(2)
    more = await take(subscription, rig.hub.seq)

    assert [message["type"] for message in first] == ["hello", "snapshot"]
    assert first[1]["seq"] == rig.hub.seq - 2
    assert [message["type"] for message in more] == ["scenario.advanced"] * 2
    assert_strictly_increasing(first + more)
    assert state_after(first + more) == 5


async def test_before_any_event_the_snapshot_still_counts_higher_than_the_hello() -> None:
    rig = Rig()

    messages = await take(rig.hub.subscribe(), rig.hub.seq)

    assert_strictly_increasing(messages)
    assert len(messages) == 2


async def test_a_browser_resumes_after_the_last_event_it_has_seen() -> None:
    rig = Rig()
    rig.publish(10)

    messages = await take(rig.hub.subscribe(after=5, instance=INSTANCE), rig.hub.seq)

    assert [message["type"] for message in messages] == ["hello"] + ["scenario.advanced"] * (rig.hub.seq - 5)
    assert messages[1]["seq"] == 6
    assert_strictly_increasing(messages)


@pytest.mark.parametrize(
    ("after", "instance"),
    [
        pytest.param(5, "another run", id="another run"),
        pytest.param(5, None, id="no run named"),
        pytest.param(2, INSTANCE, id="no longer kept"),
        pytest.param(500, INSTANCE, id="never was"),
        pytest.param(0, INSTANCE, id="only the hello was seen"),
        pytest.param(None, INSTANCE, id="nothing was seen"),
    ],
)
async def test_where_resuming_is_impossible_a_snapshot_comes(after: int | None, instance: str | None) -> None:
    rig = Rig(backlog=8)
    rig.publish(20)

    messages = await take(rig.hub.subscribe(after, instance), rig.hub.seq)

    assert [message["type"] for message in messages] == ["hello", "snapshot"]
    assert state_after(messages) == 20


async def test_one_that_resumes_at_the_newest_event_waits_for_the_next() -> None:
    rig = Rig()
    rig.publish(4)
    subscription = rig.hub.subscribe(after=rig.hub.seq, instance=INSTANCE)
    await subscription.take()
    waiting = asyncio.create_task(subscription.take())
    await asyncio.sleep(0)
    assert not waiting.done()

    rig.publish(1)

    (message,) = await asyncio.wait_for(waiting, 5)
    assert json.loads(message)["seq"] == rig.hub.seq


async def test_a_slow_browser_gets_one_fresh_snapshot_instead_of_its_backlog() -> None:
    rig = Rig(queue=20)
    rig.publish(1)
    subscription = rig.hub.subscribe()
    seen = await take(subscription, rig.hub.seq)
    seen += await take_after(rig, subscription, 1)

    seen += await take_after(rig, subscription, 50)

    assert [message["type"] for message in seen] == ["hello", "snapshot", "scenario.advanced", "snapshot"]
    assert_strictly_increasing(seen)
    assert state_after(seen) == 52


async def take_after(rig: Rig, subscription: Subscription, count: int) -> list[dict[str, Any]]:
    rig.publish(count)
    rig.clock.now_s += 10
    return await take(subscription, rig.hub.seq)


async def test_what_piles_up_during_the_snapshot_itself_calls_for_no_other_one() -> None:
    rig = Rig(backlog=100, queue=20)
    subscription = rig.hub.subscribe()
    seen = await take(subscription, rig.hub.seq)

    seen += await take_after(rig, subscription, 60)

    assert [message["type"] for message in seen] == ["hello", "snapshot"] + ["scenario.advanced"] * 60
    assert state_after(seen) == 60


async def test_not_even_then_does_it_fall_behind_by_more_than_the_backlog() -> None:
    rig = Rig(backlog=100, queue=20)
    subscription = rig.hub.subscribe()
    seen = await take(subscription, rig.hub.seq)

    seen += await take_after(rig, subscription, 101)

    assert [message["type"] for message in seen] == ["hello", "snapshot", "snapshot"]
    assert_strictly_increasing(seen)


async def test_a_stalled_browser_costs_the_others_nothing() -> None:
    rig = Rig(queue=20)
    stalled = rig.hub.subscribe()
    lively = rig.hub.subscribe()
    got = await take(lively, rig.hub.seq)
    await stalled.take()

    for _ in range(30):
        rig.publish(10)
        got += await take(lively, rig.hub.seq)

    assert_strictly_increasing(got)
    assert [message["type"] for message in got].count("snapshot") == 1
    assert state_after(got) == 300
    rig.clock.now_s += 10
    assert state_after(await take(stalled, rig.hub.seq)) == 300


async def test_several_waiting_messages_come_at_once_in_order() -> None:
    rig = Rig(queue=1000, backlog=1000)
    subscription = rig.hub.subscribe()
    await take(subscription, rig.hub.seq)
    rig.publish(MESSAGES_AT_ONCE + 3)

    sizes = [len(await subscription.take()), len(await subscription.take())]

    assert sizes == [MESSAGES_AT_ONCE, 3]


async def test_many_browsers_that_come_at_once_share_one_snapshot() -> None:
    rig = Rig()
    for _ in range(5):
        rig.publish(1)
        assert state_after(await take(rig.hub.subscribe(), rig.hub.seq)) == rig.counter.last
    assert rig.hub.snapshots_encoded == 1

    rig.clock.now_s += 1
    await take(rig.hub.subscribe(), rig.hub.seq)

    assert rig.hub.snapshots_encoded == 2


async def test_a_snapshot_that_costs_much_is_shared_for_longer() -> None:
    rig = Rig()
    rig.counter.cost_s = 0.2
    await take(rig.hub.subscribe(), rig.hub.seq)

    for _ in range(3):
        rig.clock.now_s += 1
        rig.publish(1)
        assert state_after(await take(rig.hub.subscribe(), rig.hub.seq)) == rig.counter.last
    assert rig.hub.snapshots_encoded == 1

    rig.clock.now_s += 1.5
    await take(rig.hub.subscribe(), rig.hub.seq)
    assert rig.hub.snapshots_encoded == 2


async def test_a_shared_snapshot_is_never_older_than_what_a_browser_has() -> None:
    rig = Rig(queue=20)
    subscription = rig.hub.subscribe()
    await take(subscription, rig.hub.seq)
    rig.publish(2)
    seen = await take(subscription, rig.hub.seq)
    rig.publish(21)

    seen += await take(subscription, rig.hub.seq)

    assert_strictly_increasing(seen)
    assert state_after(seen) == 23


async def test_silence_is_filled_with_heartbeats() -> None:
    rig = Rig(heartbeat_s=0.01)
    subscription = rig.hub.subscribe()
    await take(subscription, rig.hub.seq)

    assert await asyncio.wait_for(subscription.take(), 5) == [HEARTBEAT]
    assert await asyncio.wait_for(subscription.take(), 5) == [HEARTBEAT]
    assert json.loads(HEARTBEAT) == {"type": "heartbeat"}


async def test_iterating_gives_the_same_messages() -> None:
    rig = Rig()
    types = []

    async for messages in rig.hub.subscribe():
        types += [json.loads(message)["type"] for message in messages]
        if "snapshot" in types:
            break

    assert types == ["hello", "snapshot"]


async def test_publishing_nothing_wakes_nobody() -> None:
    rig = Rig(heartbeat_s=0.01)
    subscription = rig.hub.subscribe()
    await take(subscription, rig.hub.seq)
    waiting = asyncio.create_task(subscription.take())
    await asyncio.sleep(0)

    rig.hub.publish([])

    assert await asyncio.wait_for(waiting, 5) == [HEARTBEAT]


async def test_browsers_that_keep_up_share_what_is_handed_out() -> None:
    """Each comes again for more before the next has had its turn, as over a socket that takes everything at once."""
    rig = Rig()
    rig.publish(1)
    had: list[list[list[bytes]]] = [[] for _ in range(5)]

    async def read(lists: list[list[bytes]]) -> None:
        async for messages in rig.hub.subscribe():
            lists.append(messages)

    readers = [asyncio.create_task(read(lists)) for lists in had]
    async with asyncio.timeout(30):
        for published in range(3):
            while any(len(lists) < 2 + published for lists in had):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            rig.publish(3)
        while any(len(lists) < 5 for lists in had):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    for reader in readers:
        reader.cancel()
    for handed_out in zip(*(lists[2:5] for lists in had), strict=True):
        assert len(handed_out[0]) == 3
        assert len({id(messages) for messages in handed_out}) == 1
