"""The embedded engine's heart: requests in, steps out. Pure: time is an argument, nothing here does IO.

A step is what vLLM does in one forward pass: schedule running and waiting requests within the token budget, allocate
and cache their blocks, compute, sample. `EngineCore.step` does all of it at once and says how long it would take;
whoever drives the core lets that time pass before it shows the step's tokens and events to anyone:

    while (result := core.step(now_s())) is not None:
        sleep(result.duration_ms / 1000)
        publish(result.events, result.progress)

Requests that a step finishes hold their blocks until the step's time is over: until `settle`, or the next `step`.
"""

from collections.abc import Sequence

from .block_hash import BlockDigest
from .block_pool import BlockPool
from .cache_events import BlocksCleared, BlocksRemoved, BlocksStored, CacheEvent
from .cache_manager import CacheManager
from .profiles import StepWork
from .request import CoreRequest, RequestState
from .scheduler import Schedule, Scheduler
from .steps import CoreConfig, CoreGauges, FinishReason, NextToken, Progress, StepResult

__all__ = [
    "BlocksCleared",
    "BlocksRemoved",
    "BlocksStored",
    "CacheEvent",
    "CoreConfig",
    "CoreGauges",
    "CoreRequest",
    "EngineCore",
    "FinishReason",
    "NextToken",
    "Progress",
    "StepResult",
]


