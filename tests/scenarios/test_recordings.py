"""What the ledger makes of recordings of a real vLLM server: every request's figures, and what is resident after."""

import pytest

from app.events import BlocksReused, BlocksStored
from app.ids import RequestId
from app.model.invariants import violations
from tests.scenarios.player import SERVER, Player

# (request, cached tokens, forecast, "reused of M blocks", code of the verdict)
Row = tuple[str, int, int, str, str]

RECORDED: dict[str, tuple[Row, ...]] = {
    "shared_prefix": (
        ("r1", 0, 0, "0/6", "first_seen"),
        ("r2", 128, 128, "4/6", "reused"),
        ("r3", 128, 128, "4/6", "reused"),
    ),
    "shared_prefix_full": (
        ("r1", 128, 128, "4/6", "reused"),
        ("r2", 128, 128, "4/6", "reused"),
        ("r3", 160, 160, "5/6", "full_hit"),
    ),
    "session_header": (("r1", 128, 128, "4/6", "reused"),),
    "broken_prefix": (
        ("r1", 128, 128, "4/6", "reused"),
        ("r2", 0, 0, "0/6", "variable_first"),
        ("r3", 128, 128, "4/6", "reused"),
    ),
    "salted": (
        ("r1", 0, 0, "0/6", "other_salt"),
        ("r2", 0, 0, "0/6", "other_salt"),
        ("r3", 160, 160, "5/6", "full_hit"),
    ),
    "exact_multiple": (
        ("r1", 0, 0, "0/2", "first_seen"),
        ("r2", 32, 32, "1/2", "exact_multiple"),
        ("r3", 0, 0, "0/3", "variable_first"),
        ("r4", 64, 64, "2/3", "full_hit"),
        ("r5", 0, 0, "0/3", "first_seen"),
        ("r6", 64, 64, "2/3", "full_hit"),
        ("r7", 0, 0, "0/3", "variable_first"),
        ("r8", 64, 64, "2/3", "exact_multiple"),
        ("r9", 0, 0, "0/4", "variable_first"),
        ("r10", 96, 96, "3/4", "full_hit"),
    ),
    # The first computes, and the others hit in the same step: more than was resident when they were sent.
    "same_step": (
        ("race0", 128, 128, "4/6", "reused"),
        ("race1", 160, 128, "5/6", "full_hit"),
        ("race2", 160, 128, "5/6", "full_hit"),
        ("race3", 160, 128, "5/6", "full_hit"),
    ),
    "multi_turn": (
        ("r1", 128, 128, "4/6", "reused"),
        ("r2", 160, 160, "5/6", "exact_multiple"),
        ("r3", 192, 192, "6/7", "full_hit"),
    ),
    "cjk": (("r2", 0, 0, "0/10", "first_seen"), ("r3", 288, 288, "9/10", "full_hit")),
    "prompt_logprobs": (
        ("r1", 0, 0, "0/5", "first_seen"),
        ("r2", 0, 0, "0/5", "lookup_skipped"),
        ("r3", 128, 128, "4/5", "full_hit"),
    ),
    "reset": (("r1", 160, 160, "5/6", "full_hit"), ("r3", 0, 0, "0/6", "reset")),
    "evict": (
        ("r1", 0, 0, "0/14", "first_seen"),
        ("r2", 0, 0, "0/14", "diverges"),
        ("r3", 0, 0, "0/14", "diverges"),
        ("r4", 0, 0, "0/14", "diverges"),
        ("r5", 0, 0, "0/14", "diverges"),
        ("r6", 320, 320, "10/14", "reused"),
        ("r7", 416, 416, "13/14", "full_hit"),
    ),
}

RESIDENT_AFTER = {
    "shared_prefix": 8, "shared_prefix_full": 10, "session_header": 11, "broken_prefix": 18, "salted": 28,
    "exact_multiple": 40, "same_step": 41, "multi_turn": 43, "cjk": 52, "prompt_logprobs": 56, "reset": 5, "evict": 62,
}  # fmt: skip
"""Blocks that the events left resident, counted from where the recordings begin. Copies count once."""


def played(name: str) -> Player:
    return Player().play(name) if name == "evict" else Player().play_until(name)


@pytest.mark.parametrize("name", RECORDED)
def test_every_request_of_a_recording(name: str) -> None:
    player = played(name)
    found = []
    for row in RECORDED[name]:
        record = player.record(f"{name}/{row[0]}")
        assert record.verdict is not None
        blocks = f"{record.reused_blocks}/{record.prompt_blocks}"
        found.append((row[0], record.cached_tokens, record.predicted_cached_tokens, blocks, record.verdict.code))
        assert record.basis["cached_tokens"] == "usage"
    assert tuple(found) == RECORDED[name]
    assert sum(len(columns.hash) for columns in player.ledger.block_columns()) == RESIDENT_AFTER[name]
    assert violations(player.ledger) == []
    assert player.ledger.illegal_steps == 0


