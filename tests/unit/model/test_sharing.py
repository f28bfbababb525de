from app.model.sharing import Sharing


def test_holders_come_in_order_and_leave() -> None:
    sharing = Sharing()
    sharing.add(1, [10, 11])
    sharing.add(2, [10])
    assert (sharing.holders(10), sharing.holders(11), sharing.holders(12)) == ([1, 2], [1], [])
    sharing.leave(1, [10, 11, 12])
    assert (sharing.holders(10), sharing.holders(11)) == ([2], [])
    assert sharing.holds_any
    sharing.leave(2, [10])
    assert not sharing.holds_any