class EngineCore:
    """One engine: `add_request`, then `step` until it gives None. Not thread-safe; one owner drives it."""

    def __init__(self, config: CoreConfig, next_token: NextToken) -> None:
        if config.block_size < 1:
            raise ValueError("a block holds at least one token")
        self.config = config
        self.max_model_len = min(config.max_model_len, (config.num_gpu_blocks - 1) * config.block_size)
        """The longest prompt with its answer: the configured length, or what the pool can hold if that is less."""
        caching = config.enable_prefix_caching
        self.pool = BlockPool(config.num_gpu_blocks, caching, config.unhashed_first)
        self._cache = CacheManager(self.pool, config.block_size, caching, config.counting)
        self._scheduler = Scheduler(self._cache, config.max_num_batched_tokens, config.max_num_seqs)
        self._next_token = next_token
        self._states: dict[str, RequestState] = {}
        self._finishing: list[RequestState] = []
        self._gauges = CoreGauges()
        self._unsettled = False
        self._aborted = False
        self._prompt_tokens = 0
        self._prompt_tokens_cached = 0
        self._generation_tokens = 0

    def prepare(self, request: CoreRequest, digests: Sequence[BlockDigest] = ()) -> RequestState:
        """A request's state before it is queued, so that its blocks can be hashed in several goes.

        `digests` are those of another request with the same prompt, salt and adapter.
        """
        hashed = self.config.block_size if self.config.enable_prefix_caching else 0
        return RequestState(request, hashed, self.config.hasher, digests)

    def add_request(self, request: CoreRequest, now_s: float) -> None:
        """Queues a request for the next step. Raises ValueError as `add_prepared` does."""
        self.add_prepared(self.prepare(request), now_s)

    def add_prepared(self, state: RequestState, now_s: float) -> None:
        """Queues a prepared request for the next step, and hashes what of it isn't yet.

        Raises ValueError for an empty prompt, one that leaves no room for a token within `max_model_len`, a
        `max_tokens` below 1, or an id that is in use.
        """
        request = state.request
        if not 0 < len(request.prompt_token_ids) < self.max_model_len:
            raise ValueError(f"a prompt has 1 to {self.max_model_len - 1} tokens, not {len(request.prompt_token_ids)}")
        if request.max_tokens < 1:
            raise ValueError("max_tokens must be at least 1")
        if request.request_id in self._states:
            raise ValueError(f"request id {request.request_id} is in use")
        state.hash_blocks()
        self._states[request.request_id] = state
        self._scheduler.add(state)

    def abort_request(self, request_id: str, now_s: float) -> bool:
        """Ends a request and frees its blocks; False if it is not known (any more)."""
        state = self._states.pop(request_id, None)
        if state is None:
            return False
        if state in self._finishing:
            self._finishing.remove(state)
        self._scheduler.remove(state)
        self._aborted = True
        self._report()
        return True

    def has_work(self) -> bool:
        """Whether a call of `step` is due. It may still give None: when only the end of the last step was left."""
        return self._unsettled or bool(self._states) or self._tells_only()

    def step(self, now_s: float) -> StepResult | None:
        """Ends the last step and runs one that begins at `now_s`; None if no request is queued or running.

        One exception, which is vLLM's: after an abort an empty step follows, and a reset's event comes out with it.
        """
        self.settle()
        if not self._states and not self._tells_only():
            return None
        self._aborted = False
        if not self._states:
            return StepResult(now_s, 0.0, self.pool.drain_events(), (), ())
        plan = self._scheduler.schedule()
        work = self._work(plan)
        progress = tuple(self._advance(request_id, tokens, plan) for request_id, tokens in plan.tokens.items())
        self._unsettled = True
        return StepResult(
            started_s=now_s,
            duration_ms=self.config.profile.duration_ms(work),
            events=self.pool.drain_events(),
            progress=progress,
            preempted=tuple(plan.preempted),
        )

    def settle(self) -> None:
        """Ends the last step: frees the blocks of the requests that it finished, and reports. Harmless if repeated."""
        if not self._unsettled:
            return
        self._unsettled = False
        for state in self._finishing:
            self._scheduler.remove(state)
            del self._states[state.request.request_id]
        self._finishing.clear()
        self._report()

    def reset_prefix_cache(self) -> bool:
        """Empties the prefix cache; False, and no effect, while a request holds blocks.

        The event that tells of it comes with the next step, ahead of that step's own.
        """
        return self.pool.reset()

    def requests(self) -> tuple[RequestState, ...]:
        """Every request that is queued, running or about to be freed; for tests and inspection, not to be changed."""
        return tuple(self._states.values())

    def gauges(self) -> CoreGauges:
        """What `/metrics` shows."""
        return self._gauges

    def _tells_only(self) -> bool:
        return self._aborted and not self._states and self.pool.has_events

    def _work(self, plan: Schedule) -> StepWork:
        prompt_tokens = admitted_prompt_tokens = sampled = 0
        for request_id, tokens in plan.tokens.items():
            state = self._states[request_id]
            sampled += state.computed_tokens == len(state.token_ids)
            # A request that resumes after a preemption computes its own answer again, like a prompt.
            if tokens > 1 or not state.output_tokens:
                prompt_tokens += tokens
            if request_id in plan.admitted:
                admitted_prompt_tokens += len(state.request.prompt_token_ids)
        return StepWork(prompt_tokens, len(plan.admitted), admitted_prompt_tokens, sampled)

    def _advance(self, request_id: str, tokens: int, plan: Schedule) -> Progress:
        state = self._states[request_id]
        prompt_length = len(state.request.prompt_token_ids)
        computed_tokens = state.computed_tokens
        token_id: int | None = None
        finish_reason: FinishReason | None = None
        if computed_tokens == len(state.token_ids):
            if not state.output_tokens:
                self._prompt_tokens += prompt_length
                self._prompt_tokens_cached += state.cached_tokens
            token_id = self._next_token(state.request, state.output_tokens)
            state.append(token_id)
            self._generation_tokens += 1
            finish_reason = self._finish_reason(state, token_id)
            if finish_reason is not None:
                self._finishing.append(state)
        return Progress(
            request_id=request_id,
            cached_tokens=state.cached_tokens,
            created_cache_tokens=self._created_cache_tokens(state),
            scheduled_tokens=tokens,
            computed_tokens=computed_tokens,
            output_tokens=state.output_tokens,
            token_id=token_id,
            first_scheduled=request_id in plan.admitted,
            finish_reason=finish_reason,
        )

    def _finish_reason(self, state: RequestState, token_id: int) -> FinishReason | None:
        if token_id in state.request.stop_token_ids:
            return "stop"
        if state.output_tokens >= state.request.max_tokens or len(state.token_ids) >= self.max_model_len:
            return "length"
        return None

    def _created_cache_tokens(self, state: RequestState) -> int:
        if not self.config.enable_prefix_caching:
            return 0
        size = self.config.block_size
        return len(state.request.prompt_token_ids) // size * size - state.cached_tokens

    def _report(self) -> None:
        self._gauges = CoreGauges(
            running=len(self._scheduler.running) - len(self._finishing),
            waiting=len(self._scheduler.waiting),
            kv_cache_usage_ratio=self.pool.usage_ratio,
            prefix_cache_queries=self._cache.queries,
            prefix_cache_hits=self._cache.hits,
            preemptions=self._scheduler.preemptions,
            prompt_tokens=self._prompt_tokens,
            prompt_tokens_cached=self._prompt_tokens_cached,
            generation_tokens=self._generation_tokens,
        )
