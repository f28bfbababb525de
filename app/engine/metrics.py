"""The `/metrics` page: vLLM 0.32's names, types, labels and buckets, filled from the embedded engine's steps.

Only families that a single GPU engine without connectors, LoRA or speculative decoding has a value for. Times are the
modelled ones.
"""

from dataclasses import dataclass
from typing import TypeVar

from prometheus_client import Counter, Gauge, Histogram

from .core import CoreConfig, CoreGauges
from .metrics_page import MetricsPage

LABELS = ("model_name", "engine")
LATENCY = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
FIRST_TOKEN = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560),
)
INTER_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
STEP_TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
CHOICES = (1, 2, 5, 10, 20)
PREEMPTIONS = (1, 2, 3, 4, 5, 10, 20)
FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")
PROMPT_SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
CACHE_TIERS = ("device", "host", "p2p", "disk", "external_unspecified")
WAITING_REASONS = ("capacity", "deferred")

_Metric = TypeVar("_Metric", Counter, Gauge, Histogram)


@dataclass(frozen=True, slots=True)
class FinishedRequest:
    """A request's figures at its end, in seconds and tokens. Times are None where it didn't get that far."""

    finish_reason: str
    e2e_s: float
    queue_s: float | None
    prefill_s: float | None
    decode_s: float | None
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    max_tokens: int
    preemptions: int
    n: int


