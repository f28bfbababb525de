"""Where the web edge finds the run that it belongs to."""

from starlette.requests import HTTPConnection

from ..errors import NotFound
from ..ids import ServerId
from ..runtime import Runtime


def runtime_of(connection: HTTPConnection) -> Runtime:
    """The runtime that `factory.create_app` put beside the routes."""
    runtime = connection.app.state.runtime
    assert isinstance(runtime, Runtime)
    return runtime


def watched_server(runtime: Runtime, name: str | None) -> ServerId:
    """The watched server of this name, the first where none is given. Raises NotFound."""
    server = ServerId(name) if name else runtime.server
    if server not in runtime.watched:
        raise NotFound(f"No server {name!r} is watched.", hint="GET /api/state names those that are.")
    return server
