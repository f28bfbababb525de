"""Who may open the live stream or post to the API from a browser: pages of this dashboard only. Pure.

A page of another site can give its own name this machine's address ("DNS rebinding") and is then of the same origin.
So the names that the dashboard is opened by are known ones.
"""

import ipaddress
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


class NotAllowed(PrefixScopeError):
    """An action that the settings don't allow."""

    status = 403
    code = "not_allowed"


class UnknownHost(PrefixScopeError):
    """The dashboard was asked for by a name that isn't known to be its own."""

    status = 403
    code = "unknown_host"


def known_hosts(allowed_hosts: str, *own: str) -> frozenset[str]:
    """The names of the setting `allowed_hosts`, and the machine's `own`, in lower case."""
    return frozenset(name.strip().lower() for name in (*allowed_hosts.split(","), *own)) - {""}


def is_known_host(host: str | None, known: frozenset[str]) -> bool:
    """Whether a `Host` header names localhost, an address or one of `known`; "*" in there is any name.

    Nobody can give another site's page an address for its name. No Host is a program: browsers always send it.
    """
    if host is None or "*" in known:
        return True
    named = _HOST_HEADER.fullmatch(host)
    if named is None:
        return False
    name = named["host"].lower().removesuffix(".")
    return name == "localhost" or name.endswith(".localhost") or name in known or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


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
