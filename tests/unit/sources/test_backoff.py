import pytest

from app.sources.backoff import Backoff


def test_pauses_double_up_to_the_cap_with_at_most_a_quarter_of_jitter() -> None:
    backoff = Backoff(1.0, 10.0)

    for whole in (1.0, 2.0, 4.0, 8.0, 10.0, 10.0):
        assert 0.75 * whole <= backoff.pause_s() <= whole


def test_two_clients_do_not_come_back_at_the_same_moment() -> None:
    assert len({Backoff(1.0, 10.0).pause_s() for _ in range(20)}) > 1


@pytest.mark.parametrize("failures", [1, 40, 5000])
def test_a_success_starts_it_anew(failures: int) -> None:
    backoff = Backoff(0.5, 60.0)
    for _ in range(failures):
        assert backoff.pause_s() <= 60.0

    backoff.reset()

    assert backoff.pause_s() <= 0.5
