from app.web.rate import BURST_S, Rate


def test_a_burst_then_the_rate() -> None:
    rate = Rate(2.0)
    assert [rate.take("a", 0.0) for _ in range(int(2 * BURST_S))] == [0.0] * int(2 * BURST_S)
    assert rate.take("a", 0.0) == 0.5
    assert rate.take("b", 0.0) == 0.0
    assert rate.take("a", 0.25) == 0.25
    assert rate.take("a", 0.5) == 0.0
    assert rate.take("a", 0.5) == 0.5


def test_less_than_one_a_second_still_lets_the_first_pass() -> None:
    rate = Rate(0.1)
    assert rate.take("a", 0.0) == 0.0
    assert rate.take("a", 1.0) == 9.0
    assert rate.take("a", 10.0) == 0.0


def test_of_too_many_clients_those_seen_longest_ago_are_forgotten() -> None:
    rate = Rate(1.0, max_clients=2)
    for client in ("a", "b", "c"):
        rate.take(client, 0.0)
    assert len(rate) == 2
    for _ in range(4):
        rate.take("c", 0.0)
    assert rate.take("c", 0.0) == 1.0
