"""Where the demo's own scenario is."""

from dataclasses import dataclass
from typing import ClassVar

from .envelope import Event


@dataclass(frozen=True, slots=True)
class ScenarioState:
    """Where the demo's own scenario is.

    step: step being shown, from 1; 0 before the first.
    steps: steps in all.
    caption: what happens in it.
    running: false once it ended or a person stopped it.
    translations: the caption in other languages than English, by language.
    """

    step: int
    steps: int
    caption: str
    running: bool
    translations: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ScenarioAdvanced(Event):
    """The demo's own scenario took a step or stopped.

    scenario: where it is.
    """

    type: ClassVar[str] = "scenario.advanced"
    scenario: ScenarioState
