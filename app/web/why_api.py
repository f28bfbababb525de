"""The HTTP API around causes: the microscope, the forecast while typing, and the line through first-token times.

No logic: asks the ledger and the server's tokenizer, and lets `why` put it together.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from ..errors import BadRequest, NotFound, PrefixScopeError, Redacted
from ..ids import RequestId, ServerId
from ..model.block_keys import TOKEN_BYTES, unpack_tokens
from ..model.nearest import Comparison, PromptForecast, compare, forecast_prompt
from ..model.verdict import CODES
from ..runtime import Runtime
from ..sources.tokenizer import TokenizerClient
from ..why.comparison import Window, first_difference, recomputed, window_of
from ..why.examination import examine
from ..why.fit import missing
from ..why.glyphs import TokenGroup, group_tokens, token_bytes
from ..why.ruler import MessageRuler, measure
from ..why.sections import Section, find_sections, section_at
from ..wire.body_facts import read_body_facts
from ..wire.tokenize_call import CHAT_PATH, COMPLETIONS_PATH
from . import shapes
from .answers import json_answer
from .callers import own_page
from .openapi import CHAT_REQUEST, CHAT_REQUESTS, answers, takes
from .state import runtime_of, watched_server

router = APIRouter(prefix="/api")
BEHIND_TOKENS = 256
"""So much of a prompt is read behind the first difference to tell which section that lies in."""
CUT_TOKENS = 4
"""A window that begins within a glyph is tried again from up to so many tokens earlier."""
CLIENT_GONE = 499
Result = TypeVar("Result")


class TooLarge(PrefixScopeError):
    """A body beyond what may be looked at."""

    status = 413
    code = "too_large"


@router.get("/causes", responses=answers(shapes.Causes))
async def causes() -> Response:
    """The closed list of causes that a verdict may have, and the name of each one's explanation."""
    return json_answer({"causes": [{"code": code, "anchor": f"why-{code.replace('_', '-')}"} for code in CODES]})


@router.get("/requests/{request_id}/comparison", responses=answers(shapes.ComparisonAnswer))
async def comparison(
    request: Request,
    request_id: str,
    start: Annotated[int | None, Query(ge=0)] = None,
    count: Annotated[int | None, Query(ge=1, le=1024)] = None,
) -> Response:
    """One request beside the nearest prompt that was known when it was sent: tokens `start` to `start + count` of both,
    or those around the first difference."""
    runtime = runtime_of(request)
    found = compare(runtime.ledger.state, RequestId(request_id))
    if found is None:
        raise NotFound(
            f"No prompt of request {request_id!r} is known.",
            hint="Its tokens come with the response or from the server's tokenizer; the oldest requests are forgotten.",
        )
    return json_answer(await _comparison(runtime, found, start, count))


async def _comparison(runtime: Runtime, found: Comparison, start: int | None, count: int | None) -> dict[str, Any]:
    tokenizer = runtime.watched[found.server].tokenizer
    tokens_here, tokens_there = len(found.here) // TOKEN_BYTES, len(found.there) // TOKEN_BYTES
    here_window = window_of(tokens_here, found.shared_tokens, start, count)
    there_window = window_of(tokens_there, found.shared_tokens, start, count)
    here_groups = await _groups(tokenizer, found.here, here_window) if found.show_here else None
    there_groups = await _groups(tokenizer, found.there, there_window) if found.show_there else None
    section = await _section(tokenizer, found.here, found.shared_tokens) if found.show_here else None
    size, nearest = found.block_size, None
    if tokens_there:
        nearest = {
            "request": found.nearest_request,
            "tokens": tokens_there,
            "resident_tokens": found.resident_tokens,
        }
    return {
        "request": found.request,
        "server": found.server,
        "rank": found.rank,
        "block_size": size,
        "prompt_tokens": tokens_here,
        "cached_tokens": found.cached_tokens,
        "nearest": nearest,
        "common_tokens": found.shared_tokens,
        "common_blocks": found.shared_tokens // size if size else None,
        "first_difference": first_difference(found, section, here_groups, there_groups),
        "recomputed": recomputed(found),
        "here": _side(here_window, here_groups, found.show_here),
        "there": _side(there_window, there_groups, found.show_there) if tokens_there else None,
    }


def _side(window: Window, groups: list[TokenGroup] | None, shown: bool) -> dict[str, Any]:
    return {"start": window.start, "end": window.end, "groups": groups, "text_hidden": not shown}


async def _groups(tokenizer: TokenizerClient, packed: bytes, window: Window) -> list[TokenGroup] | None:
    """The window's tokens as groups of whole glyphs; one group of all of them where the server tells no more."""
    if window.start >= window.end:
        return []
    for start in range(window.start, max(window.start - CUT_TOKENS, -1), -1):
        strings = await tokenizer.strings_of(_tokens(packed, start, window.end))
        if strings is not None:
            groups = group_tokens(token_bytes(strings), start)
            return [group for group in groups if group.start + group.count > window.start]
    text = await tokenizer.detokenize(_tokens(packed, window.start, window.end))
    return None if text is None else [TokenGroup(window.start, window.end - window.start, text.strip("\ufffd"))]


def _tokens(packed: bytes, start: int, end: int) -> tuple[int, ...]:
    return unpack_tokens(packed[start * TOKEN_BYTES : end * TOKEN_BYTES])


