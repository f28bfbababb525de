"""Block accounting: how many tokens of a prompt a prefix cache can give, from token ids alone. Pure.

Only full blocks are kept, a block counts only where all before it do, and the last token of a prompt is always
computed. The pool is taken as endless: where a server gives less, it has evicted.
"""

from collections.abc import Sequence

Chain = dict[tuple[int, tuple[int, ...]], int]


def reusable_tokens(shared_tokens: int, prompt_tokens: int, block_size: int) -> int:
    """Of a prompt whose first `shared_tokens` were computed before."""
    return min(shared_tokens, prompt_tokens - 1) // block_size * block_size


class Accounting:
    """What each space of a run holds. `expect`, then `store`: of prompts with the tokens generated after them."""

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self._spaces: dict[str, Chain] = {}

    def expect(self, space: str, prompt: Sequence[int]) -> int:
        """Tokens of `prompt` that are there."""
        chain = self._spaces.get(space, {})
        parent = found = 0
        for begin in range(0, len(prompt) - self._block_size, self._block_size):
            key = (parent, tuple(prompt[begin : begin + self._block_size]))
            if key not in chain:
                break
            parent = chain[key]
            found = begin + self._block_size
        return reusable_tokens(found, len(prompt), self._block_size)

    def store(self, space: str, prompt: Sequence[int], answer: Sequence[int] = ()) -> None:
        """Takes a request in. The last token of an answer was never computed, so it is in no block."""
        chain = self._spaces.setdefault(space, {})
        tokens = (*prompt, *answer[:-1])
        parent = 0
        for begin in range(0, len(tokens) - self._block_size + 1, self._block_size):
            key = (parent, tuple(tokens[begin : begin + self._block_size]))
            parent = chain.setdefault(key, len(chain) + 1)
