"""One instance of every event, from which the golden files are written. Values are like those of a small real run."""

from app import events as e
from app.ids import GroupIdx, Rank, RequestId, ServerId
from app.observations import GAP_EDGES_MS

SERVER = ServerId("http://127.0.0.1:8000")
RANK = Rank(0)
AT_MS = 1796050224000.5
HASHES = ("80f8d46b9e3ac303", "8c266f963d6d766f", "ae37e56d53267f5e", "9923a6ca9143bccf", "cf8a8cb5c3dead73")

VERDICT = e.Verdict(
    code="reused",
    text="Reused 4 of 6 blocks. First token after 34 ms instead of 73 ms.",
    detail="41 of 169 tokens were computed; the last token always is.",
    params={"reused_blocks": 4, "prompt_blocks": 6, "ttft_ms": 34.2, "reference_ttft_ms": 73.4},
    translations={
        "zh": ("复用了 6 个块中的 4 个。首 token 用时 34 毫秒，而不是 73 毫秒。", "169 个 token 中计算了 41 个。")
    },
    others=("alignment",),
    basis="usage",
    anchor="why-reused",
)
STARTED = e.RequestRecord(
    id=RequestId("r-8"), server=SERVER, rank=None, model="smollm2-135m", at_ms=AT_MS, origin="page",
    endpoint="/v1/chat/completions", streamed=True, label="Where is my parcel?",
)  # fmt: skip
FINISHED = e.RequestRecord(
    id=RequestId("r-8"), server=SERVER, rank=RANK, model="smollm2-135m", at_ms=AT_MS, origin="page",
    endpoint="/v1/chat/completions", streamed=True, label="Where is my parcel?", outcome="ok", status=200,
    prompt_tokens=169, cached_tokens=128, predicted_cached_tokens=128, completion_tokens=8, block_size=32,
    prompt_blocks=6, reusable_blocks=5, reused_blocks=4, ttft_ms=34.2, engine_ttft_ms=31.1, queue_ms=0.03, e2e_ms=180.4,
    ttft_parts=e.FirstTokenParts(front_ms=2.1, queue_ms=0.03, prefill_ms=31.1, rest_ms=0.97), upload_ms=0.2,
    token_gaps=e.TokenGaps(GAP_EDGES_MS, (0, 0, 0, 0, 6, 1, *(0,) * 10)), proxy_ms=0.3, head_ms=2.1, client_wait_ms=0.0,
    reference_id=RequestId("r-7"), reference_ttft_ms=73.4, verdict=VERDICT,
    routing=e.Routing(
        replicas=2, reusable_tokens=160, ceiling_tokens=160, best_tokens=160,
        best_server=ServerId("http://127.0.0.1:8001"), best_rank=Rank(0), chosen_tokens=128, delivered_tokens=128,
        workload_lost_tokens=0, eviction_lost_tokens=0, placement_lost_tokens=32, staleness_lost_tokens=0,
        complete=True,
    ),
    basis={"prompt_tokens": "usage", "cached_tokens": "usage", "predicted_cached_tokens": "inferred",
           "routing": "inferred", "completion_tokens": "usage", "ttft_ms": "clock", "engine_ttft_ms": "engine",
           "queue_ms": "engine", "upload_ms": "clock", "proxy_ms": "clock", "head_ms": "clock",
           "client_wait_ms": "clock", "e2e_ms": "clock"},
)  # fmt: skip
FAILED = e.RequestRecord(
    id=RequestId("r-9"), server=SERVER, rank=None, model="no-such-model", at_ms=AT_MS, origin="client",
    endpoint="/v1/chat/completions", streamed=False, outcome="http_error", status=404,
    error="The model `no-such-model` does not exist.", e2e_ms=3.1, basis={"e2e_ms": "clock"},
)  # fmt: skip
TABLE = e.BlockTable(
    block_size=32,
    hash=(*HASHES, None, "1f00000000000001"),
    tokens=(32, 32, 32, 32, 32, 9, 32),
    state=("reused", "reused", "reused", "reused", "computed", "partial", "decode"),
    basis="engine",
)
STREAM = e.StreamHealth(
    rank=RANK, state="connected", coverage="complete", endpoint="tcp://127.0.0.1:5557", wire_form="map", last_seq=9,
    last_batch_ms=AT_MS, batches=10, blocks_stored=41, blocks_removed=2, replay_available=True, duplicates=1,
    batches_per_s=0.4, blocks_per_s=1.5, since_ms=AT_MS - 60_000,
    groups=(
        e.CacheGroup(GroupIdx(0), "GPU", "full_attention", 32, blocks=5, copies=6, walked=True),
        e.CacheGroup(GroupIdx(0), "CPU", "full_attention", 32, blocks=2, copies=2, walked=False),
    ),
)  # fmt: skip
SILENT = e.StreamHealth(
    rank=Rank(1), state="disconnected", coverage="none", endpoint="tcp://127.0.0.1:5558",
    message="tcp://127.0.0.1:5558 was tried, and nothing publishes there.",
    diagnosis=e.Notice(
        "rank_port", "Rank 1 publishes on the port of rank 0 plus 1: nothing publishes at tcp://127.0.0.1:5558.",
        {"endpoint": "tcp://127.0.0.1:5558", "rank": 1, "port": 5558},
    ),
)  # fmt: skip
SERVER_RECORD = e.ServerRecord(
    id=SERVER, state="up", version="0.32.0", models=("smollm2-135m",), max_model_len=4096, block_size=32,
    num_gpu_blocks=1456, prefix_caching=True, usage_details=True, metrics_state="ok", metrics_at_ms=AT_MS,
    streams=(STREAM,),
    forecasts=e.ForecastScore(12, 11, 0, dropped_blocks=0, unit_tokens=32, last_drift_tokens=0, drift_tokens=32),
    shared_blocks=8, block_bytes=1_474_919, shared_bytes=11_799_352, saved_tokens=256, ranks_expected=1, ranks_heard=1,
    asleep=False, not_exported=("lifetime_hit_ratio", "swapped"),
)  # fmt: skip
TROUBLED = e.ServerRecord(
    id=ServerId("http://127.0.0.1:8001"), state="up", version="0.12.0", streams=(SILENT,), ranks_expected=2,
    notices=(
        e.Notice(
            "prefix_below_block", "Prompts share at most 14 tokens, less than one block of 32: nothing can be reused.",
            {"shared_tokens": 14, "block_size": 32},
        ),
    ),
)  # fmt: skip
BLOCKS = e.BlockColumns(
    server=SERVER, rank=RANK, block_size=32, event_seq=9, hash=HASHES, parent_row=(None, 0, 1, 2, 3),
    depth=(0, 1, 2, 3, 4), tokens=(32,) * 5, group=(GroupIdx(0),) * 5, medium=("GPU",) * 5, copies=(1, 1, 1, 1, 2),
    requests=(3, 3, 3, 3, 1), reuses=(2, 2, 2, 2, 0), stored_ms=(AT_MS,) * 5,
)  # fmt: skip
RATES = (
    e.RateReading(window="last_request", basis="usage", hit_tokens=128, query_tokens=169, ratio=128 / 169, requests=1),
    e.RateReading(
        window="since_mark", basis="counter", hit_tokens=256, query_tokens=506, ratio=256 / 506, since_ms=AT_MS - 60_000
    ),
    e.RateReading(window="last_minute", basis="counter", hit_tokens=0, query_tokens=0, ratio=None),
)
DIFFERENCE = e.ReadingsDifference(
    window="since_mark", first="counter", second="usage", hit_tokens=40, query_tokens=100, requests=1,
    cause="elsewhere",
    text="Over 1 request, the server's counters say 100 tokens more looked up than the responses' usage. "
    "The counters count requests, too, that didn't go through the dashboard.",
    causes=("elsewhere",),
)  # fmt: skip
POINT = e.MetricsPoint(
    at_ms=AT_MS, running=1.0, waiting=0.0, kv_usage_ratio=0.004, query_tokens=506.0, hit_tokens=256.0,
    prompt_tokens=506.0, generation_tokens=24.0, preemptions=None,
    cached_prompt_tokens=256.0, ttft_ms=34.0, tpot_ms=19.7, pool_blocks=1455, held_blocks=6, cached_blocks=5,
    unwritten_blocks=1444,
)  # fmt: skip
SCENARIO = e.ScenarioState(step=2, steps=4, caption="The same prompt again: its blocks are reused.", running=True)

