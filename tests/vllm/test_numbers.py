"""Two hundred mixed requests on a real vLLM with 64 blocks: each figure against the server's own, each chain probed."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from openai import OpenAI

from tests.vllm.conftest import Dashboard, RealVllm
from tests.vllm.test_dashboard import chat_body, counter, final_record, page_headers, resident, send, wait_until
from tests.vllm.traffic import BURST, Step, steps

pytestmark = pytest.mark.vllm

REQUESTS = 200
SEED = 20
REQUEST_S = 180.0
QUIET_S = 30.0
LONG_ANSWER = 1500
STOPPED_WITHIN_S = 2.0


@pytest.fixture(scope="module")
def server(small_pool_vllm: RealVllm) -> RealVllm:
    return small_pool_vllm


@pytest.fixture
def dashboard(server: RealVllm, dashboard_for: Callable[..., Dashboard]) -> Dashboard:
    return dashboard_for(server, "--allow-cache-reset")


@pytest.fixture
def client(dashboard: Dashboard) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=dashboard.base_url, timeout=REQUEST_S) as client:
        yield client


def running(server: RealVllm) -> float:
    """Requests that run or wait, as the server's own gauges have it."""
    page = httpx.get(f"{server.base_url}/metrics", timeout=10).text
    names = ("vllm:num_requests_running{", "vllm:num_requests_waiting{")
    return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(names))


def until_quiet(server: RealVllm) -> None:
    wait_until(lambda: running(server) == 0, "the server is done with everything", QUIET_S)


def test_the_openai_clients_streaming_helper_through_the_dashboard(dashboard: Dashboard, server: RealVllm) -> None:
    with OpenAI(base_url=f"{dashboard.base_url}/v1", api_key="none", max_retries=0, timeout=REQUEST_S) as openai:
        messages: Any = [{"role": "user", "content": "Name three colours."}]
        with openai.chat.completions.stream(
            model=server.model, messages=messages, max_tokens=12, temperature=0
        ) as stream:
            deltas = [event.delta for event in stream if event.type == "content.delta"]
            whole = stream.current_completion_snapshot.choices[0].message.content
        straight = httpx.post(
            f"{server.base_url}/v1/chat/completions",
            json={"model": server.model, "messages": messages, "max_tokens": 12, "temperature": 0},
            timeout=REQUEST_S,
        ).json()

    assert len(deltas) > 1
    assert "".join(deltas) == whole == straight["choices"][0]["message"]["content"]


def test_a_client_that_leaves_stops_its_answer_and_nobody_elses(server: RealVllm, client: httpx.Client) -> None:
    until_quiet(server)
    leave, stop = threading.Event(), threading.Event()

    def answer(question: str, until: threading.Event, started: threading.Event) -> None:
        body = chat_body("You count.", question, max_tokens=LONG_ANSWER, ignore_eos=True)
        with client.stream("POST", "/v1/chat/completions", json=body, headers=page_headers(client)) as response:
            for line in response.iter_lines():
                if '"content":"' in line:
                    started.set()
                if until.is_set():
                    return

    begun = [threading.Event(), threading.Event()]
    with ThreadPoolExecutor(2) as pool:
        pool.submit(answer, "Count up.", leave, begun[0])
        pool.submit(answer, "Count down.", stop, begun[1])
        try:
            assert all(event.wait(QUIET_S) for event in begun)
            wait_until(lambda: running(server) == 2, "both run", QUIET_S)
            leave.set()
            wait_until(lambda: running(server) == 1, "one is stopped, one goes on", STOPPED_WITHIN_S)
            time.sleep(0.5)
            assert running(server) == 1
        finally:
            leave.set()
            stop.set()
    until_quiet(server)
    ended = client.get("/api/requests?limit=2").json()["requests"]
    assert [record["outcome"] for record in ended] == ["client_gone"] * 2


