"""Puts the web edge together: the proxy for /v1, and beside it the page, its files, the API and the live stream.

No framework stands before the proxy: whatever a middleware costs, a chat stream would pay it on every chunk.
"""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import error_body
from .page_files import STATIC_DIR
from .runtime import Runtime
from .scenario import Scenario
from .settings import Settings
from .sources.clock import Clock
from .web import api, fleet_api, health, lint_api, live, login, metrics, openapi, pages, servers_api, why_api
from .web.access import Access, refuse_to_be_open
from .web.answers import add_error_handlers, answer_own, json_answer
from .web.assets import PageFiles
from .web.bodies import Bodies, BoundedBodies
from .web.client_address import ClientAddresses
from .web.guard import Guard
from .web.origin import UnknownHost, is_known_host, known_hosts
from .web.proxy import ProxyApp, answer_proxied
from .web.rate import LimitedRate
from .web.sub_path import checked_root_path, is_root_itself, to_the_slash, without_root_path

SAFE_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (
        b"content-security-policy",
        # Plotly writes style rules of its own; scripts come from files only.
        b"default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        b"connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


class App:
    """The outermost ASGI callable: requests to /v1 and `extra_paths` go to the proxy, everything else to the site."""

    def __init__(
        self,
        runtime: Runtime,
        routes: FastAPI,
        proxy: ASGIApp,
        site: ASGIApp,
        is_extra_path: Callable[[str], bool],
        root_path: str = "",
    ) -> None:
        self.runtime = runtime
        self.routes = routes
        self._proxy = proxy
        self._site = site
        self._is_extra_path = is_extra_path
        self._root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, or the lifespan."""
        if is_root_itself(scope, self._root_path):
            await to_the_slash(scope, receive, send)
            return
        scope = without_root_path(scope, self._root_path)
        if scope["type"] == "http" and (scope["path"].startswith("/v1/") or self._is_extra_path(scope["path"])):
            await self._proxy(scope, receive, send)
        else:
            await self._site(scope, receive, send)


class SafeHeaders:
    """Adds the headers of `SAFE_HEADERS` to every answer of the site, its failures too: so it stands outermost."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection; websockets and the lifespan pass as they are."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *SAFE_HEADERS]
            await send(message)

        await self._app(scope, receive, with_headers)


class KnownHosts:
    """Lets nobody in who asks the site for a name that isn't the dashboard's: see `web.origin`."""

    def __init__(self, app: ASGIApp, known: frozenset[str]) -> None:
        self._app = app
        self._known = known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, or the lifespan."""
        # Probes of an orchestrator name the host as they like, and learn nothing but whether it is well.
        exempt = scope["type"] == "lifespan" or scope.get("path") in health.PATHS
        if exempt or is_known_host(HTTPConnection(scope).headers.get("host"), self._known):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            error = UnknownHost(
                "The dashboard isn't known by the name that this request's Host header has.",
                hint="Open it by address, or add the name to PREFIXSCOPE_ALLOWED_HOSTS.",
            )
            await json_answer(error_body(error), error.status)(scope, receive, send)


def create_app(settings: Settings, *, demo: bool = False, clock: Clock | None = None) -> App:
    """The whole dashboard as one ASGI application. Nothing runs before its lifespan starts.

    Raises SettingsError where the settings name no usable server, and where it would be open to a network.
    """
    refuse_to_be_open(settings)
    access = Access(
        settings.tokens,
        settings.viewer_tokens,
        session_s=settings.session_s,
        max_failed_logins=settings.max_failed_logins,
    )
    addresses = ClientAddresses(settings.trusted_proxies)
    bodies = Bodies(settings.max_held_bytes, settings.body_timeout_s)
    runtime = Runtime(settings, demo=demo, clock=clock)
    known = known_hosts(settings.allowed_hosts, settings.host, socket.gethostname())
    proxy = ProxyApp(runtime.chat_proxy, known, bodies)
    if demo:
        runtime.scenario = Scenario(proxy, runtime.model_name, runtime.writer.emit, runtime.clock)

    @asynccontextmanager
    async def lifespan(site: FastAPI) -> AsyncIterator[None]:
        # Read and compressed before the first page asks for them.
        await site.state.files.build()
        async with runtime.running():
            yield

    site = FastAPI(title="PrefixScope", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    site.state.runtime = runtime
    site.state.access = access
    site.state.addresses = addresses
    site.state.files = PageFiles(STATIC_DIR)
    add_error_handlers(site)
    for part in (pages, live, api, servers_api, fleet_api, why_api, lint_api, health, metrics, openapi, login):
        site.include_router(part.router)
    site.router.routes.append(site.state.files.route())
    guarded_proxy: ASGIApp = proxy
    guarded_site: ASGIApp = KnownHosts(BoundedBodies(site, bodies), known)
    if not access.is_open:
        guarded_proxy = Guard(guarded_proxy, access, runtime.clock, to_server=True)
        guarded_site = Guard(guarded_site, access, runtime.clock)
    if settings.max_client_requests_per_s is not None:
        guarded_proxy = LimitedRate(
            guarded_proxy, settings.max_client_requests_per_s, "max_client_requests_per_s", addresses, runtime.clock,
            answer_proxied, only_changes=False,
        )  # fmt: skip
    if settings.max_client_changes_per_s is not None:
        guarded_site = LimitedRate(
            guarded_site, settings.max_client_changes_per_s, "max_client_changes_per_s", addresses, runtime.clock,
            answer_own, only_changes=True,
        )  # fmt: skip
    root_path = checked_root_path(settings.root_path)
    return App(runtime, site, guarded_proxy, SafeHeaders(guarded_site), proxy.paths.is_extra, root_path)
