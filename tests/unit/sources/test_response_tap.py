"""The tap says the same whatever the chunking, and it says each thing once."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.ids import RequestId, ServerId
from app.observations import (
    GAP_EDGES_MS,
    Malformed,
    Observation,
    Outcome,
    RequestEngineTimes,
    RequestFirstToken,
    RequestOutputTokens,
    RequestPromptTokens,
    RequestUsage,
)
from app.sources.response_tap import OUTPUT_TOKENS_EVERY_S, ResponseTap
from app.wire.packed_ids import pack_ids

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"


def listen(chunks: list[bytes], *, step_s: float = 0.0, content_type: bytes = b"text/event-stream") -> tuple[
    ResponseTap, list[Observation]
]:  # fmt: skip
    seen: list[Observation] = []
    tap = ResponseTap(ServerId("s"), RequestId("r"), seen.append, tells_output=True, max_held_bytes=1 << 20)
    tap.head(200, content_type, b"", 0.0)
    for number, chunk in enumerate(chunks, 1):
        tap.feed(chunk, number * step_s)
    tap.end(len(chunks) * step_s)
    return tap, seen


def streams() -> Iterator[tuple[str, list[bytes], bool]]:
    for file in sorted(RECORDINGS.glob("*.jsonl")):
        pieces: dict[str, list[bytes]] = {}
        streamed: dict[str, bool] = {}
        for entry in map(json.loads, file.read_text().splitlines()):
            match entry["kind"]:
                case "head":
                    pieces[entry["id"]] = []
                    streamed[entry["id"]] = dict(entry["headers"])["content-type"].startswith("text/event-stream")
                case "bytes":
                    pieces[entry["id"]].append(base64.b64decode(entry["b64"]))
                case "end" if streamed[entry["id"]]:
                    yield file.stem, pieces[entry["id"]], entry["how"] == "complete"


@pytest.mark.parametrize(("name", "pieces", "complete"), list(streams()))
def test_recorded_streams_say_the_same_in_any_chunking(name: str, pieces: list[bytes], complete: bool) -> None:
    stream = b"".join(pieces)
    facts: list[object] = []
    for chunks in (pieces, [stream], [stream[i : i + 1] for i in range(len(stream))], [stream[:777], stream[777:]]):
        tap, seen = listen(chunks)
        facts.append((tap.content_chunks, tap.finish_reason, tap.error, tap.complete, tap.outcome()))
        facts.append(tuple(o for o in seen if not isinstance(o, RequestOutputTokens)))
        facts.append(output_of(seen))
        assert len([o for o in seen if isinstance(o, RequestFirstToken)]) == (
            name != "exact_multiple" or tap.content_chunks > 0
        )
        for once in (RequestUsage, RequestEngineTimes, RequestPromptTokens):
            assert len([o for o in seen if isinstance(o, once)]) <= 1
        assert tap.outcome() == ("ok" if complete else "truncated")
    assert facts == facts[:3] * 4


def output_of(seen: list[Observation]) -> tuple[int, ...]:
    """The answer's tokens, told piece by piece without a gap."""
    output: tuple[int, ...] = ()
    for told in seen:
        if isinstance(told, RequestOutputTokens):
            assert told.token_ids
            assert told.start == len(output)
            output += told.token_ids
    return output


def content(text: str, token: int | None = None, finish: str | None = None) -> bytes:
    choice = {
        "index": 0,
        "delta": {"content": text},
        "finish_reason": finish,
        "token_ids": None if token is None else [token],
    }
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def test_the_first_token_stays_the_first() -> None:
    _, seen = listen([content(""), content("a"), content("b"), content("c")], step_s=0.1)
    (first,) = (o for o in seen if isinstance(o, RequestFirstToken))
    assert first.at_s == pytest.approx(0.2)


def test_output_tokens_come_ten_times_a_second_at_most_and_in_full_at_the_end() -> None:
    _, seen = listen([content("x", token) for token in range(1000)], step_s=0.001)
    told = [o for o in seen if isinstance(o, RequestOutputTokens)]
    assert len(told) <= 1000 * 0.001 / OUTPUT_TOKENS_EVERY_S + 2
    assert output_of(seen) == tuple(range(1000))


def test_later_usage_wins_and_is_said_once() -> None:
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":%d}}\n\n'
    _, seen = listen([usage % 1, usage % 2, usage % 3])
    (last,) = (o for o in seen if isinstance(o, RequestUsage))
    assert (last.prompt_tokens, last.completion_tokens, last.cached_tokens) == (3, 3, None)


def test_a_broken_off_event_is_no_mistake_of_the_servers() -> None:
    tap, seen = listen([content("a"), b'data: {"choices":[{"de'])
    assert not [o for o in seen if isinstance(o, Malformed)]
    assert tap.outcome() == "truncated"


@pytest.mark.parametrize(
    ("body", "outcome", "marks"),
    [
        (b'{"choices":[{"message":{"content":"x"}}]}', "ok", 0),
        (b"{nonsense", "ok", 1),
        (b"", "empty", 0),
        (b"RIFF", "ok", 1),
    ],
)
def test_whole_bodies(body: bytes, outcome: Outcome, marks: int) -> None:
    tap, seen = listen([body] if body else [], content_type=b"application/json")
    assert tap.outcome() == outcome
    assert len([o for o in seen if isinstance(o, Malformed)]) == marks
    assert not [o for o in seen if isinstance(o, RequestFirstToken)]


def test_pauses_are_counted_by_read_not_by_token() -> None:
    three = content("a") + content("b") + content("c")
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":3}}\n\n'
    tap = ResponseTap(ServerId("s"), RequestId("r"), lambda _: None, tells_output=True, max_held_bytes=1 << 20)
    tap.head(200, b"text/event-stream", b"", 0.0)
    assert tap.gaps.counts() == ()
    for at_s, piece in ((1.0, content("")), (2.0, three), (2.02, three), (2.021, b": ping\n\n"), (12.02, content("d"))):
        tap.feed(piece, at_s)
    tap.feed(usage, 30.0)
    counts = dict(zip((*GAP_EDGES_MS, None), tap.gaps.counts(), strict=True))
    assert {edge: count for edge, count in counts.items() if count} == {30: 1, None: 1}


def test_a_run_of_plain_tokens_is_counted_too() -> None:
    tap, _ = listen([content("x", None)] * 100, step_s=0.015)
    assert sum(tap.gaps.counts()) == 99
    assert tap.gaps.counts()[GAP_EDGES_MS.index(20)] == 99


def test_each_of_several_answers_has_its_first_token() -> None:
    def of(index: int, text: str) -> bytes:
        return b"data: " + json.dumps({"choices": [{"index": index, "delta": {"content": text}}]}).encode() + b"\n\n"

    seen: list[Observation] = []
    tap = ResponseTap(ServerId("s"), RequestId("r"), seen.append, tells_output=False, max_held_bytes=1 << 20)
    tap.head(200, b"text/event-stream", b"", 0.0)
    for at_s, piece in enumerate(
        [of(1, ""), of(1, "a"), of(1, "b"), of(0, "a"), of(0, "b"), of(2, "c"), of(10**6, "d")]
    ):
        tap.feed(piece, float(at_s))
    told = [(o.choice, o.at_s) for o in seen if isinstance(o, RequestFirstToken)]
    assert told == [(1, 1.0), (0, 3.0), (2, 5.0)]


def test_the_ids_of_a_long_prompt_are_told_before_the_first_token() -> None:
    ids = tuple(range(5000))
    choice = {"index": 0, "delta": {"role": "assistant", "content": ""}}
    first = b"data: " + json.dumps({"choices": [choice], "prompt_token_ids": ids}).encode() + b"\n\n"
    token = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n'
    stream = first + token * 3
    for size in (1000, 4096, len(stream)):
        tap, seen = listen([stream[at : at + size] for at in range(0, len(stream), size)])
        told = [one for one in seen if isinstance(one, RequestPromptTokens | RequestFirstToken)]
        assert [type(one).__name__ for one in told] == ["RequestPromptTokens", "RequestFirstToken"]
        assert isinstance(told[0], RequestPromptTokens) and told[0].token_ids == () and told[0].packed == pack_ids(ids)
        assert not [one for one in seen if isinstance(one, Malformed)]
        assert tap.content_chunks == 3
