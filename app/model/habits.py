"""What a server does with the blocks that match, learned from its requests, and how often forecasts were right.

Some servers don't reuse all that matches: with speculative decoding of the EAGLE kind the last matched block is
dropped, and hybrid models round a hit down to a multiple of many blocks. Neither stands in any event. Imports only
`events`.
"""

from collections import deque
from math import gcd

from ..events import ForecastScore

WRONG_FROM = 3
"""Forecasts wrong in a row, from which a person is told."""
LEARNED_FROM = 2
"""Requests in a row that contradict what was learned and agree on something else, from which that is believed."""


class Habits:
    """One instance a server. A hit is the matched blocks, less `dropped_blocks`, rounded down to `unit_blocks`."""

    def __init__(self) -> None:
        self.dropped_blocks = 0
        self.unit_blocks = 1
        self._scored = self._right = self._wrong_in_a_row = 0
        self._last_wrong: tuple[int, int] | None = None
        self._last_drift = self._drift = 0
        self._block_size = 0
        self._misfits: deque[tuple[int, int]] = deque(maxlen=LEARNED_FROM)
        """(blocks matched, blocks hit) of the last requests in a row that didn't do as learned."""

    def hit_blocks(self, matched_blocks: int) -> int:
        """Blocks that hit of those that match, from the first on."""
        return _hit(matched_blocks, self.dropped_blocks, self.unit_blocks)

    def learn(
        self,
        matched_blocks: int,
        predicted_tokens: int,
        cached_tokens: int,
        block_size: int,
        *,
        explained: bool = False,
    ) -> None:
        """The outcome of a request whose forecast was sure. `explained`: blocks turned out to be gone, which says
        nothing of what the server does with those that are there."""
        self._block_size = block_size
        self._scored += 1
        self._last_drift = predicted_tokens - cached_tokens
        self._drift += self._last_drift
        if predicted_tokens == cached_tokens:
            self._right += 1
            self._wrong_in_a_row = 0
        else:
            self._wrong_in_a_row += 1
            self._last_wrong = (predicted_tokens, cached_tokens)
        hit, rest = divmod(cached_tokens, block_size)
        if matched_blocks == 0 or explained:
            # Nothing could be dropped or rounded.
            return
        if not rest and hit == self.hit_blocks(matched_blocks):
            self._misfits.clear()
            return
        self._misfits.append((matched_blocks, hit))
        # Hits of nothing alone may as well be blocks that are gone.
        if len(self._misfits) == LEARNED_FROM and not rest and any(blocks for _, blocks in self._misfits):
            self._relearn()

    def _relearn(self) -> None:
        unit = gcd(*(hit for _, hit in self._misfits))
        for units in (1, unit):
            # Some drop a block, and some, whose cache is read by the unit, a unit.
            for dropped in (0, 1, units):
                if units and all(_hit(matched, dropped, units) == hit for matched, hit in self._misfits):
                    self.dropped_blocks, self.unit_blocks = dropped, units
                    self._misfits.clear()
                    return

    @property
    def unreliable(self) -> bool:
        """Whether so many forecasts were wrong in a row that a person is told."""
        return self._wrong_in_a_row >= WRONG_FROM

    def score(self) -> ForecastScore | None:
        """As it goes out; None before the first outcome."""
        if not self._scored:
            return None
        message = None
        if self.unreliable and self._last_wrong is not None:
            expected, said = self._last_wrong
            message = (
                f"The last {self._wrong_in_a_row} forecasts were wrong ({expected} cached tokens expected, {said} "
                "reported): the picture of its blocks is not the server's."
            )
        return ForecastScore(
            scored=self._scored,
            right=self._right,
            wrong_in_a_row=self._wrong_in_a_row,
            dropped_blocks=self.dropped_blocks,
            unit_tokens=self.unit_blocks * self._block_size,
            message=message,
            banner=self.unreliable,
            last_drift_tokens=self._last_drift,
            drift_tokens=self._drift,
        )


def _hit(matched: int, dropped: int, unit: int) -> int:
    return max(matched - dropped, 0) // unit * unit
