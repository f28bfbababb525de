"""A token is set: without it no route and no socket gives anything away; viewers watch, operators act."""

from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from app.sources.clock import SystemClock
from app.web.access import Access
from app.web.guard import OPEN_PATHS, Guard

from .app_rig import Dashboard, Engine, dashboard, running_engine

OPERATOR, VIEWER = "operator-token-0123456789", "viewer-token-0123456789"
CANARIES = (OPERATOR, VIEWER)
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("engine") / "log") as engine:
        yield engine


@pytest.fixture
async def guarded(engine: Engine) -> AsyncIterator[Dashboard]:
    async with dashboard({**engine.settings, "tokens": OPERATOR, "viewer_tokens": VIEWER}) as running:
        yield running


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def leaves(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    """The routes themselves, those of included routers among them."""
    for route in routes:
        included = getattr(route, "original_router", None)
        yield from leaves(included.routes) if included else (route,)


def paths(site: FastAPI) -> list[tuple[str, str]]:
    """Every (method, path) of the site, path parameters filled in."""
    found = []
    for route in leaves(site.routes):
        if isinstance(route, Mount):
            found.append(("GET", f"{route.path}/js/main.js"))
        elif isinstance(route, Route):
            path = route.path.replace("{", "").replace("}", "")
            found += [(method, path) for method in sorted(route.methods or ())]
    return found


async def test_no_token_no_data_on_any_route(guarded: Dashboard) -> None:
    tried = [*paths(guarded.app.routes), ("POST", "/v1/chat/completions"), ("GET", "/v1/models"), ("GET", "/nothing")]
    assert len([each for each in tried if each[1] not in OPEN_PATHS]) > 12
    for method, path in tried:
        for headers in ({}, bearer("wrong"), {"Cookie": "prefixscope_session=wrong"}, {"X-PrefixScope-Token": ""}):
            response = await guarded.http.request(method, path, headers=headers)
            if path in OPEN_PATHS:
                continue
            assert response.status_code == 401, (method, path, headers)
            if method != "HEAD":
                assert response.json()["error"]["code"] == "not_logged_in"
            assert response.headers["www-authenticate"].startswith("Bearer")


async def test_every_websocket_route_is_shut(guarded: Dashboard) -> None:
    sockets = [route for route in leaves(guarded.app.routes.routes) if isinstance(route, WebSocketRoute)]
    assert "/live" in [route.path for route in sockets]
    for route in sockets:
        with pytest.raises(InvalidStatus) as refused:
            async with connect(f"{guarded.url.replace('http', 'ws')}{route.path}"):
                pass
        assert refused.value.response.status_code == 403


async def test_viewers_watch_and_do_not_act(guarded: Dashboard) -> None:
    assert (await guarded.http.get("/api/state", headers=bearer(VIEWER))).status_code == 200
    async with connect(f"{guarded.url.replace('http', 'ws')}/live", additional_headers=bearer(VIEWER)) as live:
        assert '"hello"' in str(await live.recv())
    for method, path in (("POST", "/api/mark"), ("POST", "/v1/chat/completions"), ("GET", "/v1/models")):
        refused = await guarded.http.request(method, path, headers=bearer(VIEWER))
        assert refused.status_code == 403
        assert refused.json()["error"]["code"] == "viewers_only_watch"


async def test_an_operators_token_opens_chat(guarded: Dashboard) -> None:
    for headers in (bearer(OPERATOR), {"X-PrefixScope-Token": OPERATOR}):
        answer = await guarded.http.post("/v1/chat/completions", json=CHAT, headers=headers)
        assert answer.status_code != 401, answer.text


async def test_login_gives_a_cookie_that_scripts_and_other_sites_cannot_use(guarded: Dashboard) -> None:
    page = await guarded.http.get("/", headers={"Accept": "text/html"}, follow_redirects=False)
    assert (page.status_code, page.headers["location"]) == (303, "login")
    form = await guarded.http.get("/login")
    assert form.status_code == 200
    assert "<script" not in form.text
    assert "content-security-policy" in form.headers

    wrong = await guarded.http.post("/login", data={"token": "wrong"})
    assert wrong.status_code == 401
    assert "isn&#39;t known" in wrong.text
    foreign = await guarded.http.post("/login", data={"token": OPERATOR}, headers={"Origin": "http://evil.example"})
    assert foreign.status_code == 403

    right = await guarded.http.post("/login", data={"token": OPERATOR}, headers={"X-Forwarded-Proto": "https"})
    cookie = right.headers["set-cookie"]
    assert right.status_code == 303
    assert all(word in cookie.lower() for word in ("httponly", "samesite=strict", "secure"))
    assert OPERATOR not in cookie

    session = {"Cookie": cookie.split(";")[0]}
    assert (await guarded.http.get("/api/state", headers=session)).status_code == 200
    for origin in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        refused = await guarded.http.post("/api/mark", headers={**session, **origin})
        assert refused.json()["error"]["code"] == "foreign_origin"
    own = {**session, "Origin": guarded.url}
    assert (await guarded.http.post("/api/mark", headers=own)).status_code == 200
    assert (await guarded.http.post("/logout", headers=own)).status_code == 303
    assert (await guarded.http.get("/api/state", headers=session)).status_code == 401


async def test_guessing_is_throttled(guarded: Dashboard) -> None:
    statuses = [(await guarded.http.post("/login", data={"token": f"wrong-{n}"})).status_code for n in range(7)]
    assert statuses == [401] * 5 + [429] * 2


async def test_what_the_page_and_the_api_say_holds_no_token(guarded: Dashboard) -> None:
    for method, path in paths(guarded.app.routes):
        if method == "GET":
            text = (await guarded.http.get(path, headers=bearer(OPERATOR))).text
            assert not [canary for canary in CANARIES if canary in text], path


async def test_a_form_that_is_no_form_is_refused(guarded: Dashboard) -> None:
    large = await guarded.http.post("/login", content=b"token=" + b"x" * 5000)
    assert large.status_code == 400
    assert (await guarded.http.post("/login", content=b"\xff\xfe")).status_code == 401


async def test_without_tokens_there_is_nothing_to_log_in_to(engine: Engine, tmp_path: Path) -> None:
    async with dashboard(engine.settings) as running:
        assert (await running.http.get("/login", follow_redirects=False)).status_code == 303
        assert (await running.http.get("/api/state")).status_code == 200


@pytest.mark.parametrize(
    ("headers", "passed_on"),
    [
        (bearer(OPERATOR), None),
        ({"X-PrefixScope-Token": OPERATOR, "Authorization": "Bearer sk-of-the-server"}, b"Bearer sk-of-the-server"),
    ],
)
async def test_the_dashboards_own_token_stays_here(headers: dict[str, str], passed_on: bytes | None) -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    access = Access(OPERATOR, VIEWER)
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": raw}
    await Guard(app, access, SystemClock(), to_server=True)(scope, None, None)  # type: ignore[arg-type]
    assert dict(seen[0]["headers"]).get(b"authorization") == passed_on


@pytest.mark.parametrize(
    ("cookie", "passed_on"),
    [
        ("prefixscope_session={}", None),
        ("a=1; prefixscope_session={}; b=2", b"a=1; b=2"),
        ("prefixscope_session={}; prefixscope_session_of_another=3", b"prefixscope_session_of_another=3"),
    ],
)
async def test_the_logins_cookie_stays_here(cookie: str, passed_on: bytes | None) -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    access, clock = Access(OPERATOR, VIEWER), SystemClock()
    session = access.log_in(OPERATOR, "127.0.0.1", clock.monotonic())
    headers = [(b"cookie", cookie.format(session).encode()), (b"origin", b"http://here"), (b"host", b"here")]
    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": headers}
    await Guard(app, access, clock, to_server=True)(scope, None, None)  # type: ignore[arg-type]
    assert dict(seen[0]["headers"]).get(b"cookie") == passed_on


async def test_viewers_ask_the_server_nothing_on_extra_paths_either(engine: Engine) -> None:
    settings = {**engine.settings, "tokens": OPERATOR, "viewer_tokens": VIEWER, "extra_paths": "/health"}
    async with dashboard(settings) as running:
        assert (await running.http.get("/health", headers=bearer(OPERATOR))).status_code == 200
        for method in ("GET", "HEAD", "OPTIONS"):
            assert (await running.http.request(method, "/health", headers=bearer(VIEWER))).status_code == 403
        assert (await running.http.get("/health", headers={"Accept": "text/html"})).status_code == 401
