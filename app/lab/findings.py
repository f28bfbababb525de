"""What an experiment found: figures, tables, charts, and what follows and doesn't. Values only.

Everything here is JSON as it stands, so a report can be opened again and shows the same.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

FORMAT = "prefixscope-lab"
FORMAT_VERSION = 1
"""Of a report: raised where a field changes its meaning."""
Cell: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. `low` and `high`: its interval, with `level` and `method`; None where it is counted, not estimated.

    `basis`: where it comes from: usage, counter, clock, server clock, calculated. `expected`: what block accounting
    says, where it says something.
    """

    key: str
    text: str
    value: float | None
    unit: str
    basis: str
    low: float | None = None
    high: float | None = None
    level: float | None = None
    method: str | None = None
    expected: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Columns with their units in the heading; a None is unknown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """One line or cloud. `low` and `high` draw a bar at each point. `dash`: for what is predicted or published."""

    name: str
    x: Sequence[Cell]
    y: Sequence[float | None]
    mode: Literal["points", "line", "both", "bars", "steps"] = "both"
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    dash: bool = False
    texts: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with one pair of axes."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    bands: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Findings:
    """`follows` and `follows_not` are sentences."""

    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    follows: tuple[str, ...] = ()
    follows_not: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)
