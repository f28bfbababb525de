"""The text of a block, through the server's own `/detokenize`: asked for when a person points at it, then kept."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

CUT_GLYPH = "⋯"
_REPLACEMENT = "\ufffd"

Detokenize = Callable[[tuple[int, ...]], Awaitable[str | None]]


class BlockTexts:
    """Texts by token ids, the least recently used forgotten above `capacity`; a few questions to the server at once."""

    def __init__(self, detokenize: Detokenize, capacity: int = 4096, at_once: int = 4) -> None:
        self._detokenize = detokenize
        self._capacity = capacity
        self._slots = asyncio.Semaphore(at_once)
        self._kept: OrderedDict[tuple[int, ...], str] = OrderedDict()

    async def text(self, token_ids: tuple[int, ...]) -> str | None:
        """The text with cut glyphs marked; None where there are no tokens or the server doesn't say."""
        if not token_ids:
            return None
        if token_ids in self._kept:
            self._kept.move_to_end(token_ids)
            return self._kept[token_ids]
        async with self._slots:
            text = await self._detokenize(token_ids)
        if text is None:
            return None
        shown = mark_cut_glyphs(text)
        self._kept[token_ids] = shown
        while len(self._kept) > self._capacity:
            self._kept.popitem(last=False)
        return shown


def mark_cut_glyphs(text: str) -> str:
    """`text` with what a block border made of half a glyph (U+FFFD at either end) shown as one mark."""
    start = CUT_GLYPH if text.startswith(_REPLACEMENT) else ""
    end = CUT_GLYPH if text.endswith(_REPLACEMENT) else ""
    inner = text.strip(_REPLACEMENT)
    return f"{start}{inner}{end}" if inner else start