EXAMPLES: tuple[e.Event, ...] = (
    e.Hello("prefixscope", "0.1.0", "5f3a", 20_000, demo=True, show_prompts=True),
    e.Snapshot(
        servers=(SERVER_RECORD, TROUBLED),
        requests=(e.RequestSummary(FINISHED, TABLE), e.RequestSummary(FAILED, None)),
        blocks=(BLOCKS,),
        rates={SERVER: RATES},
        metrics={SERVER: (POINT,)},
        scenario=SCENARIO,
    ),
    e.RequestStartedEvent(STARTED),
    e.RequestFirstTokenEvent(STARTED),
    e.RequestJoined(STARTED, TABLE),
    e.RequestFinished(FINISHED, TABLE),
    e.RequestFailed(FAILED, None),
    e.BlocksStored(
        hash=HASHES[3:],
        parent=HASHES[2],
        depth=3,
        tokens=32,
        group=GroupIdx(0),
        medium="GPU",
        copies=(1, 2),
        request=RequestId("r-8"),
        event_seq=9,
    ),
    e.BlocksReused(request=RequestId("r-8"), hash=HASHES[:3]),
    e.BlocksRemoved(hash=(HASHES[4], HASHES[3]), copies=(1, 0), group=GroupIdx(0), medium="GPU", event_seq=10),
    e.BlocksCleared(reason="reset", blocks=5),
    e.MetricsSampledEvent(POINT, {"0": POINT}),
    e.HitRateUpdated(RATES, (DIFFERENCE,)),
    e.ServerChanged(SERVER_RECORD),
    e.StreamGapped(first_seq=7, last_seq=8, recovered=2),
    e.StreamResynced(last_seq=9),
    e.ScenarioAdvanced(SCENARIO),
)


def outgoing(event: e.Event) -> e.Outgoing:
    """The event as the ledger would hand it to the hub."""
    dashboards_own = isinstance(event, e.Hello | e.Snapshot | e.ScenarioAdvanced)
    return e.Outgoing(
        event, AT_MS, None if dashboards_own else SERVER, None if dashboards_own else RANK,
        "engine" if isinstance(event, e.BlocksStored | e.BlocksReused | e.BlocksRemoved) else None,
    )  # fmt: skip
