"""A request that can be answered, what came out of it so far, and who writes it down. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from .cache_events import Lora
from .choice_text import ChoiceText
from .request import Image
from .responses import Envelope, Json, Timing, Usage
from .sampling import Sampling
from .tools import ForcedCall


@dataclass(frozen=True, slots=True)
class Step:
    """One token of one answer, with the text that it completed."""

    index: int
    text: str
    token_id: int
    finish_reason: str | None
    stop_reason: int | str | None


@dataclass(slots=True)
class Answer:
    """One answer so far. `prompt_index` tells which of the job's prompts it continues."""

    text_of: ChoiceText
    prompt_index: int
    token_ids: list[int] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    finish_reason: str | None = None
    stop_reason: int | str | None = None

    @property
    def text(self) -> str:
        """All of its text."""
        return "".join(self.parts)


@dataclass(frozen=True, slots=True)
class Job:
    """Answer `index` belongs to prompt `index // n`. `chat`: the prompt is a rendered conversation."""

    envelope: Envelope
    sampling: Sampling
    prompts: Sequence[tuple[int, ...]]
    arrived_s: float
    room: int
    """Tokens that the context holds, prompt and answer."""
    chat: bool = True
    lora: Lora | None = None
    rank: int | None = None
    images: tuple[Image, ...] = ()
    call: ForcedCall | None = None


class Renderer(Protocol):
    """Writes answers down in one API's form: server-sent events of a stream, or a whole body."""

    opens_at_once: bool
    """Whether `opening` goes out before the first token is there."""

    def opening(self) -> Iterator[bytes]:
        """What comes before the first step."""

    def step(self, answer: Answer, step: Step) -> Iterator[bytes]:
        """What one token gives; `answer` has taken it in already."""

    def closing(self, answers: Sequence[Answer], usage: Usage, timing: Timing | None) -> Iterator[bytes]:
        """What comes after the last step."""

    def whole(self, answers: Sequence[Answer], usage: Usage, timing: Timing | None) -> Json:
        """The body of an answer that isn't streamed."""
