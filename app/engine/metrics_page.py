"""The registry behind `/metrics`: one for all ranks, read as 0.32 names its families or as an older release does."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Metric,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.samples import Sample

from .imitation import CURRENT_VERSION

_Family = TypeVar("_Family", Counter, Gauge, Histogram)

Names = dict[str, tuple[str, ...]]
"""A family of 0.32, without the prefix, and the names under which a release has it: none, another, or two."""

_0_26: Names = {"request_num_preemptions": (), "prompt_tokens_cached_by_source": ()}
_0_18: Names = _0_26 | {"num_requests_waiting_by_reason": ()}
_0_12: Names = _0_18 | {
    "prompt_tokens_by_source": (),
    "prompt_tokens_cached": (),
    "request_prefill_kv_computed_tokens": (),
    "inter_token_latency_seconds": ("inter_token_latency_seconds", "time_per_output_token_seconds"),
}
_0_10: Names = _0_12 | {
    "engine_sleep_state": (),
    "external_prefix_cache_queries": (),
    "external_prefix_cache_hits": (),
    "request_time_per_output_token_seconds": (),
    "kv_cache_usage_perc": ("gpu_cache_usage_perc", "kv_cache_usage_perc"),
    "prefix_cache_queries": ("gpu_prefix_cache_queries", "prefix_cache_queries"),
    "prefix_cache_hits": ("gpu_prefix_cache_hits", "prefix_cache_hits"),
}
_0_8: Names = _0_10 | {
    "inter_token_latency_seconds": ("time_per_output_token_seconds",),
    "kv_cache_usage_perc": ("gpu_cache_usage_perc",),
    "prefix_cache_queries": ("gpu_prefix_cache_queries",),
    "prefix_cache_hits": ("gpu_prefix_cache_hits",),
}
_V0: Names = _0_8 | {"prefix_cache_queries": (), "prefix_cache_hits": ()}

RELEASES: Final = {
    CURRENT_VERSION: Names(),
    "0.26.0": _0_26,
    "0.18.0": _0_18,
    "0.12.0": _0_12,
    "0.10.2": _0_10,
    "0.8.5": _0_8,
    "v0": _V0,
}
_PREFIX = "vllm:"
_IN_BLOCKS = {
    "gpu_prefix_cache_queries": "GPU prefix cache queries, in terms of number of queried blocks.",
    "gpu_prefix_cache_hits": "GPU prefix cache hits, in terms of number of cached blocks.",
}
"""What 0.8 says of its counters: only the help text tells their unit."""


class MetricsPage:
    """Families by name, made when they are first asked for, so that every rank fills the same ones."""

    def __init__(self, release: str = CURRENT_VERSION) -> None:
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._release = release
        self._families: dict[str, Counter | Gauge | Histogram] = {}

    def family(
        self, make: type[_Family], name: str, text: str, labels: Sequence[str], buckets: tuple[float, ...] | None = None
    ) -> _Family:
        """The family `vllm:name`. A name stands for one kind with one set of labels."""
        found = self._families.get(name)
        if found is None:
            options: dict[str, Any] = {} if buckets is None else {"buckets": buckets}
            found = self._families[name] = make(f"{_PREFIX}{name}", text, labels, registry=self.registry, **options)
        assert isinstance(found, make)
        return found

    def render(self) -> tuple[bytes, str]:
        """The page and its content type: Prometheus's text format, whatever the scraper prefers.

        The client's OpenMetrics encoder writes the colon of `vllm:` as an underscore, and no dashboard asks for that.
        """
        encoder, content_type = choose_encoder("text/plain; version=0.0.4")
        return encoder(self), content_type

    def collect(self) -> Iterator[Metric]:
        """The families as the release has them; what the encoders ask for."""
        families = list(self.registry.collect())
        yield from _as_release(families, RELEASES[self._release], in_blocks=self._release == "0.8.5")
        if self._release == "v0":
            yield _hit_rate(families)


def _as_release(families: Iterable[Metric], names: Names, in_blocks: bool) -> Iterator[Metric]:
    for family in families:
        current = family.name.removeprefix(_PREFIX)
        for name in names.get(current, (current,)):
            if name == current:
                yield family
            else:
                told = _IN_BLOCKS.get(name, family.documentation) if in_blocks else family.documentation
                yield _renamed(family, f"{_PREFIX}{name}", told)


def _renamed(family: Metric, name: str, text: str) -> Metric:
    found = Metric(name, text, family.type)
    found.samples = [sample._replace(name=name + sample.name.removeprefix(family.name)) for sample in family.samples]
    return found


def _hit_rate(families: Iterable[Metric]) -> Metric:
    """Hits of queries since the start, -1 where there were none: what the engine before 0.8 told."""
    totals = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        if family.name in ("vllm:prefix_cache_queries", "vllm:prefix_cache_hits")
        for sample in family.samples
    }
    found = Metric("vllm:gpu_prefix_cache_hit_rate", "GPU prefix cache block hit rate.", "gauge")
    for (name, labels), queries in totals.items():
        if name == "vllm:prefix_cache_queries_total":
            hits = totals["vllm:prefix_cache_hits_total", labels]
            found.samples.append(Sample(found.name, dict(labels), hits / queries if queries else -1.0))
    return found