class EngineMetrics:
    """The samples of one rank: label `engine` is its number."""

    def __init__(
        self, config: CoreConfig, max_model_len: int, model_name: str, page: MetricsPage | None = None, rank: int = 0
    ) -> None:
        self.page = page or MetricsPage()
        self._values = (model_name, str(rank))
        self._before = CoreGauges()
        self._make_gauges()
        self._make_counters()
        self._make_histograms(_one_two_five(max_model_len))
        self._cache_config(config, max_model_len, rank)

    def observe_core(self, now: CoreGauges) -> None:
        """Takes over the core's gauges, and what its counters grew by."""
        before, self._before = self._before, now
        self._running.set(now.running)
        self._waiting.set(now.waiting)
        self._waiting_capacity.set(now.waiting)
        self._usage.set(now.kv_cache_usage_ratio)
        hits = now.prefix_cache_hits - before.prefix_cache_hits
        prompt = now.prompt_tokens - before.prompt_tokens
        cached = now.prompt_tokens_cached - before.prompt_tokens_cached
        self._queries.inc(now.prefix_cache_queries - before.prefix_cache_queries)
        self._hits.inc(hits)
        self._tiers["device"].inc(hits)
        self._preemptions.inc(now.preemptions - before.preemptions)
        self._prompt_tokens.inc(prompt)
        self._sources["local_compute"].inc(prompt - cached)
        self._sources["local_cache_hit"].inc(cached)
        self._prompt_cached.inc(cached)
        self._generation_tokens.inc(now.generation_tokens - before.generation_tokens)

    def observe_step(self, tokens: int) -> None:
        """A step that gave something: prompt tokens computed by requests that got their first token, and tokens."""
        self._step_tokens.observe(tokens)

    def observe_first_token(self, ttft_s: float) -> None:
        """A request's first token, seconds after it arrived."""
        self._ttft.observe(ttft_s)

    def observe_next_token(self, gap_s: float) -> None:
        """A later token, seconds after the one before."""
        self._itl.observe(gap_s)

    def observe_finished(self, request: FinishedRequest) -> None:
        """A request's end, of whatever kind."""
        self._finished[request.finish_reason].inc()
        self._e2e.observe(request.e2e_s)
        if request.queue_s is not None:
            self._queue.observe(request.queue_s)
        if request.prefill_s is not None and request.decode_s is not None:
            self._prefill.observe(request.prefill_s)
            self._decode.observe(request.decode_s)
            self._inference.observe(request.prefill_s + request.decode_s)
            later = request.output_tokens - 1
            self._per_token.observe(request.decode_s / later if later > 0 else 0.0)
        self._request_preemptions.observe(request.preemptions)
        self._computed.observe(request.prompt_tokens - request.cached_tokens)
        self._prompt_length.observe(request.prompt_tokens)
        self._output_length.observe(request.output_tokens)
        self._longest_output.observe(request.output_tokens)
        self._max_tokens.observe(request.max_tokens)
        self._n.observe(request.n)

    def _make_gauges(self) -> None:
        self._running = self._gauge("num_requests_running", "Number of requests in model execution batches.")
        self._waiting = self._gauge("num_requests_waiting", "Number of requests waiting to be processed.")
        by_reason = self._labelled(
            Gauge, "num_requests_waiting_by_reason", "Number of waiting requests by reason.", "reason", WAITING_REASONS
        )
        self._waiting_capacity = by_reason["capacity"]
        self._usage = self._gauge("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.")
        sleep = self._labelled(
            Gauge,
            "engine_sleep_state",
            "Engine sleep state; awake = 1 means engine is awake.",
            "sleep_state",
            ("awake", "weights_offloaded", "discard_all"),
        )
        sleep["awake"].set(1)

    def _make_counters(self) -> None:
        counter = self._counter
        self._queries = counter("prefix_cache_queries", "Prefix cache queries, in terms of number of queried tokens.")
        self._hits = counter("prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.")
        counter("external_prefix_cache_queries", "External prefix cache queries, in number of queried tokens.")
        counter("external_prefix_cache_hits", "External prefix cache hits, in number of cached tokens.")
        self._preemptions = counter("num_preemptions", "Cumulative number of preemption from the engine.")
        self._prompt_tokens = counter("prompt_tokens", "Number of prefill tokens processed.")
        self._sources = self._labelled(
            Counter, "prompt_tokens_by_source", "Number of prompt tokens by source.", "source", PROMPT_SOURCES
        )
        self._prompt_cached = counter("prompt_tokens_cached", "Number of cached prompt tokens (local + external).")
        self._tiers = self._labelled(
            Counter,
            "prompt_tokens_cached_by_source",
            "Prefix-cache hit tokens by the cache tier that supplied them. Counted at admission.",
            "source",
            CACHE_TIERS,
        )
        self._generation_tokens = counter("generation_tokens", "Number of generation tokens processed.")
        self._finished = self._labelled(
            Counter, "request_success", "Count of successfully processed requests.", "finished_reason", FINISH_REASONS
        )

    def _make_histograms(self, tokens: tuple[float, ...]) -> None:
        histogram = self._histogram
        self._prompt_length = histogram("request_prompt_tokens", "Number of prefill tokens processed.", tokens)
        self._output_length = histogram("request_generation_tokens", "Number of generation tokens processed.", tokens)
        self._step_tokens = histogram(
            "iteration_tokens_total", "Histogram of number of tokens per engine_step.", STEP_TOKENS
        )
        self._longest_output = histogram(
            "request_max_num_generation_tokens", "Histogram of maximum number of requested generation tokens.", tokens
        )
        self._n = histogram("request_params_n", "Histogram of the n request parameter.", CHOICES)
        self._max_tokens = histogram(
            "request_params_max_tokens", "Histogram of the max_tokens request parameter.", tokens
        )
        self._ttft = histogram(
            "time_to_first_token_seconds", "Histogram of time to first token in seconds.", FIRST_TOKEN
        )
        self._itl = histogram(
            "inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", INTER_TOKEN
        )
        self._per_token = histogram(
            "request_time_per_output_token_seconds",
            "Histogram of time_per_output_token_seconds per request.",
            INTER_TOKEN,
        )
        phase = "Histogram of time spent in {} phase for request."
        self._e2e = histogram("e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", LATENCY)
        self._queue = histogram("request_queue_time_seconds", phase.format("WAITING"), LATENCY)
        self._inference = histogram("request_inference_time_seconds", phase.format("RUNNING"), LATENCY)
        self._prefill = histogram("request_prefill_time_seconds", phase.format("PREFILL"), LATENCY)
        self._decode = histogram("request_decode_time_seconds", phase.format("DECODE"), LATENCY)
        self._request_preemptions = histogram(
            "request_num_preemptions", "Histogram of the number of times a request was preempted.", PREEMPTIONS
        )
        self._computed = histogram(
            "request_prefill_kv_computed_tokens",
            "Histogram of new KV tokens computed during prefill (excluding cached tokens).",
            tokens,
        )

    def _cache_config(self, config: CoreConfig, max_model_len: int, rank: int) -> None:
        size_tokens = config.num_gpu_blocks * config.block_size
        # As vLLM says it where --kv-cache-memory-bytes made the pool, and where --num-gpu-blocks-override did.
        token_bytes = config.profile.kv_token_bytes
        memory = None if token_bytes is None else size_tokens * token_bytes
        told: dict[str, object] = {
            "block_size": config.block_size,
            "cache_dtype": "auto",
            "effective_attention_block_size": config.block_size,
            "enable_prefix_caching": config.enable_prefix_caching,
            "engine": rank,
            "gpu_memory_utilization": None,
            "is_attention_free": False,
            "kv_cache_max_concurrency": round(size_tokens / max_model_len, 4),
            "kv_cache_memory_bytes": memory,
            "kv_cache_size_tokens": size_tokens,
            "num_cpu_blocks": None,
            "num_gpu_blocks": config.num_gpu_blocks,
            "num_gpu_blocks_override": config.num_gpu_blocks if memory is None else None,
            "prefix_caching_hash_algo": config.hasher.algorithm,
            "sliding_window": None,
            "user_specified_block_size": True,
        }
        info = self.page.family(Gauge, "cache_config_info", "Information of the LLMEngine CacheConfig", tuple(told))
        info.labels(*map(str, told.values())).set(1)

    def _gauge(self, name: str, text: str) -> Gauge:
        return self.page.family(Gauge, name, text, LABELS).labels(*self._values)

    def _counter(self, name: str, text: str) -> Counter:
        return self.page.family(Counter, name, text, LABELS).labels(*self._values)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return self.page.family(Histogram, name, text, LABELS, buckets).labels(*self._values)

    def _labelled(
        self, make: type[_Metric], name: str, text: str, label: str, values: tuple[str, ...]
    ) -> dict[str, _Metric]:
        family = self.page.family(make, name, text, (*LABELS, label))
        return {value: family.labels(*self._values, value) for value in values}


def _one_two_five(largest: int) -> tuple[float, ...]:
    series = (float(digit * 10**exponent) for exponent in range(10) for digit in (1, 2, 5))
    return tuple(value for value in series if value <= largest) or (1.0,)
