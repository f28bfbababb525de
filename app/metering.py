"""The dashboard's own figures for Prometheus: counts what goes out to browsers, so both tell the same.

Labels come from closed lists and from the settings alone (servers, ranks), never from a request's text.
"""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from . import __version__
from .events import Outgoing, RequestFailed, RequestFinished, RequestRecord, ServerRecord, StreamHealth

TTFT_BUCKETS_S = (0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.2, 2.5, 5.0, 10.0, 20.0, 60.0)
ERROR_BUCKETS_BLOCKS = (0, 1, 2, 4, 8, 16, 64, 256)
LAG_BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0)
WARM_RATIO = 0.5
"""A request is warm that reused at least this share of what it could; the page counts alike."""

_STREAM_COUNTERS: tuple[tuple[str, str, Callable[[StreamHealth], int]], ...] = (
    ("kv_batches", "KV-event batches applied", lambda stream: stream.batches),
    ("kv_blocks_stored", "Blocks announced as stored or reused", lambda stream: stream.blocks_stored),
    ("kv_blocks_removed", "Blocks announced as removed", lambda stream: stream.blocks_removed),
    ("kv_gaps", "Times that a sequence number was missed", lambda stream: stream.gaps),
    ("kv_batches_replayed", "Batches recovered by replay", lambda stream: stream.replayed),
    ("kv_batches_lost", "Batches that replay could not recover", lambda stream: stream.lost),
    ("kv_malformed", "Messages or events that could not be decoded", lambda stream: stream.malformed),
)


class Metering:
    """Counters of this run, in a registry of their own.

    `gauges`: name, help and reading of what is asked for when Prometheus comes. `servers`: what is known of each then.
    """

    def __init__(
        self, gauges: Iterable[tuple[str, str, Callable[[], float]]], servers: Callable[[], Iterable[ServerRecord]]
    ) -> None:
        self.registry = CollectorRegistry()
        self._requests = self._counter("requests", "Proxied requests, by how they ended", "server", "outcome", "origin")
        self._tokens = self._counter(
            "prompt_tokens", "Prompt tokens of requests that ended well, by where they came from", "server", "source"
        )
        self._forecasts = self._counter(
            "forecasts", "Forecasts of cached tokens against what the server reported", "server", "result"
        )
        self._ttft = self._histogram(
            "ttft_seconds", "Time to first token, by the dashboard's clock", TTFT_BUCKETS_S, "server", "warmth"
        )
        self._error = self._histogram(
            "forecast_error_blocks", "Forecast cached tokens away from the outcome, in blocks", ERROR_BUCKETS_BLOCKS,
            "server",
        )  # fmt: skip
        self.loop_lag = self._histogram("loop_lag_seconds", "How late the event loop came to a timer", LAG_BUCKETS_S)
        self._gauge("build_info", "The running release", "version").labels(__version__).set(1)
        for name, text, read in gauges:
            self._gauge(name, text).set_function(read)
        ProcessCollector(namespace="prefixscope", registry=self.registry)
        self.registry.register(_Servers(servers))

    def observe(self, outgoing: Iterable[Outgoing]) -> None:
        """Counts the requests that ended."""
        for each in outgoing:
            event = each.event
            if type(event) is RequestFinished or type(event) is RequestFailed:
                self._ended(event.record)

    def _ended(self, record: RequestRecord) -> None:
        self._requests.labels(record.server, record.outcome or "unknown", record.origin).inc()
        if record.ttft_ms is not None:
            self._ttft.labels(record.server, _warmth(record)).observe(record.ttft_ms / 1000)
        if record.outcome != "ok" or record.prompt_tokens is None:
            return
        if record.cached_tokens is None:
            self._tokens.labels(record.server, "unknown").inc(record.prompt_tokens)
            return
        self._tokens.labels(record.server, "cached").inc(record.cached_tokens)
        self._tokens.labels(record.server, "computed").inc(max(record.prompt_tokens - record.cached_tokens, 0))
        if record.predicted_cached_tokens is not None and not record.predicted_is_lower_bound:
            drift = record.predicted_cached_tokens - record.cached_tokens
            result = "exact" if drift == 0 else "over" if drift > 0 else "under"
            self._forecasts.labels(record.server, result).inc()
            if record.block_size:
                self._error.labels(record.server).observe(abs(drift) / record.block_size)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"prefixscope_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"prefixscope_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: Iterable[float], *labels: str) -> Histogram:
        return Histogram(f"prefixscope_{name}", text, labels, registry=self.registry, buckets=tuple(buckets))


class _Servers(Collector):
    """The health of servers and of their KV-event streams, read from the ledger's own counters."""

    def __init__(self, servers: Callable[[], Iterable[ServerRecord]]) -> None:
        self._servers = servers

    def collect(self) -> Iterator[Metric]:
        """One family a figure; a server that isn't known yet is absent, not zero."""
        servers = list(self._servers())
        up = GaugeMetricFamily("prefixscope_server_up", "Whether a vLLM server answers", labels=["server"])
        for server in servers:
            if server.state != "unknown":
                up.add_metric([server.id], float(server.state == "up"))
        yield up
        streams = [(server, stream) for server in servers for stream in server.streams]
        complete = GaugeMetricFamily(
            "prefixscope_kv_coverage_complete", "Whether no KV event was missed", labels=["server", "rank"]
        )
        for server, stream in streams:
            complete.add_metric([server.id, str(stream.rank)], float(stream.coverage == "complete"))
        yield complete
        for name, text, read in _STREAM_COUNTERS:
            family = CounterMetricFamily(f"prefixscope_{name}", text, labels=["server", "rank"])
            for server, stream in streams:
                family.add_metric([server.id, str(stream.rank)], read(stream))
            yield family


def _warmth(record: RequestRecord) -> str:
    if not record.reusable_blocks or record.reused_blocks is None:
        return "unknown"
    return "warm" if record.reused_blocks / record.reusable_blocks >= WARM_RATIO else "cold"
