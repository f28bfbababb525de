"""Each experiment against a cache on paper: what it sends, and what it must conclude."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from app.lab.definition import Experiment, Request
from app.lab.experiments import hash_algorithms, load, order_matters, prefix_length, pressure, same_answer, work_saved
from app.lab.registry import chosen, experiments
from app.lab.rehearsal import rehearse
from app.lab.report import csv_of, report_of
from app.lab.runner import Run
from app.lab.sample import Sample
from app.lab.setting import Setting

from .settings import setting

SERVED = tuple(experiment for experiment in experiments() if experiment.local is None)


def rtx3090(request: Request, prompt_tokens: int, cached_tokens: int) -> float:
    """The published machine's first-token time."""
    return 33 + 0.2005 * (prompt_tokens - cached_tokens) + 0.00665 * prompt_tokens


def found(experiment: Experiment, made: Setting, samples: Sequence[Sample] | None = None) -> dict[str, Any]:
    """Its figures by key."""
    every = rehearse(experiment, made, rtx3090) if samples is None else samples
    return {figure.key: figure for figure in experiment.conclude(made, every).figures}


def test_there_are_thirteen_and_each_has_a_name_of_its_own() -> None:
    assert [experiment.number for experiment in experiments()] == list(range(1, 14))
    names = [experiment.name for experiment in experiments()]
    assert len(set(names)) == 13
    assert all(re.fullmatch(r"[a-z-]+", name) for name in names)
    assert chosen("3") is chosen("staircase")


@pytest.mark.parametrize("experiment", SERVED, ids=lambda experiment: experiment.name)
def test_a_run_on_paper_fits_its_accounting_and_its_report_is_json(experiment: Experiment) -> None:
    made = setting(experiment)
    run = Run(experiment, made, state="complete", samples=rehearse(experiment, made, rtx3090))
    report = report_of(run, "2026-01-01", "2026-01-01")
    text = json.dumps(report, allow_nan=False)
    assert json.loads(text)["experiment"]["number"] == experiment.number
    assert report["figures"] and report["tables"] and report["charts"] and report["follows"] and report["follows_not"]
    for figure in report["figures"]:
        if figure["expected"] is not None:
            if experiment.name == "pressure" and figure["key"] == "exact":
                continue  # On paper nothing is ever evicted.
            assert figure["value"] == pytest.approx(figure["expected"]), figure["key"]
    assert csv_of(report).count("\n") == len(run.samples) + 1


@pytest.mark.parametrize("experiment", SERVED, ids=lambda experiment: experiment.name)
@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_run_that_broke_off_early_has_a_report(experiment: Experiment, kept: int) -> None:
    made = setting(experiment)
    run = Run(experiment, made, state="cancelled", detail="x", samples=rehearse(experiment, made, rtx3090)[:kept])
    report = report_of(run, "2026-01-01", "2026-01-01")
    assert report["state"] == "cancelled" and len(report["samples"]) == kept
    json.dumps(report, allow_nan=False)


@pytest.mark.parametrize("experiment", SERVED, ids=lambda experiment: experiment.name)
def test_the_same_seed_sends_the_same_and_another_another(experiment: Experiment) -> None:
    def sent(seed: int) -> list[tuple[str, float | None, int]]:
        made = setting(experiment, seed=seed)
        return [(s.arm, s.x, hash(s.prompt_ids)) for s in rehearse(experiment, made)]

    assert sent(1) == sent(1)
    if experiment.name != "same-answer":
        assert sent(1) != sent(2)


def test_work_saved_is_the_models() -> None:
    assert work_saved.model(512, (24, 40, 8, 32, 16, 48, 12, 20), 16) == (4296, 712)
    figures = found(work_saved.EXPERIMENT, setting(work_saved.EXPERIMENT))
    assert (figures["without_computed_tokens"].value, figures["with_computed_tokens"].value) == (4296, 712)
    assert figures["work_reduction"].value == pytest.approx(0.834, abs=0.0005)


def test_the_sweep_finds_the_slopes_of_the_machine() -> None:
    figures = found(prefix_length.EXPERIMENT, setting(prefix_length.EXPERIMENT, num_gpu_blocks=5306))
    assert figures["off_slope"].value == pytest.approx(207.2, rel=0.001)
    assert figures["on_slope"].value == pytest.approx(6.9, rel=0.01)
    assert figures["slope_reduction"].value == pytest.approx(0.967, abs=0.001)


def test_a_small_context_gets_lengths_that_fit_with_equal_rests() -> None:
    made = setting(prefix_length.EXPERIMENT, max_model_len=2048, num_gpu_blocks=64, block_size=32)
    lengths = prefix_length.lengths_for(made)
    assert len(lengths) == 5 and max(lengths) <= made.longest_prompt < 64 * 32 / 3
    assert len({length % 32 for length in lengths}) == 1


