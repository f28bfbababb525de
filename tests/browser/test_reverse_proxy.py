"""Behind nginx, with TLS and under a path of its own, by the configuration that deploy/ gives: page, socket, stream."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.processes import ROOT, Process, free_ports

SHARED = ROOT / "deploy" / "reverse-proxy" / "nginx.conf"
SERVER = """daemon off; worker_processes 1; pid {run}/pid; error_log {run}/log;
events {{}}
http {{ access_log off; client_body_temp_path {run}/b; proxy_temp_path {run}/p; fastcgi_temp_path {run}/f;
uwsgi_temp_path {run}/u; scgi_temp_path {run}/s;
map $http_upgrade $prefixscope_connection {{ default upgrade; "" ""; }}
server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {run}/cert; ssl_certificate_key {run}/key;
{shared}
}} }}
"""


@pytest.fixture
def behind_nginx(demo: str, tmp_path: Path) -> Iterator[str]:
    """The URL of the demo behind nginx."""
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-keyout", tmp_path / "key", "-out", tmp_path / "cert"],
        check=True, capture_output=True,
    )  # fmt: skip
    [port] = free_ports(1)
    shared = SHARED.read_text()
    assert "http://127.0.0.1:8080/" in shared
    shared = shared.replace("http://127.0.0.1:8080/", f"{demo}/")
    (tmp_path / "conf").write_text(SERVER.format(run=tmp_path, port=port, shared=shared))
    server = Process([nginx, "-c", str(tmp_path / "conf"), "-p", str(tmp_path)], tmp_path / "out")
    server.start()
    try:
        yield f"https://127.0.0.1:{port}/prefixscope"
    finally:
        server.stop()


def test_the_page_works_under_a_path_with_tls(
    chromium: Browser, behind_nginx: str, keep: Callable[[Page, str], None]
) -> None:
    context = chromium.new_context(ignore_https_errors=True, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(60_000)
    failed: list[str] = []
    page.on("response", lambda response: failed.append(response.url) if response.status >= 400 else None)
    sockets: list[str] = []
    page.on("websocket", lambda socket: sockets.append(socket.url))
    page.goto(behind_nginx)
    page.locator("body[data-link=live]").wait_for()
    assert page.url.endswith("/prefixscope/")
    assert sockets
    assert all(url.startswith("wss://") and url.split("?")[0].endswith("/prefixscope/live") for url in sockets)

    with page.expect_response("**/prefixscope/v1/chat/completions") as sent:
        page.locator("#send-twice").click()
    assert sent.value.status == 200
    assert sent.value.headers["content-type"].startswith("text/event-stream")
    page.locator("#lane-list > li").first.wait_for()
    assert failed == []
    keep(page, "behind-nginx")
    context.close()
