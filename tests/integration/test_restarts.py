"""Publisher, subscriber and ledger together: after a restart or a silence the picture is right within two seconds of
the first new message, and holds no ghost."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from app.ids import Rank, ServerId
from app.model.ledger import Ledger, LedgerLimits
from app.observations import Observation
from app.sources.clock import SystemClock
from app.sources.kv_replay import ReplayLimits
from app.sources.kv_subscriber import KvSubscriber
from tests.integration.kv_publisher import KvPublisher, payload, seq_bytes
from tests.integration.observed import in_background

SERVER = ServerId("http://127.0.0.1:8000")
LIMITS = ReplayLimits(idle_s=0.5, total_s=5.0)
SOON_S = 2.0


class Picture:
    """A ledger that a subscriber feeds."""

    def __init__(self) -> None:
        self.ledger = Ledger(LedgerLimits(), 0.0)
        self._changed = asyncio.Event()

    def emit(self, observation: Observation) -> None:
        self.ledger.apply(observation)
        self._changed.set()

    @property
    def hashes(self) -> set[int]:
        return {int(text, 16) for columns in self.ledger.block_columns() for text in columns.hash}

    @property
    def coverage(self) -> str | None:
        server = self.ledger.server(SERVER)
        return server.streams[0].coverage if server and server.streams else None

    async def until(self, hashes: set[int], coverage: str, within_s: float) -> None:
        began_s = time.monotonic()
        try:
            async with asyncio.timeout(within_s):
                while (self.hashes, self.coverage) != (hashes, coverage):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            waited_s = time.monotonic() - began_s
            raise AssertionError(f"after {waited_s:.1f} s: {self.hashes} {self.coverage}") from None


@asynccontextmanager
async def picture_of(endpoint: str, replay: str) -> AsyncIterator[Picture]:
    picture = Picture()
    subscriber = KvSubscriber(
        SERVER, Rank(0), endpoint, replay, "", picture.emit, SystemClock(), salt_key=b"k", replay_limits=LIMITS
    )
    async with in_background(subscriber.run):
        yield picture


@pytest.mark.parametrize("with_replay", [True, False], ids=["replayed", "without replay"])
async def test_a_server_that_restarts_on_its_ports(with_replay: bool) -> None:
    async with KvPublisher(with_replay=with_replay) as first:
        ports = first.ports
        async with picture_of(first.endpoint, first.replay_endpoint) as picture:
            await first.subscribed()
            await first.publish(0, 1, 2)
            await picture.until({0, 1, 2}, "complete", 10)
            await first.__aexit__(None, None, None)
            assert picture.hashes == {0, 1, 2}
            async with KvPublisher(*ports, with_replay=with_replay) as second:
                await second.subscribed()
                await second.publish(0, stamp=2.0)
                await picture.until({0}, "complete", SOON_S)
                await second.publish(1, stamp=2.0)
                await picture.until({0, 1}, "complete", SOON_S)


async def test_a_dashboard_that_restarts_replays_from_0() -> None:
    async with KvPublisher() as publisher:
        await publisher.publish(*range(50), send=False)
        async with picture_of(publisher.endpoint, publisher.replay_endpoint) as picture:
            await publisher.subscribed()
            await picture.until(set(range(50)), "complete", 10)
        async with picture_of(publisher.endpoint, publisher.replay_endpoint) as again:
            await publisher.subscribed()
            await publisher.publish(50)
            await again.until(set(range(51)), "complete", SOON_S)


async def test_messages_that_were_missed_come_back() -> None:
    async with KvPublisher() as publisher, picture_of(publisher.endpoint, publisher.replay_endpoint) as picture:
        await publisher.subscribed()
        await publisher.publish(0)
        await picture.until({0}, "complete", 10)
        await publisher.publish(1, 2, 3, send=False)
        await publisher.publish(4)
        await picture.until({0, 1, 2, 3, 4}, "complete", SOON_S)


async def test_a_server_that_is_upgraded_to_maps_while_watched() -> None:
    async with KvPublisher(with_topic=False) as old:
        ports = old.ports
        async with picture_of(old.endpoint, old.replay_endpoint) as picture:
            await old.subscribed()
            await old.publish(0, 1)
            await picture.until({0, 1}, "complete", 10)
            await old.__aexit__(None, None, None)
            async with KvPublisher(*ports) as new:
                await new.subscribed()
                event = {
                    "type": "BlockStored", "block_hashes": [7], "parent_block_hash": None, "token_ids": [1, 2],
                    "block_size": 2, "lora_id": None, "medium": "GPU", "lora_name": None, "group_idx": 0,
                }  # fmt: skip
                body = msgspec.msgpack.encode({"ts": 2.0, "events": [event], "data_parallel_rank": 0})
                new.kept.append((0, body))
                await new.send([b"kv-events", seq_bytes(0), body])
                await picture.until({7}, "complete", SOON_S)
                server = picture.ledger.server(SERVER)
                assert server is not None
                assert server.streams[0].wire_form == "map"


async def test_a_cache_that_is_reset_in_a_gap_leaves_no_ghost() -> None:
    async with KvPublisher() as publisher, picture_of(publisher.endpoint, publisher.replay_endpoint) as picture:
        await publisher.subscribed()
        await publisher.publish(0)
        await picture.until({0}, "complete", 10)
        publisher.kept.append((1, msgspec.msgpack.encode([1.0, [["AllBlocksCleared"]], 0])))
        publisher.kept.append((2, payload(2)))
        await publisher.send([b"kv-events", seq_bytes(2), payload(2)])
        await picture.until({2}, "complete", SOON_S)
