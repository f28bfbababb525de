"""13: the answer's token ids, cold and warm, at temperature 0."""

from collections.abc import Sequence

from ..definition import Experiment, Parameter, Plan, Prompt, Request, one
from ..findings import Chart, Figure, Findings, Series, Table
from ..sample import Sample
from ..setting import Setting
from ..statistics import proportion
from ..texts import HANDBOOK, HANDBOOK_QUESTIONS


def _prompts(setting: Setting) -> list[Prompt]:
    made = []
    for number in range(setting.whole("prompts")):
        question = HANDBOOK_QUESTIONS[number % len(HANDBOOK_QUESTIONS)]
        system = HANDBOOK.format(part=number + 1)
        made.append(Prompt(messages=({"role": "system", "content": system}, {"role": "user", "content": question})))
    return made


def _plan(setting: Setting) -> Plan:
    output = setting.whole("output_tokens")
    for number, prompt in enumerate(_prompts(setting)):
        for role, arm in (("cold", "cold"), *(("measure", "warm"),) * setting.whole("warm")):
            yield one(
                Request(arm=arm, prompt=prompt, space=f"answer-{number}", x=number + 1, max_tokens=output,
                        role="cold" if role == "cold" else "measure")
            )  # fmt: skip


def _conclude(setting: Setting, samples: Sequence[Sample]) -> Findings:
    cold = {s.x: s for s in samples if s.arm == "cold" and s.counts}
    rows: list[tuple[float | None, ...]] = []
    equal = trials = told = 0
    for s in (s for s in samples if s.arm == "warm" and s.counts and s.x in cold):
        first = cold[s.x].answer_ids
        if not first or not s.answer_ids:
            continue
        told += 1
        if not s.cached_tokens:
            continue
        trials += 1
        at = _first_difference(first, s.answer_ids)
        equal += at is None
        rows.append((s.x, s.prompt_tokens, s.cached_tokens, len(s.answer_ids), at))
    share = proportion(equal, trials)
    differing = trials - equal
    lengths = [row[4] for row in rows]
    said = (
        f"In {trials} pairs the answer from cached blocks was, token for token, the one that was computed cold."
        if trials and not differing
        else f"In {differing} of {trials} pairs the answers differ; the table says from which token on."
        if trials
        else "Nothing: no pair of a cold and a warm answer with token ids."
    )
    return Findings(
        figures=(
            Figure("equal", "warm answers equal to the cold one", equal if trials else None, "answers", "usage",
                   expected=trials or None),
            Figure("different", "warm answers that differ", differing if trials else None, "answers", "usage"),
            Figure("equal_ratio", "share that is equal", share.value if share else None, "ratio", "usage",
                   share.low if share else None, share.high if share else None, share.level if share else None,
                   share.method if share else None),
        ),
        tables=(Table("Pairs", ("prompt", "prompt tokens", "reused", "answer tokens", "first difference at token"),
                      tuple(rows), "A dash: no difference." if told else "The server tells no token ids."),),
        charts=(Chart("First difference", "prompt", "token",
                      (Series("pair", [row[0] for row in rows], lengths, "points"),)),),
        follows=(said,),
        follows_not=(
            "That equal answers prove equal numbers: a difference in low bits shows only where two tokens are nearly "
            "as likely.",
            "That a difference is the cache's: batches and kernels of other shapes round differently, with and "
            "without it.",
        ),
    )  # fmt: skip


def _first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    pairs = enumerate(zip(one, other, strict=False))
    at = next((place for place, (a, b) in pairs if a != b), None)
    return min(len(one), len(other)) if at is None and len(one) != len(other) else at


EXPERIMENT = Experiment(
    number=13,
    name="same-answer",
    title="Same answer",
    question="Does an answer from cached blocks have the same tokens as the one that was computed cold?",
    plan=_plan,
    conclude=_conclude,
    parameters=(
        Parameter("prompts", 24, "different prompts"),
        Parameter("warm", 2, "warm answers to each"),
        Parameter("output_tokens", 32, "tokens of an answer"),
    ),
)
