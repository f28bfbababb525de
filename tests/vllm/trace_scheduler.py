"""Runs random scenarios through vLLM's own scheduler and writes what it did, one JSON object a line.

    PYTHON_OF_VLLM tests/vllm/trace_scheduler.py FIRST_SEED END_SEED MODEL_FOLDER > traces.jsonl

Runs with the interpreter of an environment that has vLLM, and imports nothing of the project. No model is computed: the
tokens come from a formula, so that hundreds of scenarios take a minute. tests/fixtures/scheduler_traces.jsonl is a
selection of what it wrote with vLLM 0.32.
"""

import json
import os
import random
import sys
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", VLLM_CPU_KVCACHE_SPACE="1", VLLM_LOGGING_LEVEL="ERROR")

import torch  # type: ignore[import-not-found]
from vllm.config import (  # type: ignore[import-not-found]
    CacheConfig,
    KVEventsConfig,
    ModelConfig,
    SchedulerConfig,
    VllmConfig,
)
from vllm.sampling_params import SamplingParams  # type: ignore[import-not-found]
from vllm.utils.hashing import sha256_cbor  # type: ignore[import-not-found]
from vllm.v1.core.kv_cache_utils import (  # type: ignore[import-not-found]
    get_request_block_hasher,
    init_none_hash,
)
from vllm.v1.core.sched.scheduler import Scheduler  # type: ignore[import-not-found]
from vllm.v1.kv_cache_interface import (  # type: ignore[import-not-found]
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
)
from vllm.v1.outputs import ModelRunnerOutput  # type: ignore[import-not-found]
from vllm.v1.request import Request, RequestStatus  # type: ignore[import-not-found]
from vllm.v1.structured_output import StructuredOutputManager  # type: ignore[import-not-found]


def sample(index: int, position: int) -> int:
    """The token that request `index` samples at a position. Few tokens, so that answers are shared like prompts."""
    return 1 + (index * 7 + position * position) % 3


def event_row(event: Any) -> list[Any]:
    """An event as a trace has it; hashes in hexadecimal."""
    kind = type(event).__name__
    if kind == "AllBlocksCleared":
        return ["cleared"]
    hashes = [f"{each:016x}" for each in event.block_hashes]
    if kind == "BlockRemoved":
        return ["removed", hashes]
    parent = None if event.parent_block_hash is None else f"{event.parent_block_hash:016x}"
    keys = [None if each is None else list(each) for each in event.extra_keys]
    return ["stored", hashes, parent, list(event.token_ids), keys, event.session_id]


