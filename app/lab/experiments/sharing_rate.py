"""8: traffic whose share of common prefix goes from 0 to 95 %."""

from collections.abc import Sequence

from ..accounting import reusable_tokens
from ..definition import FRESH, Experiment, Parameter, Plan, Prompt, Request, one
from ..findings import Chart, Figure, Findings, Series, Table
from ..sample import Sample
from ..setting import Setting
from ..shared import estimated, exactness, medians, times
from ..statistics import compared


def _length(setting: Setting) -> int:
    return min(setting.whole("tokens"), setting.longest_prompt)


def _prompt(setting: Setting, percent: int, name: str) -> Prompt:
    length = _length(setting)
    shared = length * percent // 100
    return Prompt((*setting.token_ids(shared, "shared"), *setting.token_ids(length - shared, name)))


def _plan(setting: Setting) -> Plan:
    draw = setting.draw("order")
    yield one(Request(arm="warm-up", prompt=_prompt(setting, 0, "warm-up"), space=FRESH, side="off", role="warm-up"))
    for percent in draw.sample(setting.numbers("percents"), len(setting.numbers("percents"))):
        space = f"share-{percent}"
        first = _prompt(setting, percent, f"{space}-first")
        yield one(Request(arm="first", prompt=first, space=space, x=percent, role="cold"))
        for number in range(setting.whole("requests")):
            prompt = _prompt(setting, percent, f"{space}-{number}")
            for arm in draw.sample(("on", "off"), 2):
                yield one(
                    Request(arm=arm, prompt=prompt, space=space, x=percent, repeat=number,
                            side="on" if arm == "on" else "off", role="measure" if arm == "on" else "cold")
                )  # fmt: skip


def _conclude(setting: Setting, samples: Sequence[Sample]) -> Findings:
    length, size = _length(setting), setting.block_size
    rows: list[tuple[float | None, ...]] = []
    figures: list[Figure] = []
    measured_ratios, predicted_ratios = [], []
    percents = sorted({int(s.x) for s in samples if s.arm == "on" and s.x is not None and s.counts})
    for percent in percents:
        here = [s for s in samples if s.x == percent and s.counts and s.arm == "on" and s.cached_tokens is not None]
        prompt = sum(s.prompt_tokens or 0 for s in here)
        ratio = sum(s.cached_tokens or 0 for s in here) / prompt if prompt else None
        should = reusable_tokens(length * percent // 100, length, size) / length
        gain = compared(times(samples, "off", percent), times(samples, "on", percent), _reduction, setting.seed)
        measured_ratios.append(ratio)
        predicted_ratios.append(should)
        figures += [
            Figure(f"hit_ratio_{percent}", f"hit rate at {percent} % shared", ratio, "ratio", "usage", expected=should),
            estimated(f"ttft_reduction_{percent}", f"reduction of the first token's time at {percent} % shared", gain,
                      "ratio"),
        ]  # fmt: skip
        rows.append((percent, should, ratio, gain.value if gain else None, gain.low if gain else None,
                     gain.high if gain else None))  # fmt: skip
    return Findings(
        figures=(*figures, *exactness(samples)),
        tables=(Table("By share of common prefix",
                      ("shared %", "predicted hit rate", "hit rate", "TTFT reduction", "from", "to"), tuple(rows),
                      f"Prompts of {length} tokens. The request that brings the shared part is not in the figures."),),
        charts=(
            Chart("Hit rate", "shared %", "ratio",
                  (Series("predicted", percents, predicted_ratios, "line", dash=True),
                   Series("measured", percents, measured_ratios, "points"))),
            Chart("Time to first token", "shared %", "ms",
                  tuple(medians(arm, samples, arm, percents) for arm in ("off", "on"))),
        ),
        follows=("The hit rate is the share of common prefix, rounded down to whole blocks. At 0 % it is zero: a cache "
                 "without repeats gives nothing.",),
        follows_not=("That text which is alike is shared: only a beginning that is the same, token by token, counts.",),
    )  # fmt: skip


def _reduction(off: float, on: float) -> float:
    return 1 - on / off if off else 0.0


EXPERIMENT = Experiment(
    number=8,
    name="sharing-rate",
    title="Sharing rate",
    question="What does the cache give as the share of common prefix goes from 0 to 95 %?",
    plan=_plan,
    conclude=_conclude,
    parameters=(
        Parameter("percents", (0, 10, 25, 50, 75, 90, 95), "shares of common prefix in percent"),
        Parameter("tokens", 1024, "tokens of a prompt, or as many as fit"),
        Parameter("requests", 5, "requests of each share, on and off"),
    ),
)
