"""How the page feels in Chromium: first picture, frames under load, a full redraw, a burst, a tab that was hidden.

`python -m benchmarks.page [--seconds 20]` serves the page from a stand-in dashboard on loopback, drives it and prints
each figure beside its bar. Exit status 1 where a bar is missed.
"""

import argparse
import json
import os
import random
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from tests.processes import ROOT, Process, free_ports

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--enable-precise-memory-info",
]
GOLDEN = ROOT / "tests" / "contract" / "golden"
CHAIN = 40
BIG = 65_536
WATCH = """() => {
  window.frames_ms = [];
  let before = performance.now();
  const tick = (now) => {
    window.frames_ms.push(now - before);
    before = now;
    window.watching = requestAnimationFrame(tick);
  };
  window.watching = requestAnimationFrame((now) => { before = now; window.watching = requestAnimationFrame(tick); });
}"""


def golden(name: str) -> dict[str, Any]:
    """A golden event."""
    event: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return event


class Source:
    """Posts events to the stand-in: a cache of chains that lives, and requests that reuse them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx.Client(timeout=60)
        self.random = random.Random(5)
        self.chains: list[list[str]] = []
        self.number = 0

    def post(self, events: list[dict[str, Any]]) -> None:
        """Publishes events."""
        self.http.post(f"{self.url}/test/events", json=events).raise_for_status()

    def chain(self, length: int = CHAIN) -> dict[str, Any]:
        """A new chain of blocks."""
        hashes = [f"{self.random.getrandbits(64):016x}" for _ in range(length)]
        self.chains.append(hashes)
        data = {
            **golden("blocks.stored")["data"],
            "hash": hashes,
            "copies": [1] * length,
            "parent": None,
            "depth": 0,
            "tokens": 16,
        }
        return {"type": "blocks.stored", "data": data}

    def evict(self) -> dict[str, Any]:
        """The oldest chain leaves."""
        hashes = self.chains.pop(0)
        data = {**golden("blocks.removed")["data"], "hash": hashes, "copies": [0] * len(hashes)}
        return {"type": "blocks.removed", "data": data}

    def fill(self, blocks: int) -> None:
        """A cache of so many blocks."""
        for at in range(0, blocks, CHAIN * 50):
            lengths = [min(CHAIN, blocks - i) for i in range(at, min(blocks, at + CHAIN * 50), CHAIN)]
            self.post([self.chain(length) for length in lengths])

    def step(self, blocks: int, requests: int) -> None:
        """`blocks` events about blocks and `requests` requests, begun, joined and ended."""
        events = []
        for i in range(blocks):
            if i % 4 == 0:
                events += [self.evict(), self.chain()]
            elif i % 4 > 1:
                data = {**golden("blocks.reused")["data"], "hash": self.random.choice(self.chains)[: CHAIN // 2]}
                events.append({"type": "blocks.reused", "data": data})
        for _ in range(requests):
            events += self.request()
        self.post(events)

    def request(self) -> list[dict[str, Any]]:
        """One request that reuses half of a chain."""
        self.number += 1
        events = []
        hashes = self.random.choice(self.chains)
        half = len(hashes) // 2
        for name in ("request.started", "request.joined", "request.finished"):
            event = golden(name)
            data = event["data"]
            data["record"].update(
                id=f"r-{self.number}", label=f"Question {self.number}", prompt_blocks=len(hashes), reused_blocks=half
            )
            if data.get("block_table"):
                state = ["reused"] * half + ["computed"] * (len(hashes) - half)
                table = {
                    "hash": hashes,
                    "tokens": [16] * len(hashes),
                    "state": state,
                    "block_size": 16,
                    "basis": "engine",
                }
                data["block_table"] = table
            events.append({"type": name, "data": data})
        return events


@contextmanager
def stand_in(folder: Path) -> Iterator[str]:
    """The base URL of a stand-in dashboard."""
    (port,) = free_ports(1)
    process = Process([sys.executable, "-m", "tests.browser.fake_dashboard", str(port)], folder / "fake.log")
    process.start()
    try:
        process.wait_for(f"http://127.0.0.1:{port}/healthz", 60)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.stop()


def opened(browser: Browser, url: str) -> Page:
    """The page, connected."""
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.goto(url)
    page.locator("body[data-link=live]").wait_for()
    return page


def quantile(values: list[float], share: float) -> float:
    """The value below which `share` of them lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def busy_s(session: CDPSession) -> float:
    """Processor seconds that the page's main thread took so far: what others take of the machine isn't in it."""
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])


def heap_mib(session: CDPSession) -> float:
    """The heap after a collection, in MiB."""
    session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 2**20


def first_picture(browser: Browser, url: str) -> float:
    """Seconds from navigation until the cache picture of a filled cache stands; the best of three cold starts."""
    took: list[float] = []
    for _ in range(3):
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        page.goto(url, wait_until="commit")
        page.wait_for_function("() => document.querySelector('#cache-plot .plot-container') !== null", polling=20)
        took.append(page.evaluate("() => performance.now()") / 1000)
        context.close()
    return min(took)


