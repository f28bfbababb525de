"""The table of settings: name, default, help. Parsed from a mapping that is passed in; nothing is read on import.

Each setting is the environment variable `PREFIXSCOPE_<NAME>` and, where a command has it, the flag `--<name>`.
The README shows this table, and a test compares the two.
"""

import difflib
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from .errors import SettingsError

Mode = Literal["off", "observe", "enrich"]
ENVIRONMENT_PREFIX = "PREFIXSCOPE_"
MAX_DIGITS = 15
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of the table. `default` is text, as it would stand in the environment; "" means "not set".

    `least`: the smallest whole number that can be used; of no meaning for other kinds.
    """

    name: str
    default: str
    help: str
    least: int = 1


SETTINGS: tuple[Setting, ...] = (
    Setting("host", "127.0.0.1", "address to listen on"),
    Setting("port", "8080", "port to listen on; 0 takes a free one", least=0),
    Setting(
        "allowed_hosts",
        "",
        "names beside localhost and addresses that the page is opened by, with commas between; *: any",
    ),
    Setting(
        "vllm", "", "base URL of the vLLM server, for example http://127.0.0.1:8000; more are watched, with commas"
    ),
    Setting("kv_events", "", "tcp://HOST:PORT of its KV events, paired with vllm; not set: its host on port 5557"),
    Setting("kv_replay", "", "tcp://HOST:PORT of KV-event replay, likewise; not set: port 5558 beside events on 5557"),
    Setting("kv_ranks", "", "data-parallel ranks whose KV events are followed; not set: as many as /metrics names"),
    Setting("kv_topic", "", "topic prefix to subscribe to; empty: all"),
    Setting("mode", "observe", "what is added to proxied requests: off, observe or enrich (demo: enrich)"),
    Setting("root_path", "", "path that the dashboard stands under, where the reverse proxy doesn't take it off"),
    Setting("vllm_api_key", "", "key that the vLLM server demands; never shown or logged"),
    Setting("tokens", "", "tokens of operators, with commas between; not set: whoever reaches it may do everything"),
    Setting("viewer_tokens", "", "tokens of those who may watch, but not send or change anything"),
    Setting(
        "trusted_proxies", "", "addresses or networks of reverse proxies whose X-Forwarded-For is believed, with commas"
    ),
    Setting("session_s", "43200", "seconds until a login on the page is over"),
    Setting("max_failed_logins", "5", "wrong tokens a minute and address; above it: 429 until the minute is over"),
    Setting(
        "max_client_requests_per_s", "", "proxied requests a second and address; above it: 429; not set: any number"
    ),
    Setting(
        "max_client_changes_per_s", "20", "other requests that send or change something a second and address, likewise"
    ),
    Setting("insecure", "false", "listen beyond this machine without any token"),
    Setting("show_prompts", "false", "show the text of every request, not only of the page's own (demo: true)"),
    Setting("redact", "false", "show no text at all, of the page's own requests neither; wins over show_prompts"),
    Setting("allow_cache_reset", "false", "let the page have the server empty its prefix cache (VLLM_SERVER_DEV_MODE)"),
    Setting("scrape_interval_s", "1", "seconds between two readings of /metrics"),
    Setting("scrape_timeout_s", "5", "seconds after which a reading of /metrics is given up"),
    Setting("connect_timeout_s", "5", "seconds to reach a server"),
    Setting("read_timeout_s", "600", "seconds without a byte after which a proxied response is given up"),
    Setting("ping_interval_s", "", "seconds between comments to a stream's client until its first byte; not set: none"),
    Setting("report_all_reuse", "false", "enrich: have vLLM announce reused blocks to all that listen to its events"),
    Setting("extra_paths", "", "further paths of the server that are passed on, with commas; * at the end: all below"),
    Setting("max_streams", "1000", "requests proxied at once; above it: 503 with Retry-After"),
    Setting("max_body_bytes", "104857600", "largest request body that is passed on"),
    Setting(
        "max_held_bytes", "1073741824", "bytes of request bodies in memory at once; above it: 503 with Retry-After"
    ),
    Setting("max_waiting_bodies", "16", "bodies above 256 KB that wait to be read; further ones pass unread"),
    Setting("body_timeout_s", "60", "seconds within which a request's body must come, or each 64 KB of it"),
    Setting("max_head_bytes", "65536", "largest head of a request; above it: 431"),
    Setting("head_timeout_s", "60", "seconds within which a request's head must come"),
    Setting("keep_alive_s", "75", "seconds that a client's connection may rest between two requests"),
    Setting("max_connections", "10000", "connections at once; above it the one that rested longest gives way"),
    Setting("max_sse_line_bytes", "4194304", "longest stream line or body that is read; longer ones pass unread"),
    Setting("max_tokenize_bytes", "4194304", "largest request body whose prompt is tokenised"),
    Setting("tokenize_timeout_s", "10", "seconds after which a server's tokenizer is no longer waited for"),
    Setting("max_tokenize_per_s", "20", "prompts a second that a server's tokenizer is asked for, beside the page's"),
    Setting("max_metrics_bytes", "67108864", "largest /metrics page that is read"),
    Setting("max_servers", "64", "servers watched at once"),
    Setting("max_requests", "10000", "requests kept"),
    Setting("max_snapshot_requests", "200", "requests in a snapshot"),
    Setting("max_blocks", "2000000", "resident blocks kept a server and rank"),
    Setting(
        "max_removed_blocks", "200000", "removed blocks remembered a server and rank, for forecasts as of the past"
    ),
    Setting("max_metrics_points", "900", "metrics readings kept a server"),
    Setting("max_backlog_events", "20000", "events kept for browsers that resume"),
    Setting("max_client_queue_events", "5000", "events waiting for one browser; above it: a fresh snapshot instead"),
    Setting("max_clients", "1000", "browsers connected at once"),
    Setting("max_kv_message_bytes", "67108864", "largest KV-event message that is read"),
    Setting("kv_receive_hwm", "100000", "KV-event messages waiting at each step; what comes above it is a gap"),
    Setting("heartbeat_s", "15", "seconds between heartbeats to a browser"),
    Setting("browser_ping_interval_s", "20", "seconds between websocket pings to a browser"),
    Setting("browser_ping_timeout_s", "60", "seconds without a pong after which a browser counts as gone"),
    Setting("shutdown_grace_s", "10", "seconds that running streams get to end on shutdown"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The parsed table; the fields are its names. None is "not set"."""

    host: str
    port: int
    allowed_hosts: str
    vllm: str | None
    kv_events: str | None
    kv_replay: str | None
    kv_ranks: int | None
    kv_topic: str
    mode: Mode
    root_path: str
    vllm_api_key: str | None
    tokens: str
    viewer_tokens: str
    trusted_proxies: str
    session_s: float
    max_failed_logins: int
    max_client_requests_per_s: float | None
    max_client_changes_per_s: float | None
    insecure: bool
    show_prompts: bool
    redact: bool
    allow_cache_reset: bool
    scrape_interval_s: float
    scrape_timeout_s: float
    connect_timeout_s: float
    read_timeout_s: float
    ping_interval_s: float | None
    report_all_reuse: bool
    extra_paths: str
    max_streams: int
    max_body_bytes: int
    max_held_bytes: int
    max_waiting_bodies: int
    body_timeout_s: float
    max_head_bytes: int
    head_timeout_s: float
    keep_alive_s: float
    max_connections: int
    max_sse_line_bytes: int
    max_tokenize_bytes: int
    tokenize_timeout_s: float
    max_tokenize_per_s: float
    max_metrics_bytes: int
    max_servers: int
    max_requests: int
    max_snapshot_requests: int
    max_blocks: int
    max_removed_blocks: int
    max_metrics_points: int
    max_backlog_events: int
    max_client_queue_events: int
    max_clients: int
    max_kv_message_bytes: int
    kv_receive_hwm: int
    heartbeat_s: float
    browser_ping_interval_s: float
    browser_ping_timeout_s: float
    shutdown_grace_s: float

    def shows_text_of(self, origin: str) -> bool:
        """Whether a request's text may leave the dashboard. `origin`: "client", or who of our own sent it."""
        return not self.redact and (origin != "client" or self.show_prompts)


