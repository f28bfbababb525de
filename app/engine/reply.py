"""What the embedded engine says: canned sentences, real tokens. Pure.

A reply depends on the prompt's tokens, the seed and the index of the choice, and on nothing else: never on the cache,
the time or the other requests. It is the same cold and warm, and `max_tokens` only cuts it.
"""

from array import array
from collections.abc import Sequence
from hashlib import sha256

from .tokenizer import END_OF_TEXT, IM_END, IM_START, Tokenizer

_ENGLISH_OPENINGS = (
    "This is the embedded engine: it imitates vLLM's cache, not a model's wit.",
    "No model runs here: the blocks are counted exactly, the words are canned.",
    "You are talking to a stand-in with real tokens, real block hashes and no opinions.",
    "Thank you for asking; this engine keeps books on blocks and leaves the thinking to real models.",
    "These words come from a short list, but every token of your prompt was cut and hashed for real.",
    "An honest answer first: there is no language model behind this reply, only a careful block pool.",
)
_ENGLISH_SENTENCES = (
    "Your prompt was cut into blocks, each hashed together with everything before it.",
    "Ask again and the same words come back, because reuse never changes an answer.",
    "Change the first word of the prompt and every block after it must be computed again.",
    "Change the last word and nearly all of the blocks can stay.",
    "The time to the first token follows a model of a graphics card.",
    "A real vLLM server behind the same page would answer the question itself.",
    "Only whole blocks are kept; the tail of a prompt is computed every time.",
    "When the pool is full, the blocks that nobody touched for longest make room.",
    "Two prompts share their blocks for as long as they agree from the very first token.",
    "Put what never changes first and what always changes last, and the cache will thank you.",
    "A timestamp at the top of a prompt is a quiet way to lose the whole cache.",
    "The last token is always computed, so that there is something to continue from.",
)
_CHINESE_OPENINGS = (
    "这里是内置引擎：它模仿的是 vLLM 的缓存，而不是模型的才智。",
    "这里没有运行语言模型：块的统计是准确的，句子是预先写好的。",
    "您好，我是一个替身：分词和块哈希都是真的，观点则一概没有。",
    "感谢您的提问；本引擎只负责记录缓存块，思考的事留给真正的模型。",
    "先说实话：这段回答背后没有语言模型，只有一个认真的缓存块池。",
)
_CHINESE_SENTENCES = (
    "您的提示词已被切分成块，每一块都与它之前的全部内容一起计算哈希。",
    "再问一次会得到同样的文字，因为复用缓存不会改变回答。",
    "只要改动第一个字，后面的所有块都要重新计算。",
    "如果只改动最后一个字，几乎所有的块都可以保留。",
    "首个词元的等待时间遵循一张显卡的计时模型。",
    "同一页面接上真正的 vLLM 服务器后，就会由模型来回答这个问题。",
    "只有完整的块才会被缓存，提示词的尾部每次都要重新计算。",
    "缓存池满了以后，最久没有被使用的块会先让出位置。",
    "两个提示词从第一个词元起相同多久，就能共享多少块。",
    "把不变的内容放在前面，把常变的内容放在后面，缓存会更有用。",
    "在提示词开头写上时间，会让整个缓存悄悄失效。",
)
_SHORTEST_TOKENS, _LENGTH_SPREAD = 24, 24
_READ_TOKENS = 512
"""Enough of a question to tell its language."""


