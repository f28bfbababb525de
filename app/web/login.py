"""`/login`: a token for a cookie; `/logout` ends it. There only while a token is set; one form, no script."""

from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.templating import Jinja2Templates
from starlette.responses import RedirectResponse, Response

from ..errors import BadRequest, PrefixScopeError
from ..page_files import TEMPLATES_DIR
from .access import Access
from .answers import error_headers
from .guard import COOKIE, LOGIN_PATH, session_of
from .origin import ForeignOrigin, is_same_origin

router = APIRouter(include_in_schema=False)
MAX_FORM_BYTES = 4096
_templates = Jinja2Templates(TEMPLATES_DIR)


@router.api_route(LOGIN_PATH, methods=["GET", "HEAD"])
async def form(request: Request) -> Response:
    """The form; where no token is set there is nothing to log in to."""
    return _form(request, None) if not _access(request).is_open else RedirectResponse("./", 303)


@router.post(LOGIN_PATH)
async def log_in(request: Request) -> Response:
    """Takes `token`; the answer sets the cookie and leads to the page, or is the form again with what was wrong."""
    if not is_same_origin(request.headers.get("origin"), request.headers.get("host")):
        raise ForeignOrigin("Only this dashboard's own page may log in.")
    token = (await _fields(request)).get("token", "").strip()
    access, address = _access(request), request.app.state.addresses.of(request.scope)
    try:
        session = access.log_in(token, address, request.app.state.runtime.clock.monotonic())
    except PrefixScopeError as error:
        return _form(request, error)
    answer = RedirectResponse("./", 303)
    # The scheme is the reverse proxy's to tell; a client that lies about it only loses its own cookie.
    secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
    answer.set_cookie(COOKIE, session, max_age=int(access.session_s), httponly=True, samesite="strict", secure=secure)
    return answer


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """Ends the session, and takes the cookie back."""
    if session := session_of(request.headers):
        _access(request).log_out(session)
    answer = RedirectResponse("login", 303)
    answer.delete_cookie(COOKIE)
    return answer


def _access(request: Request) -> Access:
    access = request.app.state.access
    assert isinstance(access, Access)
    return access


def _form(request: Request, error: PrefixScopeError | None) -> Response:
    status = error.status if error else 200
    answer = _templates.TemplateResponse(request, "login.html", {"error": error}, status_code=status)
    answer.headers["cache-control"] = "no-store"
    if error is not None:
        answer.headers.update(error_headers(error))
    return answer


async def _fields(request: Request) -> dict[str, str]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise BadRequest("The form is too large for a token.")
    return {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
