"""The scheduler: which request computes how many tokens in the next step. Pure.

vLLM's rules (0.32, first come first served, no speculation, synchronous scheduling): running requests first, each up to
its next token or as much of its prompt as the step's budget allows; then waiting ones, in order, until the budget, the
number of running requests or the blocks are used up. The first that doesn't fit holds back those behind it. Where a
running request finds no block, the youngest running one loses all of its own and waits again, at the front; a step in
which that happens admits nobody.
"""

from collections import deque
from dataclasses import dataclass, field

from .cache_manager import CacheManager
from .request import RequestState


@dataclass(slots=True)
class Schedule:
    """One step's plan: tokens to compute for each request, in order; who came in, for the first time; who lost."""

    tokens: dict[str, int] = field(default_factory=dict)
    admitted: set[str] = field(default_factory=set)
    preempted: list[str] = field(default_factory=list)


class Scheduler:
    """Owns the two queues. `running` is in order of admission."""

    def __init__(self, cache: CacheManager, max_num_batched_tokens: int, max_num_seqs: int) -> None:
        if max_num_batched_tokens < 1 or max_num_seqs < 1:
            raise ValueError("a step needs a budget of at least one token and one request")
        self.waiting: deque[RequestState] = deque()
        self.running: list[RequestState] = []
        self.preemptions = 0
        self._cache = cache
        self._max_num_batched_tokens = max_num_batched_tokens
        self._max_num_seqs = max_num_seqs

    def add(self, state: RequestState) -> None:
        """Queues a request behind the others."""
        self.waiting.append(state)

    def remove(self, state: RequestState) -> None:
        """Takes a request out, wherever it is, and frees its blocks."""
        if state in self.running:
            self.running.remove(state)
        else:
            self.waiting.remove(state)
        self._cache.free(state)

    def schedule(self) -> Schedule:
        """Plans a step: allocates and caches blocks, and counts the planned tokens as computed."""
        plan = Schedule()
        budget = self._schedule_running(plan, self._max_num_batched_tokens)
        if not plan.preempted:
            self._schedule_waiting(plan, budget)
        for state in self.running:
            state.computed_tokens += plan.tokens.get(state.request.request_id, 0)
        return plan

    def _schedule_running(self, plan: Schedule, budget: int) -> int:
        index = 0
        while index < len(self.running) and budget > 0:
            state = self.running[index]
            new_tokens = min(len(state.token_ids) - state.computed_tokens, budget)
            if not self._make_room(state, new_tokens, plan):
                break
            plan.tokens[state.request.request_id] = new_tokens
            budget -= new_tokens
            index += 1
        return budget

    def _make_room(self, state: RequestState, new_tokens: int, plan: Schedule) -> bool:
        """Preempts from the youngest on until the request fits; False where it had to go itself."""
        while not self._cache.extend(state, new_tokens):
            victim = self.running.pop()
            self._cache.free(victim)
            victim.preemptions += 1
            self.preemptions += 1
            self.waiting.appendleft(victim)
            plan.preempted.append(victim.request.request_id)
            if victim is state:
                return False
        return True

    def _schedule_waiting(self, plan: Schedule, budget: int) -> None:
        while self.waiting and budget > 0 and len(self.running) < self._max_num_seqs:
            state = self.waiting[0]
            hit = self._cache.look_up(state)
            new_tokens = min(len(state.token_ids) - len(hit) * self._cache.block_size, budget)
            if not self._cache.admit(state, hit, new_tokens):
                break
            self.waiting.popleft()
            self.running.append(state)
            plan.tokens[state.request.request_id] = new_tokens
            budget -= new_tokens
            if state.preemptions == 0:
                plan.admitted.add(state.request.request_id)
