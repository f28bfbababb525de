"""What the demo says in other words: nobody has to start its engine, since the demo does so itself."""

from collections.abc import Callable
from dataclasses import replace

from .observations import MetricsFailed, Observation, ServerProbed
from .sources.http_reading import START_ADVICE

DEMO_ADVICE = "The demo starts its engine again by itself, within half a minute."


def in_demo_words(emit: Callable[[Observation], None]) -> Callable[[Observation], None]:
    """`emit`, with the advice in messages about a lost server replaced."""

    def emit_in_demo_words(observation: Observation) -> None:
        match observation:
            case ServerProbed(message=str(message)):
                observation = replace(observation, message=message.replace(START_ADVICE, DEMO_ADVICE))
            case MetricsFailed(reason=reason):
                observation = replace(observation, reason=reason.replace(START_ADVICE, DEMO_ADVICE))
        emit(observation)

    return emit_in_demo_words
