"""Which paths of the server pass."""

from typing import Any

import pytest

from app.errors import NotFound, SettingsError
from app.web.paths import MANAGING, ServerPaths


def scope(path: str, raw: bytes | None = None, query: bytes = b"") -> dict[str, Any]:
    return {"path": path, "raw_path": raw or path.encode(), "query_string": query}


def passes(paths: ServerPaths, path: str, raw: bytes | None = None) -> bool:
    try:
        paths.target(scope(path, raw))
    except NotFound:
        return False
    return True


def test_only_known_paths_pass_unless_named() -> None:
    usual, more = ServerPaths(), ServerPaths(" /tokenize, /inference/v1/* ,,/v1/pooling")
    for path in ("/tokenize", "/inference/v1/generate", "/v1/pooling"):
        assert not passes(usual, path) and passes(more, path)
    for path in (
        "/detokenize",
        "/tokenize/x",
        "/inference/v1",
        "/inference/v2/x",
        "/reset_prefix_cache",
        "/v1/tokenize",
    ):
        assert not passes(more, path)
    assert passes(more, "/v1/chat/completions") and more.is_extra("/tokenize") and not more.is_extra("/v1/models")


def test_a_wildcard_is_no_way_up() -> None:
    paths = ServerPaths("/inference/*")
    assert passes(paths, "/inference/a/b")
    assert not passes(paths, "/inference/../reset_prefix_cache")
    assert not passes(paths, "/inference/../sleep", b"/inference/%2e%2e/sleep")
    assert not passes(paths, "/inference/a/..")


def test_the_query_goes_along() -> None:
    assert ServerPaths("/tokenize").target(scope("/tokenize", query=b"a=%20b")) == ("/tokenize", b"/tokenize?a=%20b")
    assert ServerPaths().target(scope("/proxy/v1/models")) == ("/v1/models", b"/v1/models")


@pytest.mark.parametrize("entry", [f"/{name}" for name in sorted(MANAGING)] + ["/fault_tolerance/*", "/sleep/*"])
def test_what_manages_the_server_is_never_passed_on(entry: str) -> None:
    with pytest.raises(SettingsError, match="manages the server"):
        ServerPaths(entry)


@pytest.mark.parametrize("entry", ["/api/*", "/live", "/static/x", "/metrics", "/login"])
def test_the_dashboards_own_paths_stay_its_own(entry: str) -> None:
    with pytest.raises(SettingsError, match="dashboard's own"):
        ServerPaths(entry)


@pytest.mark.parametrize("entry", ["tokenize", "/", "/*", "/a//b", "/a/../b", "/a*", "/a%2fb", "http://x/y", "/ä"])
def test_what_is_no_path(entry: str) -> None:
    with pytest.raises(SettingsError, match="is not a path"):
        ServerPaths(entry)
