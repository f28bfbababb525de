"""Who may open the live stream or post to the API from a browser: pages of this dashboard only. Pure."""

from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}


def is_same_origin(origin: str | None, host: str | None) -> bool:
    """Whether an `Origin` header names the same host and port as the `Host` header; no Origin is a program, and may.

    The scheme isn't compared: behind a proxy that ends TLS the two differ. A browser sends "null" from a sandbox or a
    file; that is nobody.
    """
    if origin is None:
        return True
    if host is None:
        return False
    try:
        parts = urlsplit(origin)
        named = (parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme))
        own_parts = urlsplit(f"{parts.scheme}://{host}")
        own = (own_parts.hostname, own_parts.port or _DEFAULT_PORTS.get(parts.scheme))
    except ValueError:
        return False
    return named[0] is not None and named[1] is not None and named == own
