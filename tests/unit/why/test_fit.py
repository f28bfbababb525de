import pytest

from app.model.ttft import TtftSample
from app.why import fit
from app.why.fit import fit_line, missing

LENGTHS = (50, 100, 200, 400, 800, 1200, 1600, 2400, 3200)


def line(tokens: tuple[int, ...], wiggle: float = 0.0) -> list[TtftSample]:
    return [TtftSample(n, 33.0 + 0.2 * n + wiggle * (-1) ** i) for i, n in enumerate(tokens)]


def test_a_straight_line_is_found() -> None:
    found = fit_line(line(LENGTHS))
    assert found is not None
    assert (found.fixed_ms, found.token_ms) == pytest.approx((33.0, 0.2))
    assert found.cost_ms(625) == pytest.approx((125.0, 125.0, 125.0))
    assert found.ttft_ms(1000)[0] == pytest.approx(233.0)


def test_intervals_hold_the_line_and_grow_with_noise() -> None:
    calm, noisy = fit_line(line(LENGTHS, 2.0)), fit_line(line(LENGTHS, 40.0))
    assert calm is not None
    assert noisy is not None
    for found in (calm, noisy):
        assert found.token_low_ms <= found.token_ms <= found.token_high_ms
        about, early, late = found.ttft_ms(500)
        assert early <= about <= late
    assert noisy.token_high_ms - noisy.token_low_ms > calm.token_high_ms - calm.token_low_ms


@pytest.mark.parametrize(
    "tokens", [LENGTHS[:7], (500,) * 20, (500, 501, 502, 503) * 5, (10, 2000) * 8], ids=["few", "one", "near", "two"]
)
def test_too_few_or_too_alike_samples_give_no_figure(tokens: tuple[int, ...]) -> None:
    assert missing(line(tokens)) is not None
    assert fit_line(line(tokens)) is None


def test_a_line_says_nothing_far_beyond_its_samples() -> None:
    found = fit_line(line(LENGTHS))
    assert found is not None
    assert found.covers(4000)
    assert not found.covers(4001)


def test_without_numpy_the_figure_is_missing_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "find_spec", lambda name: None)
    assert "numpy" in str(missing(line(LENGTHS)))
    assert fit_line(line(LENGTHS)) is None
