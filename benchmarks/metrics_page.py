"""How much CPU a `/metrics` page takes to read: `python -m benchmarks.metrics_page`.

Pages of one engine (about 600 lines) and of many (about 10,000), histograms and strangers' families included.
"""

import time
from collections.abc import Iterator

from app.wire.exposition import KnownLabels, page_steps, read_page

_GAUGES = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "engine_sleep_state")
_COUNTERS = (
    "prefix_cache_queries", "prefix_cache_hits", "external_prefix_cache_queries", "external_prefix_cache_hits",
    "mm_cache_queries", "mm_cache_hits", "num_preemptions", "prompt_tokens", "prompt_tokens_cached",
    "generation_tokens",
)  # fmt: skip
_HISTOGRAMS = (
    "request_prompt_tokens", "request_generation_tokens", "iteration_tokens_total", "time_to_first_token_seconds",
    "inter_token_latency_seconds", "request_time_per_output_token_seconds", "e2e_request_latency_seconds",
    "request_queue_time_seconds", "request_inference_time_seconds", "request_prefill_time_seconds",
    "request_decode_time_seconds", "request_prefill_kv_computed_tokens", "request_params_n",
    "request_params_max_tokens", "request_max_num_generation_tokens",
)  # fmt: skip
_CONFIG = (
    'block_size="16",cache_dtype="auto",enable_prefix_caching="True",gpu_memory_utilization="0.9",'
    'is_attention_free="False",kv_cache_size_tokens="446368",mamba_cache_mode="none",num_cpu_blocks="None",'
    'num_gpu_blocks="27898",num_gpu_blocks_override="None",prefix_caching_hash_algo="sha256",sliding_window="None"'
)
_BUCKETS = 20


def page(lines: int) -> bytes:
    """A page of about `lines` lines: as many engines as that takes, at least one."""
    engines = max(1, round((lines - 150) / 380))
    text = "\n".join(_page_lines(engines))
    missing = lines - text.count("\n")
    rest = "".join(f'http_requests_total{{handler="/{n}",method="POST"}} {n}.0\n' for n in range(max(0, missing)))
    return (text + "\n" + rest).encode()


def _page_lines(engines: int) -> Iterator[str]:
    for name in _GAUGES:
        yield from _family(f"vllm:{name}", "gauge", engines)
    for name in _COUNTERS:
        yield from _family(f"vllm:{name}_total", "counter", engines)
        yield from _family(f"vllm:{name}_created", "gauge", engines)
    for name in _HISTOGRAMS:
        yield f"# TYPE vllm:{name} histogram"
        for engine in range(engines):
            labels = f'engine="{engine}",model_name="meta-llama/Llama-3.1-8B-Instruct"'
            for bucket in range(_BUCKETS):
                yield f'vllm:{name}_bucket{{{labels},le="{bucket * 2.5}"}} {bucket * 17}.0'
            yield f"vllm:{name}_count{{{labels}}} 340.0"
            yield f"vllm:{name}_sum{{{labels}}} 1234.5678"
    yield "# TYPE vllm:cache_config_info gauge"
    for engine in range(engines):
        yield f'vllm:cache_config_info{{{_CONFIG},engine="{engine}"}} 1.0'


def _family(name: str, kind: str, engines: int) -> Iterator[str]:
    yield f"# HELP {name} A family."
    yield f"# TYPE {name} {kind}"
    for engine in range(engines):
        yield f'{name}{{engine="{engine}",model_name="meta-llama/Llama-3.1-8B-Instruct"}} {0.25 * engine}'


def main() -> None:
    """Prints the CPU time of the whole and the longest step, the best of several rounds."""
    for lines in (600, 10_000):
        text = page(lines)
        whole: list[float] = []
        again: list[float] = []
        longest: list[float] = []
        known: KnownLabels = {}
        for _ in range(20):
            began = time.process_time()
            exposition = read_page(text)
            whole.append(time.process_time() - began)
            began = time.process_time()
            read_page(text, known=known)
            again.append(time.process_time() - began)
            steps: list[float] = []
            began = time.process_time()
            for _step in page_steps(text):
                steps.append(time.process_time() - began)
                began = time.process_time()
            longest.append(max(steps))
        count = text.count(b"\n")
        print(
            f"{count} lines, {len(exposition.engines)} engines: {min(whole) * 1e3:.2f} ms CPU at first, "
            f"{min(again) * 1e3:.2f} ms from then on, longest step {min(longest) * 1e3:.2f} ms (wanted: under 20 ms)"
        )


if __name__ == "__main__":
    main()
