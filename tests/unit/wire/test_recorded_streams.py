"""Every response that a real vLLM server gave, through the decoder and the reader, in any chunking."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from app.wire.body_facts import read_body_facts
from app.wire.chat_chunks import read_body, read_error, read_event
from app.wire.frame_cutter import UsageFrameCutter
from app.wire.said import Said
from app.wire.sse import SseDecoder
from app.wire.usage import Usage

from .enriching import enrich_body

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"


class Recorded(NamedTuple):
    file: str
    path: str
    request: bytes
    status: int
    streamed: bool
    pieces: list[bytes]
    complete: bool


def recorded() -> Iterator[Recorded]:
    for file in sorted(RECORDINGS.glob("*.jsonl")):
        requests: dict[str, dict[str, object]] = {}
        heads: dict[str, dict[str, object]] = {}
        pieces: dict[str, list[bytes]] = {}
        for line in file.read_text().splitlines():
            entry = json.loads(line)
            match entry["kind"]:
                case "request":
                    requests[entry["id"]] = entry
                    pieces[entry["id"]] = []
                case "head":
                    heads[entry["id"]] = entry
                case "bytes":
                    pieces[entry["id"]].append(base64.b64decode(entry["b64"]))
                case "end":
                    request, head = requests[entry["id"]], heads[entry["id"]]
                    content_type = dict(head["headers"])["content-type"]  # type: ignore[call-overload]
                    yield Recorded(
                        file.stem,
                        str(request["path"]),
                        str(request["body"] or "").encode(),
                        int(str(head["status"])),
                        content_type.startswith("text/event-stream"),
                        pieces[entry["id"]],
                        entry["how"] == "complete",
                    )


RECORDED = list(recorded())
STREAMS = [r for r in RECORDED if r.streamed]
BODIES = [r for r in RECORDED if not r.streamed]


def hear(chunks: list[bytes]) -> list[Said]:
    decoder = SseDecoder(1 << 26)
    events = [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.flush()
    return [read_event(event.data, event.name) for event in events]


def test_there_is_something_to_read() -> None:
    assert len(STREAMS) > 20
    assert len(BODIES) > 10


@pytest.mark.parametrize("exchange", STREAMS, ids=lambda r: r.file)
def test_a_stream_says_the_same_in_any_chunking(exchange: Recorded) -> None:
    stream = b"".join(exchange.pieces)
    said = hear(exchange.pieces)
    assert not [s.malformed for s in said if s.malformed]
    assert hear([stream]) == said == hear([stream[i : i + 1] for i in range(len(stream))])
    assert hear([stream[i : i + 7] for i in range(0, len(stream), 7)]) == said


@pytest.mark.parametrize("exchange", STREAMS, ids=lambda r: r.file)
def test_a_stream_has_content_and_an_end(exchange: Recorded) -> None:
    said = hear(exchange.pieces)
    # Where the only token is a special one, its text is empty.
    assert any(s.answer for s in said) or exchange.file == "exact_multiple"
    assert not said[0].answer or exchange.path == "/v1/completions"
    assert said[-1].done is exchange.complete
    assert any(s.finish_reason for s in said) is exchange.complete
    facts = read_body_facts(exchange.request, b"key")
    assert facts.is_object and facts.stream
    usage = [s.usage for s in said if s.usage]
    assert bool(usage) is (facts.wants_usage or exchange.path in ("/v1/responses", "/v1/messages"))
    if facts.wants_token_ids:
        prompt = next(s.prompt_token_ids for s in said if s.prompt_token_ids)
        output = [token for s in said for token in s.token_ids or ()]
        assert len(prompt) == usage[-1].prompt_tokens
        assert len(output) == usage[-1].completion_tokens
    else:
        assert not any(s.token_ids or s.prompt_token_ids for s in said)


@pytest.mark.parametrize("exchange", BODIES, ids=lambda r: r.file)
def test_a_whole_body(exchange: Recorded) -> None:
    body = b"".join(exchange.pieces)
    if exchange.status >= 400:
        assert read_error(body)
        assert not (read_error(body) or "").startswith("{")
    elif exchange.path.startswith("/v1/"):
        said = read_body(body)
        assert said.malformed is None and said.answer and said.finish_reason
        assert said.usage is not None and said.usage.prompt_tokens


def one(file: str) -> Recorded:
    return next(r for r in RECORDED if r.file == file)


@pytest.mark.parametrize(
    ("file", "usage", "contents"),
    [
        ("completions_stream", Usage(4, 6, 0, None), 6),
        ("responses_stream", Usage(33, 6, 0, 32), 6),
        ("anthropic_stream", Usage(33, 6, 32, 0), 6),
        ("n_and_logprobs", Usage(33, 6, 0, 32), 6),
        ("shared_prefix_full", Usage(169, 8, 128, 32), 8),
        ("session_header", Usage(168, 8, 128, 32), 8),
        ("stream_plain", None, 7),
        ("client_gone", None, 2),
    ],
)
def test_what_some_streams_say(file: str, usage: Usage | None, contents: int) -> None:
    said = hear(one(file).pieces)
    merged: Usage | None = None
    for given in (s.usage for s in said if s.usage):
        merged = given if merged is None else merged.updated(given)
    assert merged == usage
    assert sum(s.answer for s in said) == contents
    if file in ("completions_stream", "responses_stream", "shared_prefix_full"):
        times = next(s.times for s in said if s.times)
        assert times.ttft_ms and times.queue_ms and times.generation_ms and times.mean_itl_ms


@pytest.mark.parametrize("exchange", STREAMS, ids=lambda r: r.file)
def test_the_cutter_takes_the_usage_frame_and_nothing_else(exchange: Recorded) -> None:
    stream = b"".join(exchange.pieces)
    frames = stream.split(b"\n\n")
    kept = b"\n\n".join(f for f in frames if b'"choices":[],"usage"' not in f)
    for chunks in (exchange.pieces, [stream], [stream[i : i + 1] for i in range(len(stream))]):
        cutter = UsageFrameCutter()
        assert b"".join(cutter.feed(chunk) for chunk in chunks) + cutter.flush() == kept


@pytest.mark.parametrize("exchange", [r for r in RECORDED if r.request], ids=lambda r: r.file)
def test_recorded_bodies_are_enriched_around_their_own_bytes(exchange: Recorded) -> None:
    spliced = enrich_body(exchange.request, usage=True, token_ids=True)
    if spliced.added:
        sent = json.loads(spliced.body)
        assert sent["stream_options"]["include_usage"] is True and sent["return_token_ids"] is True
        assert {k: v for k, v in sent.items() if k in json.loads(exchange.request)}.keys() == json.loads(
            exchange.request
        ).keys()
    else:
        assert spliced.body == exchange.request
