"""The text of one answer as its tokens come: decoded, cut at stop strings. Pure."""

from collections.abc import Sequence

from .tokenizer import IncrementalDecoder, Tokenizer


class ChoiceText:
    """Feed tokens, take text. Where there are stop strings, as many characters are held back as could begin one."""

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str] = (), *, include_stop: bool = False) -> None:
        """`include_stop`: the stop string that ended the answer stays in it."""
        self._decoder = IncrementalDecoder(tokenizer)
        self._stops = tuple(stops)
        self._include_stop = include_stop
        self._held_back = max(map(len, stops), default=1) - 1
        self._text = ""
        self._sent = 0
        self.stopped_by: str | None = None

    def feed(self, token_id: int, *, finished: bool) -> str:
        """What may be shown now. Once `stopped_by` is set the answer is over, whatever the engine still gives."""
        fresh = self._decoder.feed(token_id)
        if not self._stops:
            return fresh
        searched = len(self._text)
        self._text += fresh
        for stop in self._stops:
            at = self._text.find(stop, max(0, searched - len(stop) + 1))
            if at >= 0:
                self.stopped_by = stop
                self._text = self._text[: at + len(stop) if self._include_stop else at]
                break
        until = len(self._text)
        if self.stopped_by is None and not finished:
            until = max(self._sent, until - self._held_back)
        shown = self._text[self._sent : until]
        self._sent = max(self._sent, until)
        return shown
