"""The microscope, the forecast while typing and the fit, on the embedded engine."""

import json
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.app_rig import Dashboard, Engine, chat_body, dashboard, eventually, running_engine

MODEL = "Qwen2.5-7B-Instruct"
LARGE_S = 120.0
"""How long a call with a megabyte in it may take on a busy machine."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    log: Path = tmp_path_factory.mktemp("engine") / "log"
    with running_engine(log, "--profile", "instant", "--num-gpu-blocks", "20000", "--block-size", "16") as started:
        yield started


@pytest.fixture
async def app(engine: Engine) -> AsyncIterator[Dashboard]:
    async with dashboard({**engine.settings, "mode": "enrich"}) as running:
        await running.until_ready()
        yield running


async def test_the_first_token_that_differs_with_its_section_and_both_texts(app: Dashboard) -> None:
    rules = f"{uuid.uuid4()}. Time: 10:15:01. " + "Answer briefly. " * 40
    first = await app.send(chat_body(MODEL, "Wo ist 😀 mein Paket?", rules))
    second = await app.send(chat_body(MODEL, "Wo ist 😀 mein Paket?", rules.replace("10:15:01", "10:15:42")))
    found = await app.json(f"/api/requests/{second['id']}/comparison")

    difference = found["first_difference"]
    assert found["nearest"]["request"] == first["id"]
    assert difference["token"] == found["common_tokens"] + 1
    assert difference["section"]["kind"] == "system"
    assert (difference["text_here"], difference["text_there"]) == ("4", "0")
    assert found["recomputed"]["tokens"] == second["prompt_tokens"] - second["cached_tokens"]
    assert second["verdict"]["code"] in ("variable_first", "reused")
    assert second["verdict"]["params"]["token"] == difference["token"]
    groups = found["here"]["groups"]
    assert groups[0]["start"] <= found["here"]["start"]
    assert sum(group["count"] for group in groups) >= found["here"]["end"] - found["here"]["start"]


async def test_windows_anywhere_in_a_long_prompt_show_whole_glyphs(app: Dashboard) -> None:
    body = chat_body(MODEL, "问题", f"{uuid.uuid4()} " + "古代汉语中的虚词很多😀。" * 3_000)
    body["max_tokens"] = 1
    sent = await app.send(body)
    assert sent["prompt_tokens"] > 24_000
    for start in (0, 12_001, 12_002, 12_003, 23_900):
        found = await app.json(f"/api/requests/{sent['id']}/comparison?start={start}&count=64")
        texts = "".join(group["text"] for group in found["here"]["groups"])
        assert "\ufffd" not in texts
        assert found["here"]["start"] == start
        assert len(found["here"]["groups"]) > 20


async def test_a_prompt_that_may_not_be_shown_keeps_its_text_to_itself(app: Dashboard) -> None:
    body = chat_body(MODEL, "secret question")
    del body["vllm_xargs"]
    answer = await app.http.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200

    async def ended() -> str | None:
        newest = (await app.json("/api/requests?limit=1"))["requests"][0]
        return newest["id"] if newest["outcome"] and newest["prompt_tokens"] else None

    found = await app.json(f"/api/requests/{await eventually(ended)}/comparison")
    assert found["here"] == {**found["here"], "groups": None, "text_hidden": True}
    assert "secret" not in json.dumps(found)
    difference = found["first_difference"]
    assert (difference["text_here"], difference["section"]) == (None, None)


async def test_a_forecast_is_what_then_happens(app: Dashboard) -> None:
    rules = f"{uuid.uuid4()}: " + "规则：请简短回答。😀 " * 60
    await app.send(chat_body(MODEL, "First question", rules))
    body = chat_body(MODEL, "Second question", rules)
    forecast = (await app.http.post("/api/forecast", json=body)).json()
    sent = await app.send(body)
    assert forecast["tokens"] == sent["prompt_tokens"]
    assert forecast["cached_tokens"] == sent["cached_tokens"] > 0
    (rank,) = forecast["ranks"]
    assert rank["complete"] is True
    assert rank["resident"].count(True) == sent["cached_tokens"] // 16
    assert forecast["tail_tokens"] == sent["prompt_tokens"] % 16
    system, user = forecast["messages"]
    assert [system["role"], user["role"]] == ["system", "user"]
    assert len(system["boundaries"]) >= rank["resident"].count(True) - 2


async def test_a_salted_or_logprob_request_is_forecast_cold(app: Dashboard) -> None:
    body = chat_body(MODEL)
    await app.send(body)
    for extra in ({"cache_salt": "other"}, {"prompt_logprobs": 1}):
        told = (await app.http.post("/api/forecast", json=body | extra)).json()
        assert told["cached_tokens"] == 0


async def test_what_cannot_be_forecast_says_why(app: Dashboard) -> None:
    bad = await app.http.post("/api/forecast", content=b"[1]")
    assert (bad.status_code, bad.json()["error"]["code"]) == (400, "bad_request")
    large = await app.http.post("/api/forecast", content=b" " * (5 * 1024 * 1024))
    assert (large.status_code, large.json()["error"]["code"]) == (413, "too_large")
    foreign = await app.http.post("/api/forecast", json=chat_body(MODEL), headers={"Origin": "https://evil.example"})
    assert foreign.status_code == 403
    unknown = await app.http.post("/api/forecast?server=http://nowhere", json=chat_body(MODEL))
    assert unknown.status_code == 404
    missing = await app.http.get("/api/requests/r-none/comparison")
    assert missing.status_code == 404


async def test_fix_and_resend_reuses_what_was_lost(app: Dashboard) -> None:
    rules = f"{uuid.uuid4()} rules. " + "Answer briefly. " * 60
    bodies = [chat_body(MODEL, "Where is my parcel?", f"Now: 10:15:{second}\n{rules}") for second in (11, 12)]
    broken = [await app.send(body) for body in bodies]
    told = (await app.http.post("/api/remedy", json={"requests": bodies})).json()
    (finding,) = told["breakers"]
    assert (finding["breaker"]["kind"], finding["after_remedy"]["kind"]) == ("clock_time", "move_behind")
    assert finding["after_remedy"]["diff"]
    fixed = [await app.send(finding[side]["request"]) for side in ("before_remedy", "after_remedy")]
    assert broken[1]["cached_tokens"] <= 16
    assert fixed[1]["cached_tokens"] > fixed[1]["prompt_tokens"] * 0.8


async def test_the_prompt_doctor_streams_its_progress_and_then_its_report(app: Dashboard) -> None:
    rules = f"{uuid.uuid4()} rules.\n" + "Answer briefly, and never guess anything.\n" * 30
    lines = [json.dumps(chat_body(MODEL, f"Question {n}?", f"Now: 10:15:{n:02d}\n{rules}")) for n in range(5)]
    answer = await app.http.post("/api/lint", content="\n".join([*lines, "{"]).encode())
    told = [json.loads(line) for line in answer.text.splitlines()]
    assert {line["stage"] for line in told[:-1]} >= {"tokenise", "compare"}
    report = told[-1]["report"]
    assert (report["requests"], report["block_size"], report["num_gpu_blocks"]) == (5, 16, 20000)
    assert report["assumed"] == []
    assert report["breakers"][0]["kind"] == "clock_time"
    assert report["unreadable_lines"][0][0] == 6
    nothing = await app.http.post("/api/lint", content=b"{}")
    assert (nothing.status_code, nothing.json()["error"]["code"]) == (400, "bad_request")
    async with app.app.runtime.lint_turn:
        second = await app.http.post("/api/lint", content="\n".join(lines).encode())
    assert (second.status_code, second.json()["error"]["code"]) == (503, "overloaded")


@pytest.mark.parametrize("body", [b"", b"[]", b'{"requests": [{}]}', b'{"requests": [1, 2]}'])
async def test_requests_that_cannot_be_examined_say_why(app: Dashboard, body: bytes) -> None:
    answer = await app.http.post("/api/remedy", content=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request")


async def test_saved_time_is_told_once_enough_different_requests_ran(engine: Engine, tmp_path: Path) -> None:
    with running_engine(tmp_path / "log", "--block-size", "16") as timed:
        async with dashboard({**timed.settings, "mode": "enrich"}) as app:
            await app.until_ready()
            before = await app.json("/api/ttft_fit")
            assert (before["fit"], before["missing"] is None) == (None, False)
            assert (await app.http.get("/api/ttft_fit", params={"server": "http://nobody:1"})).status_code == 404
            for words in (1, 5, 20, 40, 60, 90, 120, 150):
                body = chat_body(MODEL, "Short?", f"{uuid.uuid4()} " + "word " * (words * 5))
                body["max_tokens"] = 1
                await app.send(body)

            async def fitted() -> dict[str, float] | None:
                fit: dict[str, float] | None = (await app.json("/api/ttft_fit"))["fit"]
                return fit if fit and fit["samples"] >= 8 else None

            fit = await eventually(fitted)
            assert fit["token_ms"] == pytest.approx(0.207, rel=0.25)
            last = await app.send(body)
            params = last["verdict"]["params"]
            assert params["saved_low_ms"] <= params["saved_ms"] <= params["saved_high_ms"]
            assert params["saved_ms"] == pytest.approx(last["cached_tokens"] * fit["token_ms"], rel=0.3)
            assert "Saved about" in last["verdict"]["detail"]
            forecast = (await app.http.post("/api/forecast", json=body)).json()
            assert forecast["ttft"]["early_ms"] <= forecast["ttft"]["about_ms"] <= forecast["ttft"]["late_ms"]


@pytest.mark.parametrize("text", ["日本語の長い文章です。😀", "مرحبا بالعالم، ", "plain words and more words "])
async def test_a_prompt_of_a_megabyte_is_forecast_sent_and_compared(text: str, tmp_path: Path) -> None:
    rules = f"{uuid.uuid4()} " + text * (1_000_000 // len(text.encode()))
    flags = ("--profile", "instant", "--num-gpu-blocks", "40000", "--block-size", "16", "--max-model-len", "600000")
    with running_engine(tmp_path / "log", *flags) as large:
        async with dashboard({**large.settings, "mode": "enrich"}) as app:
            app.http.timeout = httpx.Timeout(LARGE_S)
            await app.until_ready()
            first = await app.send(chat_body(MODEL, "First?", rules))
            body = chat_body(MODEL, "Second?", rules)
            told = (await app.http.post("/api/forecast", json=body)).json()
            second = await app.send(body)
            found = await app.json(f"/api/requests/{second['id']}/comparison")
    assert told["tokens"] == second["prompt_tokens"] > 100_000
    assert told["cached_tokens"] == second["cached_tokens"] > 0.99 * second["prompt_tokens"]
    assert (found["nearest"]["request"], found["first_difference"]["section"]["kind"]) == (first["id"], "message")
    shown = "".join(group["text"] for side in ("here", "there") for group in found[side]["groups"])
    assert "\ufffd" not in shown
    assert (found["first_difference"]["text_here"], found["first_difference"]["text_there"]) == ("Second", "First")
