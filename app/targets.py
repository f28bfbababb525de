"""Which servers are watched, and where their KV events come from: the settings, paired by position. Pure.

The first server is the one that clients' requests go to.
"""

from collections import Counter
from dataclasses import dataclass
from urllib.parse import urlsplit

from .errors import SettingsError
from .ids import Rank, ServerId
from .settings import Settings
from .sources.kv_endpoints import resolved_endpoints


@dataclass(frozen=True, slots=True)
class Target:
    """One server. kv_events, kv_replay: as the subscriber takes them; None where they are guessed.

    shares_host: others run on the same host, so that the documented ports may be any one's and nothing is guessed.
    """

    server: ServerId
    kv_events: str | None
    kv_replay: str | None
    shares_host: bool = False

    @property
    def unguessable(self) -> str | None:
        """Why its events can't be looked for; None where they can."""
        if self.kv_events is not None or not self.shares_host:
            return None
        return (
            f"Several servers run on {urlsplit(self.server).hostname}, so the port of this one's KV events can't be "
            "guessed. Give --kv-events tcp://HOST:PORT for each server, in the order of --vllm."
        )


def targets_of(settings: Settings) -> tuple[Target, ...]:
    """The servers, at least one, all different.

    Raises SettingsError where there is none, one is no http URL or carries a password, one stands twice, or there are
    more addresses of events than servers.
    """
    servers = tuple(server_id(text) for text in _listed(settings.vllm))
    if not servers:
        raise SettingsError(
            "which vLLM server? None is given", hint="Pass --vllm http://HOST:8000, or set PREFIXSCOPE_VLLM."
        )
    if len(servers) > settings.max_servers:
        raise SettingsError(
            f"vllm: {len(servers)} servers are given",
            hint=f"At most {settings.max_servers} are watched: see max_servers.",
        )
    again = [server for server, count in Counter(servers).items() if count > 1]
    if again:
        raise SettingsError(f"vllm: {again[0]} is given twice", hint="Give each server once.")
    events = _paired("kv_events", settings.kv_events, len(servers))
    replays = _paired("kv_replay", settings.kv_replay, len(servers))
    hosts = Counter(urlsplit(server).hostname for server in servers)
    return tuple(
        Target(server, event, replay, hosts[urlsplit(server).hostname] > 1)
        for server, event, replay in zip(servers, events, replays, strict=True)
    )


def kv_line(target: Target) -> str:
    """Where KV events are looked for, for the command line to say. Raises SettingsError for an unusable address."""
    if target.unguessable:
        return f"none. {target.unguessable}"
    events, replay = resolved_endpoints(target.kv_events, target.kv_replay, target.server, Rank(0))
    guess = "" if target.kv_events else " (not given: the server's host on vLLM's documented ports)"
    return f"{events}, {f'replay {replay}' if replay else 'no replay (see --kv-replay)'}{guess}"


def server_id(given: str) -> ServerId:
    """A server's base URL in its one form: no trailing slash, and without the `/v1` that clients put behind it.

    Raises SettingsError where it isn't an http URL, or carries a password.
    """
    text = given.strip().rstrip("/").removesuffix("/v1").rstrip("/")
    if "@" in text:
        # The URL names the server in the API, on the page and in the log, so it isn't repeated here either.
        raise SettingsError(
            "vllm: a URL with a user or password in it can't be used",
            hint="Give http://HOST:PORT, and the server's key as PREFIXSCOPE_VLLM_API_KEY.",
        )
    if _host(text) is None or urlsplit(text).scheme not in ("http", "https") or "?" in text or "#" in text:
        raise SettingsError(
            f"vllm: {given!r} is not the base URL of a server", hint="For example http://127.0.0.1:8000."
        )
    return ServerId(text)


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _paired(name: str, text: str | None, count: int) -> list[str | None]:
    """One entry a server: the one at its place, None where that is empty or not there."""
    parts = [part.strip() or None for part in (text or "").split(",")] if text else []
    if len(parts) > count:
        raise SettingsError(
            f"{name}: {len(parts)} addresses are given for {count} server{'s' if count > 1 else ''}",
            hint="They pair with --vllm by position; an empty place leaves one out.",
        )
    return [*parts, *[None] * (count - len(parts))]


def _host(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname
