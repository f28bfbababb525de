"""Where the web edge finds the run that it belongs to."""

from starlette.requests import HTTPConnection

from ..runtime import Runtime


def runtime_of(connection: HTTPConnection) -> Runtime:
    """The runtime that `factory.create_app` put beside the routes."""
    runtime = connection.app.state.runtime
    assert isinstance(runtime, Runtime)
    return runtime
