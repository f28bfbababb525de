import pytest

from app.ids import Rank, ServerId
from app.model.stream_health import StreamBook
from app.observations import KvBatch, KvGap, KvStreamState

SERVER = ServerId("http://127.0.0.1:8000")


def batch(seq: int, *, replayed: bool = False, malformed: int = 0) -> KvBatch:
    return KvBatch(SERVER, Rank(0), seq, (), float(seq), replayed, None, malformed)


def gap(first: int, last: int, recovered: int) -> KvGap:
    return KvGap(SERVER, Rank(0), first, last, recovered, 1.0)


def state(name: str, message: str | None = None) -> KvStreamState:
    return KvStreamState(SERVER, Rank(0), name, "tcp://127.0.0.1:5557", message, 1.0)  # type: ignore[arg-type]


def book(*seqs: int) -> StreamBook:
    made = StreamBook(Rank(0))
    for seq in seqs:
        assert made.take_batch(batch(seq))
    return made


def test_nothing_heard_is_no_coverage() -> None:
    assert book().coverage == "none"


def test_from_the_first_batch_on_all_is_known() -> None:
    assert book(0, 1, 2).coverage == "complete"


def test_a_late_start_without_replay_is_partial() -> None:
    made = book(7)
    assert made.coverage == "partial"
    health = made.health(0.0, 0, 0)
    assert (health.gaps, health.lost) == (1, 7)


def test_a_late_start_that_replay_recovers_is_complete() -> None:
    made = book()
    made.take_gap(gap(0, 1, 2))
    assert made.take_batch(batch(0, replayed=True))
    assert not made.resynced()
    assert made.take_batch(batch(1, replayed=True))
    assert made.resynced()
    assert not made.resynced()
    assert made.take_batch(batch(2))
    assert (made.coverage, made.health(0.0, 0, 0).replayed) == ("complete", 2)


@pytest.mark.parametrize("recovered", [0, 2])
def test_what_replay_does_not_reach_stays_partial_until_the_cache_is_emptied(recovered: int) -> None:
    made = book(0)
    made.take_gap(gap(1, 5, recovered))
    for seq in range(6 - recovered, 7):
        assert made.take_batch(batch(seq))
    health = made.health(0.0, 0, 0)
    assert (health.coverage, health.gaps, health.lost) == ("partial", 1, 5 - recovered)
    assert made.emptied()
    assert made.coverage == "complete"


def test_a_batch_that_was_applied_already_is_left_out() -> None:
    made = book(0, 1)
    assert not made.take_batch(batch(1))
    assert made.batches == 2


def test_after_a_restart_numbers_start_anew() -> None:
    made = book(0, 1, 2)
    made.restarted(2.0, sequence=True)
    assert made.take_batch(batch(0))
    health = made.health(0.0, 0, 0)
    assert (health.coverage, health.restarts, health.last_seq) == ("complete", 1, 0)


def test_a_restart_that_counters_told_keeps_the_numbers() -> None:
    made = book(0, 1)
    made.restarted(2.0, sequence=False)
    assert not made.take_batch(batch(1))


def test_nobody_knows_what_goes_by_while_the_connection_is_lost() -> None:
    made = book(0)
    made.take_state(state("disconnected"))
    assert made.coverage == "partial"
    assert made.take_batch(batch(1))
    assert (made.coverage, made.state) == ("complete", "connected")


def test_a_silent_stream_says_why_until_it_speaks() -> None:
    made = book()
    made.take_state(state("silent", "Wrong topic."))
    health = made.health(0.0, 0, 0)
    assert (health.state, health.message) == ("silent", "Wrong topic.")
    assert made.take_batch(batch(0))
    assert made.health(0.0, 0, 0).state == "connected"


def test_an_event_that_cannot_be_read_makes_the_picture_partial() -> None:
    made = book(0)
    assert made.take_batch(batch(1, malformed=2))
    assert (made.coverage, made.malformed) == ("partial", 2)
