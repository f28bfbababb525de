"""Whether an address of KV events can be reached from beyond the server's machine. The kernel's tables are passed in.

vLLM binds a TCP endpoint only where it has a `*`, that is, on every interface; so the question is worth asking.
"""

import ipaddress
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from ..loopback import is_loopback

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENING = "0A"


def exposed_addresses(endpoints: Iterable[str | None], tables: Iterable[str]) -> tuple[str, ...]:
    """Those of `endpoints` (tcp://HOST:PORT, subscribed to with success) that other machines reach too.

    On this machine: where the listening socket isn't bound to the loopback interface alone, by the kernel's `tables`.
    Elsewhere: it was reached over a network, so it is. A host name without a dot is a container's or a service's in a
    network of its own, and is left out.
    """
    open_ports = {port for table in tables for port in ports_beyond_loopback(table)}
    found = []
    for endpoint in endpoints:
        host, port = _split(endpoint)
        if host is None or port is None:
            continue
        if port in open_ports if is_loopback(host) else "." in host or ":" in host:
            found.append(f"{host}:{port}")
    return tuple(found)


def ports_beyond_loopback(table: str) -> set[int]:
    """Ports that something listens on beyond the loopback interface, by the text of /proc/net/tcp or tcp6."""
    ports = set()
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 4 or fields[3] != _LISTENING:
            continue
        address, _, port = fields[1].rpartition(":")
        try:
            if not _address(address).is_loopback:
                ports.add(int(port, 16))
        except ValueError:
            continue
    return ports


def read_tables() -> list[str]:
    """The kernel's tables; none where this isn't Linux."""
    tables = []
    for path in TABLES:
        try:
            tables.append(path.read_text())
        except OSError:
            continue
    return tables


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The kernel prints each word of 32 bits in the machine's own byte order, which is little endian where it runs."""
    words = [bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8)]
    address = ipaddress.ip_address(b"".join(words))
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


def _split(endpoint: str | None) -> tuple[str | None, int | None]:
    try:
        parts = urlsplit(endpoint or "")
        return (parts.hostname, parts.port) if parts.scheme == "tcp" else (None, None)
    except ValueError:
        return None, None
