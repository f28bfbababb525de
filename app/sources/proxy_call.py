"""A client's request as the proxy takes it, and what the headers of the dashboard's own say of it."""

from collections.abc import Mapping
from typing import NamedTuple

from ..observations import Origin
from ..settings import Mode
from .upstream import RawHeaders

OWN_PREFIX = b"x-prefixscope-"
_MODES: dict[bytes, Mode] = {b"off": "off", b"observe": "observe", b"enrich": "enrich"}
_ORIGINS: dict[bytes, Origin] = {b"page": "page", b"scenario": "scenario"}


class Call(NamedTuple):
    """A client's request. `target` is the path with its query, as the client wrote it; header names are lower case.

    body: in pieces where it is large.

    from_own_page: a page of this dashboard sent it, so what its headers say of its origin counts.
    began_s: when its head had been read, by the clock's monotonic seconds; None where nobody noted it.
    """

    method: str
    path: str
    target: bytes
    headers: RawHeaders
    body: bytes | tuple[bytes, ...]
    from_own_page: bool = False
    began_s: float | None = None


class Wishes(NamedTuple):
    """What a request's `X-PrefixScope-*` headers ask for: who sent it, in which mode, and whether its salt is ours."""

    origin: Origin
    mode: Mode
    cold: bool


def read_wishes(call: Call, default_mode: Mode) -> Wishes:
    """The wishes of `call`. Its origin counts only where its page is the dashboard's own; nonsense is as if absent."""
    own: Mapping[bytes, bytes] = {name: value.lower() for name, value in call.headers if name.startswith(OWN_PREFIX)}
    if not own:
        return Wishes("client", default_mode, False)
    claimed = own.get(OWN_PREFIX + b"origin", b"") if call.from_own_page else b""
    origin = _ORIGINS.get(claimed, "client")
    mode = _MODES.get(own.get(OWN_PREFIX + b"mode", b""), default_mode)
    return Wishes(origin, mode, origin != "client" and own.get(OWN_PREFIX + b"cold") == b"1")
