"""Frozen facts coming in: what a source saw, before anyone drew a conclusion.

Sources make them, `model.ledger.Ledger.apply` takes them, one at a time, in the order of arrival.
`at_s` is the dashboard's monotonic clock in seconds, read when the fact arrived. Token ids are tuples of int.
Imports only `ids`.
"""

from .kv import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    CacheReset,
    ExtraKeys,
    KvBatch,
    KvDuplicate,
    KvEvent,
    KvGap,
    KvRanks,
    KvRestarted,
    KvStreamState,
    StorePart,
    StreamFault,
    WireForm,
)
from .requests import (
    GAP_EDGES_MS,
    Origin,
    Outcome,
    RequestEnded,
    RequestEngineTimes,
    RequestFirstToken,
    RequestHead,
    RequestOutputTokens,
    RequestPromptTokens,
    RequestStarted,
    RequestUsage,
)
from .scenario import ScenarioStepped
from .servers import AdapterLoaded, EngineSample, Malformed, MetricsFailed, MetricsSampled, ServerProbed, TtftFitted

Observation = (
    KvBatch | KvStreamState | KvDuplicate | KvGap | KvRestarted | KvRanks | CacheReset | ServerProbed | AdapterLoaded
    | MetricsSampled | MetricsFailed | Malformed | RequestStarted | RequestHead | RequestFirstToken
    | RequestPromptTokens | RequestOutputTokens | RequestUsage | RequestEngineTimes | RequestEnded
    | ScenarioStepped | TtftFitted
)  # fmt: skip

__all__ = [
    "GAP_EDGES_MS",
    "AdapterLoaded",
    "AllBlocksCleared",
    "BlockRemoved",
    "BlockStored",
    "CacheReset",
    "EngineSample",
    "ExtraKeys",
    "KvBatch",
    "KvDuplicate",
    "KvEvent",
    "KvGap",
    "KvRanks",
    "KvRestarted",
    "KvStreamState",
    "Malformed",
    "MetricsFailed",
    "MetricsSampled",
    "Observation",
    "Origin",
    "Outcome",
    "RequestEnded",
    "RequestEngineTimes",
    "RequestFirstToken",
    "RequestHead",
    "RequestOutputTokens",
    "RequestPromptTokens",
    "RequestStarted",
    "RequestUsage",
    "ScenarioStepped",
    "ServerProbed",
    "StorePart",
    "StreamFault",
    "TtftFitted",
    "WireForm",
]
