"""A browser on the dashboard's page for as long as a soak runs: what its JavaScript heap holds, once what can be
collected has been."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from playwright.async_api import CDPSession, Page, async_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
BAR_MIB = 20.0
"""By so much the heap may grow once the page's rings are full, in ten minutes or more."""


@dataclass
class WatchedPage:
    """An open page. `heaps` are its readings in MiB, oldest first."""

    page: Page
    session: CDPSession
    heaps: list[float]

    async def read(self) -> None:
        """Takes a reading, after a collection."""
        await self.session.send("HeapProfiler.collectGarbage")
        used = (await self.session.send("Runtime.getHeapUsage"))["usedSize"]
        self.heaps.append(float(used) / 2**20)

    def fault(self) -> str | None:
        """What is wrong with it, in a sentence: the heap grew between the first reading and the last."""
        first, last = self.heaps[0], self.heaps[-1]
        print(f"the page's heap: {first:.1f} MiB once warm, {last:.1f} MiB at the end")
        return f"the page's heap grew from {first:.1f} to {last:.1f} MiB" if last - first > BAR_MIB else None


@asynccontextmanager
async def watched_page(url: str) -> AsyncIterator[WatchedPage]:
    """The page at `url` in Chromium, connected."""
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=FLAGS)
        page = await browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(120_000)
        await page.goto(url)
        await page.locator("body[data-link=live]").wait_for()
        yield WatchedPage(page, await page.context.new_cdp_session(page), [])
        await browser.close()
