"""Drives an engine core in tests: virtual time, deterministic tokens."""

from collections.abc import Sequence

from app.engine.block_hash import low_64_bits
from app.engine.core import (
    BlocksCleared,
    BlocksRemoved,
    BlocksStored,
    CacheEvent,
    CoreConfig,
    CoreRequest,
    EngineCore,
    Progress,
    StepResult,
)


def filler_token(request: CoreRequest, position: int) -> int:
    """A token that no prompt of the tests has."""
    return 900_000 + position


def make_core(blocks: int = 64, block_size: int = 4, **settings: int | bool) -> EngineCore:
    """A core of the profile that takes no time."""
    return EngineCore(CoreConfig(blocks, block_size, **settings), filler_token)  # type: ignore[arg-type]


def prompt(length: int, start: int = 0) -> tuple[int, ...]:
    """Token ids in a row."""
    return tuple(range(start, start + length))


def drain(core: EngineCore, now_s: float = 0.0) -> list[StepResult]:
    """Steps until there is nothing to do, time passing as the steps say."""
    results: list[StepResult] = []
    while (result := core.step(now_s)) is not None:
        results.append(result)
        now_s += result.duration_ms / 1000
    assert not core.has_work()
    return results


def run_one(core: EngineCore, request: CoreRequest) -> list[StepResult]:
    """One request alone, from beginning to end."""
    core.add_request(request, 0.0)
    return drain(core)


def ask(core: EngineCore, request_id: str, tokens: Sequence[int], max_tokens: int = 1, **extra: object) -> int:
    """Runs one request and says how many of its tokens were reused."""
    results = run_one(core, CoreRequest(request_id, tuple(tokens), max_tokens, **extra))  # type: ignore[arg-type]
    return results[-1].progress[0].cached_tokens


def events_of(results: Sequence[StepResult]) -> list[CacheEvent]:
    """The events of steps, in order."""
    return [event for result in results for event in result.events]


def progress_of(results: Sequence[StepResult], request_id: str) -> list[Progress]:
    """What the steps did for one request."""
    return [progress for result in results for progress in result.progress if progress.request_id == request_id]


def on_the_wire(event: CacheEvent) -> dict[str, object]:
    """An event with vLLM's names, without what the core doesn't know (medium, group, kind)."""
    if isinstance(event, BlocksCleared):
        return {"type": "AllBlocksCleared"}
    hashes = [low_64_bits(digest) for digest in event.block_hashes]
    if isinstance(event, BlocksRemoved):
        return {"type": "BlockRemoved", "block_hashes": hashes}
    assert isinstance(event, BlocksStored)
    found: dict[str, object] = {
        "type": "BlockStored",
        "block_hashes": hashes,
        "parent_block_hash": None if event.parent_block_hash is None else low_64_bits(event.parent_block_hash),
        "token_ids": list(event.token_ids),
        "block_size": event.block_size,
        "lora_name": event.lora.name if event.lora else None,
        "extra_keys": [None if keys is None else list(keys) for keys in event.extra_keys],
    }
    if event.session_id is not None:
        found["session_id"] = event.session_id
    return found
