"""Which adapters were loaded again under a name in use: a server keys their blocks by name, so hits may be on the old
weights until its cache is emptied. Imports only `events`.
"""

from ..events import Notice

MAX_TOLD = 8
"""Adapters of which it is told at once, the latest."""


class AdapterBook:
    """The adapters of one server. Times in seconds of the dashboard's clock."""

    def __init__(self) -> None:
        self._roots: dict[str, str | None] = {}
        """By name: where its weights are from, None where the server hasn't said since it was loaded."""
        self._gone: set[str] = set()
        self._again_s: dict[str, float] = {}

    def listed(self, adapters: tuple[tuple[str, str | None], ...], at_s: float) -> None:
        """The server lists these, each with its root. One that was gone in between, or has another root, was loaded
        again."""
        for name, root in adapters:
            known = self._roots.get(name)
            if name in self._gone or (known is not None and root is not None and known != root):
                self._note(name, at_s)
            self._roots[name] = root
        self._gone = self._roots.keys() - {name for name, _ in adapters}

    def loaded(self, name: str, at_s: float) -> None:
        """The server was told to load it, through the dashboard, and did."""
        if name in self._roots:
            self._note(name, at_s)
        self._roots[name] = None
        self._gone.discard(name)

    def restarted(self) -> None:
        """Another process answers, with an empty cache."""
        self._roots.clear()
        self._gone.clear()
        self._again_s.clear()

    def notices(self, emptied_s: float, wall_offset_ms: float) -> tuple[Notice, ...]:
        """A notice for each whose old blocks may be left; `emptied_s` is when the cache was last emptied."""
        since = {name: at_s for name, at_s in self._again_s.items() if at_s > emptied_s}
        return tuple(_notice(name, wall_offset_ms + at_s * 1000) for name, at_s in list(since.items())[-MAX_TOLD:])

    def _note(self, name: str, at_s: float) -> None:
        self._again_s.pop(name, None)
        self._again_s[name] = at_s
        while len(self._again_s) > MAX_TOLD:
            del self._again_s[next(iter(self._again_s))]


def _notice(name: str, at_ms: float) -> Notice:
    minutes, second = divmod(int(at_ms / 1000) % 86_400, 60)
    at = f"{minutes // 60:02}:{minutes % 60:02}:{second:02} UTC"
    return Notice(
        "adapter_reloaded",
        f"Adapter {name} was loaded again at {at}: hits may be on its old weights, since its blocks are kept under its "
        "name. Empty the prefix cache to be sure.",
        {"adapter": name, "at": at, "at_ms": at_ms},
    )
