"""A dashboard without a server behind it: serves the page, answers chats from a toy cache, sends what a test posts.

For states of the page that the real demo can't be brought into: a dead server, markup in names, a lost link.
`python -m tests.browser.fake_dashboard PORT` runs it alone. POST /test/events publishes a JSON list of
{type, data, server?, rank?}; POST /test/cut ends every live connection and refuses new ones until POST /test/restore;
POST /test/sample adds a reading of the counters; POST /test/report sets what the doctor answers; GET /test/marks counts
how often the mark was moved.
"""

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.templating import Jinja2Templates
from starlette.websockets import WebSocket, WebSocketDisconnect

from app import events as e
from app.ids import Rank, RequestId, ServerId
from app.web.assets import PageFiles

from . import fake_why

ROOT = Path(__file__).parent.parent.parent
SERVER = ServerId("http://127.0.0.1:8000")
BLOCK = 16
POOL = 5306
ANSWER = ("It", "depends", "on", "the", "last", "scan.", "<b>Not", "markup.</b>")
CSP = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:"


class Fake:
    """A toy cache of three-character tokens, and the browsers that watch it."""

    def __init__(self) -> None:
        self.seq = 0
        self.instance = f"{time.time_ns():x}"
        self.sockets: dict[asyncio.Queue[str | None], None] = {}
        self.blocks: dict[str, dict[str, Any]] = {}
        self.requests: dict[str, dict[str, Any]] = {}
        self.refusing = False
        self.hits = self.queries = self.asked = 0
        self.points: list[dict[str, Any]] = []
        self.server: dict[str, Any] = asdict(
            e.ServerRecord(
                id=SERVER, state="up", version="0.32.0", models=("qwen2.5-7b-instruct",), max_model_len=32768,
                embedded=True, profile="rtx3090-qwen2.5-7b-bf16", block_size=BLOCK, num_gpu_blocks=POOL,
                prefix_caching=True, usage_details=True, metrics_state="ok",
                streams=(e.StreamHealth(rank=Rank(0), state="connected", coverage="complete"),),
            )
        )  # fmt: skip
        self.scenario: dict[str, Any] | None = None
        self.report: dict[str, Any] = {"status": "ok", "servers": []}
        self.marks = 0

    def publish(self, kind: str, data: dict[str, Any], server: str | None = SERVER, rank: int | None = 0) -> None:
        """Sends one event to every browser."""
        for queue in self.sockets:
            queue.put_nowait(self._encode(kind, data, server, rank))

    def _encode(self, kind: str, data: dict[str, Any], server: str | None, rank: int | None) -> str:
        self.seq += 1
        envelope = {"v": 1, "seq": self.seq, "at_ms": time.time() * 1000, "server": server, "rank": rank, "type": kind}
        return json.dumps({**envelope, "basis": None, "data": data})

    def opening(self) -> list[str]:
        """hello and snapshot."""
        hello: dict[str, Any] = {
            "product": "prefixscope",
            "version": "0.1.0",
            "instance": self.instance,
            "backlog_events": 0,
        }
        rows = list(self.blocks)
        columns = {
            "server": SERVER, "rank": 0, "block_size": BLOCK, "event_seq": 1, "hash": rows,
            "parent_row": [rows.index(b["parent"]) if b["parent"] else None for b in self.blocks.values()],
            "depth": [b["depth"] for b in self.blocks.values()], "tokens": [BLOCK] * len(rows),
            "group": [0] * len(rows), "medium": ["GPU"] * len(rows), "copies": [1] * len(rows),
            "requests": [sum(h in r["block_table"]["hash"] for r in self.requests.values()) for h in rows],
            "reuses": [b["reuses"] for b in self.blocks.values()], "stored_ms": [b["at"] for b in self.blocks.values()],
        }  # fmt: skip
        snapshot = {
            "servers": [self.server], "requests": list(self.requests.values())[::-1][:200], "blocks": [columns],
            "rates": {SERVER: self.rates()}, "metrics": {SERVER: self.points}, "scenario": self.scenario,
        }  # fmt: skip
        return [
            self._encode("hello", {**hello, "backlog_events": 0, "demo": True, "show_prompts": True}, None, None),
            self._encode("snapshot", snapshot, None, None),
        ]

    def rates(self) -> list[dict[str, Any]]:
        ratio = self.hits / self.queries if self.queries else None
        reading = {"hit_tokens": self.hits, "query_tokens": self.queries, "ratio": ratio}
        return [{"window": "lifetime", "basis": "counter", **reading, "requests": None, "since_ms": None}]

    def sample(self) -> None:
        point = {"at_ms": time.time() * 1000, "query_tokens": self.queries, "hit_tokens": self.hits}
        self.points = [*self.points[-300:], {**asdict(e.MetricsPoint(at_ms=0)), **point}]
        self.publish("metrics.sampled", {"point": self.points[-1], "engines": {}})

    def look_up(self, body: dict[str, Any]) -> tuple[list[str], list[str], int]:
        """Of a chat's body: its tokens, its full blocks' hashes, how many of those are reused."""
        text = "".join(f"<{m['role']}>{m['content']}" for m in body["messages"])
        salt = body.get("cache_salt", "")
        tokens = [text[i : i + 3] for i in range(0, len(text), 3)]
        hashes: list[str] = []
        parent = salt
        for i in range(0, len(tokens) - BLOCK + 1, BLOCK):
            parent = hashlib.sha256((parent + "".join(tokens[i : i + BLOCK])).encode()).hexdigest()[:16]
            hashes.append(parent)
        reusable = (len(tokens) - 1) // BLOCK
        reused = 0
        while reused < reusable and hashes[reused] in self.blocks:
            reused += 1
        return tokens, hashes, reused

    def chat(self, body: dict[str, Any], origin: str) -> tuple[str, AsyncIterator[str]]:
        """A request's id and its stream."""
        self.asked += 1
        tokens, hashes, reused = self.look_up(body)
        reusable, salt = (len(tokens) - 1) // BLOCK, body.get("cache_salt")
        record = asdict(
            e.RequestRecord(
                id=RequestId(f"r-{self.asked}"), server=SERVER, rank=None, model=body.get("model"),
                at_ms=time.time() * 1000, origin=origin, endpoint="/v1/chat/completions", streamed=True,  # type: ignore[arg-type]
                label=body["messages"][-1]["content"][:80], salted=bool(salt), cold=bool(salt),
            )
        )  # fmt: skip
        return record["id"], self._stream(record, tokens, hashes, reused, reusable)

    async def _stream(
        self, record: dict[str, Any], tokens: list[str], hashes: list[str], reused: int, reusable: int
    ) -> AsyncIterator[str]:
        self.publish("request.started", {"record": dict(record)})
        started = time.perf_counter()
        partial = [None] if len(tokens) % BLOCK else []
        table = {
            "block_size": BLOCK,
            "hash": [*hashes, *partial],
            "tokens": [BLOCK] * len(hashes) + ([len(tokens) % BLOCK] if partial else []),
            "state": ["reused"] * reused + ["computed"] * (len(hashes) - reused) + (["partial"] if partial else []),
            "basis": "engine",
        }
        if reused:
            for h in hashes[:reused]:
                self.blocks[h]["reuses"] += 1
            self.publish("blocks.reused", {"request": record["id"], "hash": hashes[:reused]})
        new = hashes[reused:]
        if new:
            for i, h in enumerate(new):
                at = reused + i
                held = {"parent": hashes[at - 1] if at else None, "depth": at, "reuses": 0, "at": time.time() * 1000}
                self.blocks[h] = {**held, "text": "".join(tokens[at * BLOCK : (at + 1) * BLOCK])}
            stored = {"hash": new, "parent": hashes[reused - 1] if reused else None, "depth": reused, "tokens": BLOCK}
            place = {"group": 0, "medium": "GPU", "copies": [1] * len(new), "request": record["id"], "event_seq": 1}
            self.publish("blocks.stored", {**stored, **place})
        self.publish("request.joined", {"record": dict(record), "block_table": table})
        await asyncio.sleep(0.033 + 0.0002 * (len(tokens) - reused * BLOCK))
        ttft = (time.perf_counter() - started) * 1000
        record.update(ttft_ms=ttft)
        self.publish("request.first_token", {"record": dict(record)})
        for word in ANSWER:
            frame = {"choices": [{"index": 0, "delta": {"content": word + " "}}]}
            yield f"data: {json.dumps(frame)}\n\n"
            await asyncio.sleep(0.02)
        yield "data: [DONE]\n\n"
        blocks = len(hashes) + len(partial)
        self.queries += len(tokens)
        self.hits += reused * BLOCK
        record.update(
            outcome="ok", status=200, rank=0, prompt_tokens=len(tokens), cached_tokens=reused * BLOCK,
            block_size=BLOCK, prompt_blocks=blocks, reusable_blocks=reusable, reused_blocks=reused,
            completion_tokens=16, e2e_ms=(time.perf_counter() - started) * 1000, basis={"cached_tokens": "usage"},
            verdict={
                "code": "reused", "params": {},
                "text": f"Reused {reused} of {blocks} blocks. First token after {ttft:.0f} ms.",
                "detail": f"{len(tokens) - reused * BLOCK} of {len(tokens)} tokens were computed.",
            },
        )  # fmt: skip
        summary = {"record": dict(record), "block_table": table}
        self.requests[record["id"]] = summary
        self.publish("request.finished", summary)
        self.publish("hit_rate.updated", {"rates": self.rates()})


