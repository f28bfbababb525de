"""`/metrics`: the dashboard's own figures for Prometheus. `/api/prometheus-targets`: the vLLM servers to scrape too."""

from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from prometheus_client.exposition import choose_encoder
from starlette.responses import Response

from .answers import json_answer
from .openapi import REFERENCE, answers
from .state import runtime_of

router = APIRouter()
TARGETS = {"type": "array", "items": {"$ref": REFERENCE.format(name="TargetGroup")}}


@router.get("/metrics", responses=answers(text="text/plain"))
async def metrics(request: Request) -> Response:
    """Text or OpenMetrics, as the scraper asks."""
    encode, content_type = choose_encoder(request.headers.get("accept", ""))
    return Response(encode(runtime_of(request).metering.registry), media_type=content_type)


@router.get("/api/prometheus-targets", responses=answers(schema=TARGETS))
async def prometheus_targets(request: Request) -> Response:
    """The watched servers, in the form of Prometheus's HTTP service discovery."""
    places = [urlsplit(server) for server in runtime_of(request).watched]
    return json_answer(
        [
            {
                "targets": [place.netloc],
                "labels": {"__scheme__": place.scheme, "__metrics_path__": f"{place.path}/metrics"},
            }
            for place in places
        ]
    )
