"""The subscriber against small publishers: history, gaps, restarts, duplicates, nonsense, late starts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from app.ids import Rank, ServerId
from app.observations import KvBatch, KvDuplicate, KvGap, KvRestarted, KvStreamState, Malformed
from app.sources.clock import SystemClock
from app.sources.kv_replay import ReplayLimits
from app.sources.kv_subscriber import KvSubscriber
from tests.integration.kv_publisher import KvPublisher, payload, seq_bytes
from tests.integration.observed import Observed, in_background

SERVER = ServerId("http://127.0.0.1:8000")
LIMITS = ReplayLimits(idle_s=0.5, total_s=5.0)


@asynccontextmanager
async def following(
    endpoint: str | None, replay: str | None, topic: str = "", max_message_bytes: int = 1_000_000
) -> AsyncIterator[Observed]:
    observed = Observed()
    subscriber = KvSubscriber(
        SERVER, Rank(0), endpoint, replay, topic, observed.emit, SystemClock(), salt_key=b"k",
        max_message_bytes=max_message_bytes, replay_limits=LIMITS,
    )  # fmt: skip
    async with in_background(subscriber.run):
        yield observed


def batches(observed: Observed) -> list[tuple[int, bool]]:
    return [(batch.seq, batch.replayed) for batch in observed.of(KvBatch)]


def seqs(observed: Observed) -> list[int]:
    return [batch.seq for batch in observed.of(KvBatch)]


def gaps(observed: Observed) -> list[tuple[int, int, int]]:
    return [(gap.first_seq, gap.last_seq, gap.recovered) for gap in observed.of(KvGap)]


def states(observed: Observed) -> list[str]:
    return [state.state for state in observed.of(KvStreamState)]


async def replay_known(observed: Observed) -> None:
    """Waits until the first look at the history is over."""
    await observed.until(lambda: any(state.replay_available is not None for state in observed.of(KvStreamState)))


@pytest.mark.parametrize("with_topic", [True, False], ids=["from 0.26", "before 0.26"])
async def test_history_comes_first_and_live_messages_follow(with_topic: bool) -> None:
    async with KvPublisher(with_topic=with_topic) as publisher:
        await publisher.publish(0, 1, 2, send=False)
        async with following(publisher.endpoint, publisher.replay_endpoint) as observed:
            await publisher.subscribed()
            await observed.until(lambda: len(batches(observed)) == 3)
            await publisher.publish(3, 4)
            await observed.until(lambda: len(batches(observed)) == 5)
        assert batches(observed) == [(0, True), (1, True), (2, True), (3, False), (4, False)]
        assert gaps(observed) == []
        assert observed.of(KvRestarted) == []
        assert publisher.requests[0][1:] == [b"", seq_bytes(0)]
        last = observed.of(KvStreamState)[-1]
        assert (last.state, last.message, last.replay_available) == ("connected", None, True)


async def test_states_tell_the_way_to_a_connection() -> None:
    async with KvPublisher() as publisher, following(publisher.endpoint, publisher.replay_endpoint) as observed:
        await replay_known(observed)
        assert states(observed)[:2] == ["connecting", "connected"]


@pytest.mark.parametrize("with_topic", [True, False], ids=["from 0.26", "before 0.26"])
async def test_a_gap_is_closed_by_replay(with_topic: bool) -> None:
    async with KvPublisher(with_topic=with_topic) as publisher:
        async with following(publisher.endpoint, publisher.replay_endpoint) as observed:
            await publisher.subscribed()
            await replay_known(observed)
            await publisher.publish(0, 1)
            await publisher.publish(2, 3, 4, send=False)
            await publisher.publish(5, 6)
            await observed.until(lambda: len(batches(observed)) == 7)
        assert batches(observed) == [(0, False), (1, False), (2, True), (3, True), (4, True), (5, False), (6, False)]
        assert gaps(observed) == [(2, 4, 3)]
        gap = observed.of(KvGap)[0]
        assert observed.all.index(gap) < observed.all.index(observed.of(KvBatch)[2])


async def test_a_gap_of_which_the_publisher_has_only_a_part() -> None:
    async with KvPublisher() as publisher:
        async with following(publisher.endpoint, publisher.replay_endpoint) as observed:
            await publisher.subscribed()
            await replay_known(observed)
            await publisher.publish(0)
            await observed.until(lambda: seqs(observed) == [0])
            publisher.kept.clear()
            await publisher.publish(3, 4, send=False)
            await publisher.publish(5)
            await observed.until(lambda: len(batches(observed)) == 4)
        assert batches(observed) == [(0, False), (3, True), (4, True), (5, False)]
        assert gaps(observed) == [(1, 4, 2)]


async def test_history_that_no_longer_reaches_back_is_a_gap() -> None:
    async with KvPublisher() as publisher:
        await publisher.publish(*range(40_000, 40_010), send=False)
        async with following(publisher.endpoint, publisher.replay_endpoint) as observed:
            await publisher.subscribed()
            await observed.until(lambda: len(batches(observed)) == 10)
            await publisher.publish(40_010)
            await observed.until(lambda: len(batches(observed)) == 11)
        assert gaps(observed) == [(0, 39_999, 0)]
        assert isinstance(observed.all[[type(o) for o in observed.all].index(KvBatch) - 1], KvGap)
        assert batches(observed)[-1] == (40_010, False)


async def test_without_replay_what_came_before_is_a_gap() -> None:
    async with KvPublisher(with_replay=False) as publisher:
        async with following(publisher.endpoint, "") as observed:
            await publisher.subscribed()
            await publisher.publish(3, 4, 7)
            await observed.until(lambda: len(batches(observed)) == 3)
        assert gaps(observed) == [(0, 2, 0), (5, 6, 0)]
        message = observed.of(KvStreamState)[-1].message
        assert "replay_endpoint" in message


async def test_without_replay_a_stream_from_the_start_is_complete() -> None:
    async with KvPublisher(with_replay=False) as publisher:
        async with following(publisher.endpoint, "") as observed:
            await publisher.subscribed()
            await publisher.publish(0, 1)
            await observed.until(lambda: len(batches(observed)) == 2)
        assert gaps(observed) == []


async def test_messages_after_an_empty_history_start_at_zero() -> None:
    async with KvPublisher() as publisher:
        async with following(publisher.endpoint, publisher.replay_endpoint) as observed:
            await publisher.subscribed()
            await replay_known(observed)
            await publisher.publish(2, keep=False)
            await observed.until(lambda: seqs(observed) == [2])
        assert gaps(observed) == [(0, 1, 0)]


async def test_duplicates_are_dropped() -> None:
    async with KvPublisher() as publisher:
        async with following(publisher.endpoint, publisher.replay_endpoint) as observed:
            await publisher.subscribed()
            await replay_known(observed)
            await publisher.publish(0, 1, 2)
            await publisher.publish(2, 1, 2, 3, keep=False)
            await observed.until(lambda: seqs(observed)[-1:] == [3])
        assert seqs(observed) == [0, 1, 2, 3]
        assert observed.of(KvRestarted, KvGap) == []


async def test_a_sequence_that_goes_back_is_a_restart() -> None:
    async with KvPublisher() as publisher:
        async with following(publisher.endpoint, publisher.replay_endpoint) as observed:
            await publisher.subscribed()
            await replay_known(observed)
            await publisher.publish(0, 1, 2)
            await observed.until(lambda: len(batches(observed)) == 3)
            publisher.kept.clear()
            await publisher.publish(0, 1, stamp=2.0)
            await observed.until(lambda: len(batches(observed)) == 5)
        assert seqs(observed) == [0, 1, 2, 0, 1]
        restart = observed.of(KvRestarted)
        assert len(restart) == 1
        assert observed.all.index(restart[0]) < observed.all.index(observed.of(KvBatch)[3])
        assert gaps(observed) == []


async def test_a_restart_seen_late_is_replayed_from_its_start() -> None:
    async with KvPublisher() as publisher:
        async with following(publisher.endpoint, publisher.replay_endpoint) as observed:
            await publisher.subscribed()
            await replay_known(observed)
            await publisher.publish(0, 1, 2, 3)
            await observed.until(lambda: len(batches(observed)) == 4)
            publisher.kept.clear()
            await publisher.publish(0, 1, stamp=2.0, send=False)
            await publisher.publish(2, stamp=2.0)
            await observed.until(lambda: len(batches(observed)) == 7)
        assert batches(observed)[4:] == [(0, True), (1, True), (2, False)]
        assert len(observed.of(KvRestarted)) == 1
        assert gaps(observed) == [(0, 1, 2)]


@pytest.mark.parametrize("published", [0, 2, 5], ids=["nothing yet", "less than before", "more than before"])
async def test_another_process_is_recognised_before_it_says_anything(published: int) -> None:
    async with KvPublisher() as first:
        ports = first.ports
        endpoints = (first.endpoint, first.replay_endpoint)
        subscription = following(*endpoints)
        observed = await subscription.__aenter__()
        await first.subscribed()
        await replay_known(observed)
        await first.publish(0, 1, 2)
        await observed.until(lambda: len(batches(observed)) == 3)
    try:
        await observed.until(lambda: states(observed)[-1:] == ["disconnected"])
        async with KvPublisher(*ports) as second:
            await second.publish(*range(published), stamp=2.0, send=False)
            await observed.until(lambda: len(observed.of(KvRestarted)) == 1)
            await observed.until(lambda: len(batches(observed)) == 3 + published)
            assert batches(observed)[3:] == [(seq, True) for seq in range(published)]
            assert gaps(observed) == []
            assert states(observed)[-1] == "connected"
    finally:
        await subscription.__aexit__(None, None, None)


async def test_the_same_process_after_a_lost_connection_goes_on() -> None:
    async with KvPublisher() as first:
        ports = first.ports
        subscription = following(first.endpoint, first.replay_endpoint)
        observed = await subscription.__aenter__()
        await first.subscribed()
        await replay_known(observed)
        await first.publish(0, 1, 2)
        await observed.until(lambda: len(batches(observed)) == 3)
    try:
        await observed.until(lambda: states(observed)[-1:] == ["disconnected"])
        async with KvPublisher(*ports) as second:
            await second.publish(0, 1, 2, 3, 4, send=False)
            await observed.until(lambda: len(batches(observed)) == 5)
            await second.publish(5)
            await observed.until(lambda: len(batches(observed)) == 6)
            assert batches(observed)[3:] == [(3, True), (4, True), (5, False)]
            assert observed.of(KvRestarted, KvGap) == []
    finally:
        await subscription.__aexit__(None, None, None)


async def test_nonsense_is_counted_and_the_stream_goes_on() -> None:
    async with KvPublisher() as publisher:
        async with following(publisher.endpoint, publisher.replay_endpoint) as observed:
            await publisher.subscribed()
            await replay_known(observed)
            await publisher.publish(0)
            await publisher.send([b"kv-events"])
            await publisher.send([b"kv-events", b"short", b"x"])
            await publisher.send([b"kv-events", seq_bytes(1), b"\x80\x04\x95pickle"])
            await publisher.publish(2)
            await observed.until(lambda: seqs(observed) == [0, 2])
        assert len(observed.of(Malformed)) == 3
        assert {(m.source, m.rank) for m in observed.of(Malformed)} == {("kv", 0)}
        assert gaps(observed) == [(1, 1, 0)]


async def test_an_oversized_message_costs_itself_only() -> None:
    async with KvPublisher() as publisher:
        async with following(publisher.endpoint, publisher.replay_endpoint, max_message_bytes=2000) as observed:
            await publisher.subscribed()
            await replay_known(observed)
            await publisher.publish(0)
            await observed.until(lambda: seqs(observed) == [0])
            await publisher.send([b"kv-events", seq_bytes(1), b"x" * 5000])
            await observed.until(lambda: "disconnected" in states(observed))
            await publisher.subscribed()
            await publisher.publish(2)
            await observed.until(lambda: seqs(observed) == [0, 2])
        assert gaps(observed) == [(1, 1, 0)]


async def test_a_late_publisher_is_found_by_itself() -> None:
    async with KvPublisher() as probe:
        ports = probe.ports
        endpoints = (probe.endpoint, probe.replay_endpoint)
    async with following(*endpoints) as observed:
        await observed.until(lambda: states(observed)[-1:] == ["disconnected"])
        message = observed.of(KvStreamState)[-1].message
        assert '--kv-events-config \'{"enable_kv_cache_events":true' in message
        assert endpoints[0] in message
        async with KvPublisher(*ports) as publisher:
            await publisher.subscribed()
            await observed.until(lambda: states(observed)[-1:] == ["connected"])
            await publisher.publish(0)
            await observed.until(lambda: seqs(observed) == [0])


async def test_a_mute_replay_socket_does_not_stop_the_stream() -> None:
    async with KvPublisher(mute=True) as publisher:
        async with following(publisher.endpoint, publisher.replay_endpoint) as observed:
            await publisher.subscribed()
            await publisher.publish(1, 4)
            await observed.until(lambda: seqs(observed) == [1, 4])
        assert gaps(observed) == [(0, 0, 0), (2, 3, 0)]
        last = observed.of(KvStreamState)[-1]
        assert (last.state, last.replay_available) == ("connected", False)
        assert "can't be replayed" in last.message


async def test_a_replay_socket_that_comes_later_is_found() -> None:
    async with KvPublisher() as probe:
        replay_port = probe.ports[1]
    async with KvPublisher(with_replay=False) as publisher:
        async with following(publisher.endpoint, f"tcp://127.0.0.1:{replay_port}") as observed:
            await observed.until(lambda: any(s.replay_available is False for s in observed.of(KvStreamState)))
            async with KvPublisher(replay_port=replay_port) as late:
                await late.publish(0, 1, send=False)
                await observed.until(lambda: batches(observed) == [(0, True), (1, True)])
                await observed.until(lambda: observed.of(KvStreamState)[-1].replay_available is True)
        assert observed.of(KvStreamState)[-1].message is None
        assert gaps(observed) == []


async def test_answers_that_the_publisher_dropped_are_asked_for_again() -> None:
    async with KvPublisher() as publisher:
        await publisher.publish(*range(10), send=False)
        publisher.drop = {4, 5}
        async with following(publisher.endpoint, publisher.replay_endpoint) as observed:
            await observed.until(lambda: len(batches(observed)) == 10)
        assert seqs(observed) == list(range(10))
        assert gaps(observed) == []
        assert [request[2] for request in publisher.requests[:2]] == [seq_bytes(0), seq_bytes(4)]


async def test_a_message_lost_before_the_subscription_arrived_is_fetched() -> None:
    async with KvPublisher() as publisher, following(publisher.endpoint, publisher.replay_endpoint) as observed:
        await publisher.subscribed()
        await replay_known(observed)
        await publisher.publish(0, send=False)
        await observed.until(lambda: batches(observed) == [(0, True)])


async def test_only_the_topic_is_subscribed() -> None:
    async with (
        KvPublisher() as publisher,
        following(publisher.endpoint, publisher.replay_endpoint, topic="kv-events") as observed,
    ):
        assert await publisher.subscribed() == b"kv-events"
        await replay_known(observed)
        await publisher.send([b"other", seq_bytes(0), payload(99)])
        await publisher.publish(0)
        await observed.until(lambda: seqs(observed) == [0])
        assert observed.of(KvBatch)[0].events[0].block_hashes == (0,)


async def test_a_port_that_waits_to_be_spoken_to_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    monkeypatch.setattr("app.sources.zmq_socket.HANDSHAKE_MS", 100)
    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, following(f"tcp://127.0.0.1:{port}", "") as observed:
        await observed.until(lambda: states(observed)[-1:] == ["disconnected"])
        assert "doesn't publish KV events" in (observed.of(KvStreamState)[-1].message or "")


async def test_a_port_that_speaks_something_else_is_named_and_tried_again() -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, following(f"tcp://127.0.0.1:{port}", "") as observed:
        await observed.until(lambda: states(observed)[-1:] == ["disconnected"])
        assert f":{port}" in observed.of(KvStreamState)[-1].message
        server.close()
        await server.wait_closed()
        async with KvPublisher(port, with_replay=False) as publisher:
            await publisher.subscribed()
            await publisher.publish(0)
            await observed.until(lambda: seqs(observed) == [0])


@pytest.mark.parametrize("endpoint", ["tcp://*:0", "tcp://127.0.0.1:0", "tcp://127.0.0.1:2"])
async def test_port_zero_is_an_error_of_the_setting(endpoint: str) -> None:
    async with following(endpoint, None) as observed:
        await observed.until(lambda: states(observed) == ["off"])
        assert "cannot be subscribed" in observed.of(KvStreamState)[0].message


@pytest.mark.parametrize("endpoint", ["127.0.0.1:5557", "tcp://host", "udp://127.0.0.1:5557", "tcp://no host:5557"])
async def test_what_is_no_address_is_said(endpoint: str) -> None:
    async with following(endpoint, None) as observed:
        await observed.until(lambda: bool(states(observed)) and states(observed)[-1] == "off")
        assert observed.of(KvStreamState)[-1].message


def faults(observed: Observed) -> list[str | None]:
    return [state.fault for state in observed.of(KvStreamState)]


async def test_a_publisher_that_connects_is_known_by_its_replay() -> None:
    async with KvPublisher(with_replay=False) as gone:
        nobody = gone.endpoint
    async with KvPublisher() as publisher, following(nobody, publisher.replay_endpoint) as observed:
        await observed.until(lambda: "not_bound" in faults(observed))
        assert faults(observed)[:3] == [None, "not_enabled", "not_bound"]
        state = observed.of(KvStreamState)[-1]
        assert "instead of binding" in str(state.message)
        assert state.state == "disconnected"


async def test_nothing_anywhere_is_events_that_are_off() -> None:
    async with KvPublisher(with_replay=False) as publisher:
        endpoint = publisher.endpoint
    async with following(endpoint, "") as observed:
        await observed.until(lambda: "not_enabled" in faults(observed))


async def test_the_replay_socket_is_no_publisher() -> None:
    async with KvPublisher() as publisher, following(publisher.replay_endpoint, "") as observed:
        await observed.until(lambda: "wrong_port" in faults(observed))


async def test_a_topic_that_no_message_has_is_told_from_what_is_replayed() -> None:
    async with KvPublisher() as publisher:
        await publisher.publish(0, 1, send=False)
        async with following(publisher.endpoint, publisher.replay_endpoint, topic="kv@pod") as observed:
            await observed.until(lambda: "wrong_topic" in faults(observed))
            assert "'kv-events'" in str(observed.of(KvStreamState)[-1].message)
        async with following(publisher.endpoint, publisher.replay_endpoint, topic="kv") as fitting:
            await replay_known(fitting)
            assert set(faults(fitting)) == {None}


async def test_a_rank_whose_port_is_closed_says_which() -> None:
    async with KvPublisher(with_replay=False) as publisher:
        endpoint = publisher.endpoint
    port = int(endpoint.rpartition(":")[2])
    observed = Observed()
    base = f"tcp://127.0.0.1:{port - 1}"
    subscriber = KvSubscriber(SERVER, Rank(1), base, "", "", observed.emit, SystemClock(), replay_limits=LIMITS)
    async with in_background(subscriber.run):
        await observed.until(lambda: "rank_port" in faults(observed))
        state = observed.of(KvStreamState)[-1]
        assert (state.rank, state.endpoint) == (1, endpoint)


async def test_a_message_that_comes_again_is_told() -> None:
    async with KvPublisher() as publisher, following(publisher.endpoint, "") as observed:
        await publisher.subscribed()
        await publisher.publish(0, 1)
        await publisher.publish(0, keep=False)
        await publisher.publish(2)
        await observed.until(lambda: seqs(observed) == [0, 1, 2])
        assert [duplicate.seq for duplicate in observed.of(KvDuplicate)] == [0]


async def test_a_large_message_is_handed_on_in_parts_that_nothing_comes_between() -> None:
    events = [["BlockStored", list(range(n * 500, n * 500 + 500)), None, [1] * 8000, 16, None, "GPU"] for n in range(9)]
    large = msgspec.msgpack.encode([1.0, events, 0])
    async with KvPublisher() as publisher, following(publisher.endpoint, "", max_message_bytes=50_000_000) as observed:
        await publisher.subscribed()
        await publisher.send([b"kv", seq_bytes(0), large])
        await publisher.publish(1)
        await observed.until(lambda: 1 in seqs(observed))
        parts = [(batch.seq, batch.part, batch.more, len(batch.events)) for batch in observed.of(KvBatch)]
        assert parts == [*((0, part, part < 8, 1) for part in range(9)), (1, 0, False, 1)]
