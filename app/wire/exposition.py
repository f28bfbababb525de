"""`/metrics` pages to samples: the few families that are read, whatever their name is in this release.

A page has hundreds of lines an engine and a full parse of it costs tens of milliseconds, so the lines of the wanted
families are found first and only they are given to prometheus_client's parsers. Reading is a generator of short
steps, so that a page of 10,000 lines doesn't hold the event loop. Nothing is pooled: one sample an engine.
Imports `observations` and prometheus_client's parsers.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable
from typing import Any, NamedTuple

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as _openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as _text_families

from ..observations import EngineSample

TIMES_PER_TOKEN = (
    "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds",
    "vllm:request_time_per_output_token_seconds",
)  # fmt: skip
ALIASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("running", ("vllm:num_requests_running",)),
    ("waiting", ("vllm:num_requests_waiting",)),
    ("kv_usage_ratio", ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")),
    ("query_tokens", ("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries")),
    ("hit_tokens", ("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits")),
    ("prompt_tokens", ("vllm:prompt_tokens",)),
    ("cached_prompt_tokens", ("vllm:prompt_tokens_cached",)),
    ("generation_tokens", ("vllm:generation_tokens",)),
    ("preemptions", ("vllm:num_preemptions",)),
    ("lifetime_hit_ratio", ("vllm:gpu_prefix_cache_hit_rate",)),
    ("external_query_tokens", ("vllm:external_prefix_cache_queries",)),
    ("external_hit_tokens", ("vllm:external_prefix_cache_hits",)),
    ("ttft_s_sum", ("vllm:time_to_first_token_seconds_sum",)),
    ("ttft_count", ("vllm:time_to_first_token_seconds_count",)),
    ("tpot_s_sum", tuple(f"{family}_sum" for family in TIMES_PER_TOKEN)),
    ("tpot_count", tuple(f"{family}_count" for family in TIMES_PER_TOKEN)),
    ("swapped", ("vllm:num_requests_swapped",)),
    ("counters_created_s", ("vllm:prefix_cache_queries_created", "vllm:gpu_prefix_cache_queries_created")),
)
"""A field of EngineSample, and the names of its family, the current one first. Names of one concept are never summed:
0.10 exports both of some. A counter may end in `_total` or not, and the colon may be an underscore."""

CONFIG = "vllm:cache_config_info"
SLEEP = "vllm:engine_sleep_state"
_RATIOS = frozenset({"kv_usage_ratio", "lifetime_hit_ratio"})
_LINES_A_STEP = 16
MAX_ENGINES = 512
"""More than any server has ranks; what else names engines is a mistake, which mustn't cost seconds a reading."""
SLEEP_STATES = 3
MAX_KNOWN_LABELS = 50_000
_openmetrics_families: Callable[[str], Iterable[Metric]] = _openmetrics_parser  # untyped in its own package


class Exposition(NamedTuple):
    """What a page says."""

    engines: tuple[EngineSample, ...]
    """One a combination of `engine` and `model_name`, in the page's order. Further labels are kept in the name of the
    engine: `0{pod="a"}`."""
    malformed_lines: int
    """Lines of wanted families that can't be read; all others were."""


class _Key(NamedTuple):
    engine: str
    model_name: str | None
    others: tuple[tuple[str, str], ...]


_Configs = dict[str, list[dict[str, str]]]
"""Labels of the config family, by engine."""
KnownLabels = dict[str, dict[str, str]]
"""Labels by their text on the line, which an engine's families share: each is parsed once, and from then on a line
costs a look-up and a number. Handed from one reading of a server to the next."""


def read_page(page: bytes, content_type: str = "text/plain", known: KnownLabels | None = None) -> Exposition:
    """The samples of a page in one go. Never raises: a page of nonsense has no engines."""
    steps = page_steps(page, content_type, known)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            exposition: Exposition = done.value
            return exposition


