from app.demo_words import DEMO_ADVICE, in_demo_words
from app.ids import ServerId
from app.observations import MetricsFailed, Observation, ServerProbed
from app.sources.http_reading import START_ADVICE

SERVER = ServerId("http://127.0.0.1:1")


def test_the_demo_tells_nobody_to_start_a_server() -> None:
    told: list[Observation] = []
    emit = in_demo_words(told.append)
    up = ServerProbed(SERVER, "up", None, 0.0)

    emit(ServerProbed(SERVER, "down", f"Nothing answers. {START_ADVICE}", 0.0))
    emit(MetricsFailed(SERVER, f"Nothing answers. {START_ADVICE}", None, 0.0))
    emit(up)

    assert told == [
        ServerProbed(SERVER, "down", f"Nothing answers. {DEMO_ADVICE}", 0.0),
        MetricsFailed(SERVER, f"Nothing answers. {DEMO_ADVICE}", None, 0.0),
        up,
    ]
