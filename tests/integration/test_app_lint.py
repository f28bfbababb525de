"""`python -m app lint`: exit codes, output, and agreement with the embedded engine itself."""

import io
import json
import sys
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.__main__ import main

from .app_rig import running_engine

RULES = "\n".join(f"Rule {n}: 请用简短的句子回答，and never guess anything at all 😀." for n in range(20))


def chat(system: str, *turns: str) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}]
    messages += [{"role": "assistant" if n % 2 else "user", "content": turn} for n, turn in enumerate(turns)]
    return {"model": "Qwen2.5-7B-Instruct", "messages": messages, "max_tokens": 1}


def written(path: Path, requests: list[dict[str, Any]], *more: str) -> str:
    path.write_text("\n".join([*map(json.dumps, requests), *more]))
    return str(path)


CLEAN = [chat(RULES, f"Question {n}?") for n in range(6)]
BROKEN = [chat(f"Now: 10:15:{n:02d}\n{RULES}", f"Question {n}?") for n in range(6)]


def test_clean_requests_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", written(tmp_path / "a.jsonl", CLEAN)]) == 0
    assert "Nothing known breaks their prefixes." in capsys.readouterr().out


def test_what_no_server_told_is_said_to_be_assumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "a.jsonl", CLEAN)
    assert main(["lint", path, "--block-size", "32"]) == 0
    said = capsys.readouterr().out
    assert "No server told its number of blocks: 5306 is assumed. Give it with --blocks." in said
    assert "block size" not in said
    assert main(["lint", path, "--block-size", "32", "--blocks", "64", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["assumed"] == []


def test_a_breaker_fails_and_is_named_with_its_gain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", written(tmp_path / "a.jsonl", BROKEN), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["breakers"][0]["kind"] == "clock_time"
    assert report["breakers"][0]["gained_tokens"] > 0
    assert report["tokenizer"] == "the embedded engine's (Qwen2.5)"
    assert main(["lint", str(tmp_path / "a.jsonl")]) == 1
    assert "A clock time: about" in capsys.readouterr().out


def test_a_rate_below_the_limit_fails(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", CLEAN)
    assert main(["lint", path, "--fail-under", "50"]) == 0
    assert main(["lint", path, "--fail-under", "99"]) == 1


@pytest.mark.parametrize("content", ["", "\n\n", "not json\n", "[1]\n", '{"a": 1}\n', "\x00\x01"])
def test_a_file_without_requests_is_not_clean(tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(content)
    assert main(["lint", str(path)]) == 2
    assert "no line of the file is a request" in capsys.readouterr().err


def test_lines_that_are_no_requests_are_told_by_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", written(tmp_path / "a.jsonl", CLEAN, "{")]) == 1
    assert "line 7 is no request" in capsys.readouterr().err


def test_a_batch_file_and_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.dumps({"custom_id": str(n), "method": "POST", "body": body}) for n, body in enumerate(CLEAN)]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
    assert main(["lint", "-"]) == 0
    assert "6 requests" in capsys.readouterr().out


def test_what_cannot_be_read_or_asked_is_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(tmp_path / "nowhere.jsonl")]) == 2
    path = written(tmp_path / "a.jsonl", CLEAN)
    assert main(["lint", path, "--vllm", "http://127.0.0.1:9"]) == 2
    assert main(["lint", path, "--block-size", "0"]) == 2
    assert "block-size" in capsys.readouterr().err


def test_counted_hits_are_those_that_the_engine_itself_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Histories that grow, tool calls, several scripts, and a pool too small for all of it."""
    tool = {"type": "function", "function": {"name": "wetter", "parameters": {"type": "object", "properties": {}}}}
    call = {"id": "c1", "type": "function", "function": {"name": "wetter", "arguments": "{}"}}
    run = str(uuid.uuid4())
    requests: list[dict[str, Any]] = []
    talks: list[list[str]] = [[] for _ in range(6)]
    for turn in range(5):
        for talk, turns in enumerate(talks):
            turns += [f"مرحبا {talk} 日本語の質問 {turn} 👩‍🚀" * 3, "回答です。" * 8]
            requests.append(chat(f"{run}\n{RULES}\nTalk {talk % 3}", *turns[:-1]))
    with_tools = chat(f"{run}\n{RULES}", "Wetter?")
    with_tools["tools"] = [tool]
    again = json.loads(json.dumps(with_tools))
    again["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Sonne"},
    ]
    requests += [with_tools, again]
    path = written(tmp_path / "trace.jsonl", requests)
    flags = ("--profile", "instant", "--num-gpu-blocks", "100", "--block-size", "16")
    with running_engine(tmp_path / "log", *flags) as engine:
        with httpx.Client(trust_env=False, timeout=20) as http:
            said = []
            for body in requests:
                answer = http.post(f"{engine.url}/v1/chat/completions", json=body)
                assert answer.status_code == 200, answer.text
                said.append(answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"] or 0)
        main(["lint", path, "--vllm", engine.url, "--json"])
    report = json.loads(capsys.readouterr().out)
    assert (report["block_size"], report["num_gpu_blocks"], report["left_out"]) == (16, 100, 0)
    assert report["hit_tokens"] == sum(said) > 0
    assert report["unbounded_hit_tokens"] > report["hit_tokens"]
    assert report["tokenizer"] == f"{engine.url}'s own"
    main(["lint", path, "--block-size", "16", "--blocks", "100", "--json"])
    assert json.loads(capsys.readouterr().out)["hit_tokens"] == report["hit_tokens"]
