"""The longest prefix that recent prompts share: why nothing hits, where it is shorter than a block.

Imports only its own package.
"""

from collections import defaultdict
from itertools import islice, pairwise

from .prefix_match import common_tokens
from .request_book import RequestBook
from .servers import ServerBook

SURVEYED = 128
"""Newest prompts that are compared."""
EVERY_S = 5.0


def look_for_shared_prefix(server: ServerBook, requests: RequestBook, at_s: float) -> None:
    """Notes it among the server's signs, from time to time and only while nothing hits."""
    signs = server.signs
    if at_s - signs.surveyed_s < EVERY_S:
        return
    signs.surveyed_s = at_s
    rates = [rate for rate in server.shown_rates if rate.window == "since_mark" and rate.basis != "inferred"]
    if any(rate.hit_tokens for rate in rates) or not any(rate.query_tokens for rate in rates):
        signs.shared_tokens = None
        return
    signs.shared_tokens = longest_shared_prefix(requests, server)


def longest_shared_prefix(requests: RequestBook, server: ServerBook) -> int | None:
    """In tokens, of two prompts with equal salt and adapter; None where there are no two."""
    mine = (request.prompt for request in requests.newest_first() if request.sent.server == server.id)
    prompts = islice((prompt for prompt in mine if prompt is not None), SURVEYED)
    alike: defaultdict[object, list[bytes]] = defaultdict(list)
    for prompt in prompts:
        alike[prompt.salt, prompt.lora_name].append(prompt.packed)
    # In sorted order the two that share most stand side by side.
    shared = [common_tokens(left, right) for group in alike.values() for left, right in pairwise(sorted(group))]
    return max(shared, default=None)
