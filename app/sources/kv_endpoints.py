"""Addresses of KV events and replay: vLLM's defaults, ports of ranks, and what to say where one doesn't work.

Pure; imports `errors` and `ids`.
"""

from urllib.parse import urlsplit

from ..errors import SettingsError
from ..ids import Rank, ServerId

EVENTS_PORT = 5557
REPLAY_PORT = 5558
ENABLING_FLAG = (
    '--kv-events-config \'{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557",'
    '"replay_endpoint":"tcp://*:5558","topic":"kv-events"}\''
)
"""What to start vLLM with, ready to paste."""
_WILDCARDS = ("*", "0.0.0.0", "[::]", "::", "")


def guessed_endpoint(server: ServerId, port: int, rank: Rank) -> str:
    """The server's host with vLLM's documented port, moved on by the rank. Raises SettingsError without a host."""
    return f"tcp://{_host(server)}:{port + rank}"


def rank_endpoint(endpoint: str, rank: Rank) -> str:
    """The endpoint of a data-parallel rank from that of rank 0: port + rank. A port of 0 stays what it is."""
    head, colon, port = endpoint.rpartition(":")
    if not endpoint.startswith("tcp://") or not colon or not port.isdecimal() or port == "0":
        return endpoint
    return f"{head}:{int(port) + rank}"


def usable_endpoint(endpoint: str, server: ServerId) -> str:
    """`endpoint` as one can connect to it: a wildcard host, as vLLM's own flag has it, becomes the server's host.

    Raises SettingsError, saying what to give instead.
    """
    if endpoint.startswith(("ipc://", "inproc://")):
        return endpoint
    scheme, _, rest = endpoint.partition("://")
    host, colon, port = rest.rpartition(":")
    if scheme != "tcp" or not colon or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise SettingsError(f"{endpoint!r} is no address of KV events. Give it as tcp://HOST:PORT.")
    if int(port) < 3:
        # vLLM takes a free port for 0, and adds the rank: what it chose is in its log alone.
        raise SettingsError(
            f"Port {port} cannot be subscribed. Start vLLM with a fixed port ({ENABLING_FLAG}) and give that."
        )
    if host in _WILDCARDS:
        host = _host(server)
    return f"tcp://{host}:{int(port)}"


def resolved_endpoints(events: str | None, replay: str | None, server: ServerId, rank: Rank) -> tuple[str, str]:
    """The two addresses of a rank to connect to; the second is "" where there is no replay.

    What is given is rank 0's; None is guessed: the server's host and vLLM's documented ports. Replay is guessed only
    beside events on their documented port: beside others, port 5558 may well be another server's. Raises SettingsError.
    """
    given = guessed_endpoint(server, EVENTS_PORT, Rank(0)) if events is None else events
    events = rank_endpoint(usable_endpoint(given, server), rank)
    host, _, port = events.rpartition(":")
    if replay is None and port == str(EVENTS_PORT + rank):
        replay = f"{host}:{REPLAY_PORT + rank}"
        return events, replay
    return events, rank_endpoint(usable_endpoint(replay, server), rank) if replay else ""


def nothing_publishes(endpoint: str, is_guessed: bool, rank: Rank = Rank(0)) -> str:  # noqa: B008
    """For an address where nothing listens."""
    if rank:
        return (
            f"Data-parallel rank {rank} publishes on the port of rank 0 plus {rank}, and nothing listens at "
            f"{endpoint}. Open that port, or check the address of rank 0."
        )
    tried = "No address of KV events was given, so " if is_guessed else ""
    return (
        f"{tried}{endpoint} was tried, and nothing publishes there. Start vLLM with {ENABLING_FLAG}, or give the right "
        "address with --kv-events. Without events the block picture stays empty."
    )


def connects_instead(endpoint: str, replay: str) -> str:
    """For an address where nothing listens although the replay beside it answers."""
    return (
        f"Nothing listens at {endpoint}, but {replay} replays: the publisher connects to its address instead of "
        'binding it. Write the endpoint in --kv-events-config with a star: "endpoint":"tcp://*:5557".'
    )


def other_topics(topic: str, found: str) -> str:
    """For a subscription that no message fits."""
    return (
        f"Events of the topic {found!r} are published, and {topic!r} was subscribed to: none of them comes. Give the "
        "right prefix with --kv-topic, or none for all."
    )


def not_a_publisher(endpoint: str) -> str:
    """For an address where something else listens."""
    return (
        f"What answers at {endpoint} doesn't publish KV events. Check the port: vLLM's events are on {EVENTS_PORT}, "
        f"their replay on {REPLAY_PORT}, unless --kv-events-config says otherwise."
    )


def no_replay(endpoint: str | None) -> str:
    """For a stream whose past can't be had; `endpoint` is None or "" where no replay address is known."""
    where = f"{endpoint} doesn't answer" if endpoint else "no address was given"
    return (
        f"Events arrive, but can't be replayed ({where}): what is missed stays missing until the cache is cleared. "
        'Start vLLM with "replay_endpoint":"tcp://*:5558" in --kv-events-config.'
    )


def _host(server: ServerId) -> str:
    try:
        host = urlsplit(server).hostname
    except ValueError:
        host = None
    if not host:
        raise SettingsError(f"{server!r} names no host. Give the server as http://HOST:PORT.")
    return f"[{host}]" if ":" in host else host
