"""The HTTP API around servers: what each lacks, and the one thing that it may be told to do."""

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ..doctor.findings import worst
from . import shapes
from .answers import json_answer
from .callers import claims_to_be_page
from .openapi import answers
from .origin import NotAllowed
from .state import runtime_of, watched_server

router = APIRouter(prefix="/api")


@router.get("/doctor", responses=answers(shapes.Diagnoses))
async def doctor(request: Request) -> Response:
    """For each server that is watched, what it lacks and the flag to paste; `status` is the worst of them."""
    diagnoses = await runtime_of(request).doctor.diagnoses()
    return json_answer({"status": worst(diagnoses), "servers": diagnoses})


@router.post(
    "/server/reset_prefix_cache", responses=answers(shapes.CacheReset), dependencies=[Depends(claims_to_be_page)]
)
async def reset_prefix_cache(request: Request, server: str | None = None) -> Response:
    """Has a server empty its prefix cache. `reset` is false where it refused: blocks are in use."""
    runtime = runtime_of(request)
    if not runtime.settings.allow_cache_reset:
        raise NotAllowed(
            "The dashboard isn't allowed to have the server empty its prefix cache.",
            hint="Start it with --allow-cache-reset, and vLLM with VLLM_SERVER_DEV_MODE=1.",
        )
    done = await runtime.watched[watched_server(runtime, server)].reset_prefix_cache()
    message = None if done else "The server refused: some of its blocks are in use. Try again when no request runs."
    return json_answer({"reset": done, "message": message})
