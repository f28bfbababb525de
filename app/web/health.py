"""`/healthz`: this process answers. `/readyz`: a server is reachable, so that it is of use."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from ..errors import PrefixScopeError
from . import shapes
from .answers import json_answer
from .openapi import answers
from .state import runtime_of

router = APIRouter()
PATHS = frozenset({"/healthz", "/readyz"})


class NotReady(PrefixScopeError):
    """No server can be used at the moment."""

    status = 503
    code = "not_ready"


@router.get("/healthz", responses=answers(shapes.Health))
@router.head("/healthz", include_in_schema=False)
async def healthz(request: Request) -> Response:
    """Alive, and how the inside does: what waits, what was left out, who listens."""
    runtime = runtime_of(request)
    return json_answer(
        {
            "status": "ok",
            "observations_waiting": runtime.writer.waiting,
            "observations_left_out": runtime.writer.poisoned,
            "batches_dropped": runtime.writer.dropped_batches,
            "clients": runtime.hub.clients,
        }
    )


@router.get("/readyz", responses=answers(shapes.Ready))
@router.head("/readyz", include_in_schema=False)
async def readyz(request: Request) -> Response:
    """200 while the vLLM server answers as one, else 503 and why not."""
    runtime = runtime_of(request)
    record = runtime.ledger.server(runtime.server)
    if record is None or record.state != "up":
        said = record.message if record else None
        raise NotReady(said or f"{runtime.server} has not answered yet.")
    return json_answer({"status": "ready", "server": runtime.server})
