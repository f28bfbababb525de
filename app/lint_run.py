"""Runs the prompt doctor over a file: reads its lines, finds the tokenizer, asks a server for its block size and pool,
and writes the report as text or JSON.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import httpx

from .engine.profiles import RTX3090_QWEN25_7B_BF16
from .errors import Unreachable
from .ids import ServerId
from .settings import load_settings
from .sources.http_reading import read_http
from .sources.tokenizer import TokenizerClient
from .targets import targets_of
from .why.lint import LintReport, Progress, Tokenise, Tokens, assumed, lint
from .why.request_lines import NO_REQUESTS, read_requests
from .why.request_text import Body
from .wire.exposition import read_page
from .wire.tokenize_call import CHAT_PATH, COMPLETIONS_PATH

DEFAULT_BLOCK_SIZE = RTX3090_QWEN25_7B_BF16.block_size
DEFAULT_BLOCKS = RTX3090_QWEN25_7B_BF16.num_gpu_blocks
EMBEDDED_TOKENIZER = "the embedded engine's (Qwen2.5)"
TIMEOUT_S = 10.0
__all__ = ["NO_REQUESTS", "LintResult", "lint_file", "read_requests"]
MAX_METRICS_BYTES = 16 * 1024 * 1024
REPORT_EVERY = 50


_FLAGS = {"block_size": ("--block-size", "block size"), "num_gpu_blocks": ("--blocks", "number of blocks")}


class Server(NamedTuple):
    """What a server says of its cache; None where it doesn't."""

    block_size: int | None
    num_gpu_blocks: int | None


@dataclass(frozen=True, slots=True)
class LintResult:
    """A report, and what it was made with."""

    report: LintReport
    tokenizer: str
    tokenise_s: float
    assumed: list[str]
    """Fields of the report that neither a flag nor the server told."""

    def as_json(self, unreadable: int) -> dict[str, Any]:
        """The report's fields, with `tokenizer`, `tokenise_s` (seconds spent on it) and `unreadable_lines`."""
        extra = {"tokenizer": self.tokenizer, "tokenise_s": round(self.tokenise_s, 3), "unreadable_lines": unreadable}
        extra["assumed"] = self.assumed
        return asdict(self.report) | extra

    def as_text(self, unreadable: int, seconds: float) -> str:
        """For a person. `seconds`: what all of it took."""
        report = self.report
        lines = [
            f"{report.requests} requests, {report.prompt_tokens} prompt tokens; blocks of {report.block_size}, a pool "
            f"of {report.num_gpu_blocks}; tokens by {self.tokenizer}.",
            f"In this order, one by one and from cold, {report.hit_tokens} tokens hit: {_percent(report.hit_ratio)}.",
        ]
        for name in self.assumed:
            flag, what = _FLAGS[name]
            lines.append(f"No server told its {what}: {getattr(report, name)} is assumed. Give it with {flag}.")
        if report.unbounded_hit_tokens > report.hit_tokens:
            more = report.unbounded_hit_tokens - report.hit_tokens
            lines.append(f"A larger pool would let {more} more tokens hit: they are evicted before they come again.")
        if report.left_out:
            lines.append(f"{report.left_out} requests have no tokens, or don't fit into the pool; they aren't counted.")
        if unreadable:
            lines.append(f"{unreadable} lines are no requests.")
        lines.append("" if report.breakers else "Nothing known breaks their prefixes.")
        for row in report.breakers:
            gain = f"; with the fix, {row.gained_tokens} more hit" if row.gained_tokens is not None else ""
            lines.append(f"{row.name}: about {row.lost_tokens} tokens lost in {row.requests} requests{gain}.")
            lines.append(f"    {row.advice}")
            for number, partner, before, after in row.examples[:1]:
                lines.append(f"    request {number + 1} against {partner + 1}: {before!r} became {after!r}")
        if report.fixed_hit_tokens is not None:
            ratio = report.fixed_hit_tokens / report.prompt_tokens if report.prompt_tokens else None
            lines.append(f"With every fix, {report.fixed_hit_tokens} tokens would hit: about {_percent(ratio)}.")
        lines.append(f"{seconds:.1f} s, of which {self.tokenise_s:.1f} s for tokenising.")
        return "\n".join(lines)


def _percent(ratio: float | None) -> str:
    return "nothing to share" if ratio is None else f"{ratio * 100:.1f} %"


