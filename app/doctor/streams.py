"""What the KV-event streams of a server have and lack. Pure."""

from ..events import StreamHealth
from ..sources.kv_endpoints import ENABLING_FLAG
from .facts import Facts
from .words import Finding, FindingStatus, Panels

EVENTS_SINCE = (0, 9)
REPLAY_FLAG = '"replay_endpoint":"tcp://*:5558"'


def kv_events(facts: Facts) -> Finding:
    """Whether events come at all. Prefix caching off is told elsewhere, and then there are none."""
    title, panels = "KV events", Panels.EVENTS
    if not facts.streams:
        return Finding("kv_events", "unknown", title, "Not subscribed yet.", ENABLING_FLAG, panels)
    worst = min(facts.streams, key=lambda stream: _ORDER.index(stream.state))
    where = f"rank {worst.rank}, {worst.endpoint}" if worst.endpoint else f"rank {worst.rank}"
    params: dict[str, str | int | None] = {"rank": worst.rank, "endpoint": worst.endpoint}
    if worst.state not in ("connected", "connecting") and facts.is_before(EVENTS_SINCE):
        text = "This release doesn't publish KV events (since 0.9)."
        return Finding("kv_events", "unsupported", title, text, panels=panels, params=params)
    if worst.state != "connected":
        text = (worst.message or f"Nothing is heard ({where}).").replace(ENABLING_FLAG, "this flag")
        reason: str = worst.state
        if worst.diagnosis is not None:
            text, reason = worst.diagnosis.text.replace(ENABLING_FLAG, "this flag"), worst.diagnosis.code
        return Finding("kv_events", _STATUS[worst.state], title, text, ENABLING_FLAG, panels, reason, params)
    batches = sum(stream.batches for stream in facts.streams)
    if batches == 0:
        text = f"Connected ({where}); no event came yet, as no block was stored or removed."
        return Finding("kv_events", "on", title, text, None, panels, "nothing_yet", params)
    form = worst.wire_form or "map"
    text = f"Events come ({where}): {batches} batches in the {form} form."
    return Finding("kv_events", "on", title, text, None, panels, None, {**params, "batches": batches, "form": form})


_ORDER = ("off", "disconnected", "silent", "connecting", "connected")
_STATUS: dict[str, FindingStatus] = {
    "off": "missing",
    "disconnected": "missing",
    "silent": "missing",
    "connecting": "unknown",
}


def kv_history(facts: Facts) -> Finding | None:
    """Whether the picture is complete. None where no events come: that is told already."""
    heard = _heard(facts)
    if not heard:
        return None
    partial = [stream for stream in heard if stream.coverage == "partial"]
    if not partial:
        return Finding("kv_history", "on", "History", "Nothing was missed.", panels=Panels.HISTORY)
    lost = sum(stream.lost for stream in partial)
    text = (
        f"Some history is missing ({lost} batches lost), so forecasts are lower bounds until the prefix cache is reset "
        "or the server restarts."
    )
    return Finding("kv_history", "warning", "History", text, panels=Panels.HISTORY, params={"lost": lost})


def kv_replay(facts: Facts) -> Finding | None:
    """Whether what was missed can be asked for."""
    heard = [stream for stream in facts.streams if stream.state in ("connected", "silent")]
    if not heard:
        return None
    title, panels = "Replay of KV events", Panels.REPLAY
    if any(stream.replay_available is False for stream in heard):
        text = (
            f"Events can't be replayed: what is missed stays missing. Add {REPLAY_FLAG} to --kv-events-config; where "
            "it isn't port 5558 beside 5557, give its address with --kv-replay."
        )
        return Finding("kv_replay", "missing", title, text, ENABLING_FLAG, panels)
    if any(stream.replay_available is None for stream in heard):
        return Finding("kv_replay", "unknown", title, "Replay was not tried yet.", panels=panels)
    return Finding("kv_replay", "on", title, "What is missed is replayed.", panels=panels)


def kv_ranks(facts: Facts) -> Finding | None:
    """Whether every data-parallel rank is heard. None where there is one, or nothing says how many there are."""
    if facts.ranks_expected is None or facts.ranks_expected < 2:
        return None
    heard = len([stream for stream in facts.streams if stream.state == "connected"])
    params: dict[str, str | int | None] = {"heard": heard, "expected": facts.ranks_expected}
    if heard >= facts.ranks_expected:
        text = f"All {heard} data-parallel ranks are heard."
        return Finding("kv_ranks", "on", "Ranks", text, panels=Panels.RANKS, params=params)
    text = (
        f"The metrics show {facts.ranks_expected} data-parallel engines and {heard} event streams are heard. Rank r "
        "publishes on port + r: let those ports through as well."
    )
    return Finding("kv_ranks", "warning", "Ranks", text, panels=Panels.RANKS, params=params)


def _heard(facts: Facts) -> list[StreamHealth]:
    return [stream for stream in facts.streams if stream.coverage != "none"]
