"""Prompts to tokens: conversations under the template, plain prompts, and what stands for a picture."""

import asyncio
from collections.abc import Sequence
from hashlib import sha256

from .bodies import Conversation, Prompt
from .chat_template import TemplateError, render_chat
from .fields import ApiError
from .limits import check_chars
from .request import Image
from .tokenizer import MODEL_VOCABULARY_SIZE, SPECIAL_TOKENS, Tokenizer

THREAD_CHARS = 20_000
"""Texts longer than this are cut into tokens in a thread, so that the steps go on meanwhile."""
IMAGE_PAD = SPECIAL_TOKENS["<|image_pad|>"]


class PromptEncoder:
    """Refuses, with ApiError, what no context of `max_model_len` could hold. `images`: whether pictures are taken."""

    def __init__(self, tokenizer: Tokenizer, max_model_len: int, *, images: bool = False) -> None:
        self._tokenizer = tokenizer
        self._max_model_len = max_model_len
        self._images = images

    async def of_chat(self, conversation: Conversation) -> tuple[list[int], tuple[Image, ...]]:
        """Tokens of a conversation, and its pictures with their places."""
        try:
            segments = render_chat(
                conversation.messages,
                conversation.tools,
                add_generation_prompt=conversation.add_generation_prompt,
                continue_final_message=conversation.continue_final_message,
                images=self._images,
            )
        except TemplateError as error:
            raise ApiError(str(error)) from None
        chars = sum(len(segment.text) for segment in segments)
        check_chars(chars, self._max_model_len)
        if chars > THREAD_CHARS:
            token_ids = await asyncio.to_thread(self._tokenizer.encode_segments, segments)
        else:
            token_ids = self._tokenizer.encode_segments(segments)
        pictures = [segment.picture for segment in segments if segment.picture is not None]
        return token_ids, _placed(token_ids, pictures)

    async def of_prompt(self, prompt: Prompt) -> list[int]:
        """Tokens of a prompt that stands for itself: special tokens are special in it, ids are checked."""
        if isinstance(prompt, str):
            check_chars(len(prompt), self._max_model_len)
            if len(prompt) > THREAD_CHARS:
                return await asyncio.to_thread(self._tokenizer.encode_text, prompt, specials=True)
            return self._tokenizer.encode_text(prompt, specials=True)
        if prompt and max(prompt) >= MODEL_VOCABULARY_SIZE:
            raise ApiError(f"Token id {max(prompt)} is out of vocabulary")
        return prompt


def _placed(token_ids: Sequence[int], pictures: Sequence[str]) -> tuple[Image, ...]:
    """Pictures in order, each where the next run of placeholder tokens is."""
    found: list[Image] = []
    at = 0
    for url in pictures:
        start = token_ids.index(IMAGE_PAD, at)
        at = start
        while at < len(token_ids) and token_ids[at] == IMAGE_PAD:
            at += 1
        found.append(Image(sha256(url.encode()).hexdigest(), start, at - start))
    return tuple(found)
