"""What a time to first token is made of, and what is told of pauses."""

from typing import Any

import pytest

from app.events import FirstTokenParts, TokenGaps
from app.ids import RequestId, ServerId
from app.model.request_times import choice_ttfts_ms, durations, first_token_parts, token_gaps
from app.model.requests import Request
from app.observations import GAP_EDGES_MS, RequestEnded, RequestEngineTimes, RequestStarted

ID = RequestId("r")


def request(
    *, head_s: float | None = None, first_s: float | None = None, times: tuple[float, float] | None = None, **sent: Any
) -> Request:
    """A request that was sent at 10 s; `times` are the server's (queue_ms, ttft_ms)."""
    started = RequestStarted(ServerId("s"), ID, "/v1/completions", "client", 10.0, streamed=True, **sent)
    made = Request(0, started)
    made.head_s, made.first_s = head_s, first_s
    if times is not None:
        made.times = RequestEngineTimes(ID, 12.0, ttft_ms=times[1], queue_ms=times[0])
    return made


@pytest.mark.parametrize(
    ("head_s", "first_s", "times", "parts"),
    [
        # Recorded: head after 10.4 ms, first token after 215.4 ms, of which 199.1 ms in prefill.
        (10.0104, 10.2154, (0.034, 199.089), FirstTokenParts(10.4, 0.034, 199.089, 5.877)),
        # Recorded: the server was busy, and sent its head when the request was queued already.
        (10.0891, 10.5633, (0.046, 551.555), FirstTokenParts(None, 0.046, 551.555, 11.699)),
        (10.0104, 10.2154, None, FirstTokenParts(10.4, None, None, 205.0)),
        (None, 10.2154, None, FirstTokenParts(None, None, None, 215.4)),
        # The server's first token was no text: its time is no part of this one.
        (10.0104, 10.1, (0.0, 199.0), FirstTokenParts(10.4, None, None, 89.6)),
    ],
)
def test_parts_add_up_to_the_whole(
    head_s: float | None, first_s: float, times: tuple[float, float] | None, parts: FirstTokenParts
) -> None:
    made = request(head_s=head_s, first_s=first_s, times=times)
    found = first_token_parts(made)
    assert found is not None
    values = [found.front_ms, found.queue_ms, found.prefill_ms, found.rest_ms]
    assert values == [
        value if value is None else pytest.approx(value, abs=0.01)
        for value in (parts.front_ms, parts.queue_ms, parts.prefill_ms, parts.rest_ms)
    ]
    assert sum(value for value in values if value is not None) == pytest.approx(made.ttft_ms)


def test_without_a_first_token_there_are_no_parts() -> None:
    assert first_token_parts(request(head_s=10.1, times=(0.0, 7.0))) is None


def test_the_clients_pace_and_the_dashboards_own_time_are_told_apart() -> None:
    made = request(head_s=10.5, began_s=6.9, received_s=9.9)
    made.ended = RequestEnded(ID, "ok", 12.0, client_wait_s=0.25)
    told = durations(made)
    assert [told[name] for name in ("upload_ms", "proxy_ms", "head_ms", "client_wait_ms", "e2e_ms")] == [
        pytest.approx(3000), pytest.approx(100), pytest.approx(500), 250, 2000,
    ]  # fmt: skip


def test_what_nobody_measured_is_unknown() -> None:
    assert set(durations(request()).values()) == {None}


def test_gaps_are_told_at_the_end() -> None:
    made = request()
    assert token_gaps(made) is None
    made.ended = RequestEnded(ID, "ok", 12.0)
    assert token_gaps(made) is None
    made.ended = RequestEnded(ID, "ok", 12.0, gap_counts=(1,) * 16)
    assert token_gaps(made) == TokenGaps(GAP_EDGES_MS, (1,) * 16)


def test_each_answer_has_its_own_first_token() -> None:
    made = request(sequences=3, first_s=10.1)
    made.choice_first_s = {2: 10.1, 0: 10.25}
    told = choice_ttfts_ms(made)
    assert told is not None and told[1] is None
    assert told[0] == pytest.approx(250)
    assert told[2] == pytest.approx(100)
    alone = request(first_s=10.1)
    alone.choice_first_s = {0: 10.1}
    assert choice_ttfts_ms(alone) is None
