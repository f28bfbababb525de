"""Words a cause in every language that the page speaks. Only picks the words; `causes` finds the cause.

Which sentences say it stands in `sentences`, their wording in `words_en` and `words_zh`. Imports only
`events` and its own package.
"""

from ..events import Basis, Verdict
from .language import Language, Teller
from .sentences import WORDS
from .words import Params, Words
from .words_en import ENGLISH
from .words_zh import CHINESE

__all__ = ["CODES", "Params", "word"]

CODES = tuple(WORDS)
"""Every code."""
_NOT_INFERRED = ("failed", "lookup_skipped", "cache_off")
_KNOWN_BASES: tuple[Basis, ...] = ("engine", "counter", "usage", "clock", "inferred", "modelled")


def word(code: str, params: Params, others: tuple[str, ...] = ()) -> Verdict:
    """The verdict for a code of `CODES`, with the codes that hold as well. Raises KeyError for an unknown code."""
    text, detail = _worded(code, params, ENGLISH)
    loss = params.get("loss")
    explained = loss if isinstance(loss, str) else code
    return Verdict(
        code,
        text,
        detail,
        params,
        translations={"zh": _worded(code, params, CHINESE)},
        others=others,
        basis=_basis(code, params),
        anchor=f"why-{explained.replace('_', '-')}",
    )


def _worded(code: str, params: Params, language: Language) -> Words:
    tell = Teller(language, params)
    text, detail = WORDS[code](tell)
    if code in _NOT_INFERRED:
        return text, detail
    inferred = tell.say("inferred") if params.get("cached_basis") == "inferred" else None
    by_router = tell.say("by_router") if tell.has("by_router") and code != "unknown" else None
    return text, tell.join(detail, inferred, by_router)


def _basis(code: str, params: Params) -> Basis | None:
    """Where the cause itself is read: what was reused by whoever said it, why it wasn't from matched hashes."""
    if code in ("unknown", "failed"):
        return None
    if code == "cache_off":
        return "counter"
    if code not in ("reused", "full_hit", "exact_multiple", "inconsistent", "lookup_skipped", "unexplained"):
        return "inferred"
    said = params.get("cached_basis")
    return next((basis for basis in _KNOWN_BASES if basis == said), None)
