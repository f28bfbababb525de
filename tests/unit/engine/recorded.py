"""What the recordings of a real vLLM server hold, in the terms of the engine's core."""

import base64
import contextlib
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"
OWN_SERVER = frozenset({"evict"})
"""Recorded on a fresh server; the others followed each other on one."""

Event = dict[str, Any]
_QUERIES = re.compile(r"^vllm:prefix_cache_(queries|hits)_total\{[^}]*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Recording:
    """One file. `batches` by sequence number, `usage`, `prompts` and `outputs` (token ids) by request id."""

    batches: dict[int, list[Event]]
    usage: dict[str, dict[str, Any]]
    prompts: dict[str, list[int]]
    outputs: dict[str, list[int]]
    bodies: dict[str, Any]
    counters: list[tuple[int, int, int]]
    """Requests sent so far, and then the counters of queries and hits."""


def _frames(text: str) -> list[dict[str, Any]]:
    """The JSON objects of an event stream, or of a plain body."""
    chunks = [line[6:] for line in text.splitlines() if line.startswith("data: ")] or [text]
    return [json.loads(chunk) for chunk in chunks if chunk.startswith("{")]


def _json(body: str) -> Any:
    """A request's body; None where it is no JSON (the recorded errors)."""
    with contextlib.suppress(ValueError):
        return json.loads(body)
    return None


@cache
def recording(name: str) -> Recording:
    """The file `name`.jsonl."""
    found = Recording({}, {}, {}, defaultdict(list), {}, [])
    bodies: dict[str, bytes] = defaultdict(bytes)
    for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["kind"] == "request":
            found.bodies[entry["id"]] = _json(entry["body"])
        elif entry["kind"] == "bytes":
            bodies[entry["id"]] += base64.b64decode(entry["b64"])
        elif entry["kind"] == "kv_frames":
            _topic, number, payload = (base64.b64decode(frame) for frame in entry["b64"])
            found.batches[int.from_bytes(number, "big")] = msgspec.msgpack.decode(payload)[1]
        elif entry["kind"] == "metrics":
            values = dict(_QUERIES.findall(entry["text"]))
            found.counters.append((len(found.bodies), int(float(values["queries"])), int(float(values["hits"]))))
    for request_id, body in bodies.items():
        for frame in _frames(body.decode()):
            found.usage[request_id] = frame.get("usage") or found.usage.get(request_id, {})
            for choice in frame.get("choices", ()):
                found.outputs[request_id] += choice.get("token_ids") or []
            if frame.get("prompt_token_ids"):
                found.prompts[request_id] = frame["prompt_token_ids"]
    return found


@cache
def chains(name: str) -> dict[int | None, list[int]]:
    """Token ids of the whole prefix that ends with a block, by the block's hash, as that file's server told them."""
    names = [name] if name in OWN_SERVER else [path.stem for path in RECORDINGS.glob("*.jsonl")]
    named = [each for each in names if each == name or each not in OWN_SERVER]
    numbered = [(number, batch) for each in named for number, batch in recording(each).batches.items()]
    found: dict[int | None, list[int]] = {}
    for _number, batch in sorted(numbered, key=lambda each: each[0]):
        for event in batch:
            size = event.get("block_size", 0)
            prefix = found.get(event.get("parent_block_hash"), [])
            for index, block_hash in enumerate(event["block_hashes"] if event["type"] == "BlockStored" else ()):
                found[block_hash] = prefix + event["token_ids"][: (index + 1) * size]
    return found
