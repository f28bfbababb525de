"""What can be wrong with a run before or while it goes on."""

from ..errors import PrefixScopeError


class LabError(PrefixScopeError):
    """A run that can't be made as it was asked for: an unknown experiment, a parameter, a server that lacks what it
    needs."""

    status = 400
    code = "bad_setting"


class ServerRefused(PrefixScopeError):
    """The server answered a request with an error, in the middle of a run."""

    status = 502
    code = "server_refused"


class ServerLost(PrefixScopeError):
    """The server went away in the middle of a run."""

    status = 502
    code = "server_unreachable"
