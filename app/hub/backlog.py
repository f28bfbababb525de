"""A ring of encoded events by sequence number, so that a browser can resume. Pure: no IO, no clock, no asyncio."""


class Backlog:
    """The last `capacity` messages of one run of the dashboard, numbered without holes.

    `first_seq` is the number that the first message gets. Memory is bounded by `capacity` messages.
    """

    def __init__(self, capacity: int, first_seq: int) -> None:
        if capacity < 1:
            raise ValueError("a backlog keeps at least one message")
        self._capacity = capacity
        self._first_seq = first_seq
        self._next_seq = first_seq
        self._ring: list[bytes] = []

    @property
    def next_seq(self) -> int:
        """The number that the next message gets."""
        return self._next_seq

    @property
    def oldest_seq(self) -> int:
        """The number of the oldest message that is kept; `next_seq` where none is."""
        return self._next_seq - len(self._ring)

    def append(self, message: bytes) -> None:
        """Keeps `message` under `next_seq`, in the place of the oldest once the ring is full."""
        if len(self._ring) < self._capacity:
            self._ring.append(message)
        else:
            self._ring[(self._next_seq - self._first_seq) % self._capacity] = message
        self._next_seq += 1

    def holds_all_since(self, seq: int) -> bool:
        """Whether every message after `seq` is still there, so that a client that has seen `seq` can go on."""
        return self.oldest_seq - 1 <= seq < self._next_seq

    def since(self, seq: int, limit: int) -> list[bytes]:
        """At most `limit` messages after `seq`, oldest first. Raises LookupError where some are no longer kept."""
        if not self.holds_all_since(seq):
            raise LookupError(f"messages after {seq} aren't kept: {self.oldest_seq}..{self._next_seq - 1} are")
        start = seq + 1 - self._first_seq
        stop = min(self._next_seq - self._first_seq, start + limit)
        return [self._ring[index % self._capacity] for index in range(start, stop)]
