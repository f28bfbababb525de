"""6: one document with many questions (RAG), and few-shot classification: a long beginning, a short end."""

from collections.abc import Sequence

from ..definition import FRESH, Experiment, Parameter, Plan, Prompt, Request, one
from ..findings import Chart, Figure, Findings, Table
from ..sample import Sample
from ..setting import Setting
from ..shared import cached_sum, estimated, exactness, medians, time_at, times
from ..statistics import compared
from ..texts import CLASSIFY, EXAMPLES, HANDBOOK, HANDBOOK_QUESTIONS, NEW_ITEMS

KINDS = ("document", "few-shot")


def _prompt(setting: Setting, kind: str, number: int) -> Prompt:
    if kind == "document":
        pages = "".join(HANDBOOK.format(part=part + 1) for part in range(setting.whole("pages")))
        system, question = f"Answer from this text alone.\n\n{pages}", HANDBOOK_QUESTIONS[number]
    else:
        shown = "\n\n".join(f"Message: {text}\nLabel: {label}" for text, label in EXAMPLES)
        system, question = f"{CLASSIFY}\n\n{shown}", f"Message: {NEW_ITEMS[number]}\nLabel:"
    return Prompt(messages=({"role": "system", "content": system}, {"role": "user", "content": question}))


def _plan(setting: Setting) -> Plan:
    draw = setting.draw("order")
    for kind in KINDS:
        yield one(Request(arm="warm-up", prompt=_prompt(setting, kind, 0), space=FRESH, side="off", role="warm-up"))
    for repeat in range(setting.repeats):
        for number in range(min(setting.whole("questions"), len(NEW_ITEMS))):
            for kind, side in draw.sample([(kind, side) for kind in KINDS for side in ("on", "off")], 4):
                yield one(
                    Request(arm=f"{kind}, {side}", prompt=_prompt(setting, kind, number), space=f"{kind}-{repeat}",
                            side="on" if side == "on" else "off", x=number + 1, repeat=repeat,
                            role="cold" if side == "off" or not number else "measure")
                )  # fmt: skip


def _conclude(setting: Setting, samples: Sequence[Sample]) -> Findings:
    figures: list[Figure] = []
    rows: list[tuple[str | float | None, ...]] = []
    charts: list[Chart] = []
    for kind in KINDS:
        on, off = f"{kind}, on", f"{kind}, off"
        cached, prompt = cached_sum(samples, on)
        later = [s for s in samples if s.arm == on and s.role == "measure"]
        gain = compared(times(samples, off), times(later, on), lambda a, b: 1 - b / a, setting.seed)
        key = kind.replace("-", "_")
        figures += [
            Figure(f"{key}_hit_ratio", f"{kind}: hit rate, the first question in it", cached / prompt if prompt else
                   None, "ratio", "usage"),
            estimated(f"{key}_ttft_reduction", f"{kind}: reduction of the first token's time, from the second question",
                      gain, "ratio"),
        ]  # fmt: skip
        rows.append((kind, prompt or None, cached if prompt else None, time_at(samples, off), time_at(later, on)))
        places = sorted({s.x for s in samples if s.arm == on and s.x is not None})
        lines = tuple(medians(arm, samples, arm, places) for arm in (off, on))
        charts.append(Chart(f"Time to first token: {kind}", "question", "ms", lines))
    return Findings(
        figures=(*figures, *exactness(samples)),
        tables=(Table("All questions",
                      ("kind", "prompt tokens", "reused", "TTFT off ms", "TTFT on ms, from the second"), tuple(rows)),),
        charts=tuple(charts),
        follows=("Only the first question pays for the document or the examples, as long as they stand in front and "
                 "stay as they are.",),
        follows_not=("That several retrieved passages gain the same: in another order they share nothing from the "
                     "first that moved.",),
    )  # fmt: skip


EXPERIMENT = Experiment(
    number=6,
    name="documents",
    title="One document, many questions",
    question="What do questions to one document, and items behind the same few-shot examples, save?",
    plan=_plan,
    conclude=_conclude,
    parameters=(
        Parameter("pages", 8, "pages of the document, about 130 tokens each"),
        Parameter("questions", 8, "questions, at most 8"),
    ),
)
