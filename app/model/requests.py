"""The requests that went through the proxy: the table of steps that one may take, and what is known of each.

The hard figures are kept as they came; `request_records` makes records of them. Imports only `ids`, `observations`,
`events`, `errors` and its own package.
"""

from dataclasses import dataclass, field
from typing import Literal

from ..errors import PrefixScopeError
from ..events import Basis, BlockTable, Routing, Verdict
from ..ids import BlockHash, Rank, RequestId, ServerId
from ..observations import ExtraKeys, RequestEnded, RequestEngineTimes, RequestStarted
from .block_keys import TOKEN_BYTES
from .prefix_match import PromptKeys, cacheable_tokens

State = Literal["started", "head", "first_token", "ended"]
Step = Literal["head", "first_token", "detail", "end"]

ExpectKey = tuple[BlockHash | None, bytes, ExtraKeys | None]
"""(parent hash, packed tokens, extra keys) of a block that isn't known yet."""

STEPS: dict[tuple[State, Step], State] = {
    ("started", "head"): "head",
    ("started", "detail"): "started",
    ("started", "end"): "ended",
    ("head", "first_token"): "first_token",
    ("head", "detail"): "head",
    ("head", "end"): "ended",
    ("first_token", "first_token"): "first_token",
    ("first_token", "detail"): "first_token",
    ("first_token", "end"): "ended",
    ("ended", "detail"): "ended",
}
"""Every legal step. `detail` is prompt tokens, usage and the like; the server's tokenizer may answer after the end."""


SERVERS_WORDS = ("http_error", "stream_error")
"""Outcomes whose error text is the server's; of all others it is the dashboard's own."""


class IllegalStep(PrefixScopeError):
    """A request took a step that its state doesn't allow: a source has a fault."""

    code = "illegal_step"


