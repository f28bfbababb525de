"""Whom a connection counts as: its own address, or the one that a trusted reverse proxy names. Pure.

A client can write what it likes into X-Forwarded-For, and each proxy on the way adds the address that it saw to the
right. So the header counts only where a proxy of the setting `trusted_proxies` brings it, and is read from the right:
the first address there that isn't such a proxy's is the client's.
"""

import ipaddress
from collections.abc import Sequence
from typing import Any

from ..errors import SettingsError

FORWARDED_FOR = b"x-forwarded-for"
MAX_HOPS = 32
"""Of a longer list, the rightmost are read."""
_V6_CLIENT_BITS = 64
"""Of IPv6, a whole network of this size is usually one client's."""
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class ClientAddresses:
    """Reads the addresses of clients. Raises SettingsError for `trusted_proxies` that are no addresses or networks."""

    def __init__(self, trusted_proxies: str = "") -> None:
        self._trusted = tuple(_network(text.strip()) for text in trusted_proxies.split(",") if text.strip())

    def of(self, scope: Any) -> str:
        """The address that an ASGI connection counts as; an IPv6 one stands for its network of 64 bits.

        "" for a peer without an address, as at a unix socket.
        """
        client: Sequence[Any] | None = scope.get("client")
        peer = str(client[0]) if client else ""
        address = _address(peer)
        if address is None:
            return peer
        if self._trusted and self._is_trusted(address):
            address = self._behind(address, scope["headers"])
        return _counted_as(address)

    def _behind(self, address: Address, headers: Sequence[tuple[bytes, bytes]]) -> Address:
        lists = [value.decode("latin-1") for name, value in headers if name == FORWARDED_FOR]
        for text in reversed(",".join(lists).rsplit(",", MAX_HOPS)[-MAX_HOPS:]):
            hop = _address(text.strip())
            if hop is None:
                # What a trusted proxy couldn't name is counted as the proxy's own.
                return address
            address = hop
            if not self._is_trusted(hop):
                return hop
        return address

    def _is_trusted(self, address: Address) -> bool:
        return any(address in network for network in self._trusted)


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise SettingsError(
            f"trusted_proxies: {text!r} is no address and no network", hint="For example 127.0.0.1, or 10.0.0.0/8."
        ) from None


def _address(text: str) -> Address | None:
    """An address, with or without a port; an IPv4 one in IPv6 clothes is taken out of them."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _counted_as(address: Address) -> str:
    if address.version == 4 or address.is_loopback:
        return str(address)
    return str(ipaddress.ip_network((address, _V6_CLIENT_BITS), strict=False))
