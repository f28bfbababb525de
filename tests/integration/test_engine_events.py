"""The embedded engine's KV events and replay, read by plain ZMQ sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import zmq
import zmq.asyncio

from app.engine.publisher import EventPublisher
from app.engine.server import EmbeddedEngine

from .engines import TIMEOUT_S, cached, complete, running, token_prompt

Batch = tuple[int, list[dict[str, Any]]]
END = (-1).to_bytes(8, "big", signed=True)
MAP = [{"role": "system", "content": "Rules. " * 40}, {"role": "user", "content": "Hi"}]


@asynccontextmanager
async def socket(kind: int, endpoint: str) -> AsyncIterator[zmq.asyncio.Socket]:
    context = zmq.asyncio.Context()
    found = context.socket(kind)
    try:
        if kind == zmq.SUB:
            found.setsockopt(zmq.SUBSCRIBE, b"")
        found.connect(endpoint)
        yield found
    finally:
        found.close(linger=0)
        context.term()


async def receive(subscriber: zmq.asyncio.Socket) -> Batch:
    async with asyncio.timeout(TIMEOUT_S):
        topic, number, payload = await subscriber.recv_multipart()
    assert topic == b"kv-events"
    wall_s, events, rank = msgspec.msgpack.decode(payload)
    assert wall_s > 1.7e9 and rank == 0
    return int.from_bytes(number, "big"), events


async def replay(endpoint: str, first: int) -> list[Batch]:
    async with socket(zmq.DEALER, endpoint) as dealer, asyncio.timeout(TIMEOUT_S):
        await dealer.send_multipart([b"", first.to_bytes(8, "big")])
        found: list[Batch] = []
        while True:
            empty, topic, number, payload = await dealer.recv_multipart()
            assert empty == b""
            if number == END:
                assert (topic, payload) == (b"", b"")
                return found
            assert topic == b"kv-events"
            found.append((int.from_bytes(number, "big"), msgspec.msgpack.decode(payload)[1]))


@asynccontextmanager
async def subscribed(**options: Any) -> AsyncIterator[tuple[EmbeddedEngine, httpx.AsyncClient, zmq.asyncio.Socket]]:
    """An engine, and a subscriber that is known to be connected: it has got its first batch, number 0 or later."""
    async with running(**options) as (engine, client), socket(zmq.SUB, engine.events_endpoint) as subscriber:
        for attempt in range(1000):
            await complete(client, token_prompt(100_000 + 100 * attempt, 16))
            if await subscriber.poll(10):
                while await subscriber.poll(10):
                    await subscriber.recv_multipart()
                break
        yield engine, client, subscriber


async def test_a_cold_prompt_a_reuse_and_a_full_report() -> None:
    async with subscribed() as (_, client, subscriber):
        prompt = token_prompt(0, 70)
        await complete(client, prompt, session_id="one")
        number, (stored,) = await receive(subscriber)
        assert list(stored) == [
            *("type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium"),
            *("lora_name", "extra_keys", "group_idx", "kv_cache_spec_kind", "session_id"),
        ]
        assert stored["token_ids"] == prompt[:64]
        assert (len(stored["block_hashes"]), stored["parent_block_hash"], stored["session_id"]) == (4, None, "one")
        assert (stored["block_size"], stored["medium"], stored["extra_keys"]) == (16, "GPU", [None] * 4)
        # A reuse says nothing; the same one with the full report is one store from block 0 on.
        await complete(client, prompt)
        answer = await complete(client, prompt, vllm_xargs={"kv_cache_report_mode": "full"}, session_id="two")
        following, (report,) = await receive(subscriber)
        assert following == number + 1
        assert report["block_hashes"] == stored["block_hashes"][: cached(answer) // 16]
        assert (report["parent_block_hash"], report["session_id"]) == (None, "two")


async def test_a_session_header_and_a_salt_show_in_the_events() -> None:
    async with subscribed() as (_, client, subscriber):
        await client.post(
            "/v1/chat/completions",
            json={"messages": MAP, "max_tokens": 1, "cache_salt": "salt"},
            headers={"X-Session-ID": "header"},
        )
        _, (stored,) = await receive(subscriber)
        assert stored["session_id"] == "header"
        assert stored["extra_keys"] == [["salt"], *[None] * (len(stored["block_hashes"]) - 1)]


async def test_blocks_that_fill_during_decode_are_stored_too() -> None:
    async with subscribed() as (_, client, subscriber):
        answer = await complete(client, token_prompt(0, 20), max_tokens=40, ignore_eos=True, return_token_ids=True)
        _, (prompt,) = await receive(subscriber)
        blocks = [(await receive(subscriber))[1][0] for _ in range(2)]
        tokens = token_prompt(0, 20) + answer["choices"][0]["token_ids"]
        assert [block["token_ids"] for block in blocks] == [tokens[16:32], tokens[32:48]]
        assert blocks[0]["parent_block_hash"] == prompt["block_hashes"][0]
        assert blocks[1]["parent_block_hash"] == blocks[0]["block_hashes"][0]


async def test_a_full_pool_removes_tails_first() -> None:
    async with subscribed(num_gpu_blocks=9) as (_, client, subscriber):
        await client.post("/reset_prefix_cache")
        await complete(client, token_prompt(0, 70))
        _, events = await receive(subscriber)
        assert [event["type"] for event in events] == ["AllBlocksCleared", "BlockStored"]
        kept = events[1]["block_hashes"]
        await complete(client, token_prompt(5000, 100))
        _, events = await receive(subscriber)
        removed = [event["block_hashes"] for event in events if event["type"] == "BlockRemoved"]
        assert removed and removed == [[block_hash] for block_hash in reversed(kept)][: len(removed)]
        assert list(events[0]) == ["type", "block_hashes", "medium", "group_idx"]


async def test_a_clear_comes_with_the_next_step() -> None:
    async with subscribed() as (engine, client, subscriber):
        before = await replay(engine.replay_endpoint, 0)
        assert (await client.post("/reset_prefix_cache")).json() == {"success": True}
        assert await replay(engine.replay_endpoint, 0) == before
        await complete(client, token_prompt(0, 20))
        _, events = await receive(subscriber)
        assert [event["type"] for event in events] == ["AllBlocksCleared", "BlockStored"]


async def test_events_come_before_their_steps_tokens() -> None:
    async with subscribed() as (_, client, subscriber):
        body = {"messages": MAP, "stream": True, "max_tokens": 1}
        async with client.stream("POST", "/v1/chat/completions", json=body) as response:
            await anext(response.aiter_lines())
            assert (await receive(subscriber))[1][0]["type"] == "BlockStored"


async def test_replay_from_any_number() -> None:
    async with running() as (engine, client):
        assert await replay(engine.replay_endpoint, 0) == []
        for index in range(5):
            await complete(client, token_prompt(1000 * index, 20))
        everything = await replay(engine.replay_endpoint, 0)
        assert [number for number, _ in everything] == [0, 1, 2, 3, 4]
        assert [events[0]["token_ids"][0] for _, events in everything] == [0, 1000, 2000, 3000, 4000]
        assert await replay(engine.replay_endpoint, 3) == everything[3:]
        assert await replay(engine.replay_endpoint, 99) == []


async def test_replay_survives_nonsense_and_clients_that_leave() -> None:
    async with running() as (engine, client):
        await complete(client, token_prompt(0, 20))
        async with socket(zmq.DEALER, engine.replay_endpoint) as dealer:
            for frames in ([b""], [b"", b"short"], [b"", b"", b"", b"x"], [b"x", bytes(8)]):
                await dealer.send_multipart(frames)
            await dealer.send_multipart([b"", bytes(8)])
        assert len(await replay(engine.replay_endpoint, 0)) == 1


async def test_a_replay_longer_than_any_socket_queue() -> None:
    publisher = EventPublisher("t", buffer_batches=5000)
    _, endpoint = publisher.open("127.0.0.1", 0, 0)
    assert endpoint
    serving = asyncio.create_task(publisher.serve_replay())
    try:
        payload = msgspec.msgpack.encode([1.0, [], 0])
        for _ in range(6000):
            publisher.publish(payload)
        async with socket(zmq.DEALER, endpoint) as dealer, asyncio.timeout(TIMEOUT_S):
            await dealer.send_multipart([b"", bytes(8)])
            numbers = []
            while (frames := await dealer.recv_multipart())[2] != END:
                numbers.append(int.from_bytes(frames[2], "big"))
        assert numbers == list(range(1000, 6000))
    finally:
        serving.cancel()
        publisher.close()


async def test_what_is_kept_is_bounded_in_bytes_too() -> None:
    publisher = EventPublisher("t", buffer_bytes=1000)
    _, endpoint = publisher.open("127.0.0.1", 0, 0)
    assert endpoint
    serving = asyncio.create_task(publisher.serve_replay())
    try:
        for _ in range(50):
            publisher.publish(msgspec.msgpack.encode([1.0, ["x" * 90], 0]))
        async with socket(zmq.DEALER, endpoint) as dealer, asyncio.timeout(TIMEOUT_S):
            await dealer.send_multipart([b"", bytes(8)])
            first = int.from_bytes((await dealer.recv_multipart())[2], "big")
        assert first == 41
    finally:
        serving.cancel()
        publisher.close()
