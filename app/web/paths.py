"""Which of the server's paths are proxied: vLLM's `/v1` endpoints, and what the setting `extra_paths` names besides.

What manages a server, as `/reset_prefix_cache` does, is never among them: the dashboard's guarded action is for that.
"""

import re
from collections.abc import MutableMapping
from typing import Any

from ..errors import NotFound, SettingsError

ALLOWED = re.compile(
    r"/v1/(?:chat/completions|completions|responses(?:/[\w.:-]+(?:/cancel)?)?|messages(?:/count_tokens)?|embeddings"
    r"|rerank|score|models(?:/[\w.:-]+)*|audio/[\w-]+)",
    re.ASCII,
)
MANAGING = frozenset(
    {
        "abort_requests", "collective_rpc", "fault_tolerance", "finish_weight_update", "get_world_size",
        "init_weight_transfer_engine", "is_paused", "is_scaling_elastic_ep", "is_sleeping", "pause",
        "release_kv_cache_memory", "reset_encoder_cache", "reset_mm_cache", "reset_prefix_cache", "resume",
        "scale_elastic_ep", "server_info", "shutdown_weight_transfer_engine", "sleep", "start_draft_weight_update",
        "start_profile", "start_weight_update", "stop_profile", "update_weight_version", "update_weights", "wake_up",
        "weight_checker", "weight_info",
    }
)  # fmt: skip
"""First segments of vLLM 0.32's paths that change or inspect the server itself."""
OWN = frozenset({"", "api", "healthz", "live", "login", "logout", "metrics", "readyz", "static"})
"""First segments of the dashboard's own paths."""
_DOTS = re.compile(r"/\.\.?(?:/|$)")
_ENTRY = re.compile(r"(?:/[\w.:-]+)+(?:/\*)?", re.ASCII)


class ServerPaths:
    """The paths that pass. Raises SettingsError for an `extra_paths` that names none, or one that mustn't."""

    def __init__(self, extra_paths: str = "") -> None:
        entries = [entry.strip() for entry in extra_paths.split(",") if entry.strip()]
        for entry in entries:
            _check(entry)
        self._exact = frozenset(entry for entry in entries if not entry.endswith("/*"))
        self._below = tuple(entry.removesuffix("*") for entry in entries if entry.endswith("/*"))

    def is_extra(self, path: str) -> bool:
        """Whether the setting names it."""
        return path in self._exact or (bool(self._below) and path.startswith(self._below))

    def target(self, scope: MutableMapping[str, Any]) -> tuple[str, bytes]:
        """The server's path, and the target to ask it for, query included. Raises NotFound where it isn't proxied."""
        path: str = scope["path"]
        raw: bytes = scope.get("raw_path") or path.encode("utf-8")
        if not self.is_extra(path):
            path = path[max(path.find("/v1/"), 0) :]
            raw = raw[max(raw.find(b"/v1/"), 0) :]
        allowed = ALLOWED.fullmatch(path) is not None or self.is_extra(path)
        if not allowed or _DOTS.search(path) or b"%" in raw:
            raise NotFound(
                f"{path} is not proxied",
                hint="Completions, embeddings, models and audio are; name others of the server in extra_paths.",
            )
        query: bytes = scope.get("query_string", b"")
        return path, raw + b"?" + query if query else raw


def _check(entry: str) -> None:
    first = entry[1:].split("/", 1)[0]
    if not _ENTRY.fullmatch(entry) or _DOTS.search(entry):
        raise SettingsError(
            f"extra_paths: {entry!r} is not a path", hint="For example /tokenize, or /inference/v1/* for all below it."
        )
    if first in MANAGING:
        raise SettingsError(
            f"extra_paths: {entry} manages the server, and is never passed on", hint="See allow_cache_reset."
        )
    if first in OWN:
        raise SettingsError(f"extra_paths: {entry} is a path of the dashboard's own", hint="Ask the server for it.")
