"""What an engine leaves out, or says in an older way: earlier vLLM releases, and single switches. Pure.

Each entry was read in the released package of that name. What isn't listed is as in 0.32.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from .cache_manager import COUNTED_ONCE, Counting

CURRENT_VERSION: Final = "0.32.0"
"""The release whose protocols the engine speaks where nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class Imitation:
    """Every way in which an engine can differ from 0.32. The defaults are 0.32."""

    version: str = CURRENT_VERSION
    """What /version answers, and the release whose metric names the page has."""
    metrics_of: str = CURRENT_VERSION
    """The release whose metric families /metrics has; `v0` for the engine before 0.8, with its hit-rate gauge."""
    events: bool = True
    replay: bool = True
    replay_topic: bool = True
    array_events: bool = False
    store_fields: int | None = None
    """How many fields a BlockStored has at most, in the order of 0.32; None: all."""
    remove_fields: int | None = None
    session_ids: bool = True
    bytes_hashes: bool = False
    """Hashes in events as 32 raw bytes, as with VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES=0."""
    random_hash_seed: bool = False
    reuse_report: bool = True
    usage_details: bool = True
    zero_cached_tokens: bool = True
    """Whether usage has its details for a request that reused nothing."""
    created_cache_tokens: bool = True
    request_metrics: bool = True
    token_ids: bool = True
    """Whether `return_token_ids` is known."""
    token_strings: bool = True
    cache_salts: bool = True
    absent_paths: frozenset[str] = frozenset()
    """Paths of HTTP that are not found."""
    counting: Counting = COUNTED_ONCE
    unhashed_first: bool = True
    """Whether blocks without a hash are reused before cached ones."""


_MESSAGES: Final = frozenset({"/v1/messages", "/v1/messages/count_tokens"})
_TOKENIZE: Final = frozenset({"/tokenize", "/detokenize"})

_V0_26 = Imitation(
    version="0.26.0", metrics_of="0.26.0", session_ids=False, random_hash_seed=True, counting=Counting(every_try=True)
)
_V0_18 = replace(
    _V0_26,
    version="0.18.0",
    metrics_of="0.18.0",
    array_events=True,
    store_fields=8,
    remove_fields=2,
    replay_topic=False,
    reuse_report=False,
    zero_cached_tokens=False,
    created_cache_tokens=False,
    request_metrics=False,
    unhashed_first=False,
)
_V0_12 = replace(_V0_18, version="0.12.0", metrics_of="0.12.0", store_fields=6)
_V0_10 = replace(
    _V0_12,
    version="0.10.2",
    metrics_of="0.10.2",
    absent_paths=_MESSAGES,
    counting=Counting(every_try=True, after_preemption=True),
)
_V0_8 = replace(
    _V0_10,
    version="0.8.5",
    metrics_of="0.8.5",
    events=False,
    usage_details=False,
    token_ids=False,
    token_strings=False,
    cache_salts=False,
    absent_paths=_MESSAGES | {"/v1/responses"},
    counting=Counting(every_try=True, after_preemption=True, in_blocks=True),
)

VERSIONS: Final = {f"vllm-{each.version}": each for each in (Imitation(), _V0_26, _V0_18, _V0_12, _V0_10, _V0_8)}

SWITCHES: Final[dict[str, tuple[Callable[[Imitation], Imitation], str]]] = {
    "array-events": (lambda of: replace(of, array_events=True), "KV events as arrays, not maps"),
    "no-events": (lambda of: replace(of, events=False), "KV events off: nothing listens on their ports"),
    "no-replay": (lambda of: replace(of, replay=False), "no replay socket"),
    "no-replay-topic": (lambda of: replace(of, replay_topic=False), "replay without the topic frame"),
    "no-session-ids": (lambda of: replace(of, session_ids=False), "no session_id in events"),
    "bytes-hashes": (lambda of: replace(of, bytes_hashes=True), "block hashes in events as raw bytes"),
    "random-hashes": (lambda of: replace(of, random_hash_seed=True), "block hashes differ from start to start"),
    "no-reuse-report": (lambda of: replace(of, reuse_report=False), "kv_cache_report_mode is not known"),
    "no-usage-details": (lambda of: replace(of, usage_details=False), "prompt_tokens_details is null"),
    "no-request-metrics": (lambda of: replace(of, request_metrics=False), "no metrics in answers"),
    "no-token-ids": (lambda of: replace(of, token_ids=False), "return_token_ids is not known"),
    "no-tokenize": (
        lambda of: replace(of, absent_paths=of.absent_paths | _TOKENIZE),
        "/tokenize and /detokenize are not found",
    ),
    "no-messages": (lambda of: replace(of, absent_paths=of.absent_paths | _MESSAGES), "/v1/messages is not found"),
    "old-metric-names": (
        lambda of: replace(of, metrics_of="0.8.5", counting=replace(of.counting, in_blocks=True)),
        "metric names of 0.8: gpu_cache_usage_perc, gpu_prefix_cache_*, counted in blocks",
    ),
    "hit-rate-gauge": (
        lambda of: replace(of, metrics_of="v0"),
        "gpu_prefix_cache_hit_rate instead of hit counters, as the engine before 0.8 had it",
    ),
}
"""Single differences: what each does to an imitation, and what it means."""


def imitation_of(names: Iterable[str]) -> Imitation:
    """At most one name of VERSIONS, and any of SWITCHES, in any order. Raises ValueError with one clear line."""
    chosen = [name for name in names if name]
    versions = [name for name in chosen if name in VERSIONS]
    if len(versions) > 1:
        raise ValueError(f"one version can be imitated at a time, not {' and '.join(versions)}")
    found = VERSIONS[versions[0]] if versions else Imitation()
    for name in chosen:
        if name in SWITCHES:
            found = SWITCHES[name][0](found)
        elif name not in VERSIONS:
            raise ValueError(f"{name!r} can't be imitated; there are: {', '.join((*VERSIONS, *SWITCHES))}")
    return found