def page_steps(
    page: bytes, content_type: str = "text/plain", known: KnownLabels | None = None
) -> Generator[None, None, Exposition]:
    """The same as `read_page` as a generator: a step takes well under a millisecond, and the value comes last."""
    parser = _LineParser("openmetrics" in content_type.lower(), {} if known is None else known)
    page = b"\n" + page
    # Exporters that negotiate OpenMetrics 1.0 may write the colon as an underscore.
    underscored = b"\nvllm:" not in page
    values: dict[_Key, dict[str, float | None]] = {}
    malformed = 0
    for concept, names in ALIASES:
        for alias in names:
            name = alias.replace(":", "_") if underscored else alias
            lines = _lines_of(page, name)
            yield
            for begin in range(0, len(lines), _LINES_A_STEP):
                samples, bad = parser.parse(name, lines[begin : begin + _LINES_A_STEP])
                malformed += bad
                for labels, value in samples:
                    key = _key(labels)
                    if len(values) < MAX_ENGINES or key in values:
                        # The first name that gives a value stands: the current one, and the first of equal lines.
                        fields = values.setdefault(key, {})
                        if fields.get(concept) is None:
                            fields[concept] = _clean(concept, value)
                yield
    asleep: dict[str, bool] = {}
    configs: _Configs = defaultdict(list)
    for family in (SLEEP, CONFIG):
        name = family.replace(":", "_") if underscored else family
        for line in _lines_of(page, name)[: MAX_ENGINES if family is CONFIG else MAX_ENGINES * SLEEP_STATES]:
            samples, bad = parser.parse(name, [line])
            malformed += bad
            for labels, value in samples:
                if family is CONFIG:
                    configs[labels.get("engine") or "0"].append(labels)
                elif labels.get("sleep_state") == "awake":
                    asleep[labels.get("engine") or "0"] = value == 0
            yield
    if not values:
        values = {_Key(engine, None, ()): {} for engine in configs}
    counts_blocks = _counts_blocks(page)
    engines: list[EngineSample] = []
    for key, fields in values.items():
        if counts_blocks:
            _to_tokens(fields, _config_fields(key, configs).get("block_size"))
        engines.append(_sample(key, fields, configs, asleep.get(key.engine)))
        yield
    return Exposition(tuple(engines), malformed)


def _lines_of(page: bytes, name: str) -> list[str]:
    """The sample lines of one family, with or without `_total`; a name that only begins like it is another's."""
    needle = b"\n" + name.encode()
    lines: list[str] = []
    at = page.find(needle)
    while at >= 0:
        end = page.find(b"\n", at + 1)
        end = len(page) if end < 0 else end
        tail = page[at + len(needle) : at + len(needle) + 7].removeprefix(b"_total")
        if not tail[:1].strip(b"{ \t\r"):
            lines.append(page[at + 1 : end].decode("utf-8", "replace").rstrip("\r"))
        at = page.find(needle, end)
    return lines


_FOREIGN_ERRORS = (ValueError, KeyError, IndexError, TypeError, AttributeError, AssertionError, OverflowError)


