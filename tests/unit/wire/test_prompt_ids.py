"""A long list of ids is read from any chunking; what stays is the event without it."""

import json

import pytest

from app.wire.prompt_ids import PromptIds

IDS = tuple(range(0, 3000, 7))


def event(ids: object, **more: object) -> bytes:
    return b"data: " + json.dumps({"id": "c", "prompt_token_ids": ids, "choices": [], **more}).encode() + b"\n\n"


def fed(stream: bytes, size: int) -> tuple[bytes, tuple[int, ...] | None]:
    reader = PromptIds(len(event(IDS)))
    out = b"".join(reader.feed(stream[at : at + size]) for at in range(0, len(stream), size))
    out += reader.flush()
    return out, None if reader.packed is None else tuple(memoryview(reader.packed).cast("I"))


@pytest.mark.parametrize("size", [40, 41, 100, 999, 1200])
def test_the_ids_come_out_and_an_empty_list_stays(size: int) -> None:
    after = b'data: {"choices":[{"delta":{"content":"]"}}]}\n\n'
    assert fed(event(IDS) + after, size) == (event([]) + after, IDS)


def test_a_list_in_one_piece_is_left() -> None:
    assert fed(event(IDS), 1 << 20) == (event(IDS), None)


@pytest.mark.parametrize("size", range(1, 40))
def test_a_list_whose_name_is_split_is_found(size: int) -> None:
    assert fed(event(IDS), size) == (event([]), IDS)
    spaced = event(IDS).replace(b'_ids": [', b'_ids" :\t[')
    assert fed(spaced, size) == (spaced.replace(spaced[spaced.find(b"[") + 1 : spaced.find(b"]")], b""), IDS)


@pytest.mark.parametrize("end", [b'"prompt', b'"prompt_token_ids', b'"prompt_token_ids" : ', b'x\\"pro', b'"', b"1"])
def test_what_is_held_back_comes_out_in_the_end(end: bytes) -> None:
    for size in (1, 5, 100):
        assert fed(b'data: {"a":' + end, size) == (b'data: {"a":' + end, None)


@pytest.mark.parametrize("odd", [[*IDS, "7"], [*IDS, None], [*IDS, [1]], [*IDS, 1.5], [*IDS, -1], [*IDS, 1 << 32]])
def test_what_isn_t_a_list_of_numbers_is_no_json_afterwards(odd: object) -> None:
    out, ids = fed(event(odd), 100)
    with pytest.raises(ValueError):
        json.loads(out[6:])
    assert ids is None


def test_an_endless_list_is_given_up() -> None:
    reader = PromptIds(1000)
    out = b"".join(reader.feed(piece) for piece in [event(IDS)[:50], *[b"1, " * 100] * 5])
    assert out.endswith(b"!" + b"1, " * 100 + b"1, " * 100)
    assert reader.packed is None


def test_the_same_words_in_a_text_aren_t_taken() -> None:
    text = event([], text='"prompt_token_ids": [1, 2, 3' + " " * 500)
    assert fed(text, 60) == (text, None)
