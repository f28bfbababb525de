"""The embedded engine against a real vLLM server: the same prompts, one after the other, give the same answers.

Same means: the cached tokens of each request, the counters, and every event in the same order and the same batch.
"""

import itertools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engine.core import CoreConfig, CoreRequest, EngineCore
from scripts import real_vllm
from tests.processes import app_process, free_ports
from tests.unit.engine.drive import drain, on_the_wire
from tests.unit.engine.trace import assert_same_steps
from tests.vllm.conftest import RealVllm
from tests.vllm.parity import BLOCK, Ask, Outcome, Server, simple_event, workload

pytestmark = pytest.mark.vllm

POOL = 64
SEED = 2026
REQUESTS = 220
SCENARIOS = 100


@pytest.fixture(scope="module")
def real(small_pool_vllm: RealVllm) -> Iterator[Server]:
    server = small_pool_vllm
    with Server(server.base_url, server.events_endpoint, server.replay_endpoint, server.model) as client:
        yield client


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Server]:
    port, events_port, replay_port = free_ports(3)
    process = app_process(
        tmp_path / "engine.log", "engine", "--host", "127.0.0.1", "--port", str(port),
        "--events-port", str(events_port), "--replay-port", str(replay_port), "--block-size", str(BLOCK),
        "--num-gpu-blocks", str(POOL), "--profile", "instant", "--model-name", "embedded",
    )  # fmt: skip
    base_url = f"http://127.0.0.1:{port}"
    try:
        process.start()
        process.wait_for(f"{base_url}/health", 30.0)
        events, replay = f"tcp://127.0.0.1:{events_port}", f"tcp://127.0.0.1:{replay_port}"
        with Server(base_url, events, replay, "embedded") as client:
            yield client
    finally:
        process.stop()


def _assert_same(theirs: Outcome, ours: Outcome) -> None:
    assert theirs.asked == ours.asked
    for what, expected, found in zip(theirs.asked, theirs.cached_tokens, ours.cached_tokens, strict=True):
        assert found == expected, what
    assert (ours.queries, ours.hits) == (theirs.queries, theirs.hits)
    for expected_batch, found_batch in itertools.zip_longest(theirs.batches, ours.batches):
        assert found_batch == expected_batch


def test_the_same_prompts_give_the_same_reuse_and_the_same_events(real: Server, embedded: Server) -> None:
    asks = list(workload(SEED, REQUESTS))
    theirs = real.run(asks)
    assert len(theirs.asked) == REQUESTS
    assert sum(cached > 0 for cached in theirs.cached_tokens) > REQUESTS // 3
    assert sum(event[0] == "removed" for event in theirs.events) > 300
    _assert_same(theirs, embedded.run(asks))


def test_decoding_caches_the_same_blocks(real: Server) -> None:
    """With answers of many tokens, where the core is given the tokens that the real server sampled."""
    asks = [
        Ask(f"decode {index}", tuple(range(100 + 50 * index, 100 + 50 * index + length)), max_tokens=tokens)
        for index, (length, tokens) in enumerate([(31, 1), (31, 2), (31, 34), (32, 32), (32, 33), (40, 60), (63, 66)])
    ]
    theirs = real.run(asks)
    outputs = dict(zip(theirs.asked, theirs.output_ids, strict=True))
    core = EngineCore(CoreConfig(POOL, BLOCK), lambda request, position: outputs[request.request_id][position])
    batches = []
    for ask in asks:
        core.add_request(CoreRequest(ask.what, ask.tokens, ask.max_tokens), 0.0)
        results = drain(core)
        batches += [[simple_event(on_the_wire(event)) for event in each.events] for each in results if each.events]
    # The first and the last batch are the ones between which the requests lie.
    assert batches == theirs.batches[1:-1]


def test_the_scheduler_does_the_same_under_load() -> None:
    """Fresh scenarios through the installed vLLM's own scheduler: batches, chunks, preemptions, aborts, resets."""
    place = real_vllm.home()
    script = Path(__file__).with_name("trace_scheduler.py")
    command = [place / "venv/bin/python", script, "100", str(100 + SCENARIOS), place / "model"]
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    scenarios = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(scenarios) == SCENARIOS
    for scenario in scenarios:
        assert_same_steps(scenario)