class _LineParser:
    """Lines of one family to `(labels, value)`, by prometheus_client where the labels aren't known yet."""

    def __init__(self, is_openmetrics: bool, known: KnownLabels) -> None:
        self._is_openmetrics = is_openmetrics
        self._known = known

    def parse(self, name: str, lines: list[str]) -> tuple[list[tuple[dict[str, str], float]], int]:
        """What each line that can be read says, in order, and how many can't be read."""
        read: list[tuple[dict[str, str], float] | None] = []
        unknown: list[int] = []
        for index, line in enumerate(lines):
            head, _, text = line.rpartition(" ")
            labels = self._known.get(_behind_name(head, name))
            value = None if labels is None else _number(text)
            if labels is None or value is None:
                unknown.append(index)
                read.append(None)
            else:
                read.append((labels, value))
        parsed = self._parsed(name, [lines[index] for index in unknown])
        for index, sample in zip(unknown, parsed, strict=True):
            read[index] = sample
            head, _, text = lines[index].rpartition(" ")
            # A last word after the labels alone is the value: no time stamp, no exemplar.
            if sample and head.endswith("}") and " # " not in head and len(self._known) < MAX_KNOWN_LABELS:
                self._known[_behind_name(head, name)] = sample[0]
        samples = [sample for sample in read if sample is not None]
        return samples, len(lines) - len(samples)

    def _parsed(self, name: str, lines: list[str]) -> list[tuple[dict[str, str], float] | None]:
        """The sample of each line, or None: all at once if possible, one by one where one of them can't be read."""
        if not lines:
            return []
        try:
            samples = self._samples(name, lines)
            if len(samples) == len(lines):
                return list(samples)
        except _FOREIGN_ERRORS:
            pass
        each: list[tuple[dict[str, str], float] | None] = []
        for line in lines:
            try:
                (sample,) = self._samples(name, [line])
            except _FOREIGN_ERRORS:
                each.append(None)
            else:
                each.append(sample)
        return each

    def _samples(self, name: str, lines: list[str]) -> list[tuple[dict[str, str], float]]:
        text = "\n".join(lines) + "\n"
        families: Iterable[Metric]
        if self._is_openmetrics:
            # Only counters may carry exemplars, so the type has to be there.
            kind = f"# TYPE {name} counter\n" if lines[0].startswith(f"{name}_total") else ""
            families = _openmetrics_families(f"{kind}{text}# EOF\n")
        else:
            families = _text_families(text)
        return [(sample.labels, sample.value) for family in families for sample in family.samples]


def _behind_name(head: str, name: str) -> str:
    """The labels' text of a line of the family `name`, which may end in `_total`."""
    return head[len(name) :].removeprefix("_total")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _key(labels: dict[str, str]) -> _Key:
    others = tuple(sorted((name, text) for name, text in labels.items() if name not in ("engine", "model_name")))
    return _Key(labels.get("engine") or "0", labels.get("model_name"), others)


def _clean(concept: str, value: float) -> float | None:
    if not math.isfinite(value) or value < 0 or (concept in _RATIOS and value > 1):
        return None
    return value


def _counts_blocks(page: bytes) -> bool:
    """vLLM 0.8 counts queries and hits in blocks, and says so in the help text only."""
    at = page.find(b"\n# HELP vllm:gpu_prefix_cache_queries")
    return at >= 0 and b"queried blocks" in page[at : page.find(b"\n", at + 1)] and b"\nvllm:prefix_cache_q" not in page


def _to_tokens(fields: dict[str, float | None], block_size: int | None) -> None:
    for concept in ("query_tokens", "hit_tokens"):
        blocks = fields.get(concept)
        fields[concept] = None if blocks is None or block_size is None else blocks * block_size


def _sample(key: _Key, fields: dict[str, float | None], configs: _Configs, asleep: bool | None) -> EngineSample:
    engine = key.engine
    if key.others:
        engine += "{" + ",".join(f'{name}="{text}"' for name, text in key.others) + "}"
    readings: dict[str, Any] = fields | _config_fields(key, configs)
    return EngineSample(engine, key.model_name, asleep=asleep, **readings)


def _config_fields(key: _Key, configs: _Configs) -> dict[str, Any]:
    for config in configs.get(key.engine, ()):
        if all(config.get(k, v) == v for k, v in key.others):
            return {
                "block_size": _count(config.get("block_size")),
                "num_gpu_blocks": _count(config.get("num_gpu_blocks")),
                "block_bytes": _block_bytes(config),
                "prefix_caching": {"True": True, "False": False}.get(config.get("enable_prefix_caching", "")),
                "hash_algo": _word(config.get("prefix_caching_hash_algo")),
            }
    return {}


def _block_bytes(config: dict[str, str]) -> int | None:
    """Memory of the cache by its blocks; None where somebody set another number of blocks than fits."""
    memory, blocks = _count(config.get("kv_cache_memory_bytes")), _count(config.get("num_gpu_blocks"))
    if memory is None or blocks is None or config.get("num_gpu_blocks_override", "None") != "None":
        return None
    return memory // blocks


def _count(text: str | None) -> int | None:
    return int(text) if text and len(text) < 16 and text.isascii() and text.isdecimal() and int(text) > 0 else None


def _word(text: str | None) -> str | None:
    return None if text in (None, "", "None") else text