@dataclass
class Player:
    """Plays steps through the dashboard, and notes what it said of each request that ran alone."""

    server: RealVllm
    client: httpx.Client
    wrong: list[dict[str, Any]] = field(default_factory=list)
    alone: int = 0

    def play(self, step: Step) -> None:
        """One step, to its end: the next one starts on a quiet server."""
        if step.kind == "reset":
            answer = self.client.post("/api/server/reset_prefix_cache", headers=page_headers(self.client))
            assert answer.json() == {"reset": True, "message": None}
        elif step.kind == "burst":
            with ThreadPoolExecutor(BURST) as pool:
                list(pool.map(lambda _: send(self.client, body_of(step)), range(BURST)))
            until_quiet(self.server)
        elif step.kind == "aborted":
            self.abort(step)
        else:
            self.check(step)

    def check(self, step: Step, **further: Any) -> dict[str, Any]:
        """Sends a step's request alone; its forecast must be its outcome."""
        record = send(self.client, body_of(step, **further))
        assert record["basis"]["cached_tokens"] == "usage"
        self.alone += 1
        if record["predicted_cached_tokens"] != record["cached_tokens"]:
            self.wrong.append({"number": self.alone, "kind": step.kind, "salt": step.salt, **told(record)})
        return record

    def abort(self, step: Step) -> None:
        """Leaves in the midst of an answer."""
        body = body_of(step, max_tokens=40)
        with self.client.stream(
            "POST", "/v1/chat/completions", json=body, headers=page_headers(self.client)
        ) as response:
            request = response.headers["X-PrefixScope-Request"]
            for line in response.iter_lines():
                if '"content":"' in line:
                    break
        assert final_record(self.client, request)["outcome"] == "client_gone"
        until_quiet(self.server)


def body_of(step: Step, **further: Any) -> dict[str, Any]:
    salt = {} if step.salt is None else {"cache_salt": step.salt}
    return chat_body(step.system, step.question, **{"max_tokens": 3, **salt, **further})


def told(record: dict[str, Any]) -> dict[str, Any]:
    names = ("id", "prompt_tokens", "cached_tokens", "predicted_cached_tokens", "predicted_is_lower_bound")
    return {name: record[name] for name in names}


def counted(client: httpx.Client, server: RealVllm) -> tuple[float, float]:
    """(queries, hits) since the mark, by the dashboard's reading of the server's counters."""
    rates = client.get("/api/state").json()["data"]["rates"].get(server.base_url, [])
    for reading in rates:
        if (reading["window"], reading["basis"]) == ("since_mark", "counter"):
            return reading["query_tokens"], reading["hit_tokens"]
    return 0.0, 0.0


def both_counters(server: RealVllm) -> tuple[float, float]:
    return counter(server, "prefix_cache_queries"), counter(server, "prefix_cache_hits")


def test_two_hundred_mixed_requests_then_every_chain(server: RealVllm, client: httpx.Client) -> None:
    until_quiet(server)
    before = both_counters(server)
    # The window begins with the last reading: only one that already has everything before it will do.
    wait_until(lambda: lifetime(client, server) == before, "the counters of before were read")
    client.post("/api/mark", headers=page_headers(client))
    player = Player(server, client)
    plan = list(steps(REQUESTS, SEED))
    half = len(plan) // 2

    for step in plan[:half]:
        player.play(step)
    first = difference(both_counters(server), before)
    wait_until(lambda: counted(client, server) == first, f"{counted(client, server)} is the counters' {first}")
    assert player.wrong == []

    restart(server, client)
    assert resident(client) == set()
    for step in plan[half:]:
        player.play(step)
    second = both_counters(server)
    total = (first[0] + second[0], first[1] + second[1])
    wait_until(lambda: counted(client, server) == total, f"{counted(client, server)} is the counters' {total}")

    assert player.wrong == []
    assert player.alone > REQUESTS * 0.7
    probed = probe_every_chain(player, plan[half:])
    assert probed > 3
    assert player.wrong == []
    assert client.get("/healthz").json()["observations_left_out"] == 0


def lifetime(client: httpx.Client, server: RealVllm) -> tuple[float, float]:
    """(queries, hits) of the server's life, as last read."""
    rates = client.get("/api/state").json()["data"]["rates"].get(server.base_url, [])
    found = [reading for reading in rates if reading["window"] == "lifetime"]
    return (found[0]["query_tokens"], found[0]["hit_tokens"]) if found else (-1.0, -1.0)


def difference(now: tuple[float, float], before: tuple[float, float]) -> tuple[float, float]:
    return now[0] - before[0], now[1] - before[1]


def restart(server: RealVllm, client: httpx.Client) -> None:
    """Kills the server and starts it again."""
    server.kill()
    wait_until(lambda: client.get("/readyz").status_code == 503, "the dashboard sees that the server is gone")
    server.start()
    wait_until(lambda: client.get("/readyz").status_code == 200, "the dashboard sees the server again")
    wait_until(lambda: resident(client) == set(), "no block of the one that was killed is left")


def probe_every_chain(player: Player, played: list[Step]) -> int:
    """Sends once more whatever has a block resident, one after the other; how many those were.

    The probes evict each other's blocks, so what the mirror believes is put to the test after each.
    """
    chains = {(step.system, step.question, step.salt): step for step in played if step.kind != "reset"}
    probed = 0
    for step in chains.values():
        record = player.check(step, max_tokens=1)
        probed += record["cached_tokens"] > 0
    return probed
