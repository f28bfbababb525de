"""4: small habits that break a shared beginning: what each costs, beside the same request without the habit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from ..definition import FRESH, Experiment, Parameter, Plan, Prompt, Request, one
from ..findings import Chart, Figure, Findings, Series, Table
from ..sample import Sample
from ..setting import Setting
from ..shared import exactness, time_at
from ..statistics import median
from ..texts import EXAMPLES, NEW_ITEMS, SUPPORT, TOOLS

Make = Callable[[int, Random], Prompt]
"""The prompt of the `number`-th request."""
PLAIN = "constant part first"


@dataclass(frozen=True, slots=True)
class Habit:
    """`against`: the habit's name without the fault; `fault` says what is wrong in it."""

    name: str
    fault: str
    against: str
    make: Make


def _chat(system: str, question: str, tools: Sequence[object] = ()) -> Prompt:
    messages = ({"role": "system", "content": system}, {"role": "user", "content": question})
    return Prompt(messages=messages, tools=tuple(tools))  # type: ignore[arg-type]


def _question(number: int) -> str:
    return NEW_ITEMS[number % len(NEW_ITEMS)]


def _stamp(number: int) -> str:
    return f"2026-03-{number + 1:02} {9 + number % 8:02}:{(7 * number) % 60:02}:{(13 * number) % 60:02}"


def _examples(examples: Sequence[tuple[str, str]]) -> str:
    return SUPPORT + "".join(f"Message: {text}\nLabel: {label}\n" for text, label in examples)


def _shuffled(number: int, random: Random) -> Prompt:
    return _chat(_examples(random.sample(EXAMPLES, len(EXAMPLES))), _question(number))


HABITS = (
    Habit(PLAIN, "", PLAIN, lambda n, r: _chat(SUPPORT * 2, _question(n))),
    Habit("variable part first", "the question stands before the long constant part", PLAIN,
          lambda n, r: _chat(f"{_question(n)}\n{SUPPORT * 2}", "Answer the message above.")),
    Habit("timestamp in front", "the time of day begins the system prompt", PLAIN,
          lambda n, r: _chat(f"It is {_stamp(n)}. {SUPPORT * 2}", _question(n))),
    Habit("timestamp at the end", "the time of day stands beside the question", PLAIN,
          lambda n, r: _chat(SUPPORT * 2, f"{_question(n)} It is {_stamp(n)}.")),
    Habit("user id in front", "an id of the user begins the system prompt", PLAIN,
          lambda n, r: _chat(f"User {r.getrandbits(48):012x}. {SUPPORT * 2}", _question(n))),
    Habit("trailing spaces", "the first paragraph ends with one more space each time", PLAIN,
          lambda n, r: _chat(SUPPORT + " " * n + SUPPORT, _question(n))),
    Habit("examples in order", "", "examples in order", lambda n, r: _chat(_examples(EXAMPLES), _question(n))),
    Habit("examples shuffled", "few-shot examples in another order each time", "examples in order", _shuffled),
    Habit("tools in order", "", "tools in order", lambda n, r: _chat(SUPPORT, _question(n), TOOLS)),
    Habit("tools reordered", "the same tools in another order each time", "tools in order",
          lambda n, r: _chat(SUPPORT, _question(n), r.sample(TOOLS, len(TOOLS)))),
)  # fmt: skip


def _plan(setting: Setting) -> Plan:
    random = setting.draw("habits")
    draw = setting.draw("order")
    yield one(Request(arm="warm-up", prompt=HABITS[0].make(0, random), space=FRESH, side="off", role="warm-up"))
    for repeat in range(setting.repeats):
        for number in range(setting.whole("requests")):
            for habit in draw.sample(HABITS, len(HABITS)):
                # The first request of a habit brings its beginning, and enters no figure.
                yield one(Request(arm=habit.name, prompt=habit.make(number, random), space=f"{habit.name}-{repeat}",
                                  x=number, repeat=repeat, role="measure" if number else "cold"))  # fmt: skip


def _conclude(setting: Setting, samples: Sequence[Sample]) -> Findings:
    after = [s for s in samples if s.role == "measure" and s.counts]
    rows: list[tuple[str | float | None, ...]] = []
    figures: list[Figure] = []
    for habit in HABITS:
        computed, time = _computed(after, habit.name), time_at(after, habit.name)
        plain, plain_time = _computed(after, habit.against), time_at(after, habit.against)
        more = None if computed is None or plain is None else computed - plain
        later = None if time is None or plain_time is None else time - plain_time
        rows.append(
            (
                habit.name,
                habit.fault,
                _median([s.prompt_tokens for s in after if s.arm == habit.name]),
                _median([s.cached_tokens for s in after if s.arm == habit.name]),
                computed,
                more,
                time,
                later,
            )
        )
        if habit.fault:
            key = habit.name.replace(" ", "_")
            figures.append(
                Figure(f"{key}_tokens", f"{habit.name}: more tokens computed a request", more, "tokens", "usage")
            )
            figures.append(Figure(f"{key}_ms", f"{habit.name}: first token later by", later, "ms", "clock"))
    names = [habit.name for habit in HABITS]
    return Findings(
        figures=(*figures, *exactness(samples)),
        tables=(Table("Habits, from the second request on",
                      ("habit", "what is wrong", "prompt tokens", "reused", "computed", "more than without it",
                       "TTFT ms", "later by ms"), tuple(rows), "Medians."),),
        charts=(Chart("Tokens computed a request", "", "tokens",
                      (Series("computed", names, [row[4] for row in rows], "bars"),)),  # type: ignore[misc]
                Chart("Time to first token", "", "ms",
                      (Series("median", names, [row[6] for row in rows], "bars"),))),  # type: ignore[misc]
        follows=("What changes from request to request belongs behind what stays: the same text in another place "
                 "costs a block at most, and in front it costs the whole prompt.",),
        follows_not=("That these texts are yours: how much a habit costs grows with what stands behind it.",),
    )  # fmt: skip


def _computed(samples: Sequence[Sample], arm: str) -> float | None:
    return _median([s.computed_tokens for s in samples if s.arm == arm])


def _median(values: Sequence[int | None]) -> float | None:
    known = median([value for value in values if value is not None])
    return known.value if known else None


EXPERIMENT = Experiment(
    number=4,
    name="order",
    title="Order matters",
    question="What do a timestamp, a user id, shuffled examples, a space or reordered tools cost?",
    plan=_plan,
    conclude=_conclude,
    parameters=(Parameter("requests", 4, "requests of each habit; the first brings the beginning"),),
)
