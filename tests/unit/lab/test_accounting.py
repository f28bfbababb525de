"""Block accounting, on the cases that vLLM's own recordings show."""

import pytest

from app.lab.accounting import Accounting, reusable_tokens


@pytest.mark.parametrize(
    ("shared", "prompt", "size", "expected"),
    [(64, 64, 32, 32), (96, 96, 32, 64), (65, 65, 32, 64), (512, 520, 16, 512), (15, 40, 16, 0), (0, 1, 16, 0)],
)
def test_only_full_blocks_and_never_the_last_token(shared: int, prompt: int, size: int, expected: int) -> None:
    assert reusable_tokens(shared, prompt, size) == expected


def test_a_space_is_a_cache_of_its_own() -> None:
    accounting = Accounting(4)
    accounting.store("a", range(10))
    assert accounting.expect("a", range(10)) == 8
    assert accounting.expect("b", range(10)) == 0
    assert accounting.expect("a", [0, 1, 2, 3, 9, 5, 6, 7, 8]) == 4
    assert accounting.expect("a", [9, 1, 2, 3, 4, 5, 6, 7, 8]) == 0


def test_an_answer_is_reused_but_for_its_last_token() -> None:
    accounting = Accounting(4)
    accounting.store("a", [1, 2, 3], [4, 5, 6, 7, 8])
    # 1 2 3 4 | 5 6 7: the 8 was sampled, never computed, so the second block isn't full.
    assert accounting.expect("a", [1, 2, 3, 4, 5, 6, 7, 8, 9]) == 4
    accounting.store("a", [1, 2, 3], [4, 5, 6, 7, 8, 9])
    assert accounting.expect("a", [1, 2, 3, 4, 5, 6, 7, 8, 9]) == 8


def test_blocks_that_are_alike_under_another_parent_are_others() -> None:
    accounting = Accounting(2)
    accounting.store("a", [1, 1, 2, 2])
    assert accounting.expect("a", [2, 2, 5]) == 0