@pytest.mark.parametrize("name", RECORDED)
def test_block_tables_know_every_full_block(name: str) -> None:
    player = played(name)
    for row in RECORDED[name]:
        summary = player.ledger.request(RequestId(f"{name}/{row[0]}"))
        assert summary is not None
        assert summary.block_table is not None
        table, record = summary.block_table, summary.record
        assert table.state.count("reused") == record.reused_blocks
        assert [text is None for text in table.hash] == [state == "partial" for state in table.state]
        assert sum(table.tokens) == record.prompt_tokens


@pytest.mark.parametrize("name", RECORDED)
def test_reuse_is_announced_once_for_each_request(name: str) -> None:
    player = played(name)
    announced: dict[RequestId | None, int] = {}
    for event in player.events(BlocksReused):
        announced[event.request] = announced.get(event.request, 0) + len(event.hash)
    for row in RECORDED[name]:
        request = RequestId(f"{name}/{row[0]}")
        assert announced.get(request, 0) == player.record(request).reused_blocks


def test_hit_rate_equals_the_counters() -> None:
    player = Player().play("evict")
    rates = {(r.window, r.basis): (r.hit_tokens, r.query_tokens) for r in player.ledger.snapshot().rates[SERVER]}
    assert rates["since_mark", "counter"] == rates["since_mark", "usage"] == (736, 2961)
    assert rates["since_mark", "inferred"] == (736, 2961)


def test_copies_of_recomputed_last_blocks_are_counted() -> None:
    player = Player().play_until("exact_multiple")
    (columns,) = player.ledger.block_columns()
    assert sorted(columns.copies) == [1] * 38 + [2, 2]


def test_copies_of_a_skipped_lookup_are_counted() -> None:
    player = Player().play_until("prompt_logprobs")
    table = player.ledger.request(RequestId("prompt_logprobs/r2"))
    assert table is not None
    assert table.block_table is not None
    (columns,) = player.ledger.block_columns()
    copies = dict(zip(columns.hash, columns.copies, strict=True))
    assert [copies[text] for text in table.block_table.hash if text is not None] == [2, 2, 2, 2]


def test_blocks_are_given_to_the_requests_that_stored_them() -> None:
    player = Player().play("evict")
    owners = [event.request for event in player.events(BlocksStored)]
    assert owners == [f"evict/r{number}" for number in range(1, 7)]


def test_sessions_join_without_prompt_tokens() -> None:
    player = Player()
    player._tokens = {}
    player.play("evict")
    record = player.record("evict/r6")
    assert record.cached_tokens == 320
    summary = player.ledger.request(RequestId("evict/r1"))
    assert summary is not None
    assert summary.block_table is not None
    assert sum(text is not None for text in summary.block_table.hash) == 13


def test_a_client_that_leaves_keeps_what_is_known() -> None:
    record = Player().play_until("client_gone").record("client_gone/r1")
    assert (record.outcome, record.prompt_tokens, record.cached_tokens) == ("client_gone", 37, 0)
    assert record.basis["cached_tokens"] == "inferred"
    assert record.verdict is not None
    assert record.verdict.code == "failed"


def test_refused_requests_fail_with_the_servers_reason() -> None:
    player = Player().play("errors")
    assert [player.record(f"errors/r{n}").outcome for n in range(1, 7)] == ["http_error"] * 6
    verdict = player.record("errors/r2").verdict
    assert verdict is not None
    assert verdict.detail == "The model `nope` does not exist. Valid aliases: smollm2-135m."


def test_the_first_request_to_compute_a_block_is_the_one_to_compare_with() -> None:
    player = Player().play("evict")
    assert player.record("evict/r6").reference_id == "evict/r1"
    assert player.record("evict/r7").reference_id == "evict/r5"


def test_texts_may_be_shown_where_a_request_that_may_show_it_holds_the_block() -> None:
    player = Player().play("evict")
    detail = player.ledger.request_block(RequestId("evict/r7"), 0)
    assert detail is not None
    assert detail.show_text
    assert (detail.depth, len(detail.token_ids), detail.parent, detail.copies) == (0, 32, None, 1)
    assert detail.requests == ("evict/r5", "evict/r7")
    assert detail.hash is not None
    assert player.ledger.block_detail(SERVER, player.ledger.block_columns()[0].rank, detail.hash) == detail
    tail = player.ledger.request_block(RequestId("evict/r7"), 13)
    assert tail is not None
    assert (tail.hash, len(tail.token_ids), tail.depth, tail.requests) == (None, 7, 13, ("evict/r7",))
    assert player.ledger.request_block(RequestId("evict/r7"), 14) is None
