"""The residency map: what is the same on several replicas, whatever their hashes, and what twice costs."""

from collections.abc import Sequence

from app.fleet.residency import ResidencyMap, ResidencySurvey
from app.ids import GroupIdx, Rank, ServerId
from app.model.ledger import Ledger, LedgerLimits
from app.observations import BlockRemoved, BlockStored, ExtraKeys, KvBatch, KvEvent, ServerProbed

SIZE = 4


class Fleet:
    """A ledger fed with chains of blocks; `salt` makes a server's hashes its own."""

    def __init__(self) -> None:
        self.ledger = Ledger(LedgerLimits(), 0.0)
        self.survey = ResidencySurvey()
        self._next: dict[tuple[str, int], int] = {}

    def hashes(self, tokens: Sequence[int], salt: int) -> tuple[int, ...]:
        return tuple(abs(hash((salt, *tokens[:end]))) for end in range(SIZE, len(tokens) + 1, SIZE))

    def store(self, server: str, tokens: Sequence[int], *, rank: int = 0, salt: int = 0, medium: str = "GPU",
              after: int = 0, extra: ExtraKeys | None = None) -> None:  # fmt: skip
        """Stores the full blocks of a prompt from block `after` on."""
        hashes = self.hashes(tokens, salt)
        event = BlockStored(
            hashes[after:], hashes[after - 1] if after else None, tuple(tokens[after * SIZE : len(hashes) * SIZE]),
            SIZE, None, medium, None if extra is None else (extra,) * (len(hashes) - after), GroupIdx(0), None, None,
        )  # fmt: skip
        self.batch(server, rank, event)

    def batch(self, server: str, rank: int, event: KvEvent) -> None:
        sequence = self._next.get((server, rank), 0)
        self._next[server, rank] = sequence + 1
        self.ledger.apply(KvBatch(ServerId(server), Rank(rank), sequence, (event,), float(sequence)))

    def serves(self, server: str, model: str) -> None:
        self.ledger.apply(ServerProbed(ServerId(server), "up", None, 0.0, "0.32.0", (model,)))

    def map(self, rows: int = 40) -> ResidencyMap:
        views = [self.ledger.replica_view(*replica) for replica in self.ledger.replicas()]
        return self.survey.survey([view for view in views if view is not None], rows)


SYSTEM = tuple(range(40))


def test_a_prefix_on_two_replicas_is_there_twice() -> None:
    fleet = Fleet()
    fleet.store("a", (*SYSTEM, *[1] * SIZE))
    fleet.store("b", (*SYSTEM, *[2] * SIZE))
    found = fleet.map()
    assert [(replica.server, replica.blocks) for replica in found.replicas] == [("a", 11), ("b", 11)]
    assert (found.resident_blocks, found.distinct_blocks, found.duplicate_blocks) == (22, 12, 10)
    (row,) = found.rows
    assert (row.blocks, row.tokens, row.branches, row.duplicate_blocks) == (10, 40, 2, 10)
    assert row.cells == {"GPU": {0: 10, 1: 10}}


def test_hashes_of_its_own_make_no_block_another() -> None:
    fleet = Fleet()
    fleet.store("a", SYSTEM, salt=1)
    fleet.store("b", SYSTEM, salt=2)
    assert fleet.map().duplicate_blocks == 10


def test_an_eviction_shows_and_comes_back() -> None:
    fleet = Fleet()
    fleet.store("a", SYSTEM)
    fleet.store("b", SYSTEM)
    last = fleet.hashes(SYSTEM, 0)[7:]
    fleet.batch("b", 0, BlockRemoved(last, "GPU", GroupIdx(0)))
    (row,) = fleet.map().rows
    assert row.cells == {"GPU": {0: 10, 1: 7}}
    assert (row.server, row.duplicate_blocks) == ("a", 7)
    fleet.store("b", SYSTEM, after=7)
    assert fleet.map().rows[0].cells == {"GPU": {0: 10, 1: 10}}


def test_ranks_are_columns_of_their_own() -> None:
    fleet = Fleet()
    fleet.store("a", SYSTEM, rank=0)
    fleet.store("a", SYSTEM, rank=1)
    found = fleet.map()
    assert [(replica.server, replica.rank) for replica in found.replicas] == [("a", 0), ("a", 1)]
    assert found.rows[0].cells == {"GPU": {0: 10, 1: 10}}


def test_what_is_offloaded_is_another_tier() -> None:
    fleet = Fleet()
    fleet.store("a", SYSTEM)
    fleet.store("b", SYSTEM)
    fleet.store("a", SYSTEM, medium="CPU")
    found = fleet.map()
    assert found.rows[0].cells == {"GPU": {0: 10, 1: 10}, "CPU": {0: 10}}
    assert found.replicas[0].tiers == {"GPU": 10, "CPU": 10}
    assert found.duplicate_blocks == 10


def test_models_and_adapters_share_nothing() -> None:
    fleet = Fleet()
    fleet.serves("a", "one")
    fleet.serves("b", "two")
    fleet.store("a", SYSTEM)
    fleet.store("b", SYSTEM)
    fleet.store("a", SYSTEM, salt=3, extra=ExtraKeys(None, "adapter", None))
    found = fleet.map()
    assert found.rows == ()
    assert (found.distinct_blocks, found.duplicate_blocks) == (30, 0)


def test_what_nobody_shares_is_no_row_and_the_weightiest_come_first() -> None:
    fleet = Fleet()
    for server in ("a", "b"):
        fleet.store(server, range(100, 108))
        fleet.store(server, SYSTEM)
    fleet.store("a", range(200, 400))
    found = fleet.map()
    assert [row.blocks for row in found.rows] == [10, 2]
    assert [row.blocks for row in fleet.map(1).rows] == [10]
    assert found.prefixes == 3


def test_a_chain_without_its_start_stands_by_itself() -> None:
    fleet = Fleet()
    for server in ("a", "b"):
        fleet.store(server, SYSTEM, after=4)
    (row,) = fleet.map().rows
    assert row.cells == {"GPU": {0: 6, 1: 6}}
    fleet.store("a", SYSTEM[:16])
    assert fleet.map().replicas[0].blocks == 10


def test_a_cleared_fleet_is_empty() -> None:
    fleet = Fleet()
    assert fleet.map() == ResidencyMap((), (), 0, 0, 0, 0)
