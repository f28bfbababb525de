"""The proxy alone, tap on, served as the product serves it: what `benchmarks/README.md` measures.

    python -m benchmarks.proxy_app --vllm http://127.0.0.1:8000 --port 8080 [--mode observe] [--profile FILE]

Observations are counted and thrown away, so that only the chat path costs anything.
"""

import argparse
import cProfile
import signal

from starlette.types import ASGIApp, Receive, Scope, Send

from app.events import ServerRecord
from app.garbage import settle
from app.ids import ServerId
from app.observations import Observation
from app.serving import listen, make_server
from app.settings import load_settings
from app.sources.chat_proxy import ChatProxy
from app.sources.clock import SystemClock
from app.web.proxy import ProxyApp

from .loop_holds import LoopHolds


class NoTokenizer:
    """The server's tokenizer is left alone."""

    async def tokenize(self, path: str, body: bytes) -> tuple[int, ...] | None:
        """No answer."""
        return None


class Alone:
    """The proxy, and a lifespan with nothing in it but `holds`, where they are wanted."""

    def __init__(self, proxy: ASGIApp, holds: LoopHolds | None) -> None:
        self._proxy = proxy
        self._holds = holds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, or the lifespan."""
        if scope["type"] != "lifespan":
            await self._proxy(scope, receive, send)
            return
        for kind in ("startup", "shutdown"):
            await receive()
            if kind == "startup":
                settle()
                if self._holds is not None:
                    self._holds.start()
            await send({"type": f"lifespan.{kind}.complete"})


def main() -> None:
    """Serves until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mode", default="observe")
    parser.add_argument("--profile", help="write a cProfile of the whole run to this file")
    parser.add_argument("--holds", action="store_true", help="look how long the event loop is held")
    arguments = parser.parse_args()
    counts: dict[str, int] = {}

    def emit(observation: Observation) -> None:
        name = type(observation).__name__
        counts[name] = counts.get(name, 0) + 1

    server = ServerId(arguments.vllm)
    record = ServerRecord(server, state="up", version="0.32.0")
    settings = load_settings({}, {"vllm": arguments.vllm, "mode": arguments.mode})
    proxy = ChatProxy(server, settings, emit, SystemClock(), lambda: record, NoTokenizer())
    holds = LoopHolds() if arguments.holds else None
    profile = cProfile.Profile() if arguments.profile else None
    # uvicorn raises the signal once more after it has shut down; by then it has been obeyed.
    signal.signal(signal.SIGTERM, lambda *_: None)
    if profile:
        profile.enable()
    with listen("127.0.0.1", arguments.port) as bound:
        make_server(Alone(ProxyApp(proxy), holds), shutdown_grace_s=1).run(sockets=[bound])
    if profile:
        profile.disable()
        profile.dump_stats(arguments.profile)
    print(counts)
    if holds:
        print(f"longest hold of the loop: {holds.worst_ms:.2f} ms")


if __name__ == "__main__":
    main()
