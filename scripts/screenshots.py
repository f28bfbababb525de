"""The README's pictures, from the running product: starts the demo, waits until its scenario has played, and looks.

    python -m scripts.screenshots

Needs Chromium and the development packages (`make dev system`). Writes docs/images/.
"""

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
REQUESTS = 8
"""So many rows show all that the scenario does."""
WAIT_S = 180.0
PICTURES = (("page", "light", "en-GB"), ("page-dark", "dark", "en-GB"), ("page-zh", "light", "zh-CN"))


def main() -> None:
    """Starts the demo on a free port, and ends it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    demo = subprocess.Popen([sys.executable, "-m", "app", "demo", "--port", str(port)])
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for_requests(url)
        IMAGES.mkdir(parents=True, exist_ok=True)
        take_pictures(url)
    finally:
        demo.terminate()
        demo.wait(20)


def wait_for_requests(url: str) -> None:
    """Until the scenario has sent enough. Raises TimeoutError."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        try:
            found = httpx.get(f"{url}/api/requests").json()["requests"]
        except httpx.HTTPError:
            found = []
        if len([record for record in found if record["outcome"]]) >= REQUESTS:
            return
        time.sleep(0.5)
    raise TimeoutError(f"the demo sent fewer than {REQUESTS} requests in {WAIT_S:.0f} s")


def take_pictures(url: str) -> None:
    """One picture a colour scheme and language, 1280 by 800."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or "/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        for name, scheme, locale in PICTURES:
            context = browser.new_context(
                viewport={"width": 1280, "height": 800},
                color_scheme="dark" if scheme == "dark" else "light",
                locale=locale,
                reduced_motion="reduce",
            )
            page = context.new_page()
            page.goto(url, wait_until="commit")
            page.locator("body[data-link=live]").wait_for(timeout=60_000)
            page.wait_for_timeout(3000)
            page.screenshot(path=str(IMAGES / f"{name}.png"))
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
