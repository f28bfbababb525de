"""9: n identical cold prompts at once, against one that is sent ahead of the others."""

from collections.abc import Sequence

from ..accounting import reusable_tokens
from ..definition import FRESH, Batch, Experiment, Parameter, Plan, Prompt, Request, one
from ..findings import Chart, Figure, Findings, Series, Table
from ..sample import Sample
from ..setting import Setting
from ..shared import estimated, times
from ..statistics import median

AT_ONCE, AHEAD, OTHERS = "at once", "one ahead", "behind it"


def _length(setting: Setting) -> int:
    return min(setting.whole("tokens"), setting.longest_prompt)


def _plan(setting: Setting) -> Plan:
    count, length = setting.whole("count"), _length(setting)
    warm_up = Prompt(setting.token_ids(length, "warm-up"))
    yield one(Request(arm="warm-up", prompt=warm_up, space=FRESH, side="off", role="warm-up"))
    draw = setting.draw("order")
    for repeat in range(setting.repeats):
        for arm in draw.sample((AT_ONCE, AHEAD), 2):
            prompt, space = Prompt(setting.token_ids(length, f"same-{repeat}")), f"{arm}-{repeat}"
            if arm == AT_ONCE:
                requests = [Request(arm=arm, prompt=prompt, space=space, x=n + 1, repeat=repeat) for n in range(count)]
                yield Batch(tuple(requests))
            else:
                yield one(Request(arm=AHEAD, prompt=prompt, space=space, x=1, repeat=repeat, role="cold"))
                rest = [Request(arm=OTHERS, prompt=prompt, space=space, x=n + 2, repeat=repeat)
                        for n in range(count - 1)]  # fmt: skip
                yield Batch(tuple(rest))


def _conclude(setting: Setting, samples: Sequence[Sample]) -> Findings:
    count, length = setting.whole("count"), _length(setting)
    most = (count - 1) * reusable_tokens(length, length, setting.block_size)
    once, behind = _reused(samples, AT_ONCE, count), _reused(samples, OTHERS, count - 1)
    rows = tuple(
        (s.arm, s.x, s.prompt_tokens, s.cached_tokens, s.ttft_ms, s.server_queue_ms)
        for s in samples
        if s.counts and s.repeat == 0
    )
    arms = (AT_ONCE, AHEAD, OTHERS)
    bars = Series("median", list(arms), [m.value if (m := median(times(samples, a))) else None for a in arms], "bars")
    found = [s for s in samples if s.counts]
    points = Series("each request", [s.arm for s in found], [s.ttft_ms for s in found], "points")
    said = (
        "Identical prompts that arrive together share from the start here: a block counts as cached as soon as it is "
        "given to a scheduled request."
        if once == most
        else f"Of {most} tokens that identical prompts could share when sent at once, {_told(once)} were reused; "
        f"sending one ahead gave {_told(behind)}."
    )
    return Findings(
        figures=(
            Figure("at_once_hit_tokens", "at once: tokens reused in a round", once, "tokens", "usage", expected=most),
            Figure("ahead_hit_tokens", "one ahead: tokens reused by the others in a round", behind, "tokens", "usage",
                   expected=most),
            *(estimated(f"{arm.replace(' ', '_')}_ttft_ms", f"{arm}: time to first token",
                        median(times(samples, arm)), "ms") for arm in arms),
        ),
        tables=(Table("The first round", ("sent", "request", "prompt tokens", "reused", "TTFT ms", "queue ms"), rows),),
        charts=(Chart("Time to first token", "", "ms", (bars, points)),),
        follows=(said,),
        follows_not=("That other versions and backends do the same: some compute every copy of a cold prompt.",),
    )  # fmt: skip


def _reused(samples: Sequence[Sample], arm: str, size: int) -> float | None:
    """Tokens reused in a round, the mean of the rounds that are whole and known; None where there is none."""
    known = [s for s in samples if s.arm == arm and s.counts and s.cached_tokens is not None]
    rounds = [[s for s in known if s.repeat == repeat] for repeat in {s.repeat for s in known}]
    whole = [sum(s.cached_tokens or 0 for s in found) for found in rounds if len(found) == size]
    return sum(whole) / len(whole) if whole else None


def _told(tokens: float | None) -> str:
    return "an unknown number" if tokens is None else f"{tokens:.0f}"


EXPERIMENT = Experiment(
    number=9,
    name="same-time",
    title="Same time",
    question="Do identical cold prompts that arrive together share, or is it better to send one ahead?",
    plan=_plan,
    conclude=_conclude,
    parameters=(
        Parameter("count", 8, "identical prompts"),
        Parameter("tokens", 1024, "tokens of the prompt, or as many as fit"),
    ),
)
