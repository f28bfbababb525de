"""What the choice of a replica cost: the account of each request, and the lesson of eight replicas."""

from collections.abc import Callable

import pytest

from app.events import Routing
from app.ids import Rank, ServerId
from app.observations import BlockStored, KvBatch, ServerProbed
from tests.scenarios.tables import CLEARED, SERVER, SIZE, Scene, removed, stored

OTHER = ServerId("http://127.0.0.1:8001")
PROMPT = tuple(range(13))  # three blocks and one token


class Fleet(Scene):
    """Several servers of one model."""

    def __init__(self, *servers: ServerId) -> None:
        super().__init__()
        self._seq: dict[ServerId, int] = {}
        for server in servers:
            self.apply(ServerProbed(server, "up", None, self.now, "0.32.0", ("m",)))
            self.holds(server, stored(99, tokens=(99,) * SIZE))

    def holds(self, server: ServerId, *events: object) -> None:
        """One batch of a server's events."""
        number = self._seq[server] = self._seq.get(server, -1) + 1
        self.now += 0.01
        self.apply(KvBatch(server, Rank(0), number, events, self.now, False, "map"))  # type: ignore[arg-type]

    def asked(self, server: ServerId, cached: int, prompt: tuple[int, ...] = PROMPT, name: str = "r") -> Routing | None:
        self.send(name, prompt, server=server)
        return self.end(name, len(prompt), cached=cached).routing


def lost(routing: Routing | None) -> tuple[int, int, int | None, int | None]:
    """Tokens lost by workload, eviction, placement and staleness, which make up all that could be reused."""
    assert routing is not None
    each = (
        routing.workload_lost_tokens, routing.eviction_lost_tokens, routing.placement_lost_tokens,
        routing.staleness_lost_tokens,
    )  # fmt: skip
    if routing.chosen_tokens is not None:
        assert sum(part or 0 for part in each) == routing.reusable_tokens - routing.delivered_tokens
    return each


def test_nothing_like_it_was_anywhere() -> None:
    assert lost(Fleet(SERVER, OTHER).asked(SERVER, 0)) == (12, 0, 0, 0)


def test_another_replica_had_it() -> None:
    fleet = Fleet(SERVER, OTHER)
    fleet.holds(OTHER, stored(1, 2, 3))
    fleet.holds(SERVER, stored(1))
    routing = fleet.asked(SERVER, 4)
    assert lost(routing) == (0, 0, 8, 0)
    assert routing is not None
    assert (routing.replicas, routing.best_server, routing.best_rank, routing.complete) == (2, OTHER, 0, True)


def test_it_was_evicted_everywhere() -> None:
    fleet = Fleet(SERVER, OTHER)
    fleet.holds(OTHER, stored(1, 2, 3))
    fleet.holds(OTHER, removed(3))
    fleet.holds(SERVER, stored(1))
    assert lost(fleet.asked(SERVER, 4)) == (0, 4, 4, 0)


def test_events_said_that_it_was_there() -> None:
    fleet = Fleet(SERVER, OTHER)
    fleet.holds(SERVER, stored(1, 2, 3))
    routing = fleet.asked(SERVER, 0)
    assert lost(routing) == (0, 0, 0, 12)
    assert routing is not None
    assert routing.best_server == SERVER


def test_what_was_reused_was_there_whatever_events_said() -> None:
    routing = Fleet(SERVER, OTHER).asked(SERVER, 8)
    assert lost(routing) == (4, 0, 0, 0)
    assert routing is not None
    assert (routing.ceiling_tokens, routing.best_tokens, routing.chosen_tokens) == (8, 8, 8)


def test_what_came_after_the_send_was_not_there_yet() -> None:
    fleet = Fleet(SERVER, OTHER)
    fleet.send("r", PROMPT, server=SERVER)
    fleet.holds(OTHER, stored(1, 2, 3))
    assert lost(fleet.end("r", 13, cached=0).routing) == (12, 0, 0, 0)


def test_a_cleared_replica_holds_nothing() -> None:
    fleet = Fleet(SERVER, OTHER)
    fleet.holds(OTHER, stored(1, 2, 3))
    fleet.holds(OTHER, CLEARED)
    assert lost(fleet.asked(SERVER, 0)) == (12, 0, 0, 0)


def test_another_models_server_is_no_replica() -> None:
    fleet = Fleet(SERVER, OTHER)
    fleet.apply(ServerProbed(OTHER, "up", None, fleet.now, "0.32.0", ("another",)))
    assert fleet.asked(SERVER, 0) is None


def test_one_server_has_nothing_to_choose() -> None:
    assert Fleet(SERVER).asked(SERVER, 0) is None


def test_ranks_are_replicas_too() -> None:
    scene = Scene()
    scene.kv(stored(99, tokens=(99,) * 4), rank=0)
    scene.kv(stored(1, 2, 3), rank=1)
    scene.send("r", PROMPT)
    scene.kv(stored(1, 2, 3), rank=0)
    assert lost(scene.end("r", 13, cached=0).routing) == (0, 0, 12, 0)


def round_robin(number: int) -> int:
    return number % 8


def by_prefix(number: int) -> int:
    return 5


@pytest.mark.parametrize(("choose", "cold"), [(round_robin, 8), (by_prefix, 1)])
@pytest.mark.parametrize("requests", [1, 7, 8, 9, 24])
def test_eight_replicas(choose: Callable[[int], int], cold: int, requests: int) -> None:
    """A shared prefix hits max(0, n - 8) times of n in turn, and n - 1 times by prefix; what is lost but for the first
    request is lost by placement alone."""
    servers = [ServerId(f"http://127.0.0.1:{8000 + number}") for number in range(8)]
    fleet = Fleet(*servers)
    delivered = placement = workload = 0
    seen: set[int] = set()
    for number in range(requests):
        at = choose(number)
        routing = fleet.asked(servers[at], 12 if at in seen else 0, (*range(12), 1000 + number), f"r{number}")
        event: BlockStored = stored(1, 2, 3, tokens=tuple(range(12)))
        if at not in seen:
            fleet.holds(servers[at], event)
        seen.add(at)
        assert routing is not None
        delivered += routing.delivered_tokens
        placement += routing.placement_lost_tokens or 0
        workload += routing.workload_lost_tokens
    assert delivered == max(0, requests - cold) * 12
    assert workload == 12
    assert placement == (min(requests, cold) - 1) * 12
