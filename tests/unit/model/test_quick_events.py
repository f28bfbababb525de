from dataclasses import fields

from app.events import BlocksStored, Outgoing
from app.ids import GroupIdx, Rank, RequestId, ServerId
from app.model.quick_events import blocks_stored, outgoing


def test_they_equal_what_their_own_constructors_make() -> None:
    values = (("aa",), "bb", 3, 16, GroupIdx(0), "GPU", (1,), RequestId("r"), 9)
    assert len(values) == len(fields(BlocksStored))
    event = BlocksStored(*values)
    assert blocks_stored(*values) == event
    assert len(fields(Outgoing)) == 5
    made = outgoing(event, 1.5, ServerId("s"), Rank(0), "engine")
    assert made == Outgoing(event, 1.5, ServerId("s"), Rank(0), "engine")