def build(fake: Fake) -> Starlette:
    templates = Jinja2Templates(ROOT / "templates")
    files = PageFiles(ROOT / "static")

    async def index(request: Request) -> Response:
        context = {
            "config_json": "{}",
            "version": "0.1.0",
            "build": await files.build(),
        }
        return templates.TemplateResponse(request, "index.html", context, headers={"content-security-policy": CSP})

    async def live(socket: WebSocket) -> None:
        await socket.accept()
        if fake.refusing:
            await socket.close()
            return
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        for opening in fake.opening():
            queue.put_nowait(opening)
        fake.sockets[queue] = None
        try:
            while (message := await queue.get()) is not None:
                await socket.send_text(message)
            await socket.close()
        except WebSocketDisconnect:
            pass
        finally:
            fake.sockets.pop(queue, None)

    async def chat(request: Request) -> Response:
        body = await request.json()
        request_id, stream = fake.chat(body, request.headers.get("x-prefixscope-origin", "client"))
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-PrefixScope-Request": request_id})

    async def block(request: Request) -> Response:
        found = fake.blocks.get(request.path_params["hash"])
        if found is None:
            return JSONResponse({"error": {"code": "not_found", "message": "That block isn't known."}}, 404)
        return JSONResponse({"text": found["text"], "text_hidden": False, "tokens": BLOCK, "depth": found["depth"]})

    async def request_block(request: Request) -> Response:
        return JSONResponse({"text": "…tail of a prompt", "text_hidden": False, "tokens": 7, "depth": 1})

    async def publish(request: Request) -> Response:
        for event in await request.json():
            fake.publish(event["type"], event["data"], event.get("server", SERVER), event.get("rank", 0))
        return Response(status_code=204)

    async def healthy(request: Request) -> Response:
        return Response()

    async def restore(request: Request) -> Response:
        fake.refusing = False
        return Response(status_code=204)

    async def cut(request: Request) -> Response:
        fake.refusing = True
        for queue in fake.sockets:
            queue.put_nowait(None)
        return Response(status_code=204)

    async def doctor(request: Request) -> Response:
        return JSONResponse(fake.report)

    async def fit(request: Request) -> Response:
        return JSONResponse({"samples": [], "fit": None, "missing": "A fit needs 8 requests that didn't wait."})

    async def set_report(request: Request) -> Response:
        fake.report = await request.json()
        return Response(status_code=204)

    async def mark(request: Request) -> Response:
        fake.marks += 1
        return JSONResponse({"marked_ms": time.time() * 1000})

    async def marks(request: Request) -> Response:
        return JSONResponse(fake.marks)

    async def sample(request: Request) -> Response:
        fake.sample()
        return Response(status_code=204)

    return Starlette(
        routes=[
            Route("/", index),
            files.route(),
            WebSocketRoute("/live", live),
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/api/blocks/{hash}", block),
            Route("/api/requests/{id}/blocks/{index}", request_block),
            Route("/api/doctor", doctor),
            Route("/api/ttft_fit", fit),
            *fake_why.routes(fake.look_up, BLOCK),
            Route("/api/mark", mark, methods=["POST"]),
            Route("/test/report", set_report, methods=["POST"]),
            Route("/test/marks", marks),
            Route("/test/events", publish, methods=["POST"]),
            Route("/healthz", healthy),
            Route("/test/cut", cut, methods=["POST"]),
            Route("/test/restore", restore, methods=["POST"]),
            Route("/test/sample", sample, methods=["POST"]),
        ]
    )


if __name__ == "__main__":
    uvicorn.run(build(Fake()), host="127.0.0.1", port=int(sys.argv[1]), ws="websockets-sansio", log_level="warning")
