"""Why the rest of a prompt wasn't reused: every cause that holds, the first that explains the loss first.

Each look is a small function that gives a cause or None; their order is that in which a server decides: what it skips,
what it hasn't got any more, what it has elsewhere, and at last where the prompt itself is new. Imports only its own
package.
"""

from collections.abc import Iterable

from .block_keys import TOKEN_BYTES
from .departures import Nearest, departure, nearest_kept, nearest_known
from .loss_case import Cause, LossCase, loss_case
from .lost_blocks import coarse_alignment, evicted, reset, still_computing
from .placement import other_image, other_keys, other_model, other_rank, other_server
from .request_book import RequestBook
from .requests import Request
from .servers import ServerBook

_LOOKS = (
    coarse_alignment, still_computing, evicted, reset, other_rank, other_server, other_keys, other_image, other_model,
)  # fmt: skip


def find_losses(
    request: Request, server: ServerBook, requests: RequestBook, reused: int, neighbours: Iterable[ServerBook] = ()
) -> list[Cause]:
    """Every cause that holds, in order; none where it can't be known."""
    case = loss_case(request, server, requests, reused, neighbours)
    if case is None:
        return []
    found = [cause for cause in (look(case) for look in _LOOKS) if cause is not None]
    departures = _departures(case)
    if found and departures and departures[0].params.get("token", 0) is None:
        # The whole prompt was there before: nothing departs.
        return found
    return found + departures


def _nearest(case: LossCase) -> Nearest | None:
    """The nearest known prompt, of blocks and of kept requests; None where too little is known to tell."""
    kept = nearest_kept(case.request, case.requests, case.prompt)
    if case.slots is not None:
        near = nearest_known(case.slots, case.prompt, case.path, case.number)
        return near if kept.request is None or near.shared > kept.shared else kept
    known = case.book is not None and case.book.stream.coverage != "none"
    return kept if known or kept.shared > case.reused * case.size else None


def _departures(case: LossCase) -> list[Cause]:
    nearest = _nearest(case)
    if nearest is None or nearest.shared < case.reused * case.size:
        return []
    code, params = departure(case.prompt, case.size, nearest, case.reused)
    if code == "variable_first":
        found = [Cause("variable_first", params), Cause("diverges", params)]
    elif code == "alignment":
        found = [Cause("alignment", params)]
    elif code == "diverges":
        found = [Cause("diverges", params)]
    else:
        found = [Cause("too_short" if code == "too_short" else "first_seen", params)]
    # A shared part that ends within a block loses the start of that block, whatever else holds.
    straddling = nearest.shared - case.reused * case.size
    length = len(case.prompt.packed) // TOKEN_BYTES
    if code in ("variable_first", "diverges") and case.size <= nearest.shared < length and 0 < straddling < case.size:
        found.append(Cause("alignment", {"straddling_tokens": straddling}))
    return found
