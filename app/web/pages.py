"""The page: one template, one context. Configuration reaches its scripts as one JSON text in one script tag."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.templating import Jinja2Templates
from markupsafe import Markup
from starlette.responses import Response

from .. import __version__
from ..events import PROTOCOL_VERSION
from ..page_files import TEMPLATES_DIR
from ..runtime import Runtime
from .assets import Build
from .state import runtime_of

router = APIRouter()
_templates = Jinja2Templates(TEMPLATES_DIR)


@dataclass(frozen=True, slots=True)
class IndexContext:
    """What templates/index.html may use.

    version: of the dashboard. build: where its files lie. config_json: JSON text that is safe in a script tag.
    """

    version: str
    build: Build
    config_json: Markup


@router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
async def index(request: Request) -> Response:
    """The dashboard."""
    build = await request.app.state.files.build()
    context = IndexContext(__version__, build, json_for_script(page_config(runtime_of(request))))
    answer = _templates.TemplateResponse(request, "index.html", asdict(context))
    answer.headers["cache-control"] = "no-cache"
    return answer


def page_config(runtime: Runtime) -> dict[str, Any]:
    """What the page's scripts are told at start. URLs are relative, so that it works under any path."""
    settings = runtime.settings
    return {
        "version": __version__,
        "protocol": PROTOCOL_VERSION,
        "live_url": "live",
        "api_url": "api/",
        "v1_url": "v1/",
        "server": runtime.server,
        "servers": list(runtime.watched),
        "mode": settings.mode,
        "demo": runtime.hub.hello.demo,
        "show_prompts": settings.show_prompts and not settings.redact,
        "redact": settings.redact,
        "allow_cache_reset": settings.allow_cache_reset,
        "heartbeat_s": settings.heartbeat_s,
        "max_snapshot_requests": settings.max_snapshot_requests,
        "max_metrics_points": settings.max_metrics_points,
    }


def json_for_script(value: object) -> Markup:
    """JSON in which no text can end the script tag or open a comment: `<`, `>` and `&` are escapes."""
    text = json.dumps(value, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