@dataclass(slots=True, eq=False)
class Request:
    """One request. `serial` counts requests from 0; `sent` is what was known when it was sent."""

    serial: int
    sent: RequestStarted
    state: State = "started"
    as_of: dict[Rank, int] = field(default_factory=dict)
    """Per rank: the number of the last event that the server had made when this request reached it."""
    elsewhere: dict[tuple[ServerId, Rank], int] = field(default_factory=dict)
    """Per rank of every other server: the number of the last event known when this request was sent."""
    rank: Rank | None = None
    rank_sure: bool = False
    """The rank was read from its own blocks, not only taken because there was no other."""
    prompt: PromptKeys | None = None
    output: bytearray | None = None
    """Packed ids of the answer's tokens, as far as they are known."""
    block_size: int | None = None
    head_s: float | None = None
    first_s: float | None = None
    answer_s: float | None = None
    choice_first_s: dict[int, float] = field(default_factory=dict)
    """When the first token of each of several answers came."""
    ended: RequestEnded | None = None
    status: int | None = None
    times: RequestEngineTimes | None = None
    has_usage: bool = False
    usage_prompt: int | None = None
    usage_completion: int | None = None
    usage_cached: int | None = None
    tokens_length: int | None = None
    """Length of the prompt by its token ids."""
    mismatched_length: int | None = None
    """Length of token ids that turned out not to be the server's."""
    reported_blocks: int | None = None
    """Blocks that the server's reuse report named for this request."""
    first_own_depth: int | None = None
    """Depth of the first block that this request itself stored: all before it were there."""
    predicted: int | None = None
    predicted_sure: bool = False
    """Nothing is missing from the history that the forecast was made from."""
    alone: bool = True
    """No other request through the dashboard ran on its server between its send and its first token."""
    matched_blocks: int = 0
    """Resident blocks that the forecast found, from the first on."""
    hashes: list[BlockHash] = field(default_factory=list)
    """Hashes of its full blocks from the first on, as far as they are known; generated tokens' blocks follow."""
    expecting: dict[Rank, ExpectKey] = field(default_factory=dict)
    """The block that it would store next, as each rank's book has it."""
    announced_blocks: int = 0
    """Blocks that `blocks.reused` named for it already."""
    doubtful: tuple[tuple[BlockHash, ...], bool] | None = None
    """Resident blocks that it stored again from the root, and whether they were counted as copies."""
    table: BlockTable | None = None
    """The block table as it was last asked for."""
    table_key: object = None
    """What `table` was made from."""
    shown: BlockTable | None = None
    shown_s: float = 0.0
    verdict: Verdict | None = None
    routing: Routing | None = None
    reference_ttft_ms: float | None = None
    reference_id: RequestId | None = None

    @property
    def id(self) -> RequestId:
        """The request's id."""
        return self.sent.request

    @property
    def running(self) -> bool:
        """Whether it hasn't ended."""
        return self.state != "ended"

    @property
    def served(self) -> bool:
        """Whether its prompt was computed, as far as can be told."""
        return self.first_s is not None or (self.ended is not None and self.ended.outcome == "ok")

    @property
    def prompt_tokens(self) -> int | None:
        """The server's count, else the number of token ids."""
        return self.usage_prompt if self.usage_prompt is not None else self.tokens_length

    @property
    def consistent(self) -> bool:
        """Whether the reported cached tokens can be true: 0 <= cached <= prompt."""
        if self.usage_cached is None:
            return True
        prompt = self.prompt_tokens
        return self.usage_cached >= 0 and (prompt is None or self.usage_cached <= prompt)

    @property
    def ttft_ms(self) -> float | None:
        """By the dashboard's clock; None for calls that aren't streamed."""
        if self.first_s is None or not self.sent.streamed:
            return None
        return (self.first_s - self.sent.at_s) * 1000

    @property
    def error(self) -> str | None:
        """What went wrong. A server's own words may repeat the prompt: they are told only where its text may be."""
        ended = self.ended
        if ended is None or not self.hides_error:
            return None if ended is None else ended.error
        if ended.outcome == "http_error":
            status = "HTTP" if self.status is None else f"HTTP {self.status}"
            return f"{status}: the server refused the request"
        return "The server reported an error within the stream"

    @property
    def hides_error(self) -> bool:
        """Whether the server's own words on what went wrong are kept back."""
        ended = self.ended
        said = ended is not None and ended.error is not None and ended.outcome in SERVERS_WORDS
        return said and not self.sent.show_text

    def take(self, step: Step) -> None:
        """Moves on by the table of steps. Raises IllegalStep."""
        following = STEPS.get((self.state, step))
        if following is None:
            expected = ", ".join(allowed for state, allowed in STEPS if state == self.state)
            raise IllegalStep(f"request {self.id}: expected {expected} after {self.state}, got {step}")
        self.state = following

    def add_output(self, start: int, packed: bytes | None) -> None:
        """Ids of the answer's tokens from place `start` on. Where some before them are missing, or one is none, no
        more is known of them."""
        if start == 0:
            self.output = bytearray()
        if self.output is not None and packed is not None and len(self.output) == start * TOKEN_BYTES:
            self.output += packed
        else:
            self.output = None

    def cached(self) -> tuple[int, Basis] | None:
        """Prompt tokens taken from the cache and who says so: usage, else the engine's report, else what follows
        from events. None where nothing tells."""
        if self.usage_cached is not None:
            return self.usage_cached, "usage"
        size = self.block_size
        if size is not None and self.reported_blocks is not None:
            return self.reported_blocks * size, "engine"
        if size is not None and self.first_own_depth is not None and self._own_store_in_prompt(size):
            return self.first_own_depth * size, "inferred"
        if self.predicted is not None and self.predicted_sure and self.served and self.sent.sequences == 1:
            return self.predicted, "inferred"
        return None

    def _own_store_in_prompt(self, size: int) -> bool:
        prompt = self.prompt_tokens
        return prompt is not None and self.first_own_depth is not None and self.first_own_depth < prompt // size

    def blocks(self) -> tuple[int, int] | None:
        """(blocks of the prompt with its partial tail, blocks that can be reused at most)."""
        prompt, size = self.prompt_tokens, self.block_size
        if prompt is None or not size:
            return None
        return -(-prompt // size), cacheable_tokens(prompt, size) // size
