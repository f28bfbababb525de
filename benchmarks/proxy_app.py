"""The proxy alone, tap on, served as the product serves it: what `benchmarks/README.md` measures.

    python -m benchmarks.proxy_app --vllm http://127.0.0.1:8000 --port 8080 [--mode observe] [--profile FILE]

Observations are counted and thrown away, so that only the chat path costs anything.
"""

import argparse
import cProfile
import signal

import uvicorn

from app.events import ServerRecord
from app.ids import ServerId
from app.observations import Observation
from app.settings import load_settings
from app.sources.chat_proxy import ChatProxy
from app.sources.clock import SystemClock
from app.web.proxy import ProxyApp


class NoTokenizer:
    """The server's tokenizer is left alone."""

    async def tokenize(self, path: str, body: bytes) -> tuple[int, ...] | None:
        """No answer."""
        return None


def main() -> None:
    """Serves until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mode", default="observe")
    parser.add_argument("--profile", help="write a cProfile of the whole run to this file")
    arguments = parser.parse_args()
    counts: dict[str, int] = {}

    def emit(observation: Observation) -> None:
        name = type(observation).__name__
        counts[name] = counts.get(name, 0) + 1

    server = ServerId(arguments.vllm)
    record = ServerRecord(server, state="up", version="0.32.0")
    settings = load_settings({}, {"vllm": arguments.vllm, "mode": arguments.mode})
    proxy = ChatProxy(server, settings, emit, SystemClock(), lambda: record, NoTokenizer())
    config = uvicorn.Config(
        ProxyApp(proxy),
        host="127.0.0.1",
        port=arguments.port,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
    )
    profile = cProfile.Profile() if arguments.profile else None
    # uvicorn raises the signal once more after it has shut down; by then it has been obeyed.
    signal.signal(signal.SIGTERM, lambda *_: None)
    if profile:
        profile.enable()
    uvicorn.Server(config).run()
    if profile:
        profile.disable()
        profile.dump_stats(arguments.profile)
    print(counts)


if __name__ == "__main__":
    main()
