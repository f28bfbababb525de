"""3: one token changed at a place that is swept from the first block to the last."""

from collections.abc import Sequence

from ..accounting import reusable_tokens
from ..definition import Experiment, Parameter, Plan, Prompt, Request, one
from ..findings import Chart, Figure, Findings, Series, Table
from ..sample import Sample
from ..setting import Setting
from ..shared import exactness, time_at
from ..statistics import median


def _length(setting: Setting) -> int:
    size = setting.block_size
    longest = setting.longest_prompt // size
    return min(setting.whole("blocks"), longest) * size + size // 2


def _plan(setting: Setting) -> Plan:
    size, length = setting.block_size, _length(setting)
    base = setting.token_ids(length, "base")
    places = sorted({*range(0, length, max(1, size // 2)), size - 1, size, size + 1, length - 1})
    draw = setting.draw("order")
    yield one(Request(arm="cold", prompt=Prompt(base), space="staircase", role="cold"))
    for repeat in range(setting.repeats):
        for place in draw.sample(places, len(places)):
            # Another token than the base's at that place, and than the ones that were tried there before.
            spare = [token for token in setting.server.alphabet if token != base[place]]
            changed = (*base[:place], spare[repeat % len(spare)], *base[place + 1 :])
            yield one(Request(arm="changed", prompt=Prompt(changed), space="staircase", x=place, repeat=repeat))
            # The original stays the most recently used, whatever the changed ones push out.
            yield one(Request(arm="unchanged", prompt=Prompt(base), space="staircase", x=place, repeat=repeat))


def _conclude(setting: Setting, samples: Sequence[Sample]) -> Findings:
    size, length = setting.block_size, _length(setting)
    changed = [s for s in samples if s.arm == "changed" and s.counts and s.x is not None]
    places = sorted({int(s.x) for s in changed if s.x is not None})
    rows: list[tuple[int | float | None, ...]] = []
    for place in places:
        cached = [s.cached_tokens for s in changed if s.x == place and s.cached_tokens is not None]
        time = time_at(changed, "changed", place)
        predicted = reusable_tokens(place, length, size)
        rows.append((place, place // size, predicted, min(cached, default=None), max(cached, default=None), time))
    predictions = {place: reusable_tokens(place, length, size) for place in places}
    right = [s for s in changed if s.x is not None and s.cached_tokens == predictions[int(s.x)]]
    exact = len(right) if changed else None
    whole = median([s.ttft_ms for s in samples if s.arm == "unchanged" and s.ttft_ms is not None])
    steps = Series("predicted: floor(p / B) * B", places, [r[2] for r in rows], "steps", dash=True)
    measured = Series("measured", places, [r[3] for r in rows], "points")
    return Findings(
        figures=(
            Figure("exact", "changed prompts that reused exactly floor(p / B) * B tokens", exact, "requests", "usage",
                   expected=len(changed) or None),
            Figure("unchanged_ttft_ms", "first token of the unchanged prompt", whole.value if whole else None, "ms",
                   "clock", whole.low if whole else None, whole.high if whole else None,
                   whole.level if whole else None, whole.method if whole else None),
            *exactness(samples),
        ),
        tables=(Table("Cached tokens by the place of the change",
                      ("changed token p", "in block", "predicted tokens", "measured: fewest", "most", "TTFT ms"),
                      tuple(rows), f"Prompt of {length} tokens, blocks of {size}."),),
        charts=(
            Chart("Cached tokens", "place of the changed token", "cached tokens", (steps, measured)),
            Chart("Time to first token", "place of the changed token", "ms",
                  (Series("changed", places, [r[5] for r in rows]),)),
        ),
        follows=("A change at token p leaves floor(p / B) * B tokens reusable: all blocks before the one it lies in, "
                 "and nothing after it.",),
        follows_not=("That a change late in a prompt is free: the block that it lies in is computed again.",),
    )  # fmt: skip


EXPERIMENT = Experiment(
    number=3,
    name="staircase",
    title="Break the prefix",
    question="How much of a cached prompt is left when one token changes, depending on where?",
    plan=_plan,
    conclude=_conclude,
    parameters=(Parameter("blocks", 12, "full blocks of the prompt, at most"),),
)
