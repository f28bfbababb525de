"""The HTTP API against its own description: bounded, generated calls; no failure of ours, no answer out of shape."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import schemathesis
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis import checks as general
from schemathesis.specs.openapi import checks
from starlette.routing import Route

from app.factory import create_app
from app.settings import load_settings
from app.web.openapi import describe

from .app_rig import Engine, chat_body, dashboard
from .test_access import leaves

EXAMPLES = 8
CHECKS = [
    general.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
UNDESCRIBED = {"/", "/login", "/logout"}
"""Pages. What a program may call is described."""


def described() -> dict[str, Any]:
    return describe(create_app(load_settings({}, {"vllm": "http://127.0.0.1:9"})).routes)


DESCRIPTION = described()
OPERATIONS = [(path, method) for path, methods in DESCRIPTION["paths"].items() for method in methods]


def test_every_route_for_programs_is_described() -> None:
    site = create_app(load_settings({}, {"vllm": "http://127.0.0.1:9"})).routes
    routes = {route.path for route in leaves(site.routes) if isinstance(route, Route)}
    assert {path for path in routes if not path.startswith("/static")} - UNDESCRIBED == set(DESCRIPTION["paths"])


def test_every_reference_leads_somewhere_and_every_answer_has_a_shape() -> None:
    names = re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(DESCRIPTION))
    assert set(names) <= DESCRIPTION["components"]["schemas"].keys()
    for path, method in OPERATIONS:
        [content] = DESCRIPTION["paths"][path][method]["responses"]["200"]["content"].values()
        assert content["schema"], f"{method} {path} names no answers(...)"


@dataclass
class Target:
    """A running dashboard in front of an engine, one request sent through it."""

    url: str
    request: str
    block: str


@pytest.fixture(scope="module")
def target(engine: Engine) -> Iterator[Target]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(dashboard({**engine.settings, "mode": "enrich"})) as running,
    ):
        portal.call(running.until_ready)
        models = httpx.get(f"{engine.url}/v1/models").json()
        record = portal.call(running.send, chat_body(models["data"][0]["id"]))
        yield Target(running.url, record["id"], record["block_table"]["hash"][0])


def known(target: Target) -> dict[str, st.SearchStrategy[Any]]:
    """Path parameters that lead somewhere, half of the time."""
    return {"request_id": st.just(target.request), "block_hash": st.just(target.block)}


@pytest.fixture(scope="module")
def schema() -> schemathesis.BaseSchema:
    # Paths are absolute to the tool, and every field that comes must be one that is described.
    strict = {key: value for key, value in DESCRIPTION.items() if key != "servers"}
    return schemathesis.openapi.from_dict(json.loads(json.dumps(strict)))


@pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=lambda each: str(each))
def test_an_operation_answers_as_described(
    path: str, method: str, target: Target, schema: schemathesis.BaseSchema
) -> None:
    operation = schema[path][method.upper()]
    values = known(target)
    valid = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    invalid = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=valid | invalid, lead=st.booleans(), data=st.data())
    def holds(case: "Case[Any]", lead: bool, data: st.DataObject) -> None:
        if lead:
            for name in case.path_parameters or {}:
                if name in values:
                    case.path_parameters[name] = data.draw(values[name])
        case.call_and_validate(base_url=target.url, checks=CHECKS, timeout=30)

    holds()
