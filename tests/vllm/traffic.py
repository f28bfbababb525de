"""A mix of requests for a server with a small pool: repeats, changed ends, salts, resets, aborts, bursts. Seeded."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["repeat", "changed_end", "new", "salted", "aborted", "burst", "reset"]
WEIGHTS: dict[Kind, int] = {
    "repeat": 42, "changed_end": 22, "new": 14, "salted": 9, "aborted": 5, "burst": 4, "reset": 2,
}  # fmt: skip
SUBJECTS = ("a lighthouse", "the tide", "an old clock", "a violin", "the harbour", "a glacier", "bread", "a compass")
SENTENCES = (
    "Answer in one short sentence and never guess.",
    "Write for a reader who is twelve years old.",
    "Where two sources disagree, name both of them.",
    "Give numbers with their units, and round them.",
    "Do not repeat the question before the answer.",
    "Say plainly where something is not known.",
)
BURST = 3


@dataclass(frozen=True)
class Step:
    """One step: a request, or several at once (a burst), or none (a reset)."""

    kind: Kind
    system: str = ""
    question: str = ""
    salt: str | None = None

    @property
    def requests(self) -> int:
        """How many requests it sends."""
        return {"reset": 0, "burst": BURST}.get(self.kind, 1)


def steps(requests: int, seed: int) -> Iterator[Step]:
    """Steps until `requests` were sent. Prompts are 3 to 9 blocks of 32 tokens long."""
    draw = random.Random(seed)
    kinds, weights = list(WEIGHTS), list(WEIGHTS.values())
    sent = 0
    known: list[Step] = []
    while sent < requests:
        kind = draw.choices(kinds, weights)[0] if known else "new"
        old = draw.choice(known[-12:]) if known else None
        step = _step(kind, old, draw, sent)
        if step.kind in ("new", "changed_end", "salted"):
            known.append(step)
        sent += step.requests
        yield step


def _step(kind: Kind, old: Step | None, draw: random.Random, number: int) -> Step:
    if kind == "reset":
        return Step("reset")
    if kind == "new" or old is None or kind in ("aborted", "burst"):
        subject = draw.choice(SUBJECTS)
        system = f"Guide number {number} to {subject}. " + " ".join(draw.choices(SENTENCES, k=draw.randint(6, 20)))
        return Step(kind, system, f"What is {subject}?")
    if kind == "changed_end":
        return Step(kind, old.system, f"{old.question} Reply {number}.", old.salt)
    if kind == "salted":
        return Step(kind, old.system, old.question, f"salt-{number}")
    return Step("repeat", old.system, old.question, old.salt)