def lint_file(
    requests: Sequence[Body], options: argparse.Namespace, environment: Mapping[str, str], tell: Progress
) -> LintResult:
    """The report on `requests`. Raises PrefixScopeError where the server can't be asked."""
    if options.vllm is None:
        size = options.block_size or DEFAULT_BLOCK_SIZE
        clock = _Clocked(embedded_tokenise(tell))
        report = lint(requests, clock, num_gpu_blocks=options.blocks or DEFAULT_BLOCKS, block_size=size, tell=tell)
        return LintResult(report, EMBEDDED_TOKENIZER, clock.seconds, assumed(options.block_size, options.blocks))
    settings = load_settings(environment, {"vllm": options.vllm})
    server, key = targets_of(settings)[0].server, settings.vllm_api_key
    said = asyncio.run(_ask_server(server, key))
    clock = _Clocked(_server_tokenise(server, key, settings.max_tokenize_bytes, tell))
    report = lint(
        requests,
        clock,
        num_gpu_blocks=options.blocks or said.num_gpu_blocks or DEFAULT_BLOCKS,
        block_size=options.block_size or said.block_size or DEFAULT_BLOCK_SIZE,
        tell=tell,
    )
    unknown = assumed(options.block_size or said.block_size, options.blocks or said.num_gpu_blocks)
    return LintResult(report, f"{server}'s own", clock.seconds, unknown)


class _Clocked:
    """A tokenizer that knows how long it took."""

    def __init__(self, tokenise: Tokenise) -> None:
        self.seconds = 0.0
        self._tokenise = tokenise

    def __call__(self, requests: Sequence[Body]) -> Sequence[Tokens | None]:
        started_s = time.monotonic()
        try:
            return self._tokenise(requests)
        finally:
            self.seconds += time.monotonic() - started_s


def embedded_tokenise(tell: Progress) -> Tokenise:
    """The embedded engine's tokenizer and chat template."""
    from .engine.bodies import parse_conversation
    from .engine.chat_template import TemplateError, render_chat
    from .engine.fields import ApiError
    from .engine.tokenizer import Tokenizer

    tokenizer = Tokenizer()

    def one(body: Body) -> Tokens | None:
        if "messages" not in body:
            prompt = body.get("prompt")
            if isinstance(prompt, str):
                return tuple(tokenizer.encode_text(prompt, specials=True))
            return tuple(prompt) if isinstance(prompt, list) and all(type(token) is int for token in prompt) else None
        try:
            talk = parse_conversation(dict(body))
            return tuple(
                tokenizer.encode_segments(
                    render_chat(
                        talk.messages,
                        talk.tools,
                        add_generation_prompt=talk.add_generation_prompt,
                        continue_final_message=talk.continue_final_message,
                    )
                )
            )
        except (ApiError, TemplateError):
            return None

    def tokenise(requests: Sequence[Body]) -> list[Tokens | None]:
        found: list[Tokens | None] = []
        for number, body in enumerate(requests):
            if number % REPORT_EVERY == 0:
                tell("tokenise", number, len(requests))
            found.append(one(body))
        tell("tokenise", len(requests), len(requests))
        return found

    return tokenise


def _server_tokenise(server: ServerId, key: str | None, max_bytes: int, tell: Progress) -> Tokenise:
    async def all_of(requests: Sequence[Body]) -> list[Tokens | None]:
        found: list[Tokens | None] = []
        async with httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_S) as http:
            client = TokenizerClient(server, http, key, max_bytes)
            for number, body in enumerate(requests):
                if number % REPORT_EVERY == 0:
                    tell("tokenise", number, len(requests))
                path = CHAT_PATH if "messages" in body else COMPLETIONS_PATH
                found.append(await client.tokenize(path, json.dumps(body).encode("utf-8", "surrogatepass")))
        tell("tokenise", len(requests), len(requests))
        if requests and not any(found):
            raise Unreachable(f"{server} gave no tokens for any request.", hint="Does it serve the requests' model?")
        return found

    return lambda requests: asyncio.run(all_of(requests))


async def _ask_server(server: ServerId, key: str | None) -> Server:
    async with httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_S) as http:
        reading = await read_http(
            http, server, "/metrics", api_key=key, timeout_s=TIMEOUT_S, max_bytes=MAX_METRICS_BYTES
        )
    engines = read_page(reading.body).engines if reading.status == 200 else ()
    sized = next((engine for engine in engines if engine.block_size is not None), None)
    return Server(sized.block_size, sized.num_gpu_blocks) if sized is not None else Server(None, None)
