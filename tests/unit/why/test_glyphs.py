import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.tokenizer import Tokenizer
from app.why.glyphs import TokenGroup, group_tokens, token_bytes


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer()


def pieces(tokenizer: Tokenizer, text: str) -> list[bytes]:
    return token_bytes(tokenizer.token_strings(tokenizer.encode_text(text)))


def test_an_emoji_of_two_tokens_is_one_group() -> None:
    assert group_tokens([b"\xf0\x9f\x98", b"\x80"], 30) == [TokenGroup(30, 2, "😀", ("⟨F0 9F 98⟩", "⟨80⟩"))]


def test_byte_fallback_pieces_are_their_glyph_over_three_cells() -> None:
    (group,) = group_tokens(token_bytes(["<0xEA>", "<0xB9>", "<0xB0>"]))
    assert (group.text, group.count) == ("깰", 3)
    assert group.cells == ("⟨EA⟩", "⟨B9⟩", "⟨B0⟩")


def test_an_incomplete_run_is_shown_as_its_bytes() -> None:
    assert [group.text for group in group_tokens(token_bytes(["<0xEA>", "<0xB9>"]))] == ["⟨EA B9⟩"]


def test_a_cut_edge_is_bytes_and_what_follows_is_text() -> None:
    assert [group.text for group in group_tokens([b"\x80", b"a"])] == ["⟨80⟩", "a"]


def test_sentencepiece_spaces_and_byte_level_spaces_are_spaces() -> None:
    assert b"".join(token_bytes(["▁Hello", "▁world", "<0x0A>"])) == b" Hello world\n"
    assert b"".join(token_bytes(["Hello", "Ġworld", "Ċ"])) == b"Hello world\n"


def test_added_tokens_stand_as_they_are() -> None:
    assert token_bytes(["<｜User｜>", "Ġa"]) == ["<｜User｜>".encode(), b" a"]


@pytest.mark.parametrize(
    "glyph", ["👍🏽", "👨‍👩‍👧", "e\u0301", "❤️"], ids=["skin tone", "joined", "accent", "variation"]
)  # fmt: skip
def test_what_continues_a_glyph_is_in_its_group(tokenizer: Tokenizer, glyph: str) -> None:
    raw = glyph.encode()
    groups = group_tokens([raw[at : at + 1] for at in range(len(raw))])
    assert [group.text for group in groups] == [glyph]
    assert groups[0].count == len(raw) == len(groups[0].cells)


@pytest.mark.parametrize(
    "text",
    [
        "古代汉语中的“之乎者也”",
        "日本語のテキスト：東京都",
        "مرحبا بالعالم",
        "😀👩‍🚀🇩🇪 mixed ✂️",
        "naïve café ǆ",
        "a" * 5000,
    ],
)
def test_groups_say_the_text_and_nothing_else(tokenizer: Tokenizer, text: str) -> None:
    found = group_tokens(pieces(tokenizer, text))
    assert "".join(group.text for group in found) == text
    assert "\ufffd" not in "".join(cell for group in found for cell in group.cells)


@given(st.text(max_size=60), st.integers(0, 20))
def test_groups_cover_every_token_once(text: str, start: int) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    tokens = [raw[at : at + 3] for at in range(0, len(raw), 3)]
    groups = group_tokens(tokens, start)
    assert [group.start for group in groups] == [start + sum(g.count for g in groups[:n]) for n in range(len(groups))]
    assert sum(group.count for group in groups) == len(tokens)
