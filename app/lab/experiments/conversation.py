"""5: turns of a conversation, each with the whole history: what a turn reuses, brings, and computes again.

Sent as a chat with the server's own answers in the history, so the template and the way back from text to tokens are
in it, as they are for any client.
"""

from collections.abc import Sequence

from ..definition import FRESH, Experiment, Message, Parameter, Plan, Prompt, Request, one
from ..findings import Chart, Figure, Findings, Series, Table
from ..sample import Sample
from ..setting import Setting
from ..shared import cached_sum, exactness, medians
from ..texts import TALK, TALK_SYSTEM


def _plan(setting: Setting) -> Plan:
    output, turns = setting.whole("output_tokens"), TALK[: setting.whole("turns")]
    draw = setting.draw("order")
    for repeat in range(setting.repeats):
        messages: list[Message] = [{"role": "system", "content": TALK_SYSTEM}]
        for number, question in enumerate(turns):
            messages.append({"role": "user", "content": question})
            told = ""
            for arm in draw.sample(("on", "off"), 2):
                (sample,) = yield one(
                    Request(arm=arm, prompt=Prompt(messages=tuple(messages)),
                            space=f"talk-{repeat}" if arm == "on" else FRESH, side="on" if arm == "on" else "off",
                            x=number + 1, repeat=repeat, max_tokens=output,
                            role="cold" if arm == "off" or number == 0 else "measure", label=f"turn {number + 1}")
                )  # fmt: skip
                told = sample.answer_text if arm == "on" else told
            messages.append({"role": "assistant", "content": told})


def _turns(samples: Sequence[Sample]) -> list[tuple[int, int, int, int, int]]:
    """(turn, prompt, reused, new, wasted tokens) of the first round. Wasted: computed before, and now again."""
    rows = []
    known: tuple[int, ...] = ()
    for s in (s for s in samples if s.arm == "on" and s.counts and s.repeat == 0):
        if s.prompt_tokens is None or s.cached_tokens is None:
            continue
        shared = _shared(known, s.prompt_ids)
        wasted = max(0, shared - s.cached_tokens)
        new = s.prompt_tokens - max(shared, s.cached_tokens)
        rows.append((int(s.x or 0), s.prompt_tokens, s.cached_tokens, new, wasted))
        known = (*s.prompt_ids, *s.answer_ids[:-1])
    return rows


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _conclude(setting: Setting, samples: Sequence[Sample]) -> Findings:
    rows = _turns(samples)
    places = [row[0] for row in rows]
    cached, prompt = cached_sum(samples, "on")
    bars = tuple(
        Series(name, places, [row[place] for row in rows], "bars")
        for place, name in ((2, "reused"), (3, "new"), (4, "wasted"))
    )
    lines = tuple(medians(arm, samples, arm, places) for arm in ("off", "on"))
    return Findings(
        figures=(
            Figure("hit_ratio", "hit rate over the conversation", cached / prompt if prompt else None, "ratio",
                   "usage"),
            Figure("wasted_tokens", "tokens computed again in a conversation",
                   sum(row[4] for row in rows) if len(rows) > 1 else None, "tokens", "usage"),
            *exactness(samples),
        ),
        tables=(Table("The first conversation, turn by turn",
                      ("turn", "prompt tokens", "reused", "new", "wasted"), tuple(rows),
                      "Wasted: the server had computed them before, for this conversation, and did so again: the rest "
                      "of a block that wasn't full, and what the template or the way through text changed."),),
        charts=(Chart("Prompt tokens by turn", "turn", "tokens", bars),
                Chart("Time to first token by turn", "turn", "ms", lines)),
        follows=("With the cache a turn costs what is new in it and at most a block; without it, the whole history, "
                 "every time.",),
        follows_not=("That a conversation left alone for long stays in the cache: others push it out.",),
    )  # fmt: skip


EXPERIMENT = Experiment(
    number=5,
    name="conversation",
    title="Conversation",
    question="What does each turn of a growing conversation reuse, bring and waste?",
    plan=_plan,
    conclude=_conclude,
    parameters=(
        Parameter("turns", 8, "turns, at most 8"),
        Parameter("output_tokens", 48, "tokens of an answer"),
    ),
)
