from time import process_time

from app.engine.chat_template import render_chat
from app.engine.tokenizer import Tokenizer
from app.why.glyphs import token_bytes
from app.why.ruler import measure

MESSAGES = [
    {"role": "system", "content": "规则：请用简短的句子回答。" * 8},
    {"role": "user", "content": "😀 what is 42? " * 9},
]


def test_boundaries_stand_where_blocks_end_in_the_words_of_each_message() -> None:
    tokenizer = Tokenizer()
    tokens = tokenizer.encode_segments(render_chat(MESSAGES))
    pieces = token_bytes(tokenizer.token_strings(tokens))
    rulers = measure(pieces, 16, MESSAGES)
    assert [ruler.index for ruler in rulers] == [0, 1]
    for ruler, message in zip(rulers, MESSAGES, strict=True):
        units = message["content"].encode("utf-16-le")
        assert ruler.boundaries
        for block, offset in ruler.boundaries:
            before = tokenizer.decode(tokens[: (block + 1) * 16]).rstrip("\ufffd")
            assert before.endswith(units[: offset * 2].decode("utf-16-le"))
            assert len(units[: offset * 2]) > 0
    assert (rulers[0].normalised, rulers[1].normalised) == (False, True)


def test_a_message_that_is_not_in_the_prompt_has_no_ruler() -> None:
    assert measure([b"abc"], 16, [{"role": "user", "content": "xyz"}, {"role": "user", "content": None}]) == []


def test_a_megabyte_is_measured_in_proportion_to_its_length() -> None:
    def spent_s(characters: int) -> float:
        said = "日本語😀" * (characters // 4)
        raw = said.encode()
        pieces = [raw[at : at + 5] for at in range(0, len(raw), 5)]
        started_s = process_time()
        (ruler,) = measure(pieces, 16, [{"role": "user", "content": said}])
        spent = process_time() - started_s
        assert ruler.tokens == len(pieces)
        assert len(ruler.boundaries) == (len(pieces) - 1) // 16
        return spent

    def least_s(characters: int) -> float:
        return min(spent_s(characters) for _ in range(3))  # the garbage of other tests may be collected within one

    # Ten times the text; work that grows with its square would take a hundred times as long.
    assert least_s(320_000) < 40 * max(least_s(32_000), 0.002)