class Scenario:
    """One scheduler, what is done to it and what it does."""

    def __init__(self, seed: int, model: str) -> None:
        self.seed = seed
        self._dice = random.Random(seed)
        self._docs = [[self._dice.randint(1, 3) for _ in range(60)] for _ in range(2)]
        self._block_size = self._dice.choice([1, 2, 3, 4])
        blocks = self._dice.randint(9, 20) if self._dice.random() < 0.7 else self._dice.randint(20, 60)
        seqs = self._dice.randint(1, 5)
        self.config = {
            "num_gpu_blocks": blocks,
            "block_size": self._block_size,
            "max_num_batched_tokens": max(seqs, self._dice.randint(3, 30)),
            "max_num_seqs": seqs,
            "max_model_len": (blocks - 1) * self._block_size,
        }
        self.ops: list[dict[str, Any]] = []
        self._hasher = get_request_block_hasher(self._block_size, sha256_cbor)
        self._scheduler = self._make_scheduler(model)
        self._published: list[Any] = []
        self._scheduler.kv_event_publisher.publish = lambda batch: self._published.extend(map(event_row, batch.events))
        self._made = 0

    def run(self) -> None:
        """A random number of random things, and then steps until every request is done."""
        for _ in range(self._dice.randint(20, 70)):
            chance = self._dice.random()
            if chance < 0.4:
                self._add()
            elif chance < 0.92:
                self._step()
            elif chance < 0.97:
                self._abort()
            else:
                self.ops.append({"do": "reset", "success": self._scheduler.reset_prefix_cache()})
        while self._scheduler.has_unfinished_requests():
            self._step()

    def _make_scheduler(self, model: str) -> Any:
        size, blocks = self._block_size, self.config["num_gpu_blocks"]
        length = self.config["max_model_len"]
        model_config = ModelConfig(model=model, dtype="float32", seed=0, max_model_len=length)
        cache_config = CacheConfig(block_size=size, enable_prefix_caching=True)
        cache_config.num_gpu_blocks = blocks
        config = VllmConfig(
            scheduler_config=SchedulerConfig(
                max_num_seqs=self.config["max_num_seqs"],
                max_num_batched_tokens=self.config["max_num_batched_tokens"],
                max_model_len=length,
                enable_chunked_prefill=True,
                is_encoder_decoder=False,
                async_scheduling=False,
            ),
            model_config=model_config,
            cache_config=cache_config,
            kv_events_config=KVEventsConfig(enable_kv_cache_events=True, publisher="null"),
        )
        spec = FullAttentionSpec(block_size=size, num_kv_heads=1, head_size=1, dtype=torch.float32)
        groups = [KVCacheGroupSpec(["layer"], spec)]
        return Scheduler(
            vllm_config=config,
            kv_cache_config=KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=groups),
            structured_output_manager=StructuredOutputManager(config),
            block_size=size,
            log_stats=True,
        )

    def _add(self) -> None:
        dice = self._dice
        length = dice.randint(1, min(40, self.config["max_model_len"] - 1))
        shared = dice.choice(self._docs)[: dice.randint(0, length)]
        tokens = shared + [dice.randint(1, 3) for _ in range(length - len(shared))]
        op = {
            "do": "add",
            "id": f"r{self._made}",
            "tokens": tokens,
            "max_tokens": dice.choice([1, 1, 2, 3, 8, 15]),
            "salt": dice.choice([None] * 5 + ["a"]),
            "full": dice.random() < 0.25,
            "skip": dice.random() < 0.1,
            "stop": dice.choice([None, None, None, 2]),
            "session": dice.choice([None, f"s{self._made}"]),
        }
        self._made += 1
        sampling = SamplingParams(
            max_tokens=op["max_tokens"],
            ignore_eos=True,
            stop_token_ids=[op["stop"]] if op["stop"] else None,
            extra_args={"kv_cache_report_mode": "full"} if op["full"] else None,
            skip_reading_prefix_cache=op["skip"],
        )
        self._scheduler.add_request(
            Request(
                request_id=op["id"], prompt_token_ids=tokens, sampling_params=sampling, pooling_params=None,
                cache_salt=op["salt"], block_hasher=self._hasher, session_id=op["session"],
            )
        )  # fmt: skip
        self.ops.append(op)

    def _abort(self) -> None:
        if self._scheduler.requests:
            request_id = self._dice.choice(sorted(self._scheduler.requests))
            self._scheduler.finish_requests(request_id, RequestStatus.FINISHED_ABORTED)
            self.ops.append({"do": "abort", "id": request_id})
            self._empty_step()

    def _step(self) -> None:
        if self._scheduler.has_unfinished_requests():
            self.ops.append(self._run_step())
            self._empty_step()

    def _empty_step(self) -> None:
        """vLLM's engine steps once more when its last request is gone; traced only where it tells of something."""
        if not self._scheduler.has_unfinished_requests() and self._scheduler.has_requests():
            op = self._run_step()
            assert not op["scheduled"]
            if op["events"]:
                self.ops.append(op)

    def _run_step(self) -> dict[str, Any]:
        scheduled = self._scheduler.schedule()
        ids = list(scheduled.num_scheduled_tokens)
        sampled: list[list[int]] = []
        for each in ids:
            request = self._scheduler.requests[each]
            done = request.num_computed_tokens == request.num_tokens
            sampled.append([sample(int(each[1:]), request.num_output_tokens)] if done else [])
        self._published.clear()
        order = {each: index for index, each in enumerate(ids)}
        output = ModelRunnerOutput(req_ids=ids, req_id_to_index=order, sampled_token_ids=sampled)
        results = list(self._scheduler.update_from_output(scheduled, output).values())
        stats = next(each.scheduler_stats for each in results if each.scheduler_stats)
        return {
            "do": "step",
            "scheduled": [[each, scheduled.num_scheduled_tokens[each]] for each in ids],
            "preempted": sorted(scheduled.preempted_req_ids or ()),
            "outputs": [self._output_row(each) for result in results for each in result.outputs],
            "events": list(self._published),
            "running": stats.num_running_reqs,
            "waiting": stats.num_waiting_reqs,
            "usage": round(stats.kv_cache_usage, 9),
            "queries": stats.prefix_cache_stats.queries,
            "hits": stats.prefix_cache_stats.hits,
        }

    @staticmethod
    def _output_row(output: Any) -> list[Any]:
        reuse = output.prefill_stats and [
            output.prefill_stats.num_cached_tokens,
            output.prefill_stats.num_cache_creation_tokens,
        ]
        reason = None if output.finish_reason is None else str(output.finish_reason)
        return [output.request_id, list(output.new_token_ids), reason, reuse]


if __name__ == "__main__":
    init_none_hash(sha256_cbor)
    first_seed, end_seed, model_path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    for number in range(first_seed, end_seed):
        scenario = Scenario(number, model_path)
        scenario.run()
        row = {"seed": scenario.seed, "config": scenario.config, "ops": scenario.ops}
        print(json.dumps(row, separators=(",", ":")), flush=True)
