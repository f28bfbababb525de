"""Who may open the live stream or post to the API from a browser: pages of this dashboard only. Pure."""

import re

from ..errors import PrefixScopeError

_HOST = r"(?P<host>\[[0-9a-f:.]+\]|[^\s/@:\[\]?#]+)(?::(?P<port>[0-9]{1,5}))?"
_ORIGIN = re.compile(rf"(?P<scheme>https?)://{_HOST}", re.IGNORECASE)
_HOST_HEADER = re.compile(_HOST, re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}


class ForeignOrigin(PrefixScopeError):
    """A page of another site tried to listen in, or to change something."""

    status = 403
    code = "foreign_origin"


def is_same_origin(origin: str | None, host: str | None) -> bool:
    """Whether an `Origin` header names the same host and port as the `Host` header; no Origin is a program, and may.

    The scheme isn't compared: behind a proxy that ends TLS the two differ. A browser sends "null" from a sandbox or a
    file; that is nobody.
    """
    if origin is None:
        return True
    named, own = _ORIGIN.fullmatch(origin), _HOST_HEADER.fullmatch(host or "")
    if named is None or own is None:
        return False
    default = _DEFAULT_PORTS[named["scheme"].lower()]
    return _place(named, default) == _place(own, default)


def _place(found: re.Match[str], default_port: int) -> tuple[str, int]:
    return found["host"].lower(), int(found["port"] or default_port)
