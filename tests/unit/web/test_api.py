from dataclasses import replace

from app.ids import Rank, RequestId, ServerId
from app.model.details import BlockDetail
from app.web.api import block_fields

DETAIL = BlockDetail(
    hash="00000000000000ff",
    server=ServerId("http://server"),
    rank=Rank(0),
    depth=3,
    token_ids=(1, 2, 3, 4),
    parent=None,
    requests=(RequestId("r-1"),),
    copies=1,
    reuses=2,
    stored_ms=5.0,
    show_text=True,
)


def test_a_block_has_its_tokens_counted_and_its_text() -> None:
    fields = block_fields(DETAIL, "four words it holds")

    assert (fields["tokens"], fields["text"], fields["text_hidden"]) == (4, "four words it holds", False)


def test_tokens_that_are_not_known_are_null_and_not_zero() -> None:
    assert block_fields(replace(DETAIL, token_ids=()), None)["tokens"] is None


def test_hidden_text_is_told_apart_from_unknown_text() -> None:
    hidden = block_fields(replace(DETAIL, show_text=False), None)
    unknown = block_fields(DETAIL, None)

    assert (hidden["text"], hidden["text_hidden"]) == (None, True)
    assert (unknown["text"], unknown["text_hidden"]) == (None, False)
