"""The prompts of the kept requests, for questions of what would have been. Imports only `ids` and its own package."""

from dataclasses import dataclass

from ..ids import RequestId, ServerId
from .block_keys import TOKEN_BYTES
from .prefix_match import PromptKeys
from .request_book import RequestBook
from .requests import Request


@dataclass(frozen=True, slots=True)
class RecordedPrompt:
    """One request. `keys` holds its prompt and, as far as it is known, its answer: what it left in the cache.

    `cached_tokens` is what the server said or showed that it reused; None where it didn't.
    """

    request: RequestId
    server: ServerId
    model: str | None
    at_s: float
    keys: PromptKeys
    prompt_tokens: int
    block_size: int
    cached_tokens: int | None
    skips_lookup: bool


def recorded_prompts(requests: RequestBook) -> tuple[tuple[RecordedPrompt, ...], int]:
    """Requests that were served and whose prompt is known, oldest first; and how many were served besides."""
    found: list[RecordedPrompt] = []
    unknown = 0
    for request in requests.newest_first():
        if not request.served:
            continue
        recorded = _recorded(request)
        if recorded is None:
            unknown += 1
        else:
            found.append(recorded)
    return tuple(reversed(found)), unknown


def _recorded(request: Request) -> RecordedPrompt | None:
    prompt, size, sent = request.prompt, request.block_size, request.sent
    if prompt is None or not size or sent.sequences != 1:
        return None
    cached = request.cached() if request.consistent else None
    packed = prompt.packed
    if request.output:
        # The last token sampled is computed from by nobody.
        packed += bytes(request.output[:-TOKEN_BYTES])
    return RecordedPrompt(
        request=request.id,
        server=sent.server,
        model=sent.model,
        at_s=sent.at_s,
        keys=PromptKeys(packed, prompt.salt, prompt.lora_name),
        prompt_tokens=len(prompt.packed) // TOKEN_BYTES,
        block_size=size,
        cached_tokens=cached[0] if cached is not None else None,
        skips_lookup=sent.skips_cache_read,
    )
