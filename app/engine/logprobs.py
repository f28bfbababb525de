"""Log probabilities of tokens, made up but steady: no model runs here. Shapes as vLLM 0.32 has them. Pure."""

from collections.abc import Iterable, Sequence

from .responses import Json
from .tokenizer import Tokenizer

_STEP = 0.75
_ALTERNATIVES = 100_000


def alternatives(token_id: int, count: int) -> list[tuple[int, float]]:
    """The chosen token with its log probability, then others, less likely each, until there are `count`."""
    chosen = -0.05 - token_id % 89 / 100
    others = [((token_id * 31 + 7 * rank) % _ALTERNATIVES, chosen - _STEP * rank) for rank in range(1, count)]
    return [(token_id, chosen), *others]


def chat_logprobs(tokenizer: Tokenizer, token_ids: Iterable[int], top: int) -> Json:
    """`logprobs` of a chat answer's tokens, each with `top` alternatives."""
    content = []
    for token_id in token_ids:
        shown = [_entry(tokenizer, each, logprob) for each, logprob in alternatives(token_id, max(top, 1))]
        content.append(shown[0] | {"top_logprobs": shown[:top]})
    return {"content": content}


def completion_logprobs(tokenizer: Tokenizer, token_ids: Sequence[int], top: int, offset: int) -> Json:
    """The same for /v1/completions; `offset` is where the text of the first token begins."""
    texts = [tokenizer.decode([token_id]) for token_id in token_ids]
    offsets = []
    for text in texts:
        offsets.append(offset)
        offset += len(text)
    ranked = [alternatives(token_id, top + 1) for token_id in token_ids]
    return {
        "text_offset": offsets,
        "token_logprobs": [found[0][1] for found in ranked],
        "tokens": texts,
        "top_logprobs": [{tokenizer.decode([each]): logprob for each, logprob in found} for found in ranked],
    }


def prompt_logprobs(tokenizer: Tokenizer, token_ids: Sequence[int], top: int) -> list[Json | None]:
    """One entry a prompt token, none for the first: by token id its log probability, rank and text."""
    found: list[Json | None] = [None]
    for token_id in token_ids[1:]:
        found.append(
            {
                str(each): {"logprob": logprob, "rank": rank, "decoded_token": tokenizer.decode([each])}
                for rank, (each, logprob) in enumerate(alternatives(token_id, max(top, 1)), start=1)
            }
        )
    return found


def _entry(tokenizer: Tokenizer, token_id: int, logprob: float) -> Json:
    raw = tokenizer.token_bytes(token_id)
    return {"token": raw.decode("utf-8", errors="replace"), "logprob": logprob, "bytes": list(raw)}
