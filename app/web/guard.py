"""Stands before everything once a token is set: no token, no data. A bare ASGI layer, as chat streams pass it too.

A program brings `Authorization: Bearer TOKEN`, or `X-PrefixScope-Token: TOKEN` where its Authorization is meant for the
vLLM server; a browser brings the cookie of a login. Probes and the login itself pass.
"""

from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import PrefixScopeError, error_body
from ..sources.clock import Clock
from . import health
from .access import Access, NotLoggedIn, Role, ViewersOnlyWatch
from .answers import json_answer
from .origin import ForeignOrigin, is_same_origin

COOKIE = "prefixscope_session"
LOGIN_PATH = "/login"
OPEN_PATHS = health.PATHS | {LOGIN_PATH}
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Guard:
    """Lets through what the caller's role allows, and takes the dashboard's own token out of what goes on."""

    def __init__(self, app: ASGIApp, access: Access, clock: Clock, *, to_server: bool = False) -> None:
        """`to_server`: what stands behind asks the vLLM server, which viewers may not."""
        self._to_server = to_server
        self._app = app
        self._access = access
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, or the lifespan."""
        if scope["type"] == "lifespan" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        role, by_cookie, names_token = self._who(Headers(scope=scope))
        refusal = _refusal(scope, role, by_cookie, self._to_server)
        if refusal is None:
            if self._to_server:
                scope["headers"] = _without_login(scope["headers"], names_token)
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await refusal(scope, receive, send)

    def _who(self, headers: Headers) -> tuple[Role | None, bool, bool]:
        """The caller's role; whether a cookie gave it; whether Authorization is the dashboard's own."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and (role := self._access.role_of_token(token.strip())):
            return role, False, True
        if role := self._access.role_of_token(headers.get("x-prefixscope-token", "")):
            return role, False, False
        session = session_of(headers)
        return (self._access.role_of_session(session, self._clock.monotonic()) if session else None), True, False


def session_of(headers: Headers) -> str | None:
    """The login's secret in the cookies of a request."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return found.value if found else None


def _without_login(headers: list[tuple[bytes, bytes]], names_token: bool) -> list[tuple[bytes, bytes]]:
    """The headers without what lets the caller in here, which is no server's business: the token, the login's cookie.

    X-PrefixScope-Token is the proxy's to drop, as all headers of that prefix are.
    """
    kept = []
    for name, value in headers:
        if name == b"cookie" and COOKIE.encode() in value:
            crumbs = [crumb for crumb in value.split(b";") if crumb.partition(b"=")[0].strip() != COOKIE.encode()]
            value = b";".join(crumbs).strip()
        if not (names_token and name == b"authorization") and (value or name != b"cookie"):
            kept.append((name, value))
    return kept


def _refusal(scope: Scope, role: Role | None, by_cookie: bool, proxied: bool) -> Response | None:
    method = scope.get("method", "GET")
    error: PrefixScopeError
    if role is None:
        if method in SAFE_METHODS and "text/html" in Headers(scope=scope).get("accept", "") and not proxied:
            return RedirectResponse("login", 303)
        error = NotLoggedIn(
            "A token is needed here.",
            hint="Send Authorization: Bearer TOKEN (or X-PrefixScope-Token), or log in at /login.",
        )
        answer = json_answer(error_body(error), error.status)
        answer.headers["www-authenticate"] = 'Bearer realm="PrefixScope"'
        return answer
    if role < Role.OPERATOR and (proxied or method not in SAFE_METHODS):
        error = ViewersOnlyWatch("This token may watch only.", hint="Sending and resetting need an operator's token.")
    elif by_cookie and method not in SAFE_METHODS and not _from_own_page(scope):
        error = ForeignOrigin("Only this dashboard's own pages may act with a login.")
    else:
        return None
    return json_answer(error_body(error), error.status)


def _from_own_page(scope: Scope) -> bool:
    headers = HTTPConnection(scope).headers
    return "origin" in headers and is_same_origin(headers["origin"], headers.get("host"))
