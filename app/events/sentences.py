"""Sentences of the dashboard's with the numbers in them by name, so that a reader can word them anew."""

from dataclasses import dataclass, field

from .envelope import Basis


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence on what happened to a request's prefix, and the numbers in it.

    code: which of the closed list of causes it is.
    text: the sentence, in English.
    detail: a second, smaller sentence: why, or what to change; null where there is nothing to add.
    params: the numbers and words of the sentence by name, for other languages.
    translations: [text, detail] by language code: zh (Simplified Chinese).
    others: codes of causes that hold as well; `code`, or params.loss of a part that missed, is the first that explains
        the loss.
    basis: where the cause is read from; null where nothing is known of it.
    anchor: name of its explanation: why-<code>.
    """

    code: str
    text: str
    detail: str | None = None
    params: dict[str, int | float | str | None] = field(default_factory=dict)
    translations: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    basis: Basis | None = None
    anchor: str | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a person should know of a server or of one of its streams, with its numbers.

    code: which of the closed list it is (see where it stands).
    text: a sentence or two, in English: what is wrong, and what to do.
    params: the numbers and words of the text by name, for other languages.
    """

    code: str
    text: str
    params: dict[str, int | float | str | None] = field(default_factory=dict)
