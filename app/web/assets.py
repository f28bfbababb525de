"""The page's files, from memory: each is read, hashed and compressed once, so that a page of many small modules costs
little, and no build step is needed.

A build's address names what its files hold, so browsers keep them for good; the plain address is asked for again.
"""

import asyncio
import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..errors import NotFound
from ..page_files import PLOTLY

_BUILD_PREFIX = "build-"
_CLASSIC_SCRIPTS = frozenset({"js/theme.js", PLOTLY})
"""Not modules."""
_FOREVER = "public, max-age=31536000, immutable"
_NO_GAIN_BYTES = 512
"""Below this, compression saves no packet."""


@dataclass(frozen=True, slots=True)
class Build:
    """static/ as it is at the moment. URLs are relative, so that the page works under any path.

    base_url: where it lies; the address changes with any file.
    plotly_url: Plotly's bundle in it.
    modules: its ES modules by their path below base_url. A page that names them all loads them at once instead of
    one layer of imports after the other.
    """

    base_url: str
    plotly_url: str
    modules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _File:
    state: tuple[int, int]
    content_type: str
    plain: bytes
    compressed: bytes | None
    etag: str


class PageFiles:
    """The files below a folder, kept in memory. A file that changes on the disk is read anew."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, _File] = {}

    async def build(self) -> Build:
        """Looks at the folder (a millisecond where nothing changed) and says what is there."""
        await asyncio.to_thread(self._refresh)
        digest = hashlib.sha256("".join(f"{name} {file.etag}\n" for name, file in self._files.items()).encode())
        base_url = f"static/{_BUILD_PREFIX}{digest.hexdigest()[:12]}"
        modules = tuple(name for name in self._files if name.endswith(".js") and name not in _CLASSIC_SCRIPTS)
        return Build(base_url, f"{base_url}/{PLOTLY}", modules)

    async def answer(self, request: Request) -> Response:
        """A file, whole or compressed; 304 where the browser has it. Raises NotFound."""
        path = request.path_params["path"]
        first, _, rest = path.partition("/")
        for_good = first.startswith(_BUILD_PREFIX)
        if not for_good or not self._files:
            await asyncio.to_thread(self._refresh)
        file = self._files.get(rest if for_good else path)
        if file is None:
            raise NotFound(f"There is nothing at {request.url.path}.")
        headers = {
            "cache-control": _FOREVER if for_good else "no-cache",
            "etag": file.etag,
            "vary": "accept-encoding",
            "content-type": file.content_type,
        }
        if file.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if file.compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(file.compressed, headers={**headers, "content-encoding": "gzip"})
        return Response(file.plain, headers=headers)

    def route(self) -> Route:
        """Serves them below /static."""
        return Route("/static/{path:path}", self.answer, methods=["GET", "HEAD"], name="static")

    def _refresh(self) -> None:
        files = {}
        for path in sorted(self._folder.rglob("*")):
            if path.is_file():
                name, status = path.relative_to(self._folder).as_posix(), path.stat()
                state = (status.st_mtime_ns, status.st_size)
                kept = self._files.get(name)
                files[name] = kept if kept is not None and kept.state == state else _read(path, state)
        self._files = files


def _read(path: Path, state: tuple[int, int]) -> _File:
    plain = path.read_bytes()
    compressed = gzip.compress(plain, compresslevel=6, mtime=0) if len(plain) > _NO_GAIN_BYTES else None
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    content_type = f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
    return _File(state, content_type, plain, compressed, f'"{hashlib.sha256(plain).hexdigest()[:16]}"')
