"""What an experiment is made of: what it sends, what it varies, what it measures. Values only; imports no IO.

An experiment is one `Experiment` in a file of its own under `experiments/`. Its `plan` is a generator: it yields
batches of requests and is sent the samples that came of each, so it can go on from what it has seen. It opens nothing,
knows no clock, and is the same against a server and against the rehearsal of a test.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from .findings import Findings
from .sample import Sample
from .setting import Setting

Message: TypeAlias = Mapping[str, Any]
Side = Literal["on", "off"]
Role = Literal["measure", "cold", "warm-up"]
FRESH = "fresh"
"""A salt of this word is drawn anew for the request: nothing of any earlier request can be reused."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Either token ids, for /v1/completions, or messages (and tools), for /v1/chat/completions."""

    token_ids: tuple[int, ...] = ()
    messages: tuple[Message, ...] = ()
    tools: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request.

    `arm` names the line that it belongs to; `x` is what is varied. side "off": with the cache off, by a fresh salt or
    by the second URL. `space` names a part of the cache of this run's own: requests of one space share blocks, and
    the first of a space is cold. role "cold": must find nothing, and is tried again in a space of another name
    where it does; "warm-up": is sent, shown, and enters no figure.
    """

    arm: str
    prompt: Prompt
    space: str
    x: float | None = None
    side: Side = "on"
    role: Role = "measure"
    repeat: int = 0
    max_tokens: int = 1
    label: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests that run together, at most `at_once` of them at a time (None: all)."""

    requests: tuple[Request, ...]
    at_once: int | None = None


Plan: TypeAlias = Generator[Batch, tuple[Sample, ...], None]


@dataclass(frozen=True, slots=True)
class Parameter:
    """Something that a run may set: `--set name=value`. The default's type is the value's; a list takes commas."""

    name: str
    default: int | float | str | tuple[int, ...]
    help: str


@dataclass(frozen=True, slots=True)
class Experiment:
    """See the module. `needs`: what a server must have: "cached_tokens", "salts" (or a second URL)."""

    number: int
    name: str
    title: str
    question: str
    plan: Callable[[Setting], Plan]
    conclude: Callable[[Setting, Sequence[Sample]], Findings]
    parameters: tuple[Parameter, ...] = ()
    needs: frozenset[str] = field(default_factory=lambda: frozenset({"cached_tokens", "salts"}))
    local: Callable[[Setting], Iterable[Sample]] | None = None
    """For an experiment that needs no server: measures by itself, and `plan` stays empty."""


def one(request: Request) -> Batch:
    """A request by itself."""
    return Batch((request,))
