"""What a server is and can, before an experiment: asked, and tried out with four short requests of our own."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from .errors import LabError, ServerRefused
from .server import COMPLETIONS_PATH, Answer, LabServer, fresh_salt
from .setting import ServerFacts

ALPHABET_TEXT = (
    " the river runs past old stone houses and under a low bridge where people sell bread fish apples and flowers every"
    " morning before school children carry books while their parents talk about rain work music and the long road to"
    " another town with green fields tall trees quiet streets small shops good food warm light clean water open doors"
)
FALLBACK_ALPHABET = tuple(range(1000, 1400))
"""Where a server doesn't tokenise: ids of ordinary pieces of words in the vocabularies in use."""


async def inquire(server: LabServer) -> ServerFacts:
    """Raises Unreachable, ServerLost, LabError."""
    version = await server.get("/version") or {}
    listed = (await server.get("/v1/models") or {}).get("data") or []
    if not listed:
        raise LabError(f"{server.url} lists no model at /v1/models.", hint="Is it a vLLM server? Is it up?")
    ours = version.get("prefixscope") or {}
    counters = await server.counters()
    model = str(listed[0].get("id", ""))
    words = await server.tokenize(model, ALPHABET_TEXT)
    flags = dict(counters.flags)
    facts = ServerFacts(
        url=server.url,
        version=version.get("version"),
        model=model,
        max_model_len=listed[0].get("max_model_len"),
        embedded=ours.get("embedded_engine") is True,
        profile=ours.get("profile"),
        assumed=tuple(ours.get("assumed") or ()),
        block_size=counters.block_size,
        num_gpu_blocks=counters.num_gpu_blocks,
        prefix_caching={"True": True, "False": False}.get(flags.get("enable_prefix_caching", "").capitalize()),
        flags=flags,
        alphabet=tuple(dict.fromkeys(words)) if len(set(words)) >= 16 else FALLBACK_ALPHABET,
    )
    try:
        return await _try_out(server, facts)
    except ServerRefused as error:
        raise LabError(f"The server refuses a plain completion of token ids: {error.message}") from None


async def _try_out(server: LabServer, facts: ServerFacts) -> ServerFacts:
    """Twice under one salt, then under another. The first request warms up what the server makes at first use."""
    size = facts.block_size or 16
    prompt = Random(fresh_salt()).choices(facts.alphabet, k=4 * size + 1)
    salt = fresh_salt()
    found: list[tuple[int | None, float | None]] = []
    answer = Answer(0.0)
    for each in (fresh_salt(), salt, salt, fresh_salt()):
        before = await server.counters()
        answer = await server.send(COMPLETIONS_PATH, request_body(facts.model, prompt, 1, each))
        after = await server.counters()
        found.append((answer.usage.cached_tokens, _moved(before.hit_tokens, after.hit_tokens)))
    told = [cached for cached, _ in found]
    counted = [moved for _, moved in found]
    readings: Sequence[float | None] = told if told[2] is not None else counted
    basis = "usage" if told[2] is not None else "counter" if counted[2] is not None else None
    again, apart = readings[2] or 0, readings[3] or 0
    return replace(
        facts,
        cached_basis=basis,
        salts=(again > 0 and apart == 0) if basis else None,
        returns_ids=bool(answer.prompt_ids),
        prefix_caching=facts.prefix_caching if facts.prefix_caching is not None else (again > 0 if basis else None),
    )


def request_body(model: str, prompt: Sequence[int], max_tokens: int, salt: str | None) -> dict[str, Any]:
    """A streamed completion of token ids."""
    return {"model": model, "prompt": prompt, **options(max_tokens, salt)}


def options(max_tokens: int, salt: str | None) -> dict[str, Any]:
    """What all of the lab's bodies have in common: greedy, streamed, with usage and token ids, of a fixed length."""
    return {
        "max_tokens": max_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
        **({"cache_salt": salt} if salt else {}),
    }


def _moved(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before
