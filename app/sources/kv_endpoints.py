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
    """The two addresses to connect to; the second is "" where there is no replay.

    None is guessed: the server's host and vLLM's documented ports. Replay is guessed only beside events on their
    documented port: beside others, port 5558 may well be another server's. Raises SettingsError.
    """
    events = usable_endpoint(guessed_endpoint(server, EVENTS_PORT, rank) if events is None else events, server)
    host, _, port = events.rpartition(":")
    if replay is None and port == str(EVENTS_PORT + rank):
        replay = f"{host}:{REPLAY_PORT + rank}"
    return events, usable_endpoint(replay, server) if replay else ""


def nothing_publishes(endpoint: str, is_guessed: bool) -> str:
    """For an address where nothing listens."""
    tried = "No address of KV events was given, so " if is_guessed else ""
    return (
        f"{tried}{endpoint} was tried, and nothing publishes there. Start vLLM with {ENABLING_FLAG}, or give the right "
        "address with --kv-events. Without events the block picture stays empty."
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
