"""`/api/openapi.json`: the HTTP API described as OpenAPI 3.1, made when it is first asked for.

A route says what it answers by `answers(...)` and what it takes by `takes(...)`; the types stand in `shapes`, and their
schemas are msgspec's, which encodes them, too. Pages, files and what is passed on to the server aren't in it.
"""

from typing import Any

import msgspec
from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from starlette.responses import Response

from .. import __version__
from . import shapes
from .answers import json_answer

router = APIRouter(prefix="/api")
REFERENCE = "#/components/schemas/{name}"
FAULTS = {
    "description": "Why it failed: 401 and 403 where tokens are set, or for a foreign page.",
    "content": {"application/json": {"schema": {"$ref": REFERENCE.format(name="Error")}}},
}
CHAT_REQUEST = {"type": "object", "description": "An OpenAI-style request, as a client would send it."}

CHAT_REQUESTS = {
    "type": "object",
    "required": ["requests"],
    "properties": {"requests": {"type": "array", "items": CHAT_REQUEST, "minItems": 2, "maxItems": 64}},
}


def answers(kind: Any = None, *, text: str | None = None, schema: dict[str, Any] | None = None) -> dict[int | str, Any]:
    """The `responses` of a route: JSON of a type in `shapes`, of `schema`, or a `text` of that media type."""
    if text is not None:
        content: dict[str, Any] = {text: {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": schema or {"$ref": REFERENCE.format(name=kind.__name__)}}}
    return {200: {"description": "Done.", "content": content}}


def takes(schema: dict[str, Any], media: str = "application/json") -> dict[str, Any]:
    """The `openapi_extra` of a route that reads its body itself."""
    return {"requestBody": {"required": True, "content": {media: {"schema": schema}}}}


@router.get("/openapi.json", responses=answers(schema={"type": "object"}))
async def openapi(request: Request) -> Response:
    """This description."""
    site: FastAPI = request.app
    if site.openapi_schema is None:
        site.openapi_schema = describe(site)
    return json_answer(site.openapi_schema)


def describe(site: FastAPI) -> dict[str, Any]:
    """The description of all routes that don't keep out of it. Paths are relative to where the dashboard stands."""
    description = get_openapi(
        title="PrefixScope",
        version=__version__,
        description="What the dashboard knows. The live stream is described in EVENTS.md.",
        routes=site.routes,
        servers=[{"url": "../"}],
    )
    for operations in description["paths"].values():
        for operation in operations.values():
            # What FastAPI would answer to bad parameters is answered in the dashboard's own shape, as status 400.
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = FAULTS
            operation["responses"]["200"]["content"] = _declared(operation["responses"]["200"]["content"])
    description["components"] = {"schemas": schemas()}
    return description


def _declared(content: dict[str, Any]) -> dict[str, Any]:
    """Without the empty schema that FastAPI puts beside the declared media type of what isn't JSON."""
    return {media: each for media, each in content.items() if each.get("schema")} or content


def schemas() -> dict[str, Any]:
    """The types of `shapes` and all that they consist of. The encoder leaves no field out, so each is required."""
    kinds = [kind for kind in vars(shapes).values() if getattr(kind, "__module__", None) == shapes.__name__]
    _, found = msgspec.json.schema_components(kinds, ref_template=REFERENCE)
    for schema in found.values():
        if "properties" in schema:
            schema["required"] = list(schema["properties"])
    return found
