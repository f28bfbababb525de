"""Values that the ledger answers with besides events: its bounds, and what is known of one block."""

from dataclasses import dataclass

from ..ids import Rank, RequestId, ServerId


@dataclass(frozen=True, slots=True)
class LedgerLimits:
    """The bounds of everything that the ledger keeps; the names are those of the settings table.

    `max_blocks` and `max_removed_blocks` hold for each server and rank, `max_metrics_points` for each server.
    """

    max_requests: int = 10_000
    max_snapshot_requests: int = 200
    max_blocks: int = 2_000_000
    max_removed_blocks: int = 200_000
    max_metrics_points: int = 900


@dataclass(frozen=True, slots=True)
class BlockDetail:
    """One block, for a person who points at it.

    `hash` is None for a partial tail and where the hash isn't known; `token_ids` is empty where the tokens aren't.
    `requests` are the kept requests whose block table holds it, oldest first. `copies` is 0 where it isn't resident.
    `show_text` says whether a request whose text may be shown holds it.
    """

    hash: str | None
    server: ServerId
    rank: Rank | None
    depth: int | None
    token_ids: tuple[int, ...]
    parent: str | None
    requests: tuple[RequestId, ...]
    copies: int
    reuses: int
    stored_ms: float | None
    show_text: bool
