"""The page's own files, and Plotly from its package: compressed once, off the event loop, and cached by browsers."""

import asyncio
import gzip
import hashlib
import os
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.staticfiles import StaticFiles
from starlette.responses import Response
from starlette.types import Scope

_PACKAGE = Path(__file__).parent.parent
# An installed wheel has the page inside the package; a checkout has it beside the package.
_ROOT = _PACKAGE if (_PACKAGE / "static").is_dir() else _PACKAGE.parent
STATIC_DIR = _ROOT / "static"
TEMPLATES_DIR = _ROOT / "templates"
_PLOTLY_FILE = "package_data/plotly.min.js"
_BUILD_PREFIX = "build-"
_CLASSIC_SCRIPTS = frozenset({"js/theme.js"})
"""Loaded before the page is drawn, and not as modules."""
_FOREVER = "public, max-age=31536000, immutable"

router = APIRouter()


def plotly_url() -> str:
    """Relative URL of Plotly's bundle; it names the release, so that a browser may keep it for good."""
    return f"static/vendor/plotly.min.js?v={version('plotly')}"


class PlotlyBundle:
    """Plotly.js in both forms that a browser may ask for, read and compressed in a thread once the app starts."""

    def __init__(self) -> None:
        self.etag = f'"plotly-{version("plotly")}"'
        self._forms: asyncio.Future[tuple[bytes, bytes]] | None = None

    def start(self) -> None:
        """Begins, so that the first page doesn't wait for it."""
        if self._forms is None:
            self._forms = asyncio.get_running_loop().run_in_executor(None, _read_and_compress)

    async def forms(self) -> tuple[bytes, bytes]:
        """(plain, gzip), once they are there."""
        self.start()
        assert self._forms is not None
        return await asyncio.shield(self._forms)


def _read_and_compress() -> tuple[bytes, bytes]:
    plain = files("plotly").joinpath(_PLOTLY_FILE).read_bytes()
    return plain, gzip.compress(plain, compresslevel=6, mtime=0)


@router.api_route("/static/vendor/plotly.min.js", methods=["GET", "HEAD"])
async def plotly(request: Request) -> Response:
    """Plotly's bundle, of the release that the URL names."""
    bundle: PlotlyBundle = request.app.state.plotly
    headers = {"cache-control": _FOREVER, "etag": bundle.etag, "vary": "accept-encoding"}
    if bundle.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    plain, compressed = await bundle.forms()
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(compressed, 200, {**headers, "content-encoding": "gzip"}, "text/javascript")
    return Response(plain, 200, headers, "text/javascript")


@dataclass(frozen=True, slots=True)
class Build:
    """static/ as it is at the moment.

    base_url: where it lies: the address changes with any file, so a browser may keep what is there for good.
    modules: its ES modules by their path below base_url. A page that names them all loads them at once instead of
    one layer of imports after the other.
    """

    base_url: str
    modules: tuple[str, ...]


def current_build() -> Build:
    """Looks at the files anew (a millisecond), so that an edited checkout shows what it holds."""
    digest, modules = hashlib.sha256(), []
    for path in sorted(STATIC_DIR.rglob("*")):
        if path.is_file():
            name, state = path.relative_to(STATIC_DIR).as_posix(), path.stat()
            digest.update(f"{name} {state.st_mtime_ns} {state.st_size}\n".encode())
            if path.suffix == ".js" and name not in _CLASSIC_SCRIPTS:
                modules.append(name)
    return Build(f"static/{_BUILD_PREFIX}{digest.hexdigest()[:12]}", tuple(modules))


class OwnFiles(StaticFiles):
    """static/: by its plain address with the duty to ask before using an old file, by a build's address for good."""

    def get_path(self, scope: Scope) -> str:
        """The file's path; a build's name before it is only an address."""
        first, _, rest = super().get_path(scope).partition("/")
        return rest if first.startswith(_BUILD_PREFIX) else super().get_path(scope)

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """The file, or 304 where the browser has it."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        for_good = f"/static/{_BUILD_PREFIX}" in scope["path"]
        response.headers["cache-control"] = _FOREVER if for_good else "no-cache"
        return response
