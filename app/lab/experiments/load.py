"""11: more and more requests at once, with a shared prefix and without."""

from collections.abc import Sequence

from ..definition import FRESH, Batch, Experiment, Parameter, Plan, Prompt, Request, one
from ..findings import Chart, Figure, Findings, Series, Table
from ..sample import Sample
from ..setting import Setting
from ..shared import times
from ..statistics import percentile

ARMS = ("shared prefix", "nothing shared")


def _length(setting: Setting) -> int:
    return min(setting.whole("tokens"), setting.longest_prompt)


def _prompt(setting: Setting, arm: str, name: str) -> Prompt:
    length = _length(setting)
    shared = length * 9 // 10 if arm == ARMS[0] else 0
    return Prompt((*setting.token_ids(shared, "shared"), *setting.token_ids(length - shared, name)))


def _plan(setting: Setting) -> Plan:
    draw = setting.draw("order")
    for number in range(2):
        prompt = _prompt(setting, ARMS[1], f"warm-up-{number}")
        yield one(Request(arm="warm-up", prompt=prompt, space=FRESH, side="off", role="warm-up"))
    yield one(Request(arm="warm-up", prompt=_prompt(setting, ARMS[0], "brings"), space="load", role="warm-up"))
    levels = setting.numbers("concurrency")
    for repeat in range(setting.repeats):
        for level, arm in draw.sample([(level, arm) for level in levels for arm in ARMS], 2 * len(levels)):
            count = max(setting.whole("requests"), level)
            requests = [
                Request(arm=arm, prompt=_prompt(setting, arm, f"{level}-{arm}-{repeat}-{number}"), x=level,
                        space="load" if arm == ARMS[0] else FRESH, repeat=repeat,
                        max_tokens=setting.whole("output_tokens"))
                for number in range(count)
            ]  # fmt: skip
            yield Batch(tuple(requests), at_once=level)


def throughput(samples: Sequence[Sample]) -> float | None:
    """Answer tokens a second of a batch, from its first request to its last token."""
    ended = [s.at_s + s.total_ms / 1000 for s in samples if s.total_ms is not None]
    tokens = sum(s.completion_tokens or 0 for s in samples)
    span_s = max(ended) - min(s.at_s for s in samples) if ended else 0.0
    return tokens / span_s if span_s > 0 else None


def _conclude(setting: Setting, samples: Sequence[Sample]) -> Findings:
    rows: list[tuple[str | float | None, ...]] = []
    figures: list[Figure] = []
    levels = sorted({int(s.x) for s in samples if s.counts and s.x is not None})
    for arm in ARMS:
        for level in levels:
            here = [s for s in samples if s.arm == arm and s.x == level and s.counts]
            waits = [s.server_queue_ms / s.ttft_ms for s in here if s.server_queue_ms is not None and s.ttft_ms]
            rates = [rate for batch in {s.batch for s in here}
                     if (rate := throughput([s for s in here if s.batch == batch])) is not None]  # fmt: skip
            row = (percentile(rates, 50), *(percentile(times(here, arm), p) for p in (50, 90, 99)),
                   percentile(waits, 50))  # fmt: skip
            rows.append((arm, level, *row))
            key = f"{arm.replace(' ', '_')}_{level}"
            figures.append(Figure(f"{key}_tokens_per_s", f"{arm}, {level} at once: answer tokens a second", row[0],
                                  "tokens/s", "clock"))  # fmt: skip
            figures.append(Figure(f"{key}_ttft_p50_ms", f"{arm}, {level} at once: first token, half of them within",
                                  row[1], "ms", "clock"))  # fmt: skip

    def series(arm: str, column: int) -> Series:
        found = [row for row in rows if row[0] == arm]
        values = [row[column] for row in found]
        return Series(arm, [row[1] for row in found], [v if not isinstance(v, str) else None for v in values])

    return Findings(
        figures=tuple(figures),
        tables=(Table("By requests at once",
                      ("prompts", "at once", "answer tokens/s", "TTFT p50 ms", "p90", "p99", "queue share of TTFT"),
                      tuple(rows), f"Prompts of {_length(setting)} tokens, nine tenths of them shared or none."),),
        charts=tuple(Chart(title, "requests at once", unit, tuple(series(arm, column) for arm in ARMS), log_x=True)
                     for title, unit, column in (("Throughput", "answer tokens a second", 2),
                                                 ("Time to first token, p50", "ms", 3),
                                                 ("Time to first token, p99", "ms", 5),
                                                 ("Share of the queue in it", "ratio", 6))),
        follows=("Under load a reused prefix helps twice: its own prefill is short, and so are those that it waits "
                 "for.",),
        follows_not=("What your traffic does: these requests all have the same length and come in at a fixed number "
                     "at a time.",
                     *(("That a machine behaves so under load: the embedded engine's profile is published for requests "
                        "one at a time, and extrapolated from there.",) if setting.server.embedded else ())),
    )  # fmt: skip


EXPERIMENT = Experiment(
    number=11,
    name="load",
    title="Load",
    question="How do throughput and first-token times hold under load, with a shared prefix and without?",
    plan=_plan,
    conclude=_conclude,
    parameters=(
        Parameter("concurrency", (1, 2, 4, 8, 16, 32), "requests at once"),
        Parameter("requests", 8, "requests of a level, or as many as run at once"),
        Parameter("tokens", 1024, "tokens of a prompt, or as many as fit"),
        Parameter("output_tokens", 16, "tokens of an answer"),
    ),
    needs=frozenset({"salts"}),
)
