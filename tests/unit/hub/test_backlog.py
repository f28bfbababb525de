import pytest

from app.hub.backlog import Backlog


def filled(capacity: int, messages: int, first_seq: int = 2) -> Backlog:
    backlog = Backlog(capacity, first_seq)
    for index in range(messages):
        backlog.append(b"%d" % (first_seq + index))
    return backlog


def test_an_empty_backlog_has_nothing_to_give_but_can_be_resumed_from_its_start() -> None:
    backlog = Backlog(3, first_seq=2)

    assert backlog.since(1, 10) == []
    assert backlog.holds_all_since(1)
    assert not backlog.holds_all_since(0)
    assert not backlog.holds_all_since(2)


@pytest.mark.parametrize("messages", range(1, 12))
@pytest.mark.parametrize("capacity", [1, 2, 3, 5])
def test_it_keeps_the_last_messages_under_their_numbers(capacity: int, messages: int) -> None:
    backlog = filled(capacity, messages)
    newest = 1 + messages
    oldest = max(2, newest - capacity + 1)

    assert (backlog.oldest_seq, backlog.next_seq) == (oldest, newest + 1)
    for seq in range(oldest - 1, newest + 1):
        assert backlog.since(seq, 100) == [b"%d" % number for number in range(seq + 1, newest + 1)]


def test_a_limit_cuts_the_newest() -> None:
    assert filled(5, 5).since(1, 2) == [b"2", b"3"]


@pytest.mark.parametrize("seq", [-1, 0, 3, 12, 99])
def test_what_is_no_longer_kept_or_never_was_is_refused(seq: int) -> None:
    backlog = filled(3, 6)

    assert not backlog.holds_all_since(seq)
    with pytest.raises(LookupError):
        backlog.since(seq, 10)


def test_a_backlog_of_nothing_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Backlog(0, 1)
