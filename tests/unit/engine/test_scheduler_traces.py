"""The core against traces of vLLM's own scheduler under load: batching, chunks, preemption, aborts, resets, copies.

Each line of the fixture is one scenario that vLLM 0.32's `Scheduler` ran: its settings, what was done to it, and for
each step what it scheduled, in order, what came out, and every event.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from .trace import assert_same_steps

TRACES = Path(__file__).parents[2] / "fixtures" / "scheduler_traces.jsonl"
SCENARIOS = [json.loads(line) for line in TRACES.read_text().splitlines()]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: f"seed-{scenario['seed']}")
def test_same_steps_as_vllm(scenario: dict[str, Any]) -> None:
    assert_same_steps(scenario)


def test_the_traces_hold_the_hard_cases() -> None:
    steps = [op for scenario in SCENARIOS for op in scenario["ops"] if op["do"] == "step"]
    assert sum(bool(step["preempted"]) for step in steps) > 20
    assert sum(step["waiting"] > 0 for step in steps) > 100
    assert sum(event[0] == "removed" for step in steps for event in step["events"]) > 500
    assert any(event[0] == "cleared" for step in steps for event in step["events"])
    done = {op["do"] for scenario in SCENARIOS for op in scenario["ops"]}
    assert done == {"add", "abort", "reset", "step"}
