"""Whether an address is this machine's own alone. Pure."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether `host`, a name or an address without a port, is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
