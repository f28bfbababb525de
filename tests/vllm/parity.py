"""The same prompts for a real vLLM server and for the embedded engine, and what each said about them.

Everything goes over the wire: HTTP, the events' PUB socket and the replay socket.
"""

import itertools
import random
import re
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec
import zmq

from app.engine.block_hash import hash_block, low_64_bits

BLOCK = 32
LONGEST = 600
VOCABULARY = 40_000
MARKS = 1_000
"""Prompts that only mark a place in the stream use token ids beyond the vocabulary; below this, those within runs."""
REQUEST_S = 120.0
EVENTS_S = 30.0

_COUNTER = re.compile(r"^vllm:prefix_cache_(queries|hits)_total\{[^}]*\} (\S+)$", re.MULTILINE)

Event = tuple[Any, ...]
"""("stored", hashes, parent, tokens, extra keys, session id), ("removed", hashes) or ("cleared",)."""


@dataclass(frozen=True)
class Ask:
    """One prompt. `what` says why it is in the workload."""

    what: str
    tokens: tuple[int, ...]
    salt: str | None = None
    session_id: str | None = None
    full_report: bool = False
    max_tokens: int = 1

    def body(self, model: str) -> dict[str, Any]:
        """The request for /v1/completions."""
        body: dict[str, Any] = {"model": model, "prompt": list(self.tokens), "max_tokens": self.max_tokens}
        body |= {"temperature": 0, "return_token_ids": True}
        if self.max_tokens > 1:
            body["ignore_eos"] = True
        if self.salt is not None:
            body["cache_salt"] = self.salt
        if self.session_id is not None:
            body["session_id"] = self.session_id
        if self.full_report:
            body["vllm_xargs"] = {"kv_cache_report_mode": "full"}
        return body


