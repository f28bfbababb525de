"""One tokenizer for all tests of a run: making it takes half a second."""

from functools import cache

from app.engine.tokenizer import Tokenizer


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer()
