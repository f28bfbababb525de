"""Asks a server what it is: `/version`, `/v1/models`, `/health`. Often while it is down, rarely while it is up.

What is emitted is a change, or the first answer; every message says what to do.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import httpx
import msgspec

from ..errors import DecodeError, PrefixScopeError, UpstreamTimeout
from ..ids import ServerId
from ..observations import Observation, ServerProbed
from .clock import Clock
from .http_reading import HttpReading, read_http

DOWN_INTERVAL_S = 1.0
UP_INTERVAL_S = 5.0
TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 4 * 1024 * 1024
MAX_MODELS = 1000
MAX_TEXT_CHARS = 200

logger = logging.getLogger(__name__)


class ServerProbe:
    """Emits ServerProbed. The intervals are seconds between two rounds of questions."""

    def __init__(
        self,
        server: ServerId,
        http: httpx.AsyncClient,
        emit: Callable[[Observation], None],
        clock: Clock,
        api_key: str | None,
        *,
        up_interval_s: float = UP_INTERVAL_S,
        down_interval_s: float = DOWN_INTERVAL_S,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._server = server
        self._http = http
        self._emit = emit
        self._clock = clock
        self._api_key = api_key
        self._up_interval_s = up_interval_s
        self._down_interval_s = down_interval_s
        self._timeout_s = timeout_s
        self._last: ServerProbed | None = None
        self._slow_rounds = 0
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Asks at once instead of when the interval is over, for example because a request just failed."""
        self._wake.set()

    async def run(self) -> None:
        """Asks until cancelled."""
        while True:
            probed = await self.probe()
            self._note(probed)
            interval_s = self._up_interval_s if probed.state == "up" else self._down_interval_s
            try:
                async with asyncio.timeout(interval_s):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()

    async def probe(self) -> ServerProbed:
        """One round of questions. Nothing is emitted."""
        try:
            probed = await self._ask()
        except UpstreamTimeout as error:
            self._slow_rounds += 1
            if self._slow_rounds < 2 and self._last is not None and self._last.state == "up":
                # A busy server may miss one round.
                return replace(self._last, at_s=self._clock.monotonic())
            return self._answer("down", error.message)
        except DecodeError as error:
            probed = self._answer("not_vllm", f"{error.message} Is the address right?")
        except PrefixScopeError as error:
            probed = self._answer("down", error.message)
        self._slow_rounds = 0
        return probed

    async def _ask(self) -> ServerProbed:
        version = await self._get("/version")
        if version.status in (401, 403):
            return self._unauthorized("/version", version.status)
        facts = _json_object(version) if version.status == 200 else {}
        number = _text(facts.get("version"))
        models = await self._get("/v1/models")
        if models.status in (401, 403):
            return self._unauthorized("/v1/models", models.status)
        listed = _models(_json_object(models)) if models.status == 200 else []
        if number is None and not any(model.get("owned_by") == "vllm" for model in listed):
            if version.status >= 500 or models.status >= 500:
                status = max(version.status, models.status)
                return self._answer("down", f"{self._server} answers with HTTP {status}. See the server's log.")
            return self._answer(
                "not_vllm", f"What answers at {self._server} isn't vLLM: no version at /version. Is the address right?"
            )
        health = await self._get("/health")
        if health.status >= 500:
            return self._answer(
                "down", f"vLLM at {self._server} says that it isn't healthy (HTTP {health.status}). Restart it."
            )
        return self._up(number, facts, listed)

    async def _get(self, path: str) -> HttpReading:
        return await read_http(
            self._http, self._server, path, api_key=self._api_key, timeout_s=self._timeout_s, max_bytes=MAX_ANSWER_BYTES
        )

    def _up(self, number: str | None, facts: dict[str, Any], listed: list[dict[str, Any]]) -> ServerProbed:
        ours = facts.get("prefixscope")
        ours = ours if isinstance(ours, dict) else {}
        adapters = [
            (name, _text(model.get("root")))
            for model in listed
            if model.get("parent") and (name := _text(model.get("id"))) is not None
        ]
        lengths = [model["max_model_len"] for model in listed if type(model.get("max_model_len")) is int]
        return ServerProbed(
            self._server,
            "up",
            None,
            self._clock.monotonic(),
            version=number,
            models=tuple(name for model in listed if (name := _text(model.get("id"))) is not None),
            adapters=tuple(name for name, _ in adapters),
            adapter_roots=tuple(root for _, root in adapters),
            max_model_len=lengths[0] if lengths else None,
            embedded=ours.get("embedded_engine") is True,
            profile=_text(ours.get("profile")),
        )

    def _unauthorized(self, path: str, status: int) -> ServerProbed:
        told = "refuses the API key that is set" if self._api_key else "needs an API key"
        return self._answer(
            "unauthorized",
            f"{self._server}{path} {told} (HTTP {status}). Set PREFIXSCOPE_VLLM_API_KEY to the server's key.",
        )

    def _answer(self, state: Literal["down", "not_vllm", "unauthorized"], message: str) -> ServerProbed:
        return ServerProbed(self._server, state, message, self._clock.monotonic())

    def _note(self, probed: ServerProbed) -> None:
        if self._last is not None and replace(self._last, at_s=probed.at_s) == probed:
            return
        self._last = probed
        if probed.message is None:
            logger.info("server: %s is up, version %s", self._server, probed.version)
        else:
            logger.warning("server: %s", probed.message)
        self._emit(probed)


def _json_object(reading: HttpReading) -> dict[str, Any]:
    """The body as an object; {} where it is anything else."""
    try:
        value = msgspec.json.decode(reading.body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _models(answer: dict[str, Any]) -> list[dict[str, Any]]:
    listed = answer.get("data")
    return [model for model in listed[:MAX_MODELS] if isinstance(model, dict)] if isinstance(listed, list) else []


def _text(value: Any) -> str | None:
    return value[:MAX_TEXT_CHARS] if isinstance(value, str) and value else None
