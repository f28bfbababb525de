"""1: one long system prompt, eight questions, answers of 64 tokens: with the cache and without it.

"Warmed": the prompt was there before the first question. "Cold first": the first question brings it. The two give
different hit rates from the same cache, and a report that doesn't say which it means can't be compared.
"""

from collections.abc import Sequence

from ..definition import FRESH, Experiment, Parameter, Plan, Prompt, Request, one
from ..findings import Chart, Figure, Findings, Series, Table
from ..sample import Sample
from ..setting import Setting
from ..shared import cached_sum, estimated, exactness, times
from ..statistics import compared, median
from ..texts import EIGHT_QUESTIONS, FIVE_RULES, WARM_UP_QUESTION

ARMS = ("off", "cold first", "warmed")


def _prompt(setting: Setting, question: str) -> Prompt:
    system = FIVE_RULES * setting.whole("rules")
    return Prompt(messages=({"role": "system", "content": system}, {"role": "user", "content": question}))


def _plan(setting: Setting) -> Plan:
    output, questions = setting.whole("output_tokens"), EIGHT_QUESTIONS[: setting.whole("questions")]
    warm_up = _prompt(setting, WARM_UP_QUESTION)
    yield one(Request(arm="warm-up", prompt=warm_up, space=FRESH, side="off", role="warm-up"))
    draw = setting.draw("order")
    for repeat in range(setting.repeats):
        warmed, cold = f"warmed-{repeat}", f"cold-{repeat}"
        yield one(Request(arm="warm-up", prompt=warm_up, space=warmed, role="warm-up"))
        for number, question in enumerate(questions):
            for arm in draw.sample(ARMS, len(ARMS)):
                first = arm == "cold first" and number == 0
                yield one(
                    Request(
                        arm=arm,
                        prompt=_prompt(setting, question),
                        space=warmed if arm == "warmed" else cold,
                        side="off" if arm == "off" else "on",
                        role="cold" if first or arm == "off" else "measure",
                        x=number + 1,
                        repeat=repeat,
                        max_tokens=output,
                        label=f"question {number + 1}",
                    )
                )


def _conclude(setting: Setting, samples: Sequence[Sample]) -> Findings:
    figures: list[Figure] = []
    rows: list[tuple[str | float | None, ...]] = []
    for arm in ARMS:
        cached, prompt = cached_sum(samples, arm)
        first, whole = median(times(samples, arm)), median(times(samples, arm, total=True))
        key = arm.replace(" ", "_")
        rounds = max(1, len({s.repeat for s in samples if s.arm == arm}))
        figures += [
            Figure(f"{key}_hit_tokens", f"{arm}: tokens reused in a round",
                   cached / rounds if prompt else None, "tokens", "usage"),
            Figure(f"{key}_prompt_tokens", f"{arm}: prompt tokens of a round",
                   prompt / rounds if prompt else None, "tokens", "usage"),
            Figure(f"{key}_hit_ratio", f"{arm}: hit rate", cached / prompt if prompt else None, "ratio", "usage"),
            Figure(f"{key}_counter_hit_ratio", f"{arm}: hit rate by the server's counters",
                   _counted(samples, arm), "ratio", "counter"),
            estimated(f"{key}_ttft_ms", f"{arm}: time to first token", first, "ms"),
            estimated(f"{key}_total_ms", f"{arm}: time to the whole answer", whole, "ms"),
        ]  # fmt: skip
        rows.append((arm, prompt / rounds if prompt else None, cached / rounds if prompt else None,
                     first.value if first else None, whole.value if whole else None))  # fmt: skip
    for arm in ARMS[1:]:
        for total, name in ((False, "first token"), (True, "whole answer")):
            saved = compared(
                times(samples, "off", total=total), times(samples, arm, total=total), _reduction, setting.seed
            )
            key = f"{arm.replace(' ', '_')}_{'total' if total else 'ttft'}_reduction"
            figures.append(estimated(key, f"{arm}: reduction of the time to the {name}", saved, "ratio"))
    return Findings(
        figures=(*figures, *exactness(samples)),
        tables=(
            Table("A round of questions",
                  ("side", "prompt tokens", "reused tokens", "TTFT ms (median)", "whole answer ms (median)"),
                  tuple(rows), "The time to the whole answer has the decoding of all its tokens in it."),
            _each(samples),
        ),
        charts=(_chart("Time to first token", samples, total=False), _chart("Whole answer", samples, total=True)),
        follows=(
            "The cache shortens what comes before the first token; decoding the answer takes as long as before. So the "
            "relative gain is large at the first token and small over a whole answer, and a figure for one of the two "
            "times must not be called by the other's name.",
            "A prompt that is already cached before the first question and one that the first question brings give "
            "different hit rates: say which one is meant.",
        ),
        follows_not=("What happens with several requests at once: these ran one after the other.",
                     "That another model or card gains as much: the gain depends on what a prompt token costs there."),
    )  # fmt: skip


def _reduction(off: float, on: float) -> float:
    return 1 - on / off if off else 0.0


def _counted(samples: Sequence[Sample], arm: str) -> float | None:
    counted = [s for s in samples if s.arm == arm and s.counts and s.counter_hit_tokens is not None]
    queries = sum(s.counter_query_tokens or 0 for s in counted)
    return sum(s.counter_hit_tokens or 0 for s in counted) / queries if queries else None


def _each(samples: Sequence[Sample]) -> Table:
    first = [s for s in samples if s.counts and s.repeat == 0]
    rows = tuple(
        (s.x, s.arm, s.prompt_tokens, s.cached_tokens, s.expected_cached, s.ttft_ms, s.total_ms) for s in first
    )
    columns = ("question", "side", "prompt tokens", "reused", "block accounting", "TTFT ms", "whole answer ms")
    return Table("The first round, request by request", columns, rows)


def _chart(title: str, samples: Sequence[Sample], *, total: bool) -> Chart:
    estimates = [median(times(samples, arm, total=total)) for arm in ARMS]
    bars = Series(
        "median", list(ARMS), [e.value if e else None for e in estimates], "bars",
        [e.low if e else None for e in estimates], [e.high if e else None for e in estimates],
    )  # fmt: skip
    every = [s for s in samples if s.counts]
    points = Series(
        "each request", [s.arm for s in every], [s.total_ms if total else s.ttft_ms for s in every], "points"
    )
    return Chart(title, "", "ms", (bars, points))


EXPERIMENT = Experiment(
    number=1,
    name="on-off",
    title="On against off",
    question="What does the cache change for a long system prompt with short questions, and for which of the times?",
    plan=_plan,
    conclude=_conclude,
    parameters=(
        Parameter("rules", 20, "how often the five rules are repeated: the length of the system prompt"),
        Parameter("questions", 8, "how many of the eight questions"),
        Parameter("output_tokens", 64, "tokens of an answer"),
    ),
)
