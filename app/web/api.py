"""The HTTP API that other programs may rely on. No logic: asks the ledger, shows its values."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from .. import __version__
from ..errors import BadRequest, Gone, NotFound
from ..events import PROTOCOL_VERSION
from ..ids import Rank, RequestId, ServerId, hash_from_text
from ..model.details import BlockDetail
from ..runtime import Runtime
from . import shapes
from .answers import flat, json_answer, json_text
from .callers import own_page
from .openapi import answers
from .state import runtime_of

router = APIRouter(prefix="/api")


@router.get("/state", responses=answers(shapes.State))
async def state(request: Request) -> Response:
    """The snapshot that a websocket client gets first, and the `instance` to resume with."""
    runtime = runtime_of(request)
    # Whoever asks here gets no events after it, so it is of this moment.
    _, message = await runtime.hub.snapshot_message(at_least=runtime.hub.seq)
    # The stored message is one JSON object: the instance joins it without decoding what may be megabytes.
    return json_text(message[:-1] + f',"instance":"{runtime.hub.hello.instance}"}}'.encode())


@router.get("/requests", responses=answers(shapes.RequestPage))
async def requests(
    request: Request, limit: Annotated[int, Query(ge=1, le=1000)] = 50, after: str | None = None
) -> Response:
    """Records of kept requests, newest first; `next` goes into `after` for the page that follows."""
    ledger = runtime_of(request).ledger
    if after and ledger.request(RequestId(after)) is None:
        raise Gone(
            f"No request {after!r} is kept to go on from.",
            hint="It and all older ones were forgotten (see max_requests): start again without `after`.",
        )
    found, following = ledger.requests(limit, RequestId(after) if after else None)
    return json_answer({"requests": [summary.record for summary in found], "next": following})


@router.get("/requests/{request_id}", responses=answers(shapes.Request))
async def one_request(request: Request, request_id: str) -> Response:
    """One record, with its block table beside its fields."""
    summary = runtime_of(request).ledger.request(RequestId(request_id))
    if summary is None:
        raise NotFound(f"No request {request_id!r} is kept.", hint="The oldest are forgotten: see max_requests.")
    return json_answer(flat(summary.record, block_table=summary.block_table))


@router.get("/requests/{request_id}/blocks/{index}", responses=answers(shapes.Block))
async def block_of_request(request: Request, request_id: str, index: int) -> Response:
    """Block `index` (from 0) of a request, the partial tail included."""
    runtime = runtime_of(request)
    detail = runtime.ledger.request_block(RequestId(request_id), index) if index >= 0 else None
    if detail is None:
        raise NotFound(
            f"No block {index} of request {request_id!r} is known.", hint="The request's block_table has its indices."
        )
    return await _block(runtime, detail)


@router.get("/blocks", responses=answers(shapes.BlockList))
async def blocks(request: Request) -> Response:
    """Resident blocks, columnar, without text: one entry a server and rank."""
    return json_answer({"blocks": runtime_of(request).ledger.block_columns()})


@router.get("/blocks/{block_hash}", responses=answers(shapes.Block))
async def one_block(
    request: Request, block_hash: str, server: str | None = None, rank: Annotated[int, Query(ge=0)] = 0
) -> Response:
    """One resident block and its text, where that may be shown."""
    runtime = runtime_of(request)
    try:
        hash_from_text(block_hash)
    except ValueError:
        raise BadRequest(f"{block_hash!r} is no block hash.", hint="A hash is hexadecimal text.") from None
    detail = runtime.ledger.block_detail(ServerId(server) if server else runtime.server, Rank(rank), block_hash)
    if detail is None:
        raise NotFound(f"No block {block_hash} is resident.", hint="/api/blocks lists those that are.")
    return await _block(runtime, detail)


async def _block(runtime: Runtime, detail: BlockDetail) -> Response:
    text = await runtime.watched[detail.server].block_texts.text(detail.token_ids) if detail.show_text else None
    return json_answer(block_fields(detail, text))


def block_fields(detail: BlockDetail, text: str | None) -> dict[str, Any]:
    """What the API says of one block. `tokens` is null where the block's tokens aren't known."""
    return {
        "hash": detail.hash,
        "server": detail.server,
        "rank": detail.rank,
        "depth": detail.depth,
        "tokens": len(detail.token_ids) or None,
        "text": text,
        "text_hidden": not detail.show_text,
        "parent": detail.parent,
        "requests": detail.requests,
        "copies": detail.copies,
        "reuses": detail.reuses,
        "stored_ms": detail.stored_ms,
    }


@router.post("/mark", responses=answers(shapes.Marked), dependencies=[Depends(own_page)])
async def mark(request: Request) -> Response:
    """Starts the window `since_mark` anew, here and now."""
    runtime = runtime_of(request)
    return json_answer({"marked_ms": runtime.mark()})


@router.post("/scenario/start", responses=answers(shapes.Playing), dependencies=[Depends(own_page)])
async def start_scenario(request: Request) -> Response:
    """Plays the demo's scenario from the start."""
    return _scenario(runtime_of(request), run=True)


@router.post("/scenario/stop", responses=answers(shapes.Playing), dependencies=[Depends(own_page)])
async def stop_scenario(request: Request) -> Response:
    """Ends the demo's scenario for good."""
    return _scenario(runtime_of(request), run=False)


def _scenario(runtime: Runtime, *, run: bool) -> Response:
    if runtime.scenario is None:
        raise NotFound("Only the demo has a scenario.")
    if run:
        runtime.scenario.start()
    else:
        runtime.scenario.stop()
    return json_answer({"running": runtime.scenario.running})


@router.get("/version", responses=answers(shapes.Version))
async def version(request: Request) -> Response:
    """Which dashboard this is, and which run of it."""
    runtime = runtime_of(request)
    return json_answer(
        {
            "product": "prefixscope",
            "version": __version__,
            "protocol": PROTOCOL_VERSION,
            "instance": runtime.hub.hello.instance,
            "demo": runtime.hub.hello.demo,
        }
    )