async def _section(tokenizer: TokenizerClient, packed: bytes, shared: int) -> Section | None:
    """Which part of the rendered prompt the first token that differs lies in. Prompts may be of a megabyte: what takes
    time in proportion to them is done in threads."""
    if shared * TOKEN_BYTES >= len(packed):
        return None
    text = await tokenizer.detokenize(await asyncio.to_thread(_tokens, packed, 0, shared + BEHIND_TOKENS))
    behind = await tokenizer.detokenize(_tokens(packed, shared, shared + BEHIND_TOKENS))
    if text is None or behind is None:
        return None
    sections = await asyncio.to_thread(find_sections, text)
    return section_at(sections, len(text) - len(behind.lstrip("\ufffd")))


@router.post(
    "/forecast",
    responses=answers(shapes.Forecast),
    openapi_extra=takes(CHAT_REQUEST),
    dependencies=[Depends(own_page)],
)
async def forecast(request: Request, server: str | None = None, completions: bool = False) -> Response:
    """How a chat request would fare if it were sent now; the body is that request. Ends when the caller goes away."""
    runtime = runtime_of(request)
    target = watched_server(runtime, server)
    body = await read_bounded(request, runtime.settings.max_tokenize_bytes)
    path = COMPLETIONS_PATH if completions else CHAT_PATH
    return await while_wanted(request, _forecast(runtime, target, path, body))


async def _forecast(runtime: Runtime, server: ServerId, path: str, body: bytes) -> Response:
    facts = read_body_facts(body, runtime.salt_key)
    if not facts.is_object:
        raise BadRequest("The body is no JSON object.", hint="Post the chat request that is to be sent.")
    tokenizer = runtime.watched[server].tokenizer
    told = await tokenizer.tokenize_with_strings(path, body)
    token_ids = told.token_ids if told is not None else await tokenizer.tokenize(path, body)
    if token_ids is None:
        raise NotFound(
            "The server's tokenizer gave no tokens for this.", hint="Is it up, and are the messages complete?"
        )
    record = runtime.ledger.server(server)
    adapter = facts.model if record is not None and facts.model in record.adapters else None
    found = forecast_prompt(
        runtime.ledger.state,
        server,
        token_ids,
        salt=facts.salt,
        lora_name=adapter,
        skips_cache_read=facts.skips_cache_read,
    )
    answer = forecast_fields(found)
    if told is not None and told.strings is not None and found.block_size:
        answer["messages"] = await asyncio.to_thread(_rulers, told.strings, found.block_size, body)
    return json_answer(answer)


def forecast_fields(found: PromptForecast) -> dict[str, Any]:
    """What the API says of a forecast. `messages` is null where the server doesn't tell its tokens' strings."""
    size = found.block_size
    ttft = None
    if found.fit is not None and found.cached_tokens is not None:
        computed = found.tokens - found.cached_tokens
        if found.fit.covers(computed):
            about, early, late = found.fit.ttft_ms(computed)
            ttft = {"about_ms": round(about, 1), "early_ms": round(early, 1), "late_ms": round(late, 1)}
            ttft["samples"] = found.fit.samples
    return {
        "tokens": found.tokens,
        "block_size": size,
        "blocks": -(-found.tokens // size) if size else None,
        "tail_tokens": found.tokens % size if size else None,
        "reusable_blocks": found.reusable_blocks,
        "cached_tokens": found.cached_tokens,
        "ranks": found.ranks,
        "ttft": ttft,
        "messages": None,
    }


def _rulers(strings: Sequence[str], block_size: int, body: bytes) -> list[MessageRuler]:
    """Takes time in proportion to the prompt."""
    return measure(token_bytes(strings), block_size, _messages(body))


def _messages(body: bytes) -> list[dict[str, Any]]:
    try:
        messages = msgspec.json.decode(body).get("messages")
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return []
    return [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []


@router.post(
    "/remedy",
    responses=answers(shapes.Breakers),
    openapi_extra=takes(CHAT_REQUESTS),
    dependencies=[Depends(own_page)],
)
async def remedy_of(request: Request) -> Response:
    """What kept each of the requests `{"requests": [...]}` from sharing with the one before it, and how it could be
    written instead. Nothing is sent to the server."""
    settings = runtime_of(request).settings
    if settings.redact:
        raise Redacted("This dashboard shows no text, and a remedy is text.", hint="Start it without `redact`.")
    body = await read_bounded(request, settings.max_tokenize_bytes)
    try:
        asked = msgspec.json.decode(body, type=_Requests)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise BadRequest(f"requests: {str(error)[:200]}", hint="Post two or more chat requests, in order.") from None
    found = await asyncio.to_thread(examine, asked.requests)
    return json_answer({"breakers": found})


class _Requests(msgspec.Struct):
    requests: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=2, max_length=64)]


@router.get("/ttft_fit", responses=answers(shapes.FirstTokenFit))
async def ttft_fit(request: Request, server: str | None = None) -> Response:
    """First-token times against computed tokens of unqueued requests, and the line through them. `missing` says what a
    line still lacks."""
    runtime = runtime_of(request)
    book = runtime.ledger.state.servers.get(watched_server(runtime, server))
    samples = tuple(book.ttft.samples) if book is not None else ()
    fit = book.ttft.fit if book is not None else None
    lacking = missing(samples) if fit is None else None
    return json_answer({"samples": samples, "fit": fit._asdict() if fit is not None else None, "missing": lacking})


async def read_bounded(request: Request, most_bytes: int) -> bytes:
    """A request's body. Raises TooLarge as soon as it is."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most_bytes:
            raise TooLarge(f"More than {most_bytes} bytes aren't looked at.", hint="See max_tokenize_bytes.")
    return bytes(body)


async def while_wanted(request: Request, work: Coroutine[Any, Any, Response]) -> Response:
    """The answer of `work`, which is cancelled when the caller goes away. The body must have been read."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        return Response(status_code=CLIENT_GONE)
    finally:
        leaving.cancel()
        working.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
