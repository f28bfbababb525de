"""A vLLM server as the lab uses it: the one module that speaks HTTP. Every failure becomes one of the project's errors.

A streamed request is timed from just before its first byte leaves to the first generated token, and to the end.
"""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec

from ..errors import Unreachable, UpstreamTimeout
from ..wire.chat_chunks import read_error, read_event
from ..wire.exposition import read_page
from ..wire.sse import SseDecoder
from ..wire.usage import EngineTimes, Usage
from .errors import LabError, ServerLost, ServerRefused

CHAT_PATH = "/v1/chat/completions"
COMPLETIONS_PATH = "/v1/completions"
ANSWER_TIMEOUT_S = 600.0
ASK_TIMEOUT_S = 20.0
MAX_EVENT_BYTES = 16 * 1024 * 1024


@dataclass(slots=True)
class Answer:
    """What a request brought. Times in milliseconds; `began_s` on the clock of `time.perf_counter`."""

    began_s: float
    ttft_ms: float | None = None
    total_ms: float = 0.0
    usage: Usage = field(default_factory=Usage)
    times: EngineTimes | None = None
    prompt_ids: tuple[int, ...] = ()
    answer_ids: tuple[int, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Counters:
    """Of the metrics page, summed over a server's engines; a None isn't exported."""

    query_tokens: float | None = None
    hit_tokens: float | None = None
    running: float | None = None
    waiting: float | None = None
    block_size: int | None = None
    num_gpu_blocks: int | None = None
    flags: Mapping[str, str] = field(default_factory=dict)


class LabServer:
    """An open client of one server; an async context manager."""

    def __init__(self, url: str, api_key: str | None = None, transport: httpx.AsyncBaseTransport | None = None) -> None:
        try:
            given = httpx.URL(url.rstrip("/"))
        except httpx.InvalidURL:
            raise LabError(f"{url} is no usable address. Give it as http://HOST:PORT.") from None
        self.url = str(given.copy_with(userinfo=b""))
        """Without a password that the address may have: it goes into reports."""
        headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=None)
        self._http = httpx.AsyncClient(
            base_url=given, headers=headers, timeout=httpx.Timeout(ASK_TIMEOUT_S, read=ANSWER_TIMEOUT_S),
            trust_env=False, limits=limits, transport=transport,
        )  # fmt: skip

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def send(self, path: str, body: Mapping[str, Any]) -> Answer:
        """A streamed request. Raises ServerRefused, and ServerLost where the server breaks off or isn't there."""
        content = msgspec.json.encode(body)
        decoder = SseDecoder(MAX_EVENT_BYTES)
        answer = Answer(time.perf_counter())
        try:
            async with self._http.stream("POST", path, content=content) as response:
                if response.status_code != 200:
                    said = read_error(await response.aread()) or "no reason"
                    raise ServerRefused(f"{self.url}{path} answers with HTTP {response.status_code}: {said}")
                done = False
                async for piece in response.aiter_raw():
                    now_s = time.perf_counter()
                    for event in decoder.feed(piece):
                        done = _take(answer, event.data, now_s) or done
        except httpx.HTTPError as error:
            raise _lost(self.url, error) from None
        answer.total_ms = (time.perf_counter() - answer.began_s) * 1000
        if not done:
            raise ServerLost(f"{self.url} broke off in the middle of an answer.")
        return answer

    async def get(self, path: str) -> Any:
        """The JSON of a path; None where the server doesn't have it. Raises Unreachable."""
        try:
            response = await self._http.get(path, timeout=ASK_TIMEOUT_S)
        except httpx.TimeoutException:
            raise UpstreamTimeout(f"{self.url}{path} didn't answer within {ASK_TIMEOUT_S:g} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unreachable(f"Nothing answers at {self.url} ({type(error).__name__}).") from None
        if response.status_code in (401, 403):
            raise LabError(f"{self.url} wants an API key.", hint="Set PREFIXSCOPE_VLLM_API_KEY.")
        return _json(response)

    async def tokenize(self, model: str, text: str) -> tuple[int, ...]:
        """Token ids of plain text; () where the server doesn't tokenise."""
        try:
            response = await self._http.post(
                "/tokenize", content=msgspec.json.encode({"model": model, "prompt": text, "add_special_tokens": False})
            )
        except httpx.HTTPError as error:
            raise _lost(self.url, error) from None
        tokens = (_json(response) or {}).get("tokens", ())
        return tuple(token for token in tokens if isinstance(token, int))

    async def counters(self) -> Counters:
        """The counters now. All None where there is no metrics page. Raises ServerLost."""
        try:
            response = await self._http.get("/metrics", timeout=ASK_TIMEOUT_S, headers={"Accept": "text/plain"})
        except httpx.HTTPError as error:
            raise _lost(self.url, error) from None
        if response.status_code != 200:
            return Counters()
        page = response.content
        engines = read_page(page, response.headers.get("content-type", "")).engines

        def total(name: str) -> float | None:
            values = [value for engine in engines if (value := getattr(engine, name)) is not None]
            return sum(values) if values else None

        first = engines[0] if engines else None
        return Counters(
            total("query_tokens"), total("hit_tokens"), total("running"), total("waiting"),
            first.block_size if first else None, first.num_gpu_blocks if first else None, cache_flags(page.decode()),
        )  # fmt: skip


def cache_flags(page: str) -> dict[str, str]:
    """The labels of `vllm:cache_config_info`: the flags of the cache as the server runs."""
    for found in page.splitlines():
        if found.startswith(("vllm:cache_config_info{", "vllm_cache_config_info{")):
            labels = found[found.index("{") + 1 : found.rindex("}")]
            pairs = (pair.partition("=") for pair in labels.split('",'))
            return {name.strip(): value.strip('"') for name, _, value in pairs if name.strip()}
    return {}


def fresh_salt() -> str:
    """One that nobody has: drawn by the system, never from the seed, so that a run can be made twice."""
    return f"lab-{secrets.token_hex(12)}"


def _take(answer: Answer, data: bytes, now_s: float) -> bool:
    """Takes an event in; whether it was the end."""
    said = read_event(data)
    if said.error:
        raise ServerRefused(f"The server reports: {said.error}")
    if answer.ttft_ms is None and (said.answer or said.reasoning or said.token_ids):
        answer.ttft_ms = (now_s - answer.began_s) * 1000
    if said.prompt_token_ids:
        answer.prompt_ids = said.prompt_token_ids
    if said.token_ids:
        answer.answer_ids += said.token_ids
    if said.answer:
        answer.text += _text(data)
    if said.usage is not None:
        answer.usage = answer.usage.updated(said.usage)
    answer.times = said.times or answer.times
    return said.done


def _text(data: bytes) -> str:
    choices: Sequence[Any] = msgspec.json.decode(data).get("choices") or ({},)
    said = choices[0].get("delta") or choices[0]
    text = said.get("content") or said.get("text")
    return text if isinstance(text, str) else ""


def _json(response: httpx.Response) -> Any:
    try:
        value = msgspec.json.decode(response.content) if response.status_code == 200 else None
    except msgspec.DecodeError:
        return None
    return value if isinstance(value, dict) else None


def _lost(url: str, error: httpx.HTTPError) -> ServerLost:
    if isinstance(error, httpx.TimeoutException):
        return ServerLost(f"{url} didn't answer in time.")
    return ServerLost(f"The connection to {url} failed ({type(error).__name__}).")