def under_load(page: Page, source: Source, seconds: float) -> dict[str, float]:
    """Frames, busy share and heap growth while 20 block events and 5 requests come each second."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    source.step(20, 5)
    page.wait_for_timeout(2000)
    heap, busy, begun = heap_mib(session), busy_s(session), time.perf_counter()
    page.evaluate(WATCH)
    ends = begun + seconds
    while (now := time.perf_counter()) < ends:
        source.step(4, 1)
        page.wait_for_timeout(max(0, 200 - 1000 * (time.perf_counter() - now)))
    wall = time.perf_counter() - begun
    share = (busy_s(session) - busy) / wall
    frames: list[float] = page.evaluate("() => { cancelAnimationFrame(window.watching); return window.frames_ms; }")
    return {
        "frame_ms": quantile(frames, 0.95),
        "busy": share,
        "heap_mib": heap_mib(session) - heap,
        "frames": float(len(frames)),
    }


def burst(page: Page, source: Source) -> float:
    """Milliseconds until a click is answered, the worst of those made while 10,000 block events come in a second."""
    worker = threading.Thread(target=_burst, args=(source,))
    worker.start()
    worst = 0.0
    while worker.is_alive():
        worst = max(worst, float(page.evaluate(CLICK)))
    worker.join()
    return worst


CLICK = """() => new Promise((done) => {
  const begun = performance.now();
  const channel = new MessageChannel();
  channel.port1.onmessage = () => {
    document.getElementById('unfold').click();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun)));
  };
  channel.port2.postMessage(0);
})"""


def _burst(source: Source) -> None:
    data = golden("blocks.reused")["data"]
    with httpx.Client(timeout=60) as http:
        for _ in range(10):
            events = [
                {"type": "blocks.reused", "data": {**data, "hash": source.random.choice(source.chains)[:2]}}
                for _ in range(1000)
            ]
            http.post(f"{source.url}/test/events", json=events).raise_for_status()


REDRAW = """async () => {
  const stage = document.getElementById('cache-plot');
  const took = [];
  for (let i = 0; i < 15; i++) {
    const next = (cell) => (cell === null ? null : (cell + 1) % 5);
    const trace = { ...stage.data[0], z: stage.data[0].z.map((row) => row.map(next)) };
    const begun = performance.now();
    await Plotly.react(stage, [trace], stage.layout, { staticPlot: true, displayModeBar: false });
    took.push(performance.now() - begun);
    await new Promise((done) => requestAnimationFrame(done));
  }
  return took.sort((a, b) => a - b)[7];
}"""


def full_redraw(page: Page, source: Source) -> float:
    """Milliseconds of one redraw of the picture of 65,536 blocks, the median of 15."""
    server = golden("server.changed")["data"]["server"]
    source.post([{"type": "server.changed", "data": {"server": {**server, "num_gpu_blocks": BIG + 1}}}])
    source.fill(BIG - sum(map(len, source.chains)))
    page.wait_for_function(
        f"() => document.getElementById('cache-stage').dataset.resident === '{BIG}'", timeout=120_000
    )
    return float(page.evaluate(REDRAW))


HIDE = """() => {
  const real = window.requestAnimationFrame.bind(window);
  window.held = [];
  window.requestAnimationFrame = (draw) => (window.held === null ? real(draw) : window.held.push(draw));
  window.showAgain = () => {
    const waiting = window.held;
    window.held = null;
    waiting.forEach((draw) => real(draw));
  };
}"""


def hidden(page: Page, source: Source) -> tuple[float, float]:
    """Blocks by which the picture moved while hidden, and seconds until what came meanwhile is shown.

    A headless Chromium hides no tab, so what a hidden one lacks is taken away: animation frames.
    """
    resident = "() => Number(document.getElementById('cache-stage').dataset.resident)"
    before = page.evaluate(resident)
    page.evaluate(HIDE)
    source.post([source.chain(7)])
    page.wait_for_timeout(1500)
    moved = float(page.evaluate(resident)) - before
    begun = time.perf_counter()
    page.evaluate("() => window.showAgain()")
    page.wait_for_function(f"() => ({resident})() === {before + 7}", polling=20, timeout=60_000)
    return moved, time.perf_counter() - begun


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    seconds = parser.parse_args().seconds
    missed = 0

    def say(name: str, value: float, unit: str, bar: float, note: str = "") -> None:
        nonlocal missed
        missed += value > bar
        print(
            f"{'missed' if value > bar else 'ok':7}{name:58}{value:9.2f} {unit:4} bar {bar:g} {unit} {note}", flush=True
        )

    executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    with TemporaryDirectory() as folder, stand_in(Path(folder)) as url, sync_playwright() as playwright:
        one, _, _ = os.getloadavg()
        print(f"{os.cpu_count()} cores, load average {one:.1f}: above the cores, times say more of others")
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        source = Source(url)
        say("first picture after navigation", first_picture(browser, url), "s", 1.5, "(best of 3)")
        page = opened(browser, url)
        source.fill(5306)
        load = under_load(page, source, seconds)
        say(
            "5,306 blocks, 20 block events, 5 requests a second: frame",
            load["frame_ms"],
            "ms",
            100,
            "(95th percentile)",
        )
        say("  main thread busy", 100 * load["busy"], "%", 50)
        say(f"  heap growth in {seconds:g} s of it", load["heap_mib"], "MiB", 20, "(bar: ten minutes)")
        say("10,000 block events in a second: a click answered after", burst(page, source), "ms", 200, "(worst)")
        say("65,536 blocks: full redraw", full_redraw(page, source), "ms", 80, "(median of 15)")
        moved, caught_up = hidden(page, source)
        say("hidden tab: blocks drawn meanwhile", moved, "", 0)
        say("  caught up after", caught_up, "s", 1)
        browser.close()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
