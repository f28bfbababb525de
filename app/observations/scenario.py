"""What the demo's own scenario does."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScenarioStepped:
    """The demo's own scenario took a step, or stopped (`running` false). translations: of the caption, by language."""

    step: int
    steps: int
    caption: str
    running: bool
    at_s: float
    translations: dict[str, str] | None = None
