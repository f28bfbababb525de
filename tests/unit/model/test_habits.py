import pytest

from app.events import ForecastScore
from app.model.habits import Habits


def outcomes(habits: Habits, observed: list[tuple[int, int]], size: int) -> list[int]:
    """Feeds (prompt tokens, cached tokens) of resident prompts; returns what was forecast of each."""
    forecasts = []
    for length, cached in observed:
        matched = (length - 1) // size
        forecast = habits.hit_blocks(matched) * size
        habits.learn(matched, forecast, cached, size)
        forecasts.append(forecast)
    return forecasts


EAGLE = [(3784, 0), (7542, 4288), (11292, 8576), (15019, 12864), (18770, 15008)]


def test_the_last_block_that_a_server_drops_is_learned_from_two_requests() -> None:
    habits = Habits()
    assert outcomes(habits, EAGLE, 2144) == [2144, 6432, 8576, 12864, 15008]
    assert habits.dropped_blocks == 1
    assert outcomes(habits, EAGLE, 2144) == [cached for _, cached in EAGLE]


def test_an_alignment_of_many_blocks_is_learned() -> None:
    habits = Habits()
    assert outcomes(habits, [(32_769, 16_384), (32_769, 16_384), (32_769, 16_384)], 16) == [32_768, 32_768, 16_384]
    score = habits.score()
    assert score is not None
    assert (score.dropped_blocks, score.unit_tokens) == (1, 16_384)


@pytest.mark.parametrize("again", [[(65, 64), (65, 64), (97, 96)]])
def test_what_was_learned_wrongly_is_unlearned(again: list[tuple[int, int]]) -> None:
    habits = Habits()
    outcomes(habits, [(97, 64), (65, 32)], 32)
    assert habits.dropped_blocks == 1
    assert outcomes(habits, again, 32) == [32, 32, 96]
    assert habits.dropped_blocks == 0


def test_one_request_alone_or_two_that_disagree_teach_nothing() -> None:
    habits = Habits()
    assert outcomes(habits, [(97, 64), (97, 96), (97, 64), (97, 0), (97, 33)], 32) == [96] * 5
    assert (habits.dropped_blocks, habits.unit_blocks) == (0, 1)


def test_three_wrong_in_a_row_say_so_until_one_is_right() -> None:
    habits = Habits()
    assert habits.score() is None
    scores = []
    for cached in (0, 7, 0, 96):
        habits.learn(3, 96, cached, 32)
        scores.append(habits.score())
    messages = [score.message for score in scores if score is not None]
    assert [message is not None for message in messages] == [False, False, True, False]
    assert messages[2] is not None
    assert [score is not None and score.banner for score in scores] == [False, False, True, False]
    assert "96 cached tokens expected, 0 reported" in messages[2]
    assert scores[-1] == ForecastScore(4, 1, 0, dropped_blocks=0, unit_tokens=32, last_drift_tokens=0, drift_tokens=281)
