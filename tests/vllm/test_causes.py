"""Causes that a real vLLM can be brought to: the verdict, its numbers, and the token that the microscope marks. What
usage says is never contradicted."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.vllm.conftest import Dashboard, RealVllm
from tests.vllm.test_dashboard import final_record, page_headers, wait_until

pytestmark = pytest.mark.vllm

SIZE = RealVllm.block_size
REQUEST_S = 180.0
SETTLED_S = 30.0


@pytest.fixture(scope="module")
def server(small_pool_vllm: RealVllm) -> RealVllm:
    return small_pool_vllm


@pytest.fixture(scope="module")
def on(logs: Path, server: RealVllm) -> Iterator["Desk"]:
    """One dashboard for all causes: what an earlier one left behind must not disturb a later one."""
    dashboard = Dashboard(logs / "dashboard-causes.log", server)
    try:
        dashboard.start()
        with httpx.Client(base_url=dashboard.base_url, timeout=REQUEST_S) as client:
            yield Desk(server, client)
    finally:
        dashboard.process.stop()


@dataclass(frozen=True)
class Desk:
    """A real server behind the dashboard, and what is sent to it."""

    server: RealVllm
    client: httpx.Client

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.client.post(path, json=body, headers=page_headers(self.client))
        request = answer.headers.get("X-PrefixScope-Request")
        return final_record(self.client, request or self.records(1)[0]["id"])

    def complete(self, prompt: list[int], **further: Any) -> dict[str, Any]:
        """A completion of one token: prompts of token ids have the numbers that the case says."""
        body = {"model": self.server.model, "prompt": prompt, "max_tokens": 1, "stream": True, "return_token_ids": True}
        body |= {"stream_options": {"include_usage": True}, "vllm_xargs": {"kv_cache_report_mode": "full"}}
        return self.post("/v1/completions", body | further)

    def records(self, limit: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.get(f"/api/requests?limit={limit}").json()["requests"]
        return found

    def json(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(path).json()
        return found

    def reset(self) -> None:
        """Empties the cache, past the dashboard."""
        assert httpx.post(f"{self.server.base_url}/reset_prefix_cache", timeout=10).json() == {"success": True}


def tokens(seed: int, count: int) -> list[int]:
    """Token ids that share no run with those of another seed."""
    return random.Random(seed).sample(range(1_000, 49_000), count)


Case = tuple[dict[str, Any], dict[str, Any], int | None]
"""The record, numbers of its verdict, and the token that the microscope marks (from 1; None: no look)."""
LONG = 4 * SIZE + 1


def full_hit(on: Desk) -> Case:
    a = tokens(1, LONG)
    on.complete(a)
    numbers = {"reused_blocks": 4, "reusable_blocks": 4, "prompt_blocks": 5, "computed_tokens": 1}
    return on.complete(a), numbers, None


def first_seen(on: Desk) -> Case:
    on.complete(tokens(2, LONG))
    return on.complete(tokens(3, LONG)), {"shared_tokens": 0, "computed_tokens": LONG, "cached_tokens": 0}, 1


def exact_multiple(on: Desk) -> Case:
    a = tokens(4, 2 * SIZE)
    on.complete(a)
    return on.complete(a), {"cached_tokens": SIZE, "reusable_blocks": 1}, None


def one_block_exactly(on: Desk) -> Case:
    a = tokens(5, SIZE)
    on.complete(a)
    return on.complete(a), {"cached_tokens": 0, "prompt_tokens": SIZE}, None


def too_short(on: Desk) -> Case:
    a = tokens(6, SIZE - 1)
    on.complete(a)
    return on.complete(a), {"prompt_tokens": SIZE - 1, "block_size": SIZE}, None


def shares_less_than_a_block(on: Desk) -> Case:
    a, b = tokens(7, LONG), tokens(8, LONG)
    on.complete(a)
    return on.complete(a[:17] + b), {"shared_tokens": 17, "block_size": SIZE}, 18


def diverges_in_the_first_block(on: Desk) -> Case:
    a, b = tokens(9, SIZE + 4), tokens(10, LONG)
    on.complete(a)
    record = on.complete([*a[:3], 7, *a[4:SIZE], *b])
    return record, {"shared_tokens": 3, "token": 4, "block": 1, "blocks_after": 6}, 4


def reused_until_it_diverges(on: Desk) -> Case:
    a, b = tokens(11, LONG), tokens(12, LONG)
    on.complete(a)
    numbers = {"token": 2 * SIZE + 9, "block": 3, "cached_tokens": 2 * SIZE, "blocks_after": 5}
    return on.complete(a[: 2 * SIZE + 8] + b), numbers, 2 * SIZE + 9


def conversation_goes_on(on: Desk) -> Case:
    a = tokens(16, LONG)
    on.complete(a[: 2 * SIZE + 10])
    return on.complete(a), {"cached_tokens": 2 * SIZE, "straddling_tokens": 10}, None


def variable_text_first(on: Desk) -> Case:
    a = tokens(17, LONG)
    on.complete([500, 600, *a])
    return on.complete([500, 800, 900, *a]), {"token": 2, "block": 1, "span_tokens": 2, "constant_tokens": LONG}, 2


def variable_text_behind_a_block(on: Desk) -> Case:
    a, b = tokens(18, LONG), tokens(19, SIZE + 8)
    on.complete([*b, 500, *a])
    numbers = {"token": SIZE + 9, "cached_tokens": SIZE, "constant_tokens": LONG}
    return on.complete([*b, 800, *a]), numbers, SIZE + 9


def other_salt(on: Desk) -> Case:
    a = tokens(20, LONG)
    on.complete(a, cache_salt="one")
    return on.complete(a, cache_salt="two"), {"salted": 1, "cached_tokens": 0}, None


def without_the_salt(on: Desk) -> Case:
    a = tokens(21, LONG)
    on.complete(a, cache_salt="one")
    return on.complete(a), {"salted": 0, "cached_tokens": 0}, None


def lookup_skipped(on: Desk) -> Case:
    a = tokens(22, LONG)
    on.complete(a)
    record = on.complete(a, prompt_logprobs=1, stream=False, stream_options=None)
    return record, {"computed_tokens": LONG}, None


def evicted(on: Desk) -> Case:
    """Of 63 usable blocks, the large one takes all."""
    a = tokens(24, LONG)
    on.complete(a)
    large = on.complete(tokens(25, 63 * SIZE - 16))
    record = on.complete(a)
    return record, {"by": large["id"], "by_count": 1, "block": 1, "lost_tokens": 4 * SIZE, "cached_tokens": 0}, None


CASES: dict[Callable[[Desk], Case], str] = {
    full_hit: "full_hit",
    first_seen: "first_seen",
    exact_multiple: "exact_multiple",
    one_block_exactly: "exact_multiple",
    too_short: "too_short",
    shares_less_than_a_block: "too_short",
    diverges_in_the_first_block: "diverges",
    reused_until_it_diverges: "reused diverges",
    conversation_goes_on: "reused alignment",
    variable_text_first: "variable_first",
    variable_text_behind_a_block: "reused variable_first",
    other_salt: "other_salt",
    without_the_salt: "other_salt",
    lookup_skipped: "lookup_skipped",
    evicted: "evicted",
}
"""What each must be called: the code, and of a part that was reused the code of the loss."""


def called(record: dict[str, Any]) -> str:
    verdict = record["verdict"] or {"code": "", "params": {}}
    loss = verdict["params"].get("loss")
    return f"{verdict['code']} {loss}" if loss else str(verdict["code"])


def settled(on: Desk, record: dict[str, Any], name: str) -> dict[str, Any]:
    """The record once it is called so: the last events may come a moment after the response."""
    path = f"/api/requests/{record['id']}"
    wait_until(lambda: called(on.json(path)) == name, f"{called(on.json(path))} is {name}", SETTLED_S)
    return on.json(path)


def agrees_with_usage(record: dict[str, Any]) -> None:
    """No verdict is ever contradicted by what the server said."""
    code, params, cached = record["verdict"]["code"], record["verdict"]["params"], record["cached_tokens"]
    if cached is None:
        return
    assert record["basis"]["cached_tokens"] == "usage"
    assert params["cached_tokens"] == cached
    assert params["computed_tokens"] == record["prompt_tokens"] - cached
    assert cached == 0 or code in ("full_hit", "reused", "exact_multiple")
    assert code not in ("full_hit", "reused") or cached > 0


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_a_cause_its_numbers_and_the_marked_token(on: Desk, make: Callable[[Desk], Case]) -> None:
    on.reset()
    record, numbers, marked = make(on)
    record = settled(on, record, CASES[make])
    params = record["verdict"]["params"]
    assert {name: params.get(name) for name in numbers} == numbers
    assert record["verdict"]["text"] and record["verdict"]["translations"]["zh"][0]
    agrees_with_usage(record)
    if marked is not None:
        found = on.json(f"/api/requests/{record['id']}/comparison")
        assert (found["common_tokens"], found["first_difference"]["token"]) == (marked - 1, marked)
        assert found["first_difference"]["block"] == (marked - 1) // SIZE + 1
        assert found["recomputed"]["tokens"] == record["prompt_tokens"] - record["cached_tokens"]