class Reply:
    """One reply, grown as it is asked for. `eos_token_id` ends it where `ignore_eos` doesn't forbid it."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        key: bytes,
        chinese: bool,
        eos_token_id: int | None,
        shortest: int,
        text: str | None = None,
    ) -> None:
        """`text`: all that it says, instead of sentences."""
        self._tokenizer = tokenizer
        self._key = key
        self._openings = _CHINESE_OPENINGS if chinese else _ENGLISH_OPENINGS
        self._sentences = _CHINESE_SENTENCES if chinese else _ENGLISH_SENTENCES
        self._joint = "" if chinese else " "
        self._eos_token_id = eos_token_id
        self._enough = max(shortest, _SHORTEST_TOKENS + key[0] * _LENGTH_SPREAD // 256)
        self._queue: list[str] = []
        self._rounds = 0
        self._tokens: list[int] = []
        self._ended = False
        if text is not None:
            self._tokens = tokenizer.encode_text(text)
            self._enough = len(self._tokens)

    def token(self, position: int) -> int:
        """The id of output token `position`. Past the end it is the end token again."""
        while len(self._tokens) <= position and not self._ended:
            self._grow()
        return self._tokens[min(position, len(self._tokens) - 1)]

    def _grow(self) -> None:
        if self._eos_token_id is not None and len(self._tokens) >= self._enough:
            self._tokens.append(self._eos_token_id)
            self._ended = True
            return
        if not self._queue:
            self._rounds += 1
            opening = [] if self._rounds > 1 else [min(self._openings, key=self._order)]
            self._queue = opening + sorted(self._sentences, key=self._order)
        sentence = self._queue.pop(0)
        self._tokens += self._tokenizer.encode_text((self._joint if self._tokens else "") + sentence)

    def _order(self, sentence: str) -> bytes:
        return sha256(self._key + bytes((self._rounds % 256,)) + sentence.encode()).digest()


def write_reply(
    tokenizer: Tokenizer,
    prompt_token_ids: Sequence[int],
    *,
    seed: int | None = None,
    choice: int = 0,
    ignore_eos: bool = False,
    min_tokens: int = 0,
) -> Reply:
    """The reply to a prompt, in its language. `choice` tells the answers of one request (`n`) apart.

    `min_tokens` holds the end token back. A prompt of a chat ends with `<|im_end|>`, any other with `<|endoftext|>`.
    """
    key = sha256(array("q", prompt_token_ids).tobytes() + f"/{seed}/{choice}".encode()).digest()
    eos_token_id = None if ignore_eos else end_token(prompt_token_ids)
    chinese = is_chinese(last_question(tokenizer, prompt_token_ids))
    return Reply(tokenizer, key, chinese=chinese, eos_token_id=eos_token_id, shortest=min_tokens)


def said_reply(tokenizer: Tokenizer, text: str, prompt_token_ids: Sequence[int]) -> Reply:
    """A reply that says `text` and ends."""
    return Reply(tokenizer, bytes(32), chinese=False, eos_token_id=end_token(prompt_token_ids), shortest=0, text=text)


def end_token(prompt_token_ids: Sequence[int]) -> int:
    """The token that ends a reply to this prompt."""
    return IM_END if IM_START in prompt_token_ids else END_OF_TEXT


def last_question(tokenizer: Tokenizer, prompt_token_ids: Sequence[int]) -> str:
    """The beginning of the last user message; without one, the prompt's last 512 tokens."""
    opening = [IM_START, *tokenizer.encode_text("user\n")]
    for start in reversed(_places(IM_START, prompt_token_ids)):
        if list(prompt_token_ids[start : start + len(opening)]) == opening:
            first = start + len(opening)
            question = prompt_token_ids[first : first + _READ_TOKENS]
            stop = question.index(IM_END) if IM_END in question else len(question)
            return tokenizer.decode(question[:stop])
    return tokenizer.decode(prompt_token_ids[-_READ_TOKENS:], skip_specials=True)


def _places(token_id: int, token_ids: Sequence[int]) -> list[int]:
    found: list[int] = []
    while True:
        try:
            found.append(token_ids.index(token_id, found[-1] + 1 if found else 0))
        except ValueError:
            return found


def is_chinese(text: str) -> bool:
    """Whether a text is Chinese rather than anything else: Han without kana, at least one for three Latin letters."""
    han = sum("\u4e00" <= c <= "\u9fff" or "\u3400" <= c <= "\u4dbf" for c in text)
    kana = any("\u3040" <= c <= "\u30ff" for c in text)
    latin = sum(c.isascii() and c.isalpha() for c in text)
    return not kana and han > 0 and han * 3 >= latin
