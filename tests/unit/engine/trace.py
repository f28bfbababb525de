"""Does to a core what a trace says was done to vLLM's own scheduler. tests/vllm/trace_scheduler.py writes traces."""

from typing import Any

from app.engine.block_hash import low_64_bits
from app.engine.core import BlocksCleared, BlocksRemoved, CacheEvent, CoreConfig, CoreRequest, EngineCore, StepResult


def _sample(request: CoreRequest, position: int) -> int:
    return 1 + (int(request.request_id[1:]) * 7 + position * position) % 3


def _hash(digest: bytes) -> str:
    return f"{low_64_bits(digest):016x}"


def _event(event: CacheEvent) -> list[Any]:
    if isinstance(event, BlocksCleared):
        return ["cleared"]
    hashes = [_hash(digest) for digest in event.block_hashes]
    if isinstance(event, BlocksRemoved):
        return ["removed", hashes]
    parent = None if event.parent_block_hash is None else _hash(event.parent_block_hash)
    keys = [None if each is None else list(each) for each in event.extra_keys]
    return ["stored", hashes, parent, list(event.token_ids), keys, event.session_id]


def _request(op: dict[str, Any]) -> CoreRequest:
    return CoreRequest(
        op["id"],
        tuple(op["tokens"]),
        op["max_tokens"],
        cache_salt=op["salt"],
        session_id=op["session"],
        full_report=op["full"],
        skip_reading_cache=op["skip"],
        stop_token_ids=frozenset([op["stop"]] if op["stop"] else []),
    )


class _Replay:
    """Does to a core what was done to vLLM's scheduler, and says what a trace says."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.core = EngineCore(CoreConfig(**config), _sample)
        self._started: set[str] = set()

    def step(self) -> dict[str, Any]:
        before = self.core.gauges()
        result = self.core.step(0.0)
        assert result is not None
        self.core.settle()
        after = self.core.gauges()
        return {
            "do": "step",
            "scheduled": [[each.request_id, each.scheduled_tokens] for each in result.progress],
            "preempted": sorted(result.preempted),
            "outputs": self._outputs(result),
            "events": [_event(event) for event in result.events],
            "running": after.running,
            "waiting": after.waiting,
            "usage": round(after.kv_cache_usage_ratio, 9),
            "queries": after.prefix_cache_queries - before.prefix_cache_queries,
            "hits": after.prefix_cache_hits - before.prefix_cache_hits,
        }

    def _outputs(self, result: StepResult) -> list[Any]:
        found: list[Any] = []
        for each in result.progress:
            if each.token_id is not None:
                first = each.request_id not in self._started
                self._started.add(each.request_id)
                reuse = [each.cached_tokens, each.created_cache_tokens] if first else None
                found.append([each.request_id, [each.token_id], each.finish_reason, reuse])
        return found


def assert_same_steps(scenario: dict[str, Any]) -> None:
    """Every step schedules, samples, tells and counts what vLLM's did."""
    replay = _Replay(scenario["config"])
    for op in scenario["ops"]:
        if op["do"] == "add":
            replay.core.add_request(_request(op), 0.0)
        elif op["do"] == "abort":
            assert replay.core.abort_request(op["id"], 0.0)
        elif op["do"] == "reset":
            assert replay.core.reset_prefix_cache() is op["success"]
        else:
            assert replay.step() == op
    assert not replay.core.has_work()
