"""The requests that are kept, bounded. Imports only `ids`, `observations` and its own package."""

from collections import Counter
from collections.abc import Iterator

from ..ids import RequestId, ServerId
from ..observations import RequestStarted
from .requests import IllegalStep, Request


class RequestBook:
    """The requests kept, in order of arrival. Above `capacity` the oldest finished go; running ones never do.

    One that ends is kept at least until the next starts, or until `shrink`.
    """

    def __init__(self, capacity: int) -> None:
        self.bound = capacity
        """How many may be kept now: `capacity`, or as many as ran when one was last forgotten."""
        self._capacity = capacity
        self._kept: dict[RequestId, Request] = {}
        self._by_serial: dict[int, Request] = {}
        self._next_serial = 0
        self._running: dict[RequestId, Request] = {}
        self._running_at: Counter[ServerId] = Counter()
        self._alone: dict[ServerId, Request] = {}
        """By server: a request that waits for its first token, alone until now."""

    def __len__(self) -> int:
        return len(self._kept)

    def start(self, sent: RequestStarted) -> tuple[Request, list[Request]]:
        """A new request, and those that are forgotten for it. Raises IllegalStep for an id that is kept already."""
        if sent.request in self._kept:
            raise IllegalStep(f"request {sent.request}: started twice")
        request = Request(self._next_serial, sent)
        self._next_serial += 1
        self._kept[request.id] = self._by_serial[request.serial] = self._running[request.id] = request
        if (accompanied := self._alone.pop(sent.server, None)) is not None:
            accompanied.alone = False
        if self.is_busy(sent.server):
            request.alone = False
        else:
            self._alone[sent.server] = request
        self._running_at[sent.server] += 1
        return request, self.shrink()

    def shrink(self) -> list[Request]:
        """Forgets finished requests above the capacity, oldest first, and returns them."""
        excess = len(self._kept) - self._capacity
        self.bound = max(self._capacity, len(self._running))
        if excess <= 0:
            return []
        forgotten: list[Request] = []
        for request in self._kept.values():
            if len(forgotten) == excess:
                break
            if not request.running:
                forgotten.append(request)
        for request in forgotten:
            del self._kept[request.id]
            del self._by_serial[request.serial]
        return forgotten

    def get(self, request_id: RequestId) -> Request | None:
        """The request, where it is kept."""
        return self._kept.get(request_id)

    def by_serial(self, serial: int) -> Request | None:
        """The request, where it is kept."""
        return self._by_serial.get(serial)

    def answered(self, request: Request) -> None:
        """Its first token came: whether it was alone until then is settled."""
        if self._alone.get(request.sent.server) is request:
            del self._alone[request.sent.server]

    def end(self, request: Request) -> None:
        """Takes a request out of the running ones."""
        if self._running.pop(request.id, None) is not None:
            self._running_at[request.sent.server] -= 1
            self.answered(request)

    def is_busy(self, server: ServerId) -> bool:
        """Whether a request to this server hasn't ended."""
        return self._running_at[server] > 0

    def running(self) -> list[Request]:
        """Requests that haven't ended, in order of arrival."""
        return list(self._running.values())

    def newest_first(self) -> Iterator[Request]:
        """Every request kept."""
        return reversed(self._kept.values())

    def page(self, limit: int, after: RequestId | None) -> tuple[list[Request], RequestId | None]:
        """At most `limit` requests, newest first, older than `after`; and the id to go on after, None at the end.

        An `after` that is no longer kept gives nothing: all older ones are forgotten, too.
        """
        start = self._kept.get(after) if after is not None else None
        if after is not None and start is None:
            return [], None
        found: list[Request] = []
        for request in self.newest_first():
            if start is not None and request.serial >= start.serial:
                continue
            if len(found) == limit:
                return found, found[-1].id
            found.append(request)
        return found, None
