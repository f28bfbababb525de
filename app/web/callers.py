"""Dependencies of routes that change something: who may call them."""

from starlette.requests import Request

from .origin import ForeignOrigin, is_same_origin

CLAIM = "x-prefixscope-origin"


def own_page(request: Request) -> None:
    """Refuses pages of other sites; a program, which sends no Origin, may. Raises ForeignOrigin."""
    if not is_same_origin(request.headers.get("origin"), request.headers.get("host")):
        raise ForeignOrigin("Only this dashboard's own pages may do this.")


def claims_to_be_page(request: Request) -> None:
    """Refuses also whoever doesn't say that it is the page: a header that a form of another site can't send.

    Raises ForeignOrigin.
    """
    own_page(request)
    if request.headers.get(CLAIM) != "page":
        raise ForeignOrigin("Only this dashboard's page may do this.", hint="It sends X-PrefixScope-Origin: page.")
