"""All experiments, and how a run's parameters are read. Imports no IO."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from .definition import Experiment, Parameter
from .errors import LabError

MOST = 1_000_000
MOST_IN_A_LIST = 64
"""Of a parameter that is a number, and of one that is a list: beyond it a run would never end."""
MODULES = (
    "on_off", "prefix_length", "staircase", "order_matters", "conversation", "documents", "pressure", "sharing_rate",
    "same_time", "work_saved", "load", "hash_algorithms", "same_answer",
)  # fmt: skip
"""In the order of their numbers. Loaded when asked for: they bring scipy with them."""


def experiments() -> tuple[Experiment, ...]:
    """All of them. Raises LabError without numpy and scipy."""
    try:
        found = [import_module(f".experiments.{name}", __package__).EXPERIMENT for name in MODULES]
    except ModuleNotFoundError as error:
        if error.name not in ("numpy", "scipy"):
            raise
        raise LabError(f"The lab calculates with {error.name}.", hint="pip install numpy scipy") from None
    return tuple(sorted(found, key=lambda experiment: experiment.number))


def chosen(name: str) -> Experiment:
    """By name or number."""
    every = experiments()
    for experiment in every:
        if name in (experiment.name, str(experiment.number)):
            return experiment
    raise LabError(f"There is no experiment {name!r}. There are: {', '.join(e.name for e in every)}.")


def parameters_of(experiment: Experiment, given: Iterable[str]) -> dict[str, Any]:
    """The defaults, with what `name=value` texts say. Raises LabError."""
    rows = {parameter.name: parameter for parameter in experiment.parameters}
    values: dict[str, Any] = {name: parameter.default for name, parameter in rows.items()}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in rows:
            known = ", ".join(rows) or "none"
            raise LabError(f"{text!r} sets nothing: {experiment.name} has the parameters {known}, set as NAME=VALUE.")
        values[name] = _read(rows[name], value.strip())
    return values


def _read(parameter: Parameter, text: str) -> Any:
    default = parameter.default
    try:
        if isinstance(default, tuple):
            read: Any = tuple(int(part) for part in text.replace(" ", ",").split(",") if part)
            usable = 0 < len(read) <= MOST_IN_A_LIST and min(read) >= 0 and max(read) <= MOST
        elif isinstance(default, str):
            read, usable = text, bool(text)
        else:
            read = type(default)(text)
            usable = 0 <= read <= MOST
    except ValueError:
        usable = False
    if not usable:
        kind = (
            f"up to {MOST_IN_A_LIST} whole numbers with commas"
            if isinstance(default, tuple)
            else f"something like {default!r}"
        )
        raise LabError(f"{parameter.name} takes {kind}, not {text!r}.")
    return read
