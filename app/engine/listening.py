"""Addresses to listen on, and what is said when one can't be had."""

import errno
import os
import socket

MAX_PORT = 65535


class PortTaken(Exception):
    """An address that can't be listened on; the text is one clear line."""

    def __init__(self, host: str, port: int, purpose: str, reason: str) -> None:
        super().__init__(f"cannot listen on {host}:{port} for {purpose}: {reason[:1].lower()}{reason[1:]}")


def check_port(host: str, port: int, purpose: str) -> None:
    """Raises PortTaken for a number that is no port."""
    if not 0 <= port <= MAX_PORT:
        raise PortTaken(host, port, purpose, f"ports are 0 to {MAX_PORT}")


def resolve(host: str) -> str:
    """The numeric address of a name; a numeric one is itself. Raises OSError where it has none."""
    return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])


def zmq_address(host: str, port: int) -> str:
    """`tcp://host:port` to bind to; port 0 takes a free one."""
    address = resolve(host)
    return f"tcp://{bracketed(address)}:{port or '*'}"


def bracketed(host: str) -> str:
    """A host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket; port 0 takes a free one. Raises PortTaken."""
    check_port(host, port, "HTTP")
    try:
        address = resolve(host)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise PortTaken(host, port, "HTTP", error.strerror or str(error)) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(2048)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        reason = os.strerror(errno.EADDRINUSE) if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise PortTaken(host, port, "HTTP", reason) from None
    return listener
