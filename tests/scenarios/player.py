"""Plays recordings of a real vLLM server into a ledger, through the decoders that the product uses.

The recordings hold what passed on the wire. Prompt tokens of requests that didn't ask for them come from
`fixtures/prompt_tokens.json`: what the server's `/tokenize` answers to the same bodies.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.events import Event, Outgoing, RequestRecord
from app.ids import Rank, RequestId, ServerId, SessionId
from app.model.ledger import Ledger, LedgerLimits
from app.observations import (
    KvBatch,
    MetricsSampled,
    Observation,
    RequestEnded,
    RequestPromptTokens,
    RequestStarted,
)
from app.sources.response_tap import ResponseTap
from app.wire.body_facts import read_body_facts
from app.wire.exposition import read_page
from app.wire.kv_events import KvEventDecoder
from app.wire.kv_frames import parse_live

FIXTURES = Path(__file__).parent.parent / "fixtures"
SERVER = ServerId("http://127.0.0.1:8000")
SALT_KEY = b"k" * 32
GENERATING = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages")

IN_ORDER = (
    "stream_plain", "shared_prefix", "shared_prefix_full", "session_header", "broken_prefix", "salted",
    "exact_multiple", "same_step", "multi_turn", "cjk", "prompt_logprobs", "client_gone", "reset",
)  # fmt: skip
"""The recordings as they followed each other on one server; `evict` ran on a fresh one."""


class Player:
    """A ledger, and everything that came out of it. Request ids are "recording/id"."""

    def __init__(self, limits: LedgerLimits | None = None) -> None:
        self.ledger = Ledger(limits or LedgerLimits(), wall_offset_ms=1_796_050_000_000.0)
        self.out: list[Outgoing] = []
        self.observations: list[Observation] = []
        self._taps: dict[str, ResponseTap] = {}
        self._decoder = KvEventDecoder(SALT_KEY)
        self._start_s = 100.0
        self._end_s = 100.0
        self._tokens: dict[str, dict[str, list[int]]] = json.loads((FIXTURES / "prompt_tokens.json").read_text())

    def apply(self, observation: Observation) -> list[Outgoing]:
        """One observation into the ledger."""
        self.observations.append(observation)
        self._end_s = max(self._end_s, observation.at_s)
        out = self.ledger.apply(observation)
        self.out.extend(out)
        return out

    def play(self, name: str) -> "Player":
        """One recording, ten seconds after the one before."""
        self._start_s = self._end_s + 10
        for line in (FIXTURES / "recordings" / f"{name}.jsonl").read_text().splitlines():
            entry = json.loads(line)
            at_s = self._start_s + entry["t_ms"] / 1000
            getattr(self, f"_{entry['kind']}")(name, entry, at_s)
        self.out.extend(self.ledger.tick(self._end_s + 1))
        return self

    def play_until(self, last: str) -> "Player":
        """Every recording of the shared server up to this one."""
        for name in IN_ORDER[: IN_ORDER.index(last) + 1]:
            self.play(name)
        return self

    def record(self, request: str) -> RequestRecord:
        """The record of "recording/id"."""
        summary = self.ledger.request(RequestId(request))
        assert summary is not None
        return summary.record

    def events(self, kind: type[Event]) -> Iterator[Any]:
        """Events of one class, in order."""
        return (outgoing.event for outgoing in self.out if isinstance(outgoing.event, kind))

    # --- one kind of line each ---

    def _request(self, name: str, entry: dict[str, Any], at_s: float) -> None:
        if entry["path"] not in GENERATING:
            return
        request = RequestId(f"{name}/{entry['id']}")
        body = entry["body"].encode()
        facts = read_body_facts(body, SALT_KEY)
        fields = json.loads(entry["body"]) if facts.is_object else {}
        session = fields.get("session_id") or entry["headers"].get("X-Session-ID")
        self.apply(
            RequestStarted(
                server=SERVER,
                request=request,
                endpoint=entry["path"],
                origin="page",
                at_s=at_s,
                model=facts.model,
                streamed=facts.stream,
                max_tokens=facts.max_tokens,
                sequences=facts.sequences,
                session_id=SessionId(session) if session else None,
                salt=facts.salt,
                skips_cache_read=facts.skips_cache_read,
                show_text=True,
            )
        )
        self._taps[request] = ResponseTap(
            SERVER, request, self._collect, tells_output=facts.sequences == 1, max_held_bytes=1 << 26
        )
        known = self._tokens.get(name, {}).get(entry["id"])
        if facts.prompt_token_ids is not None:
            self.apply(RequestPromptTokens(request, facts.prompt_token_ids, "request", at_s))
        elif known is not None and not facts.wants_token_ids:
            self.apply(RequestPromptTokens(request, tuple(known), "tokenize", at_s))

    def _collect(self, observation: Observation) -> None:
        self.apply(observation)

    def _head(self, name: str, entry: dict[str, Any], at_s: float) -> None:
        tap = self._taps.get(f"{name}/{entry['id']}")
        if tap is not None:
            headers = {key.lower(): value for key, value in dict(entry["headers"]).items()}
            tap.head(entry["status"], headers.get("content-type", "").encode(), b"", at_s)

    def _bytes(self, name: str, entry: dict[str, Any], at_s: float) -> None:
        tap = self._taps.get(f"{name}/{entry['id']}")
        if tap is not None:
            tap.feed(base64.b64decode(entry["b64"]), at_s)

    def _end(self, name: str, entry: dict[str, Any], at_s: float) -> None:
        request = RequestId(f"{name}/{entry['id']}")
        tap = self._taps.get(request)
        if tap is None:
            return
        tap.end(at_s)
        outcome = tap.outcome() if entry["how"] == "complete" else "client_gone"
        self.apply(RequestEnded(request, outcome, at_s, error=tap.error, content_chunks=tap.content_chunks))

    def _kv_frames(self, name: str, entry: dict[str, Any], at_s: float) -> None:
        frames = parse_live([base64.b64decode(frame) for frame in entry["b64"]])
        batch = self._decoder.decode(frames.payload)
        self.apply(
            KvBatch(
                SERVER,
                Rank(batch.data_parallel_rank or 0),
                frames.seq,
                batch.events,
                at_s,
                wire_form=batch.wire_form,
                malformed=batch.malformed,
                unknown_types=batch.unknown_types,
            )
        )

    def _metrics(self, name: str, entry: dict[str, Any], at_s: float) -> None:
        page = read_page(entry["text"].encode())
        self.apply(MetricsSampled(SERVER, page.engines, at_s, page.malformed_lines))
