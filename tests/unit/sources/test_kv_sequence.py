"""What a sequence number means."""

from app.sources import kv_sequence
from app.sources.kv_sequence import KvSequence


def taken(*messages: tuple[int, bytes]) -> KvSequence:
    sequence = KvSequence()
    for seq, payload in messages:
        sequence.take(seq, payload)
    return sequence


def test_the_first_message() -> None:
    assert KvSequence().judge(0, b"a") == "next"
    assert KvSequence().judge(3, b"a") == "ahead"


def test_after_some_messages() -> None:
    sequence = taken((0, b"a"), (1, b"b"))
    assert sequence.next_seq == 2
    assert [sequence.judge(seq, payload) for seq, payload in ((2, b"c"), (4, b"e"), (1, b"b"), (0, b"a"))] == [
        "next", "ahead", "known", "known",
    ]  # fmt: skip


def test_a_number_again_with_other_bytes_is_another_process() -> None:
    sequence = taken((0, b"a"), (1, b"b"))
    assert sequence.judge(0, b"x") == "restarted"
    sequence.restart()
    assert sequence.next_seq == 0
    assert sequence.judge(0, b"a") == "next"


def test_memory_is_bounded() -> None:
    sequence = taken(*((seq, b"%d" % seq) for seq in range(kv_sequence.REMEMBERED + 10)))
    assert sequence.judge(9, b"9") == "restarted"
    assert sequence.judge(10, b"10") == "known"
