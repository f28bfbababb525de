"""A real Chromium, the demo and the stand-in dashboard. Every page that a test opens is watched: an error on its
console, a dialog or a request to another machine fails the test.
"""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, sync_playwright

from tests.processes import ROOT, Process, app_process, free_ports

ARTIFACTS = ROOT / "artifacts" / "browser"
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-default-apps", "--disable-sync", "--no-first-run", "--no-default-browser-check",
]  # fmt: skip
LOCAL = ("127.0.0.1", "localhost")

OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of `python -m app demo` on a free port."""
    (port,) = free_ports(1)
    yield from _served(
        app_process(tmp_path_factory.mktemp("demo") / "demo.log", "demo", "--host", "127.0.0.1", "--port", str(port)),
        f"http://127.0.0.1:{port}",
        "/readyz",
    )


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[str]:
    """The base URL of a stand-in dashboard, fresh for each test."""
    (port,) = free_ports(1)
    python = str(ROOT / ".venv" / "bin" / "python")
    command = [python if Path(python).exists() else "python3", "-m", "tests.browser.fake_dashboard", str(port)]
    yield from _served(Process(command, tmp_path / "fake.log"), f"http://127.0.0.1:{port}", "/healthz", signal.SIGKILL)


def _served(process: Process, url: str, ready: str, with_signal: signal.Signals = signal.SIGTERM) -> Iterator[str]:
    process.start()
    try:
        process.wait_for(url + ready, 60)
        yield url
    finally:
        process.stop(with_signal)


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[OpenPage]:
    """Opens a watched page: open_page(url, width=, height=, dark=, still=, locale=, forced=, connected=)."""
    faults: list[str] = []
    contexts = []

    def watch(page: Page) -> None:
        def on_console(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                faults.append(f"console {message.type}: {message.text}")

        def on_request(request: Request) -> None:
            parts = urlsplit(request.url)
            if parts.scheme not in ("data", "blob") and parts.hostname not in LOCAL:
                faults.append(f"fetched {request.url}")

        def on_dialog(dialog: Dialog) -> None:
            faults.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        page.on("console", on_console)
        page.on("request", on_request)
        page.on("dialog", on_dialog)
        page.on("pageerror", lambda error: faults.append(f"page error: {error}"))

    def open_(
        url: str,
        *,
        width: int = 1280,
        height: int = 800,
        dark: bool = False,
        still: bool = False,
        locale: str = "en-US",
        forced: bool = False,
        connected: bool = True,
    ) -> Page:
        options: dict[str, Any] = {"color_scheme": "dark" if dark else "light", "locale": locale}
        if forced:
            options["forced_colors"] = "active"
        if still:
            options["reduced_motion"] = "reduce"
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        # A hundred modules take their time on a machine that is busy with other tests.
        page.set_default_navigation_timeout(60_000)
        watch(page)
        page.goto(url)
        if connected:
            page.locator("body[data-link=live]").wait_for()
        return page

    open_.faults = faults  # type: ignore[attr-defined]
    yield open_
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Callable[[Page, str], None]:
    """Keeps a screenshot under artifacts/, which git leaves alone."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)

    def keep_(page: Page, name: str) -> None:
        page.screenshot(path=str(ARTIFACTS / f"{name}.png"))

    return keep_
