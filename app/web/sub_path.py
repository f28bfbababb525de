"""The dashboard under a path of another site, `/tools/prefixscope` say, where nothing on the way takes that path off.

The page's own URLs are relative, so inside everything is as at the root; only the path that arrives is shortened.
"""

from typing import Any

from starlette.types import Receive, Scope, Send

from ..errors import SettingsError


def checked_root_path(root_path: str) -> str:
    """`root_path` as it is used: with a slash before it and none behind; "" for the root. Raises SettingsError."""
    path = root_path.rstrip("/")
    if path and (not path.startswith("/") or "//" in path or any(mark in path for mark in "?#% ")):
        raise SettingsError(f"root_path: {root_path!r} is not a path", hint="For example /tools/prefixscope.")
    return path


def without_root_path(scope: Scope, root_path: str) -> Scope:
    """The connection as seen from below `root_path`, or below the ASGI server's own; as it is where it isn't below."""
    root = scope.get("root_path") or root_path
    path: str = scope.get("path", "")
    if not root or not path.startswith(f"{root}/"):
        return scope
    shorter: dict[str, Any] = {**scope, "root_path": "", "path": path[len(root) :]}
    raw: bytes = scope.get("raw_path") or b""
    if raw.startswith(root.encode() + b"/"):
        shorter["raw_path"] = raw[len(root.encode()) :]
    return shorter


def is_root_itself(scope: Scope, root_path: str) -> bool:
    """Whether the sub-path was asked for without the slash that makes the page's relative URLs right."""
    root = scope.get("root_path") or root_path
    return bool(root) and scope["type"] == "http" and scope["path"] == root


async def to_the_slash(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends a browser from the sub-path to the same with a slash."""
    location = (scope["path"].rsplit("/", 1)[-1] + "/").encode()
    headers = [(b"location", location), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 307, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