def workload(seed: int, count: int) -> Iterator[Ask | None]:
    """`count` prompts that share, repeat, break off and push each other out; None is a reset of the cache."""
    dice = random.Random(seed)
    documents = [tuple(dice.randrange(VOCABULARY) for _ in range(LONGEST)) for _ in range(3)]
    asked: list[Ask] = []

    def fresh(length: int) -> tuple[int, ...]:
        return tuple(dice.randrange(VOCABULARY) for _ in range(length))

    def length() -> int:
        """Short ones are more common: a CPU computes 50 to 300 tokens a second."""
        return dice.randint(1, dice.randint(1, LONGEST))

    def shared() -> tuple[int, ...]:
        head = documents[dice.randrange(len(documents))][: min(length(), LONGEST - 60)]
        return head + fresh(dice.randint(1, 60))

    def at_a_boundary() -> tuple[int, ...]:
        document = documents[dice.randrange(len(documents))]
        return document[: dice.randint(1, LONGEST // BLOCK) * BLOCK + dice.choice((-1, 0, 0, 1))]

    def again() -> tuple[int, ...]:
        return dice.choice(asked[-12:]).tokens if asked else fresh(BLOCK)

    def continued() -> tuple[int, ...]:
        return (again() + fresh(dice.randint(1, 90)))[:LONGEST]

    def broken() -> tuple[int, ...]:
        tokens = list(again())
        tokens[dice.randrange(len(tokens))] = dice.randrange(VOCABULARY)
        return tuple(tokens)

    kinds = (shared, shared, shared, at_a_boundary, at_a_boundary, again, again, continued, continued, broken)
    for index in range(count):
        if index in (count // 3, count // 2):
            yield None
        kind = dice.choice(kinds) if dice.random() > 0.08 else lambda: fresh(length())
        ask = Ask(
            what=f"{index} {kind.__name__}",
            tokens=kind(),
            salt=dice.choice((*[None] * 8, "tenant-a", "tenant-b")),
            session_id=dice.choice((None, f"session-{index}")),
            full_report=dice.random() < 0.3,
        )
        asked.append(ask)
        yield ask


@dataclass
class Outcome:
    """What a server said: one entry a request, the counters' deltas, and the batches of events in order."""

    asked: list[str] = field(default_factory=list)
    prompt_tokens: list[int] = field(default_factory=list)
    cached_tokens: list[int] = field(default_factory=list)
    output_ids: list[list[int]] = field(default_factory=list)
    queries: int = 0
    hits: int = 0
    batches: list[list[Event]] = field(default_factory=list)

    @property
    def events(self) -> list[Event]:
        """The events without the batches' borders."""
        return [event for batch in self.batches for event in batch]


def simple_event(event: dict[str, Any]) -> Event:
    """An event of the wire (map form) without what every event here has in common."""
    if event["type"] == "AllBlocksCleared":
        return ("cleared",)
    hashes = tuple(event["block_hashes"])
    if event["type"] == "BlockRemoved":
        return ("removed", hashes)
    keys = tuple(None if each is None else tuple(each) for each in event["extra_keys"])
    tokens = tuple(event["token_ids"])
    return ("stored", hashes, event["parent_block_hash"], tokens, keys, event.get("session_id"))


class Server(AbstractContextManager["Server"]):
    """A client of one server: sends prompts one after the other and collects everything that is said."""

    def __init__(self, base_url: str, events_endpoint: str, replay_endpoint: str, model: str) -> None:
        self._model = model
        self._http = httpx.Client(base_url=base_url, timeout=REQUEST_S)
        self._zmq = zmq.Context()
        self._live = self._zmq.socket(zmq.SUB)
        self._live.setsockopt(zmq.RCVHWM, 0)
        self._live.subscribe(b"")
        self._live.connect(events_endpoint)
        self._replay_endpoint = replay_endpoint
        self._live_batches: dict[int, bytes] = {}
        self._runs = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.close()
        self._zmq.destroy(linger=0)

    def run(self, asks: Sequence[Ask | None]) -> Outcome:
        """Empties the cache and sends the prompts; the outcome starts with the reset."""
        self._wait_until_subscribed()
        self._reset()
        first = self._mark(2 * self._runs)
        outcome = Outcome()
        queries, hits = self._counters()
        for ask in asks:
            if ask is None:
                self._reset()
                continue
            answer = self._complete(ask)
            usage = answer["usage"]
            outcome.asked.append(ask.what)
            outcome.prompt_tokens.append(usage["prompt_tokens"])
            outcome.cached_tokens.append(usage["prompt_tokens_details"]["cached_tokens"])
            outcome.output_ids.append(answer["choices"][0].get("token_ids") or [])
        after = self._counters()
        outcome.queries, outcome.hits = after[0] - queries, after[1] - hits
        outcome.batches = self._batches_between(first, self._mark(2 * self._runs + 1))
        self._runs += 1
        return outcome

    def _complete(self, ask: Ask) -> dict[str, Any]:
        response = self._http.post("/v1/completions", json=ask.body(self._model))
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def _reset(self) -> None:
        # A server may still be ending the last step when its answer is out; then it refuses.
        deadline = time.monotonic() + EVENTS_S
        while not self._http.post("/reset_prefix_cache").json().get("success", True):
            assert time.monotonic() < deadline, "the prefix cache could not be reset"

    def _mark(self, number: int) -> int:
        """Sends a prompt of one block that no other has; returns the block's hash."""
        tokens = tuple([VOCABULARY + number] * (BLOCK + 1))
        self._complete(Ask("mark", tokens))
        return low_64_bits(hash_block(None, tokens[:BLOCK]))

    def _counters(self) -> tuple[int, int]:
        values = dict(_COUNTER.findall(self._http.get("/metrics").text))
        return int(float(values["queries"])), int(float(values["hits"]))

    def _take_live(self, timeout_ms: int) -> None:
        while self._live.poll(timeout_ms):
            _topic, number, payload = self._live.recv_multipart()
            self._live_batches[struct.unpack(">q", number)[0]] = payload
            timeout_ms = 0

    def _wait_until_subscribed(self) -> None:
        deadline = time.monotonic() + EVENTS_S
        numbers = itertools.count(MARKS)
        while not self._live_batches:
            assert time.monotonic() < deadline, "no event came from the PUB socket"
            self._mark(next(numbers))
            self._take_live(200)

    def _replay(self) -> dict[int, bytes]:
        with self._zmq.socket(zmq.DEALER) as dealer:
            dealer.connect(self._replay_endpoint)
            dealer.send_multipart([b"", struct.pack(">q", 0)])
            found: dict[int, bytes] = {}
            while dealer.poll(int(EVENTS_S * 1000)):
                *_, number, payload = dealer.recv_multipart()
                if struct.unpack(">q", number)[0] < 0:
                    return found
                found[struct.unpack(">q", number)[0]] = payload
        raise AssertionError("the replay did not end")

    def _batches_between(self, first: int, last: int) -> list[list[Event]]:
        """From the batch that stored `first` to the one that stored `last`, which the live stream must agree with."""
        deadline = time.monotonic() + EVENTS_S
        while True:
            self._take_live(200)
            replayed = self._replay()
            decoded = [
                list(map(simple_event, msgspec.msgpack.decode(replayed[number])[1])) for number in sorted(replayed)
            ]
            stored_in = {
                each[1][0]: index for index, batch in enumerate(decoded) for each in batch if each[0] == "stored"
            }
            if first in stored_in and last in stored_in and set(self._live_batches) <= set(replayed):
                break
            assert time.monotonic() < deadline, "the last event did not come"
        assert sorted(replayed) == list(range(len(replayed)))
        assert self._live_batches == {number: replayed[number] for number in self._live_batches}
        assert sorted(self._live_batches) == list(range(min(self._live_batches), max(self._live_batches) + 1))
        return decoded[stored_in[first] : stored_in[last] + 1]
