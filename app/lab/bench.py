"""Puts a run together: looks at the servers, carries the experiment out, and makes the report. For command and page."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx

from .definition import Experiment
from .errors import LabError
from .inquiry import inquire
from .report import report_of
from .runner import OnSample, Run, Runner, cancelled
from .server import LabServer
from .setting import ServerFacts, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be run. `off_url`: a server with caching off; None: fresh salts."""

    experiment: Experiment
    url: str
    off_url: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    repeats: int = 5
    seed: int = 1
    api_key: str | None = field(default=None, repr=False)
    text: bool = False
    transport: httpx.AsyncBaseTransport | None = None


Began = Callable[[Run, int], None]
"""Told at the start, with how many requests there will be, as far as that can be known."""


async def run(order: Order, began: Began, on_sample: OnSample) -> dict[str, Any]:
    """The report, however the run ends. Raises LabError or Unreachable where it can't begin."""
    started_at = _now()
    if order.experiment.local is not None:
        return await _run_here(order, started_at, began, on_sample)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(LabServer(order.url, order.api_key, order.transport))
        facts = await inquire(server)
        off_server = off_facts = None
        if order.off_url is not None:
            off_server = await stack.enter_async_context(LabServer(order.off_url, order.api_key))
            off_facts = await inquire(off_server)
        _check(order.experiment, facts, off_facts)
        setting = _setting(order, facts, off_facts)
        made = Run(order.experiment, setting)
        began(made, count_requests(order.experiment, setting))
        await Runner(made, server, off_server, on_sample).carry_out()
    return report_of(made, started_at, _now(), text=order.text)


def count_requests(experiment: Experiment, setting: Setting) -> int:
    """How many requests the plan sends where every one finds what it should; an estimate for plans that look."""
    from .rehearsal import rehearse

    return len(rehearse(experiment, setting))


async def _run_here(order: Order, started_at: str, began: Began, on_sample: OnSample) -> dict[str, Any]:
    setting = _setting(order, ServerFacts(url=""), None)
    made = Run(order.experiment, setting)
    began(made, 0)
    assert order.experiment.local is not None
    try:
        for sample in order.experiment.local(setting):
            made.samples.append(sample)
            on_sample(made, sample)
            # Lets an interrupt in: nothing else here gives way.
            await asyncio.sleep(0)
        made.state = "complete"
    except asyncio.CancelledError:
        cancelled(made)
    return report_of(made, started_at, _now(), text=order.text)


def _setting(order: Order, facts: ServerFacts, off_facts: ServerFacts | None) -> Setting:
    return Setting(
        server=facts, off_server=off_facts, parameters=order.parameters, seed=order.seed, repeats=order.repeats
    )


def _check(experiment: Experiment, facts: ServerFacts, off_facts: ServerFacts | None) -> None:
    if "cached_tokens" in experiment.needs and facts.cached_basis is None:
        raise LabError(
            f"{facts.url} doesn't say how many tokens of a request were cached, and has no counters.",
            hint="Start it with --enable-prompt-tokens-details.",
        )
    if facts.prefix_caching is False:
        raise LabError(
            f"{facts.url} runs with prefix caching off: there is nothing to measure on the side on.",
            hint="Give it as --off-url, beside one that runs with the cache.",
        )
    if "salts" in experiment.needs and facts.salts is False:
        raise LabError(
            f"{facts.url} doesn't keep requests apart by cache_salt, so no cold start can be had there.",
            hint="vLLM knows cache_salt since 0.10.",
        )
    if off_facts is not None and off_facts.prefix_caching:
        raise LabError(
            f"{off_facts.url} runs with prefix caching on.", hint="Start it with --no-enable-prefix-caching."
        )


def _now() -> str:
    return datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="seconds")
