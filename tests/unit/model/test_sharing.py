from app.model.sharing import Sharing


def test_holders_come_in_order_and_leave() -> None:
    sharing = Sharing()
    sharing.add(1, [10, 11])
    sharing.add(2, [10])
    assert sharing.holders(10) == [1, 2]
    assert sharing.holder_counts([10, 11, 12]) == (2, 1, 0)
    sharing.leave(1, [10, 11, 12])
    assert sharing.holder_counts([10, 11]) == (1, 0)


def test_reuse_counts_end_with_the_block() -> None:
    sharing = Sharing()
    sharing.reused([10, 11])
    sharing.reused([10])
    assert sharing.reuse_counts([10, 11, 12]) == (2, 1, 0)
    sharing.forget_block(10)
    assert sharing.reuse_counts([10, 11]) == (0, 1)
    sharing.forget_blocks()
    assert sharing.reuse_counts([11]) == (0,)
