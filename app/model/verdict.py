"""Words a cause in every language that the page speaks. Only picks the words; `causes` finds the cause.

The wording itself stands in `words_en` and `words_zh`, and nowhere else. Imports only `events` and its own package.
"""

from ..events import Basis, Verdict
from . import words_en, words_zh
from .words import Params, Remarks, Words

__all__ = ["CODES", "Params", "word"]

CODES = words_en.WORDS
"""Every code, and what words it in English."""
_NOT_INFERRED = ("failed", "lookup_skipped", "cache_off")
_KNOWN_BASES: tuple[Basis, ...] = ("engine", "counter", "usage", "clock", "inferred", "modelled")


def word(code: str, params: Params, others: tuple[str, ...] = ()) -> Verdict:
    """The verdict for a code of `CODES`, with the codes that hold as well. Raises KeyError for an unknown code."""
    text, detail = _worded(code, params, words_en.WORDS[code](params), words_en.REMARKS, " ")
    chinese = _worded(code, params, words_zh.WORDS[code](params), words_zh.REMARKS, "")
    loss = params.get("loss")
    explained = loss if isinstance(loss, str) else code
    return Verdict(
        code,
        text,
        detail,
        params,
        translations={"zh": chinese},
        others=others,
        basis=_basis(code, params),
        anchor=f"why-{explained.replace('_', '-')}",
    )


def _worded(code: str, params: Params, words: Words, remarks: Remarks, space: str) -> Words:
    text, detail = words
    if code in _NOT_INFERRED:
        return text, detail
    said = [detail] if detail else []
    if params.get("cached_basis") == "inferred":
        said.append(remarks.inferred)
    if params.get("by_router") and code != "unknown":
        said.append(remarks.by_router)
    return text, space.join(said) or None


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
