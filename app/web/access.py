"""Who may watch and who may act: tokens, the sessions that a login opens, and how often a login may fail. Pure.

Without any token the dashboard is open, and `refuse_to_be_open` keeps it on this machine. Secrets are kept as digests
and compared in constant time; a session's cookie holds no token.
"""

import hashlib
import hmac
import secrets
from collections import OrderedDict
from enum import IntEnum

from ..errors import PrefixScopeError, SettingsError
from ..loopback import is_loopback
from ..settings import Settings

LEAST_TOKEN_CHARACTERS = 16
MAX_SESSIONS = 1000
FAILED_LOGIN_S = 60.0
"""So long a wrong token counts against the address that it came from."""
MAX_WATCHED_ADDRESSES = 10_000


class Role(IntEnum):
    """What a token or a session allows; each may what the smaller may."""

    VIEWER = 1
    OPERATOR = 2


class NotLoggedIn(PrefixScopeError):
    """A token is set, and the call brought none that is known."""

    status = 401
    code = "not_logged_in"


class ViewersOnlyWatch(PrefixScopeError):
    """The token that the call brought may watch, but not send, reset or change anything."""

    status = 403
    code = "viewers_only_watch"


class TooManyLogins(PrefixScopeError):
    """Too many wrong tokens from one address."""

    status = 429
    code = "too_many_logins"


class Access:
    """The tokens of the settings, and who is logged in. Times are monotonic seconds."""

    def __init__(
        self, tokens: str, viewer_tokens: str, *, session_s: float = 43_200.0, max_failed_logins: int = 5
    ) -> None:
        """Both are tokens with commas between. Raises SettingsError for one that can be guessed."""
        self.session_s = session_s
        self._max_failed_logins = max_failed_logins
        self._roles = tuple(
            (_digest(token), role)
            for role, text in ((Role.OPERATOR, tokens), (Role.VIEWER, viewer_tokens))
            for token in _split(text)
        )
        self._sessions: OrderedDict[bytes, tuple[Role, float]] = OrderedDict()
        self._failures: OrderedDict[str, list[float]] = OrderedDict()

    @property
    def is_open(self) -> bool:
        """Whether everyone may do everything: no token is set."""
        return not self._roles

    def role_of_token(self, token: str) -> Role | None:
        """The role that a token gives; every known token is compared, so that the time tells nothing."""
        offered, found = _digest(token), None
        for digest, role in self._roles:
            if hmac.compare_digest(digest, offered):
                found = role if found is None else max(found, role)
        return found

    def role_of_session(self, session: str, at_s: float) -> Role | None:
        """The role of a session that `log_in` opened and that isn't over."""
        role, ends_s = self._sessions.get(_digest(session), (None, 0.0))
        return role if at_s < ends_s else None

    def log_in(self, token: str, address: str, at_s: float) -> str:
        """Opens a session and returns its secret, for a cookie.

        Raises TooManyLogins while `address` has failed too often within a minute, NotLoggedIn for an unknown token.
        """
        failures = [failed_s for failed_s in self._failures.get(address, []) if at_s - failed_s < FAILED_LOGIN_S]
        if len(failures) >= self._max_failed_logins:
            error = TooManyLogins("Too many wrong tokens.", hint=f"Wait {FAILED_LOGIN_S:.0f} seconds, then try again.")
            error.retry_after_s = failures[0] + FAILED_LOGIN_S - at_s
            raise error
        role = self.role_of_token(token)
        if role is None:
            self._failures[address] = [*failures, at_s]
            self._failures.move_to_end(address)
            if len(self._failures) > MAX_WATCHED_ADDRESSES:
                self._failures.popitem(last=False)
            raise NotLoggedIn("This token isn't known.", hint="Ask whoever runs the dashboard for one.")
        session = secrets.token_urlsafe(32)
        self._sessions[_digest(session)] = (role, at_s + self.session_s)
        if len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def log_out(self, session: str) -> None:
        """Ends a session; one that isn't there is over already."""
        self._sessions.pop(_digest(session), None)


def refuse_to_be_open(settings: Settings) -> None:
    """Raises SettingsError where the dashboard would be open to a network without a token, unless told `insecure`."""
    if settings.insecure or settings.tokens or settings.viewer_tokens or is_loopback(settings.host):
        return
    raise SettingsError(
        f"host: {settings.host} is reachable from other machines, and no token is set",
        hint="Set PREFIXSCOPE_TOKENS to a long random text, listen on 127.0.0.1, or say --insecure.",
    )


def _split(text: str) -> list[str]:
    tokens = [token.strip() for token in text.split(",") if token.strip()]
    for token in tokens:
        if not (token.isascii() and token.isprintable()):
            raise SettingsError(
                "tokens: one has characters that an HTTP header can't carry (it isn't repeated here)",
                hint="openssl rand -hex 24 makes one.",
            )
        if len(token) < LEAST_TOKEN_CHARACTERS:
            raise SettingsError(
                f"tokens: each needs {LEAST_TOKEN_CHARACTERS} characters or more (they aren't repeated here)",
                hint="openssl rand -hex 24 makes one.",
            )
    return tokens


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
