"""What every event has: its type, and what its envelope says besides."""

from typing import ClassVar, Literal

import msgspec

from ..ids import Rank, ServerId

PROTOCOL_VERSION = 1

Basis = Literal["engine", "counter", "usage", "clock", "inferred", "modelled"]
"""Where a figure comes from: the server said so for this request (engine), its counters, the response's usage, the
dashboard's own clock, hashes that the dashboard matched (inferred), or the embedded engine's timing (modelled)."""


class Event:
    """The base of all events. `type` is its name on the wire, a noun and a past participle."""

    type: ClassVar[str]
    __slots__ = ()


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """An event on its way to the hub, with what its envelope says besides. The hub numbers it.

    at_ms: when.
    server: whose event it is; null for the dashboard's own.
    rank: which of the server's engines; null where it is the whole server's.
    basis: where the event's claims come from, where one word says it.
    """

    event: Event
    at_ms: float
    server: ServerId | None = None
    rank: Rank | None = None
    basis: Basis | None = None
