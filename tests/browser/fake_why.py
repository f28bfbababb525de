"""What the stand-in dashboard says of causes: forecasts from its toy cache, and no breakers."""

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

LookUp = Callable[[dict[str, Any]], tuple[list[str], list[str], int]]
"""Of a chat's body: its tokens, its blocks' hashes, how many of those are reused."""


def forecast(body: dict[str, Any], look_up: LookUp, size: int) -> dict[str, Any]:
    """As POST /api/forecast answers. Block borders are given for the first message alone."""
    tokens, hashes, reused = look_up(body)
    first = body["messages"][0]
    header = len(f"<{first['role']}>")
    ends = [(block, (block + 1) * size * 3 - header) for block in range(len(hashes))]
    held = -(-len(first["content"]) // 3)
    ruler = {
        "index": 0, "role": first["role"], "start_token": header // 3, "tokens": min(held, len(tokens)),
        "boundaries": [[block, end] for block, end in ends if 0 < end < len(first["content"])], "normalised": False,
    }  # fmt: skip
    resident = [index < reused for index in range(len(hashes))]
    return {
        "tokens": len(tokens), "block_size": size, "blocks": -(-len(tokens) // size), "tail_tokens": len(tokens) % size,
        "reusable_blocks": max(len(tokens) - 1, 0) // size, "cached_tokens": reused * size,
        "ranks": [{"rank": 0, "resident": resident, "cached_tokens": reused * size, "complete": True}],
        "ttft": None, "messages": [ruler],
    }  # fmt: skip


def routes(look_up: LookUp, size: int) -> list[Route]:
    """The addresses under /api that the page asks about causes."""

    async def ask(request: Request) -> Response:
        return JSONResponse(forecast(await request.json(), look_up, size))

    async def remedy(request: Request) -> Response:
        return JSONResponse({"breakers": []})

    return [Route("/api/forecast", ask, methods=["POST"]), Route("/api/remedy", remedy, methods=["POST"])]
