"""How many KV-event messages a second one process takes from a socket: `python -m benchmarks.kv_subscriber`.

A publisher in a process of its own sends as fast as it can. Compared: `zmq.asyncio`, which makes a future a message;
`ZmqSocket`, which drains the socket in slices; and the whole `KvSubscriber`, decoding included, with the longest time
that its event loop was held. Times are CPU times of the loop's thread, so that a busy machine doesn't count.
"""

import asyncio
import multiprocessing
import random
import time
from multiprocessing.connection import Connection

import msgspec
import zmq
import zmq.asyncio

from app.ids import Rank, ServerId
from app.observations import KvBatch, Observation
from app.sources.clock import SystemClock
from app.sources.kv_subscriber import SLICE_MESSAGES, KvSubscriber
from app.sources.zmq_socket import ZmqSocket, woken
from benchmarks.kv_decode import message

MESSAGES = 60_000
BLOCKS = 8


def publish(pipe: Connection, count: int) -> None:
    """Binds, tells the address, waits for a subscriber, then sends `count` messages."""
    context = zmq.Context()
    socket = context.socket(zmq.XPUB)
    socket.set_hwm(0)
    socket.bind("tcp://127.0.0.1:*")
    pipe.send(socket.getsockopt_string(zmq.LAST_ENDPOINT))
    socket.recv()
    events = msgspec.msgpack.decode(message(1, BLOCKS, "map", random.Random(7)))[1]
    body = msgspec.msgpack.encode([time.time(), events, 0])
    for seq in range(count):
        socket.send_multipart([b"kv-events", seq.to_bytes(8, "big"), body])
    pipe.recv()
    context.destroy(linger=0)


async def with_futures(endpoint: str) -> float:
    """`zmq.asyncio`, one `await` a message."""
    context = zmq.asyncio.Context()
    socket = context.socket(zmq.SUB)
    socket.set_hwm(0)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.connect(endpoint)
    await socket.recv_multipart()
    began = time.thread_time()
    for _ in range(MESSAGES - 1):
        await socket.recv_multipart()
    elapsed = time.thread_time() - began
    context.destroy(linger=0)
    return elapsed


async def with_drain(endpoint: str) -> float:
    """`ZmqSocket`, without decoding."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    wake = asyncio.Event()
    began = taken = 0.0
    with ZmqSocket(
        context, zmq.SUB, endpoint, wake=wake, receive_hwm=0, max_message_bytes=1 << 26, topic=b""
    ) as socket:  # fmt: skip
        while taken < MESSAGES:
            wake.clear()
            for _ in range(SLICE_MESSAGES):
                if socket.receive() is None:
                    await woken(wake, 1.0)
                    break
                taken += 1
                began = began or time.thread_time()
            await asyncio.sleep(0)
        elapsed = time.thread_time() - began
    context.destroy(linger=0)
    return elapsed


async def with_subscriber(endpoint: str) -> float:
    """The whole subscriber."""
    done = asyncio.Event()
    began = 0.0
    taken = 0

    def emit(observation: Observation) -> None:
        nonlocal began, taken
        if isinstance(observation, KvBatch):
            began = began or time.thread_time()
            taken += 1
            if taken == MESSAGES:
                done.set()

    subscriber = KvSubscriber(
        ServerId("http://127.0.0.1:1"), Rank(0), endpoint, "", "", emit, SystemClock(), salt_key=b"k", receive_hwm=0
    )
    running = asyncio.create_task(subscriber.run())
    watching = asyncio.create_task(_longest_hold())
    await done.wait()
    elapsed = time.thread_time() - began
    running.cancel()
    watching.cancel()
    await asyncio.gather(running, return_exceptions=True)
    longest_s = await watching
    print(f"  loop held at most {longest_s * 1e3:.1f} ms")
    return elapsed


async def _longest_hold() -> float:
    longest = 0.0
    try:
        while True:
            began = time.thread_time()
            await asyncio.sleep(0.0005)
            longest = max(longest, time.thread_time() - began)
    except asyncio.CancelledError:
        return longest


def main() -> None:
    """Prints messages and blocks a second for each way."""
    spawn = multiprocessing.get_context("spawn")
    for name, take in (("zmq.asyncio", with_futures), ("drain", with_drain), ("subscriber", with_subscriber)):
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=publish, args=(theirs, MESSAGES))
        process.start()
        elapsed = asyncio.run(take(ours.recv()))
        ours.send(None)
        process.join()
        rate = MESSAGES / elapsed
        print(f"{name}: {rate:,.0f} messages/s, {rate * BLOCKS:,.0f} blocks/s")


if __name__ == "__main__":
    main()
