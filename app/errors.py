"""The exception tree, and the one JSON shape in which an error leaves the product.

Imports nothing of the project. Foreign exceptions are mapped to these where they enter: in `wire/` and `sources/`.
"""

from typing import Any


class PrefixScopeError(Exception):
    """The root. `status` is the HTTP status that it maps to, `code` a stable word for programs."""

    status = 500
    code = "internal_error"
    retry_after_s: float | None = None
    """When it is of use to try again: the header Retry-After, in whole seconds."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class SettingsError(PrefixScopeError):
    """A setting that can't be used; the message names it and what it accepts."""

    code = "bad_setting"


class BadRequest(PrefixScopeError):
    """A call to the dashboard's own API that can't be understood."""

    status = 400
    code = "bad_request"


class Redacted(PrefixScopeError):
    """An answer that would hold prompt text, asked of a dashboard that shows none."""

    status = 403
    code = "redacted"


class NotFound(PrefixScopeError):
    """What was asked for isn't kept, or never was."""

    status = 404
    code = "not_found"


class Gone(PrefixScopeError):
    """A place in a list that isn't kept any more."""

    status = 410
    code = "gone"


class DecodeError(PrefixScopeError):
    """Bytes from outside that don't hold what their place requires. Counted and shown; it stops nothing."""

    code = "malformed"


class Unreachable(PrefixScopeError):
    """A server that can't be reached, or went away."""

    status = 502
    code = "server_unreachable"


class UpstreamTimeout(Unreachable):
    """A server that didn't answer in time."""

    status = 504
    code = "server_timeout"


class Overloaded(PrefixScopeError):
    """More at once than the settings allow."""

    status = 503
    code = "overloaded"
    retry_after_s = 1.0


def error_body(error: PrefixScopeError) -> dict[str, Any]:
    """The one JSON shape: `{"error": {"code", "message", "hint"}}`; `hint` is null or says what to do."""
    return {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
