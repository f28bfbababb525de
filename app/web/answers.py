"""How the dashboard's own API answers: JSON of contract values, and every error in one shape."""

import logging
import math
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Send

from ..errors import BadRequest, NotFound, PrefixScopeError, error_body

_encoder = msgspec.json.Encoder()
BODY_UNREAD = frozenset({408, 413})
"""Statuses with which the rest of a request's body is not waited for: the connection is of no more use."""
logger = logging.getLogger(__name__)


def json_answer(value: Any, status: int = 200) -> Response:
    """`value` (dataclasses, mappings, sequences, scalars) as JSON that no cache keeps."""
    return json_text(_encoder.encode(value), status)


def json_text(body: bytes, status: int = 200) -> Response:
    """JSON that is encoded already."""
    return Response(body, status, {"cache-control": "no-store"}, "application/json")


def error_answer(error: PrefixScopeError) -> Response:
    """The dashboard's one JSON shape, with the error's status, and when to try again where that is known."""
    answer = json_answer(error_body(error), error.status)
    answer.headers.update(error_headers(error))
    return answer


def error_headers(error: PrefixScopeError) -> dict[str, str]:
    """What an error's answer says beside its body: when to try again, and that the connection ends."""
    headers: dict[str, str] = {}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(math.ceil(error.retry_after_s))
    if error.status in BODY_UNREAD:
        headers["connection"] = "close"
    return headers


async def answer_own(send: Send, error: PrefixScopeError) -> None:
    """`error_answer` as a bare ASGI response."""
    answer = error_answer(error)
    await send({"type": "http.response.start", "status": answer.status_code, "headers": answer.raw_headers})
    await send({"type": "http.response.body", "body": answer.body})


def flat(record: object, **more: object) -> dict[str, Any]:
    """A contract value's fields as a mapping, with `more` beside them."""
    fields = msgspec.to_builtins(record)
    assert isinstance(fields, dict)
    return {**fields, **more}


def add_error_handlers(app: FastAPI) -> None:
    """Every way in which a call can fail ends in `errors.error_body`."""
    app.add_exception_handler(PrefixScopeError, _own)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


async def _own(request: Request, error: Exception) -> Response:
    assert isinstance(error, PrefixScopeError)
    return error_answer(error)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = first["loc"][-1] if first.get("loc") else "request"
    return json_answer(error_body(BadRequest(f"{name}: {first['msg']}")), BadRequest.status)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        shown: PrefixScopeError = NotFound(f"There is nothing at {request.url.path}.")
    elif error.status_code == 405:
        shown = BadRequest(f"{request.method} is not for {request.url.path}.")
    else:
        shown = BadRequest(str(error.detail))
    answer = json_answer(error_body(shown), error.status_code)
    answer.headers.update(error.headers or {})
    return answer


async def _unexpected(request: Request, error: Exception) -> Response:
    # The server logs the traceback; what is in it is not for whoever asked.
    return json_answer(error_body(PrefixScopeError("The dashboard failed to answer this; its log says why.")), 500)
