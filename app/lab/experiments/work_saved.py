"""10: eight requests with a shared beginning: how many prompt tokens are computed, against a model of the work.

Sent as token ids: a chat template would add tokens of its own and change the counts.
"""

from collections.abc import Sequence

from ..accounting import reusable_tokens
from ..definition import FRESH, Experiment, Parameter, Plan, Prompt, Request, one
from ..findings import Chart, Figure, Findings, Series, Table
from ..sample import Sample
from ..setting import Setting
from ..shared import exactness

ARMS = ("without", "with")


def model(shared: int, suffixes: Sequence[int], block_size: int) -> tuple[int, int]:
    """(tokens computed without the cache, with it): the first request brings the shared part."""
    without = sum(shared + suffix for suffix in suffixes)
    saved = sum(reusable_tokens(shared, shared + suffix, block_size) for suffix in suffixes[1:])
    return without, without - saved


def _plan(setting: Setting) -> Plan:
    shared = setting.token_ids(setting.whole("shared"), "shared")
    draw = setting.draw("order")
    warm_up = Prompt(setting.token_ids(len(shared), "warm-up"))
    yield one(Request(arm="warm-up", prompt=warm_up, space=FRESH, side="off", role="warm-up"))
    for repeat in range(setting.repeats):
        for number, suffix in enumerate(setting.numbers("suffixes")):
            # Beginnings of suffixes differ from one another, so none reuses a part of another's.
            first = (setting.server.alphabet[number % len(setting.server.alphabet)],)
            prompt = Prompt((*shared, *first, *setting.token_ids(suffix - 1, f"suffix-{number}")))
            for arm in draw.sample(ARMS, 2):
                off = arm == "without"
                yield one(
                    Request(arm=arm, prompt=prompt, space=f"saved-{repeat}", x=number + 1, repeat=repeat,
                            side="off" if off else "on", role="cold" if off or number == 0 else "measure",
                            label=f"{suffix} tokens of its own")
                )  # fmt: skip


def _conclude(setting: Setting, samples: Sequence[Sample]) -> Findings:
    suffixes, shared = setting.numbers("suffixes"), setting.whole("shared")
    predicted = model(shared, suffixes, setting.block_size)
    measured = {arm: _computed(samples, arm) for arm in ARMS}
    without, with_cache = measured["without"], measured["with"]
    figures = [
        Figure(f"{arm}_computed_tokens", f"{arm} the cache: prompt tokens computed in a round", measured[arm], "tokens",
               "usage", expected=expected)
        for arm, expected in zip(ARMS, predicted, strict=True)
    ]  # fmt: skip
    saved = 1 - with_cache / without if without and with_cache is not None else None
    figures.append(Figure("work_reduction", "fewer prompt tokens computed", saved, "ratio", "usage",
                          expected=1 - predicted[1] / predicted[0]))  # fmt: skip
    rows = tuple(
        (s.x, s.arm, s.prompt_tokens, s.cached_tokens, s.computed_tokens, s.ttft_ms)
        for s in samples
        if s.counts and s.repeat == 0
    )
    places = list(range(1, len(suffixes) + 1))
    charts = tuple(
        Series(arm, places, [_at(samples, arm, place) for place in places], "bars") for arm in ARMS
    )  # fmt: skip
    return Findings(
        figures=(*figures, *exactness(samples)),
        tables=(
            Table("The first round", ("request", "cache", "prompt tokens", "reused", "computed", "TTFT ms"), rows),
        ),
        charts=(Chart("Prompt tokens computed", "request", "tokens", charts),),
        follows=("Work is saved from the second request on, in whole blocks of the shared part.",),
        follows_not=("That times fall by the same share: a step has costs that no token carries.",),
    )


def _computed(samples: Sequence[Sample], arm: str) -> float | None:
    """Of a round, the mean where there are several."""
    found = [s for s in samples if s.arm == arm and s.counts and s.computed_tokens is not None]
    rounds = len({s.repeat for s in found})
    return sum(s.computed_tokens or 0 for s in found) / rounds if rounds else None


def _at(samples: Sequence[Sample], arm: str, place: int) -> float | None:
    found = [s.computed_tokens for s in samples if s.arm == arm and s.counts and s.x == place]
    return next((count for count in found if count is not None), None)


EXPERIMENT = Experiment(
    number=10,
    name="work-saved",
    title="Work saved",
    question="How many prompt tokens does a shared beginning save, against a model of the work?",
    plan=_plan,
    conclude=_conclude,
    parameters=(
        Parameter("shared", 512, "tokens of the shared beginning"),
        Parameter("suffixes", (24, 40, 8, 32, 16, 48, 12, 20), "tokens that each request has of its own"),
    ),
)
