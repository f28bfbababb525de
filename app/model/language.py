"""How a cause's numbers are said in a language: counts, times, shares, and what isn't known.

A language is its sentences, by key, and how it writes figures. In a sentence `{name}` is a number or a word of the
cause, or a part that the sentence is put together with; `{name:block}` is a count of blocks, `{name:was|were}` the word
that goes with a count, `{name:time}` a time in milliseconds (`{name: time}` with a space before a figure),
`{name:plain}` the same without its unit, `{name:percent}` a share. Imports nothing but `words`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from string import Formatter

from .words import Params, number, whole

Value = int | float | str | None


@dataclass(frozen=True, slots=True)
class Language:
    """One language. `joiner` stands between sentences; `ms` and `s` are units; the others say what isn't known."""

    joiner: str
    ms: str
    s: str
    unknown: str
    unknown_count: str
    unknown_time: str
    sentences: Mapping[str, str]

    def join(self, *sentences: str | None) -> str | None:
        """The sentences that there are, one after the other; None where there is none."""
        return self.joiner.join(sentence for sentence in sentences if sentence) or None

    def say(self, key: str, params: Params) -> str:
        """The sentence of `key`. Whatever `params` lacks is unknown. Raises KeyError for an unknown key."""
        return "".join(
            literal if name is None else f"{literal}{self._written(params.get(name), form)}"
            for literal, name, form in _parts(self.sentences[key])
        )

    def _written(self, value: Value, form: str) -> str:
        match form:
            case "":
                return self.unknown if value is None else str(value)
            case "time":
                return self._time(value)
            case " time":
                said = self._time(value)
                return f" {said}" if said[0].isdigit() else said
            case "plain":
                return _plain(value) if isinstance(value, int | float) else self.unknown
            case "percent":
                return f"{value * 100:.0f} %" if isinstance(value, int | float) else self.unknown
        one, bar, many = form.partition("|")
        if bar:
            return one if value == 1 else many
        if value is None:
            return self.unknown_count.format(noun=form)
        return f"{value} {form}" if value == 1 else f"{value} {form}s"

    def _time(self, ms: Value) -> str:
        if not isinstance(ms, int | float):
            return self.unknown_time
        return f"{_plain(ms)} {self.ms}" if ms < 10_000 else f"{ms / 1000:.1f} {self.s}"


@dataclass(frozen=True, slots=True)
class Teller:
    """One cause's numbers in one language."""

    language: Language
    params: Params

    def say(self, key: str, **parts: str) -> str:
        """The sentence of `key`, put together with `parts`."""
        return self.language.say(key, {**self.params, **parts} if parts else self.params)

    def join(self, *sentences: str | None) -> str | None:
        """The sentences that there are, one after the other."""
        return self.language.join(*sentences)

    def has(self, name: str) -> bool:
        """Whether a name or a count is known, and isn't empty or 0."""
        return bool(self.params.get(name))

    def whole(self, name: str) -> int | None:
        """A count; None where it isn't known."""
        return whole(self.params, name)

    def number(self, name: str) -> float | None:
        """A measure; None where it isn't known."""
        return number(self.params, name)


@cache
def _parts(template: str) -> tuple[tuple[str, str | None, str], ...]:
    """(text, name behind it, its form) of each part of a sentence; a name of None at its end."""
    return tuple((literal, name, form or "") for literal, name, form, _ in Formatter().parse(template))


def _plain(ms: float) -> str:
    return f"{ms:.1f}" if abs(ms) < 10 else f"{ms:.0f}"
