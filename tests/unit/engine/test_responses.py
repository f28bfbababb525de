"""Answers: every recorded frame and body of the completion endpoints, made again byte for byte."""

import base64
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from app.engine.responses import (
    Delta,
    Envelope,
    Json,
    Timing,
    Usage,
    chat_body,
    chat_frame,
    completion_body,
    completion_frame,
    encode,
    role_frame,
    sse,
    usage_frame,
)

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"
PATHS = ("/v1/chat/completions", "/v1/completions")
FILES = ("stream_plain", "shared_prefix_full", "shared_prefix", "completions_stream", "not_streamed", "cjk", "salted")


class RecordedTiming(Timing):
    """A server's measured figures can't be made from a few times exactly; they are handed through."""

    def __init__(self, figures: Json) -> None:
        super().__init__(0.0, 0.0, 0.0, 0.0, 0)
        object.__setattr__(self, "told", figures)

    __slots__ = ("told",)
    told: Json

    def metrics(self) -> Json:
        return {name: value for name, value in self.told.items() if name != "speculative_decoding"}


def bodies(name: str) -> list[tuple[str, bytes]]:
    """Path and whole response body of each completion request of a file."""
    paths: dict[str, str] = {}
    found: dict[str, bytes] = defaultdict(bytes)
    for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["kind"] == "request" and entry["path"] in PATHS:
            paths[entry["id"]] = entry["path"]
        elif entry["kind"] == "bytes" and entry["id"] in paths:
            found[entry["id"]] += base64.b64decode(entry["b64"])
    return [(paths[request_id], body) for request_id, body in found.items()]


def remade(frame: Json, chat: bool) -> Json:
    envelope = Envelope(frame["id"], frame["created"], frame["model"], frame.get("system_fingerprint", ""))
    if not frame["choices"]:
        return usage_frame(envelope, usage(frame["usage"]), RecordedTiming(frame["metrics"]), chat=chat)
    choice: dict[str, Any] = frame["choices"][0]
    if chat and "role" in choice["delta"]:
        return role_frame(envelope, choice["index"], frame["prompt_token_ids"], frame["prompt_text"])
    delta = Delta(
        choice["index"],
        choice["delta"]["content"] if chat else choice["text"],
        choice["token_ids"],
        choice["finish_reason"],
        choice.get("stop_reason"),
        choice.get("prompt_token_ids"),
    )
    make = chat_frame if chat else completion_frame
    return make(envelope, delta, fingerprint="system_fingerprint" in frame)


def usage(told: Json) -> Usage:
    details = told["prompt_tokens_details"]
    return Usage(
        told["prompt_tokens"], told["completion_tokens"], details["cached_tokens"], details.get("created_cache_tokens")
    )


def remade_body(body: Json, chat: bool) -> Json:
    envelope = Envelope(body["id"], body["created"], body["model"], body["system_fingerprint"])
    choice = body["choices"][0]
    answer = Delta(
        choice["index"],
        choice["message"]["content"] if chat else choice["text"],
        choice["token_ids"],
        choice["finish_reason"],
        choice["stop_reason"],
        choice.get("prompt_token_ids"),
    )
    timing = RecordedTiming(body["metrics"])
    if chat:
        return chat_body(envelope, [answer], usage(body["usage"]), timing, body["prompt_token_ids"], None)
    return completion_body(envelope, [answer], usage(body["usage"]), timing)


@pytest.mark.parametrize("name", FILES)
def test_recorded_answers_come_out_byte_for_byte(name: str) -> None:
    seen = 0
    for path, raw in bodies(name):
        chat = "chat" in path
        if raw.startswith(b"data: "):
            for event in raw.split(b"\n\n"):
                if event.startswith(b"data: {"):
                    assert sse(remade(json.loads(event[6:]), chat)) == event + b"\n\n"
                    seen += 1
        else:
            assert encode(remade_body(json.loads(raw), chat)) == raw
            seen += 1
    assert seen


def test_timing_in_milliseconds() -> None:
    timing = Timing(queued_s=1.0, scheduled_s=1.5, first_token_s=1.75, last_token_s=2.25, tokens=3)
    assert timing.metrics() == {
        "time_to_first_token_ms": 250.0,
        "generation_time_ms": 500.0,
        "queue_time_ms": 500.0,
        "mean_itl_ms": 250.0,
        "tokens_per_second": 4.0,
    }


def test_what_a_single_instant_token_cannot_tell_is_unknown() -> None:
    told = Timing(2.0, 1.0, 1.0, 1.0, 1).metrics()
    assert told["mean_itl_ms"] is None
    assert told["tokens_per_second"] is None
    assert told["queue_time_ms"] == 0.0
