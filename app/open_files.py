"""How many files, sockets among them, this process may hold open: a soft limit that it may raise itself."""

import logging
import resource

logger = logging.getLogger(__name__)


def room_for(connections: int) -> int:
    """As many of `connections` as may be open at once, after raising the limit where that is allowed.

    Half of what is allowed is left for the connections to servers, and for files.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * connections
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if raised > soft:
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    logger.warning("max_connections: only %d, since this process may open %d files at most", soft // 2, soft)
    return max(soft // 2, 1)
