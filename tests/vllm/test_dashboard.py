"""The dashboard in front of a real vLLM server: what it says equals what the server says."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.vllm.conftest import Dashboard, RealVllm

pytestmark = pytest.mark.vllm

RULES = "You are a meticulous assistant. Follow the rules exactly.\n" * 12
QUESTIONS = ("Name a colour.", "Translate 'hello' to French.", "What is 2 + 2?")
REQUEST_S = 120.0


@pytest.fixture(scope="module")
def server(small_pool_vllm: RealVllm) -> RealVllm:
    return small_pool_vllm


@pytest.fixture
def dashboard(server: RealVllm, dashboard_for: Callable[..., Dashboard]) -> Dashboard:
    return dashboard_for(server)


@pytest.fixture
def client(dashboard: Dashboard) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=dashboard.base_url, timeout=REQUEST_S) as client:
        yield client


def chat_body(system: str, question: str, **further: Any) -> dict[str, Any]:
    """A chat request as the page sends it."""
    return {
        "model": RealVllm.model,
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": question}],
        "max_tokens": 6,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
        "vllm_xargs": {"kv_cache_report_mode": "full"},
        **further,
    }


def page_headers(client: httpx.Client) -> dict[str, str]:
    """What the page's own requests say of themselves."""
    return {"X-PrefixScope-Origin": "page", "Origin": str(client.base_url).rstrip("/")}


def send(client: httpx.Client, body: dict[str, Any]) -> dict[str, Any]:
    """Sends as the page does; returns the request's record once it is final."""
    response = client.post("/v1/chat/completions", json=body, headers=page_headers(client))
    assert response.status_code == 200, response.text
    return final_record(client, response.headers["X-PrefixScope-Request"])


def final_record(client: httpx.Client, request: str) -> dict[str, Any]:
    """A request's record, once it has ended. The last events may come a moment after the response."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        record: dict[str, Any] = client.get(f"/api/requests/{request}").json()
        if record.get("outcome") is not None:
            return record
        time.sleep(0.02)
    raise AssertionError(f"request {request} has not ended")


def counter(server: RealVllm, name: str) -> float:
    """A counter of the server's own metrics page, read by a parser of its own."""
    page = httpx.get(f"{server.base_url}/metrics", timeout=10).text
    return sum(
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == f"vllm:{name}_total"
    )


def resident(client: httpx.Client) -> set[str]:
    """Hashes of the blocks that the dashboard believes to be resident."""
    return {text for columns in client.get("/api/blocks").json()["blocks"] for text in columns["hash"]}


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 10.0) -> None:
    """Waits for `condition`; AssertionError naming `what` where it doesn't come true in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_three_questions_agree_with_usage_counters_and_forecast(server: RealVllm, client: httpx.Client) -> None:
    hits_before = counter(server, "prefix_cache_hits")
    records = [send(client, chat_body(RULES, question)) for question in QUESTIONS]
    assert [record["basis"]["cached_tokens"] for record in records] == ["usage"] * 3
    assert records[0]["cached_tokens"] == 0
    assert all(record["cached_tokens"] >= 128 for record in records[1:])
    assert sum(record["cached_tokens"] for record in records) == counter(server, "prefix_cache_hits") - hits_before
    assert [record["predicted_cached_tokens"] for record in records] == [r["cached_tokens"] for r in records]
    for record in records:
        assert record["ttft_ms"] > 0
        assert record["engine_ttft_ms"] > 0
        assert record["reused_blocks"] == record["cached_tokens"] // server.block_size
        assert record["block_table"]["state"].count("reused") == record["reused_blocks"]


def test_cached_tokens_are_those_of_usage(server: RealVllm, client: httpx.Client) -> None:
    body = chat_body("Usage. " + RULES, "Name a colour.", stream=False)
    del body["stream_options"]
    for _ in range(2):
        response = client.post("/v1/chat/completions", json=body, headers=page_headers(client))
        record = final_record(client, response.headers["X-PrefixScope-Request"])
        assert record["cached_tokens"] == response.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
        assert record["ttft_ms"] is None
    assert record["cached_tokens"] > 0


def test_a_changed_first_character_hits_nothing(client: httpx.Client) -> None:
    send(client, chat_body("A" + RULES, QUESTIONS[0]))
    again = send(client, chat_body("A" + RULES, QUESTIONS[0]))
    changed = send(client, chat_body("B" + RULES, QUESTIONS[0]))
    assert again["reused_blocks"] > 0
    assert changed["cached_tokens"] == changed["reused_blocks"] == changed["predicted_cached_tokens"] == 0


def test_salts_do_not_share(client: httpx.Client) -> None:
    first = send(client, chat_body(RULES, QUESTIONS[0], cache_salt="salt-one"))
    other = send(client, chat_body(RULES, QUESTIONS[0], cache_salt="salt-two"))
    again = send(client, chat_body(RULES, QUESTIONS[0], cache_salt="salt-one"))
    assert first["cached_tokens"] == other["cached_tokens"] == 0
    assert again["cached_tokens"] > 0
    assert [r["predicted_cached_tokens"] for r in (first, other, again)] == [0, 0, again["cached_tokens"]]
    everything = client.get("/api/state").text + client.get("/api/requests?limit=100").text
    assert "salt-one" not in everything
    assert "salt-two" not in everything


def test_another_clients_request_is_left_as_it_is_and_still_understood(client: httpx.Client) -> None:
    body = chat_body("Other. " + RULES, QUESTIONS[0])
    for key in ("stream_options", "return_token_ids", "vllm_xargs"):
        del body[key]
    for _ in range(2):
        response = client.post("/v1/chat/completions", json=body)
        assert response.status_code == 200
        assert "x-prefixscope-request" not in response.headers
        assert b'"usage":{' not in response.content
    newest = client.get("/api/requests?limit=2").json()["requests"]
    wait_until(
        lambda: client.get(f"/api/requests/{newest[0]['id']}").json()["prompt_tokens"] is not None, "prompt tokenised"
    )
    record = client.get(f"/api/requests/{newest[0]['id']}").json()
    assert record["label"] is None
    assert record["cached_tokens"] == record["predicted_cached_tokens"] > 0
    assert record["basis"]["cached_tokens"] == "inferred"


def test_an_unknown_model_is_the_servers_own_error(client: httpx.Client) -> None:
    response = client.post("/v1/chat/completions", json=chat_body(RULES, "x", model="nobody"))
    assert response.status_code == 404
    assert "nobody" in response.json()["error"]["message"]


def test_a_restart_leaves_no_ghost_blocks(server: RealVllm, client: httpx.Client) -> None:
    send(client, chat_body(RULES, QUESTIONS[0]))
    assert resident(client)
    server.stop()
    wait_until(lambda: client.get("/readyz").status_code == 503, "the dashboard sees that the server is gone")
    server.start()
    wait_until(lambda: client.get("/readyz").status_code == 200, "the dashboard sees the server again")
    record = send(client, chat_body(RULES, QUESTIONS[0]))
    assert record["cached_tokens"] == record["predicted_cached_tokens"] == 0
    stored = {text for text in record["block_table"]["hash"] if text}
    wait_until(lambda: resident(client) == stored, "only the new server's blocks are resident")