def load_settings(environment: Mapping[str, str], overrides: Mapping[str, str | None] | None = None) -> Settings:
    """Settings from `PREFIXSCOPE_*` entries of `environment`; entries of `overrides` that aren't None win.

    Raises SettingsError, naming the setting and what it accepts, for a value that can't be used, and see
    `own_variables`.
    """
    environment = own_variables(environment)
    parsed: dict[str, Any] = {}
    for setting in SETTINGS:
        text = environment.get(ENVIRONMENT_PREFIX + setting.name.upper(), setting.default)
        override = (overrides or {}).get(setting.name)
        if override is not None:
            text = override
        parsed[setting.name] = _parse(setting, text.strip())
    settings = Settings(**parsed)
    key = settings.vllm_api_key or ""
    if not (key.isascii() and key.isprintable()):
        raise SettingsError(
            "vllm_api_key: the key has characters that an HTTP header can't carry (it isn't repeated here)",
            hint=f"Look for a line break or a typographic quote in {ENVIRONMENT_PREFIX}VLLM_API_KEY.",
        )
    return settings


def own_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The `PREFIXSCOPE_*` entries of `environment` that are settings.

    Kubernetes puts the address of a service that is called prefixscope, or prefixscope-something, into every container
    beside it, under names of the same prefix: those are left out, with a line in the log. Raises SettingsError for any
    other name that isn't in the table, so that a misspelt one isn't lost in silence.
    """
    names = {setting.name for setting in SETTINGS}
    found: dict[str, str] = {}
    links: list[str] = []
    for variable, value in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if _SERVICE_LINK.fullmatch(name) or (_PORT_LINK.fullmatch(name) and _LINK_VALUE.match(value)):
            links.append(variable)
        elif name in names:
            found[variable] = value
        else:
            near = difflib.get_close_matches(name, names, 1)
            meant = f"Is {ENVIRONMENT_PREFIX}{near[0].upper()} meant? " if near else ""
            raise SettingsError(f"{variable} is not a setting", hint=f"{meant}See the table of settings in the README.")
    if links:
        logger.warning("not settings but the addresses of a Kubernetes service, left out: %s", ", ".join(sorted(links)))
    return found


_SERVICE_LINK = re.compile(
    r"(\w+_)?service_(host|port(_\w+)?)|(\w+_)?port_\d+_(tcp|udp|sctp)(_(proto|port|addr))?", re.ASCII
)
_PORT_LINK = re.compile(r"(\w+_)?port", re.ASCII)
_LINK_VALUE = re.compile(r"(tcp|udp|sctp)://")


def _parse(row: Setting, text: str) -> object:
    field_type = _FIELD_TYPES[row.name]
    if not text and type(None) in get_args(field_type):
        return None
    try:
        if field_type is int or int in get_args(field_type):
            return _count(text, row.least)
        for kind, parser in _PARSERS.items():
            if kind == field_type or kind in get_args(field_type):
                return parser(text)
    except ValueError as error:
        raise SettingsError(f"{row.name}: {text!r} is not {error}", hint=f"It is: {row.help}.") from None
    raise AssertionError(f"no parser for setting {row.name}")


def _count(text: str, least: int) -> int:
    if not text.isdecimal() or len(text) > MAX_DIGITS or int(text) < least:
        raise ValueError(f"a whole number of {least} or more, in at most {MAX_DIGITS} digits")
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError("a number above 0")
    return value


def _truth(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("", "0", "false", "no", "off"):
        return False
    raise ValueError("true or false")


def _mode(text: str) -> str:
    if text not in get_args(Mode):
        raise ValueError("off, observe or enrich")
    return text


_PARSERS: dict[object, Callable[[str], object]] = {
    Mode: _mode,
    bool: _truth,
    float: _positive,
    str: str,
}
_FIELD_TYPES = {f.name: f.type for f in fields(Settings)}
