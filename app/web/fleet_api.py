"""The HTTP API around a fleet: which replica holds which prefix, and what other pools and numbers would hit.

No logic: asks the ledger, and lets `fleet` reckon, in a thread where it takes long.
"""

import asyncio
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ..errors import BadRequest, NotFound
from ..fleet.figures import fleet, gap, pooled
from ..fleet.stream import stream_of
from ..fleet.whatif import REPLICAS, WhatIf, what_if
from ..model.recorded import RecordedPrompt
from ..runtime import Runtime
from . import shapes
from .answers import flat, json_answer
from .openapi import answers
from .state import runtime_of

router = APIRouter(prefix="/api")
MAX_REPLAYED_BLOCKS = 50_000
MAX_POINTS = 32
MOST_POOL_BLOCKS = 1 << 40


@router.get("/fleet", responses=answers(shapes.FleetAnswer))
async def figures(request: Request, window_s: Annotated[float, Query(gt=0, le=86_400)] = 300.0) -> Response:
    """The servers, their hit rates pooled from counts, and what routing cost requests of the last `window_s` seconds.

    A member with `left_out` counts in no pooled rate, a `partial` one in none that is inferred from events.
    """
    runtime = runtime_of(request)
    ledger = runtime.ledger
    members = fleet(filter(None, map(ledger.server, runtime.watched)), ledger.rates())
    routings = ledger.routings(runtime.clock.monotonic() - window_s)
    return json_answer(
        {"members": members, "rates": pooled(members), "window_s": window_s, "gap": gap(routings), "basis": "inferred"}
    )


@router.get("/residency", responses=answers(shapes.ResidencyAnswer))
async def residency(request: Request, rows: Annotated[int, Query(ge=1, le=500)] = 40) -> Response:
    """Which replica (server and rank) holds how much of which prefix: the weightiest prefixes first.

    A cell is left out where a replica holds nothing. `at_ms` is when the replicas were looked at: a map is kept for a
    second.
    """
    at_ms, found = await runtime_of(request).residency.map()
    return json_answer(flat(replace(found, rows=found.rows[:rows]), at_ms=at_ms))


@router.get("/what_if", responses=answers(shapes.WhatIfAnswer))
async def ask_what_if(
    request: Request,
    pool: Annotated[int | None, Query(ge=1, le=MOST_POOL_BLOCKS)] = None,
    pools: str | None = None,
    replicas: str | None = None,
) -> Response:
    """Hit rates of the kept requests, had they run one after another in other pools, and on other numbers of replicas.

    `pool` is what each replica has, in usable blocks; the smallest of those that are watched where it isn't given.
    `pools` and `replicas` are lists with commas of what to look at.
    """
    runtime = runtime_of(request)
    sizes = _numbers("pools", pools, MOST_POOL_BLOCKS)
    counts = _numbers("replicas", replicas, 64) or REPLICAS
    prompts, unknown = runtime.ledger.recorded_prompts()
    each = pool if pool is not None else _smallest_pool(runtime)
    # One at a time: each takes a thread for a second.
    async with runtime.what_if_turn:
        found = await asyncio.to_thread(_answer, prompts, each, sizes, counts)
    if found is None:
        raise NotFound(
            "No request is kept whose prompt is known.",
            hint="Send some through the dashboard; their tokens come with the response or from /tokenize.",
        )
    return json_answer(flat(found, unknown_prompts=unknown, observed=_observed(prompts)))


def _answer(
    prompts: tuple[RecordedPrompt, ...], pool: int | None, sizes: tuple[int, ...], replicas: tuple[int, ...]
) -> WhatIf | None:
    stream = stream_of(prompts, MAX_REPLAYED_BLOCKS)
    return None if stream is None or not stream.lookups else what_if(stream, pool, sizes, replicas)


def _smallest_pool(runtime: Runtime) -> int | None:
    """Usable blocks of the smallest pool that is watched: one block of each is the null block."""
    records = [runtime.ledger.server(server) for server in runtime.watched]
    blocks = [record.num_gpu_blocks for record in records if record is not None and record.num_gpu_blocks]
    return min(blocks) - 1 if blocks else None


def _observed(prompts: tuple[RecordedPrompt, ...]) -> dict[str, Any]:
    """What the servers said of the same requests, those that said anything."""
    told = [(prompt.prompt_tokens, prompt.cached_tokens) for prompt in prompts if prompt.cached_tokens is not None]
    tokens, cached = sum(prompt for prompt, _ in told), sum(cached for _, cached in told)
    return {
        "requests": len(told),
        "prompt_tokens": tokens,
        "cached_tokens": cached,
        "hit_ratio": round(cached / tokens, 6) if tokens else None,
    }


def _numbers(name: str, text: str | None, most: int) -> tuple[int, ...]:
    if not text:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > MAX_POINTS or not all(part.isascii() and part.isdigit() and len(part) < 16 for part in parts):
        raise BadRequest(f"{name}: {text[:80]!r} is no list of numbers", hint=f"Up to {MAX_POINTS}, with commas.")
    numbers = tuple(sorted({int(part) for part in parts}))
    if numbers[0] < 1 or numbers[-1] > most:
        raise BadRequest(f"{name}: numbers from 1 to {most} are meant, not {text[:80]!r}")
    return numbers
