"""What each mode adds to a request (README, "What the proxy adds"). It is decided here and nowhere else.

`off` adds nothing, `observe` a session id in a header, `enrich` fields of the body as well: each only towards a server
that is known to take it.
"""

from functools import lru_cache

from ..events import ServerRecord
from ..settings import Mode
from ..wire.body_facts import BodyFacts
from ..wire.request_reading import Wanted

OBSERVED = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"})
"""Paths whose POST requests are recorded. Others pass unseen."""
ENRICHED = frozenset({"/v1/chat/completions", "/v1/completions"})
"""Paths whose bodies take `stream_options` and `return_token_ids`, and whose prompts `/tokenize` understands."""
TOKEN_IDS_SINCE = (0, 10, 2)
"""The first vLLM release that knows `return_token_ids`."""
FULL_REPORT_SINCE = (0, 26, 0)
"""The first vLLM release that announces reused blocks where `kv_cache_report_mode` asks for it."""


def wanted(path: str, mode: Mode, record: ServerRecord | None, *, reports: bool) -> Wanted | None:
    """What is to be asked for in a request's body; None: it goes as it is. `reports`: the full reuse report, too."""
    version = vllm_version(record)
    if mode != "enrich" or path not in ENRICHED or version is None or not is_vllm_itself(record):
        return None
    return Wanted(token_ids=version >= TOKEN_IDS_SINCE, full_report=reports and version >= FULL_REPORT_SINCE)


def may_name_session(mode: Mode, facts: BodyFacts, record: ServerRecord | None) -> bool:
    """Whether a session id of the dashboard's own may be added to a request that names none in its headers.

    Routers place conversations by it, and a fresh one a request would scatter them: it goes to vLLM itself only.
    """
    return mode != "off" and facts.is_object and not facts.names_session and is_vllm_itself(record)


def is_vllm_itself(record: ServerRecord | None) -> bool:
    """Whether what answers is taken for a vLLM server: it has a version, and its metrics, once read, tell of a cache.

    Routers answer to `/version`, too, and have metrics with vLLM's prefix; a cache's size and block size they have not.
    """
    if vllm_version(record) is None or record is None:
        return False
    return record.metrics_state != "ok" or record.num_gpu_blocks is not None or record.block_size is not None


def vllm_version(record: ServerRecord | None) -> tuple[int, ...] | None:
    """The version that the server says it has; None where it isn't known to be a vLLM server."""
    if record is None or record.version is None or record.state == "not_vllm":
        return None
    return _numbers(record.version)


@lru_cache(maxsize=16)
def _numbers(version: str) -> tuple[int, ...]:
    """Of "0.32.0rc1" (0, 32, 0). Each request asks for the same few."""
    numbers = []
    for part in version.split(".")[:3]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)
