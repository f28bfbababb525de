"""The probe against a small server that is vLLM, isn't, is down, wants a key, or comes back."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from app.ids import ServerId
from app.observations import ServerProbed
from app.sources.clock import SystemClock
from app.sources.server_probe import ServerProbe
from tests.integration.observed import Observed, in_background
from tests.integration.small_http import Answer, SmallHttp

MODELS = {"object": "list", "data": [{"id": "smollm2", "owned_by": "vllm", "max_model_len": 2048}]}


def vllm(port: int = 0) -> SmallHttp:
    server = SmallHttp(port=port)
    server.json("/version", {"version": "0.32.0"})
    server.json("/v1/models", MODELS)
    server.answers["/health"] = Answer()
    return server


@asynccontextmanager
async def probing(url: str, key: str | None = None, **options: Any) -> AsyncIterator[Observed]:
    observed = Observed()
    options = {"up_interval_s": 0.01, "down_interval_s": 0.01} | options
    async with httpx.AsyncClient(trust_env=False) as http:
        probe = ServerProbe(ServerId(url), http, observed.emit, SystemClock(), key, **options)
        async with in_background(probe.run):
            yield observed


async def first(server: SmallHttp, key: str | None = None, **options: Any) -> ServerProbed:
    async with server, probing(server.url, key, **options) as observed:
        await observed.until(lambda: bool(observed.all))
        probed = observed.all[0]
        assert isinstance(probed, ServerProbed)
        return probed


async def test_a_vllm_server() -> None:
    probed = await first(vllm())
    assert (probed.state, probed.message, probed.version) == ("up", None, "0.32.0")
    assert (probed.models, probed.max_model_len, probed.embedded, probed.profile) == (("smollm2",), 2048, False, None)


async def test_the_embedded_engine_names_itself() -> None:
    server = vllm()
    ours = {"embedded_engine": True, "profile": "rtx3090-qwen2.5-7b-bf16", "timing": "modelled"}
    server.json("/version", {"version": "0.32.0", "prefixscope": ours})
    probed = await first(server)
    assert (probed.embedded, probed.profile) == (True, "rtx3090-qwen2.5-7b-bf16")


async def test_a_router_without_version_is_known_by_its_models() -> None:
    server = vllm()
    del server.answers["/version"]
    probed = await first(server)
    assert (probed.state, probed.version, probed.models) == ("up", None, ("smollm2",))


@pytest.mark.parametrize(
    ("path", "answer", "state", "words"),
    [
        ("/version", Answer(404), "up", ""),
        ("/version", Answer(401), "unauthorized", "PREFIXSCOPE_VLLM_API_KEY"),
        ("/v1/models", Answer(401), "unauthorized", "PREFIXSCOPE_VLLM_API_KEY"),
        ("/v1/models", Answer(403), "unauthorized", "needs an API key"),
        ("/health", Answer(503), "down", "isn't healthy"),
        ("/health", Answer(404), "up", ""),
        ("/version", Answer(body=b"[1]"), "up", ""),
        ("/version", Answer(body=b"\xff"), "up", ""),
        ("/version", Answer(body=b"[" * 5000), "up", ""),
        ("/version", Answer(raw=b"SSH-2.0-OpenSSH_9.6\r\n"), "not_vllm", "isn't HTTP"),
    ],
)
async def test_one_answer_that_is_different(path: str, answer: Answer, state: str, words: str) -> None:
    server = vllm()
    server.answers[path] = answer
    probed = await first(server)
    assert probed.state == state
    assert words in (probed.message or "")
    assert (probed.message is None) == (state == "up")


async def test_adapters_are_told_from_their_base() -> None:
    server = vllm()
    parents = (("base", None), ("sql-lora", "base"))
    cards = [{"id": name, "owned_by": "vllm", "parent": parent, "root": f"/{name}"} for name, parent in parents]
    server.json("/v1/models", {"data": cards})
    probed = await first(server)
    assert (probed.models, probed.adapters) == (("base", "sql-lora"), ("sql-lora",))
    assert probed.adapter_roots == ("/sql-lora",)


async def test_another_program() -> None:
    server = SmallHttp()
    server.json("/v1/models", {"data": [{"id": "llama3", "owned_by": "library"}]})
    probed = await first(server)
    assert probed.state == "not_vllm"
    assert "isn't vLLM" in (probed.message or "")
    assert (await first(SmallHttp())).state == "not_vllm"


async def test_a_server_that_only_fails() -> None:
    server = SmallHttp({"/version": Answer(500), "/v1/models": Answer(500)})
    probed = await first(server)
    assert (probed.state, "HTTP 500" in (probed.message or "")) == ("down", True)


async def test_a_wrong_key_is_told_from_none_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = vllm()
    server.answers["/v1/models"] = Answer(401)
    probed = await first(server, key="secret-key")
    assert "refuses the API key" in (probed.message or "")
    assert {asked.headers["authorization"] for asked in server.asked} == {"Bearer secret-key"}
    assert "secret-key" not in repr(probed) + caplog.text


async def test_down_up_down_up() -> None:
    async with vllm() as server:
        port = server.port
    async with probing(f"http://127.0.0.1:{port}") as observed:
        await observed.until(lambda: bool(observed.all))
        for _ in range(2):
            seen = len(observed.all)
            async with vllm(port):
                await observed.until(lambda: observed.all[-1].state == "up")  # type: ignore[union-attr]
                assert len(observed.all) == seen + 1
            await observed.until(lambda: observed.all[-1].state == "down")  # type: ignore[union-attr]
    states = [probed.state for probed in observed.of(ServerProbed)]
    assert states == ["down", "up", "down", "up", "down"]
    assert "Start vLLM" in observed.of(ServerProbed)[0].message


async def test_what_does_not_change_is_emitted_once() -> None:
    async with vllm() as server, probing(server.url) as observed:
        await server.until_asked(12)
        assert len(observed.all) == 1
        server.json("/version", {"version": "0.33.0"})
        await observed.until(lambda: len(observed.all) == 2)
        assert observed.of(ServerProbed)[-1].version == "0.33.0"


async def test_a_busy_server_may_miss_one_round() -> None:
    server = vllm()
    async with server, probing(server.url, timeout_s=0.1) as observed:
        await observed.until(lambda: bool(observed.all))
        server.answers["/version"] = Answer(hang=True)
        asked = len(server.asked)
        await observed.until(lambda: len(observed.all) == 2)
        assert observed.of(ServerProbed)[-1].state == "down"
        assert "didn't answer within 0.1 s" in observed.of(ServerProbed)[-1].message
        assert len(server.asked) >= asked + 2


async def test_wake_asks_at_once() -> None:
    observed = Observed()
    async with vllm() as server, httpx.AsyncClient(trust_env=False) as http:
        probe = ServerProbe(ServerId(server.url), http, observed.emit, SystemClock(), None, up_interval_s=3600)
        async with in_background(probe.run):
            await observed.until(lambda: bool(observed.all))
            server.answers["/health"] = Answer(503)
            probe.wake()
            await observed.until(lambda: len(observed.all) == 2)
