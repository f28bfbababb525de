import pytest

from app.web.origin import is_known_host, is_same_origin, known_hosts


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        pytest.param(None, "localhost:8080", id="a program"),
        pytest.param("http://localhost:8080", "localhost:8080", id="the page"),
        pytest.param("HTTP://LocalHost:8080", "localhost:8080", id="case"),
        pytest.param("http://gpu-box", "gpu-box", id="default port left out"),
        pytest.param("http://gpu-box", "gpu-box:80", id="default port named"),
        pytest.param("https://scope.example", "scope.example", id="behind a proxy that ends TLS"),
        pytest.param("http://[::1]:8080", "[::1]:8080", id="IPv6"),
    ],
)
def test_own_pages_and_programs_may(origin: str | None, host: str) -> None:
    assert is_same_origin(origin, host)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        pytest.param("https://evil.example", "localhost:8080", id="another site"),
        pytest.param("http://localhost:8081", "localhost:8080", id="another port"),
        pytest.param("http://localhost", "localhost:8080", id="the default port is another port"),
        pytest.param("http://localhost.evil.example:8080", "localhost:8080", id="a longer name"),
        pytest.param("http://localhost:8080@evil.example", "localhost:8080", id="user part"),
        pytest.param("null", "localhost:8080", id="a sandbox or a file"),
        pytest.param("", "localhost:8080", id="empty"),
        pytest.param("http://", "localhost:8080", id="no host"),
        pytest.param("http://localhost:port", "localhost:8080", id="no number"),
        pytest.param("http://[::1", "[::1]", id="half an address"),
        pytest.param("http://localhost:8080", None, id="no Host header"),
    ],
)
def test_others_may_not(origin: str, host: str | None) -> None:
    assert not is_same_origin(origin, host)


KNOWN = known_hosts("gpu-box, Scope.Example,", "0.0.0.0")


@pytest.mark.parametrize(
    "host",
    [
        None, "localhost", "LOCALHOST:8080", "app.localhost", "localhost.:80", "127.0.0.1:8080", "[::1]:8080",
        "10.1.2.3", "gpu-box:8080", "scope.example",
    ],
)  # fmt: skip
def test_addresses_and_names_that_are_known(host: str | None) -> None:
    assert is_known_host(host, KNOWN)


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "gpu-box.evil.example", "[::1", "a b"],
)
def test_names_that_anyone_may_have_chosen(host: str) -> None:
    assert not is_known_host(host, KNOWN)
    assert is_known_host(host, known_hosts("*"))