def test_an_eviction_in_the_sweep_is_said() -> None:
    made = setting(prefix_length.EXPERIMENT, num_gpu_blocks=5306)
    samples = rehearse(prefix_length.EXPERIMENT, made, rtx3090)
    from dataclasses import replace

    pushed_out = [replace(s, cached_tokens=0) if s.arm == "on" and s.x == 3961 else s for s in samples]
    findings = prefix_length.EXPERIMENT.conclude(made, pushed_out)
    assert any("from 3961 tokens on" in text for text in findings.follows_not)
    assert not any("evicted" in text for text in prefix_length.EXPERIMENT.conclude(made, samples).follows_not)


def test_eviction_takes_the_end_of_what_was_used_least_recently_first() -> None:
    made = setting(pressure.EXPERIMENT, "prefix_blocks=10", num_gpu_blocks=101)
    # 100 usable blocks, prefixes of 10, prompts of 12: 6 prompts leave 8 - 1 blocks free, the 7th takes 5 of B's.
    assert pressure.predicted(made, 6) == (160, 160)
    assert pressure.predicted(made, 7) == (160, 5 * 16)
    assert pressure.predicted(made, 8) == (3 * 16, 0)
    assert pressure.predicted(made, 9) == (0, 0)


def test_shuffled_examples_cost_what_stands_behind_the_first_that_moved() -> None:
    figures = found(order_matters.EXPERIMENT, setting(order_matters.EXPERIMENT))
    assert figures["timestamp_in_front_tokens"].value > figures["examples_shuffled_tokens"].value > 0
    assert 0 <= figures["timestamp_at_the_end_tokens"].value < 20
    assert figures["tools_reordered_tokens"].value > 0 and figures["trailing_spaces_tokens"].value > 0


def test_answers_that_differ_are_counted_and_shown() -> None:
    made = setting(same_answer.EXPERIMENT, "prompts=4", "warm=1")
    samples = rehearse(same_answer.EXPERIMENT, made)
    from dataclasses import replace

    changed = [
        replace(s, answer_ids=(*s.answer_ids[:5], 8, *s.answer_ids[6:])) if s.arm == "warm" and s.x == 2 else s
        for s in samples
    ]
    findings = same_answer.EXPERIMENT.conclude(made, changed)
    figures = {figure.key: figure.value for figure in findings.figures}
    assert (figures["equal"], figures["different"]) == (3, 1)
    assert any(row[0] == 2 and row[4] == 5 for row in findings.tables[0].rows)
    assert "1 of 4 pairs" in findings.follows[0]


def test_throughput_counts_from_the_first_request_to_the_last_token() -> None:
    common: dict[str, Any] = {"batch": 0, "arm": "a", "role": "measure", "completion_tokens": 10}
    samples = [
        Sample(index=0, at_s=1.0, total_ms=500.0, **common), Sample(index=1, at_s=1.5, total_ms=1500.0, **common)
    ]  # fmt: skip
    assert load.throughput(samples) == pytest.approx(20 / 2.0)
    assert load.throughput([]) is None


def test_hash_algorithms_are_measured_here_without_a_server() -> None:
    experiment = hash_algorithms.EXPERIMENT
    made = setting(experiment, "block_sizes=16", "blocks=50")
    assert experiment.local is not None
    findings = experiment.conclude(made, list(experiment.local(made)))
    alike = {row[0]: row[1] for row in findings.tables[0].rows}
    assert alike == {"sha256_cbor": "yes", "sha256": "yes", "xxhash_cbor": "no", "xxhash": "no"}
    assert all(figure.value is not None and figure.value > 0 for figure in findings.figures)
    assert hash_algorithms.collision_chance(128, 2.0**64) == 0.5


@pytest.mark.parametrize("name", ["same-time", "staircase", "conversation", "pressure", "same-answer"])
def test_what_no_request_told_is_unknown_and_not_zero(name: str) -> None:
    experiment = chosen(name)
    findings = experiment.conclude(setting(experiment), [])
    assert [figure.key for figure in findings.figures if figure.value is not None] == []
    assert "0 were reused" not in " ".join(findings.follows)


def test_a_round_that_was_stopped_is_not_averaged_with_whole_ones() -> None:
    experiment = chosen("same-time")
    made = setting(experiment, "count=4")
    samples = rehearse(experiment, made)
    whole = {figure.key: figure.value for figure in experiment.conclude(made, samples).figures}
    cut = {figure.key: figure.value for figure in experiment.conclude(made, samples[:-1]).figures}
    assert whole["ahead_hit_tokens"] == cut["ahead_hit_tokens"]
