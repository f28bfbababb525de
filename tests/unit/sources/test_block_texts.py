import asyncio

import pytest

from app.sources.block_texts import BlockTexts, mark_cut_glyphs


class Server:
    """Answers with the tokens themselves; None where told to say nothing."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, ...]] = []
        self.silent = False
        self.at_once = 0
        self.most_at_once = 0

    async def detokenize(self, token_ids: tuple[int, ...]) -> str | None:
        self.asked.append(token_ids)
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return None if self.silent else " ".join(map(str, token_ids))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("whole words", "whole words"),
        ("\ufffd\ufffd好的", "⋯好的"),
        ("好的\ufffd", "好的⋯"),
        ("\ufffd的\ufffd\ufffd", "⋯的⋯"),
        ("\ufffd\ufffd", "⋯"),
        ("in \ufffd the middle", "in \ufffd the middle"),
        ("", ""),
    ],
)
def test_half_glyphs_at_a_border_are_marked(text: str, shown: str) -> None:
    assert mark_cut_glyphs(text) == shown


async def test_a_text_is_asked_for_once() -> None:
    server = Server()
    texts = BlockTexts(server.detokenize)

    assert [await texts.text((1, 2)), await texts.text((1, 2))] == ["1 2", "1 2"]
    assert server.asked == [(1, 2)]


async def test_no_tokens_are_no_question() -> None:
    server = Server()

    assert await BlockTexts(server.detokenize).text(()) is None
    assert server.asked == []


async def test_a_server_that_says_nothing_is_asked_again() -> None:
    server = Server()
    texts = BlockTexts(server.detokenize)
    server.silent = True
    assert await texts.text((1,)) is None
    server.silent = False

    assert await texts.text((1,)) == "1"


async def test_the_least_recently_used_is_forgotten() -> None:
    server = Server()
    texts = BlockTexts(server.detokenize, capacity=2)
    for token in (1, 2, 1, 3, 1, 2):
        await texts.text((token,))

    assert server.asked == [(1,), (2,), (3,), (2,)]


async def test_few_questions_are_open_at_once() -> None:
    server = Server()
    texts = BlockTexts(server.detokenize, at_once=2)

    await asyncio.gather(*(texts.text((token,)) for token in range(20)))

    assert server.most_at_once == 2
