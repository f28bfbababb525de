"""The page, its files and its errors, as a browser gets them. No server stands behind this dashboard."""

import gzip
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app import __version__
from app.page_files import STATIC_DIR
from tests.processes import free_ports

from .app_rig import Dashboard, dashboard


@pytest.fixture
async def site() -> AsyncIterator[Dashboard]:
    async with dashboard({"vllm": f"http://127.0.0.1:{free_ports(1)[0]}/v1/"}) as running:
        yield running


def config_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="config">(.*?)</script>', page, re.DOTALL)
    assert found
    config: dict[str, Any] = json.loads(found[1])
    return config


async def test_the_page_opens_and_carries_its_configuration(site: Dashboard) -> None:
    response = await site.http.get("/")

    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert __version__ in response.text
    config = config_of(response.text)
    assert config["server"] == site.app.runtime.server
    assert config["demo"] is False
    assert config["mode"] == "observe"


async def test_nothing_on_the_page_comes_from_elsewhere(site: Dashboard) -> None:
    page = (await site.http.get("/")).text

    urls = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert urls
    assert not [url for url in urls if "//" in url or url.startswith("/")]
    for url in urls:
        if not url.startswith("#"):
            assert (await site.http.get(f"/{url}")).status_code == 200, url


async def test_the_page_forbids_scripts_and_frames_of_others(site: Dashboard) -> None:
    headers = (await site.http.get("/")).headers

    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["script-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["object-src"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


async def test_plotly_comes_compressed_and_is_kept_for_good(site: Dashboard) -> None:
    [url] = re.findall(r'id="plotly" href="([^"]*)"', (await site.http.get("/")).text)
    async with site.http.stream("GET", f"/{url}", headers={"accept-encoding": "gzip"}) as response:
        compressed = b"".join([chunk async for chunk in response.aiter_raw()])
    plain = await site.http.get(f"/{url}", headers={"accept-encoding": "identity"})
    again = await site.http.get(f"/{url}", headers={"if-none-match": plain.headers["etag"]})

    assert response.headers["content-encoding"] == "gzip"
    assert gzip.decompress(compressed) == plain.content
    assert len(compressed) < len(plain.content) / 3
    assert "immutable" in response.headers["cache-control"]
    assert again.status_code == 304
    assert again.content == b""


async def test_a_builds_files_are_kept_for_good_and_all_modules_are_named(site: Dashboard) -> None:
    page = (await site.http.get("/")).text
    named = re.findall(r'<link rel="modulepreload" href="(static/build-[0-9a-f]{12})/([^"]+)">', page)
    assert {module for _, module in named} == {
        f"js/{path.relative_to(STATIC_DIR / 'js').as_posix()}"
        for path in (STATIC_DIR / "js").rglob("*.js")
        if path.name != "theme.js"
    }
    base_url = named[0][0]
    assert f'<script type="module" src="{base_url}/js/main.js">' in page
    kept = await site.http.get(f"/{base_url}/js/main.js")
    assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert kept.text == (STATIC_DIR / "js/main.js").read_text()
    assert (await site.http.get(f"/{base_url}/..%2f..%2fpyproject.toml")).status_code == 404
    assert (await site.http.get("/static/js/main.js")).headers["cache-control"] == "no-cache"


async def test_own_files_are_asked_for_again_but_not_sent_again(site: Dashboard) -> None:
    first = await site.http.get("/static/js/main.js")
    again = await site.http.get("/static/js/main.js", headers={"if-none-match": first.headers["etag"]})

    assert "javascript" in first.headers["content-type"]
    assert first.headers["cache-control"] == again.headers["cache-control"] == "no-cache"
    assert again.status_code == 304


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/static/nothing.js", 404, "not_found"),
        ("GET", "/static/..%2f..%2fpyproject.toml", 404, "not_found"),
        ("GET", "/docs", 404, "not_found"),
        ("PUT", "/api/state", 405, "bad_request"),
        ("GET", "/api/requests?limit=0", 400, "bad_request"),
        ("GET", "/api/requests?limit=many", 400, "bad_request"),
        ("GET", "/api/requests/r-none", 404, "not_found"),
        ("GET", "/api/requests/r-none/blocks/0", 404, "not_found"),
        ("GET", "/api/requests/r-none/blocks/-1", 404, "not_found"),
        ("GET", "/api/requests/r-none/blocks/x", 400, "bad_request"),
        ("GET", "/api/blocks/zz", 400, "bad_request"),
        ("GET", "/api/blocks/80f8d46b9e3ac303", 404, "not_found"),
        ("GET", "/api/blocks/80f8d46b9e3ac303?server=http://other&rank=7", 404, "not_found"),
        ("GET", "/readyz", 503, "not_ready"),
        ("POST", "/api/scenario/start", 404, "not_found"),
    ],
)
async def test_every_error_has_the_one_shape(site: Dashboard, method: str, path: str, status: int, code: str) -> None:
    response = await site.http.request(method, path)

    assert response.status_code == status
    error = response.json()["error"]
    assert set(error) == {"code", "message", "hint"}
    assert error["code"] == code
    assert error["message"]


async def test_a_fault_of_our_own_shows_nothing_of_the_inside(site: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(site.app.runtime.ledger, "block_columns", fail)

    response = await site.http.get("/api/blocks")

    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal_error"
    assert "secret" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/api/mark", "/api/scenario/stop"])
async def test_pages_of_other_sites_can_change_nothing(site: Dashboard, path: str) -> None:
    response = await site.http.post(path, headers={"origin": "https://evil.example"})

    assert response.status_code == 403
    assert response.json()["error"]["code"] == "foreign_origin"


@pytest.mark.parametrize("path", ["/", "/api/state", "/static/js/main.js"])
async def test_a_name_that_is_not_the_dashboards_is_refused(site: Dashboard, path: str) -> None:
    response = await site.http.get(path, headers={"host": "rebound.example:8080"})

    assert (response.status_code, response.json()["error"]["code"]) == (403, "unknown_host")
    assert "ALLOWED_HOSTS" in response.json()["error"]["hint"]
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_probes_may_name_the_host_as_they_like(site: Dashboard) -> None:
    response = await site.http.get("/healthz", headers={"host": "prefixscope.monitoring.svc:8080"})

    assert response.status_code == 200


async def test_head_is_answered_as_get_without_a_body(site: Dashboard) -> None:
    for path in ("/", "/healthz", "/static/js/main.js"):
        response = await site.http.head(path)
        assert (response.status_code, response.content) == (200, b"")


async def test_alive_and_which_version(site: Dashboard) -> None:
    assert (await site.json("/healthz"))["status"] == "ok"
    version = await site.json("/api/version")
    assert (version["version"], version["instance"]) == (__version__, site.app.runtime.hub.hello.instance)
