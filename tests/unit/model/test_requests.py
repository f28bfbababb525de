import pytest

from app.ids import RequestId, ServerId
from app.model.request_book import RequestBook
from app.model.request_records import block_table, request_record
from app.model.requests import STEPS, IllegalStep, Request, Step
from app.observations import Outcome, RequestEnded, RequestStarted

SERVER = ServerId("http://127.0.0.1:8000")


def sent(name: str, at_s: float = 1.0, *, streamed: bool = True, sequences: int = 1) -> RequestStarted:
    return RequestStarted(
        SERVER, RequestId(name), "/v1/completions", "client", at_s, streamed=streamed, sequences=sequences
    )


def ended(request: Request, outcome: Outcome = "ok", at_s: float = 2.0) -> Request:
    request.ended = RequestEnded(request.id, outcome, at_s)
    request.state = "ended"
    return request


def request(name: str = "r-1", **fields: object) -> Request:
    made = Request(0, sent(name))
    for field, value in fields.items():
        setattr(made, field, value)
    return made


@pytest.mark.parametrize(
    "steps",
    [
        ("head", "first_token", "first_token", "detail", "end", "detail"),
        ("detail", "head", "detail", "end"),
        ("end",),
    ],
)
def test_legal_lives(steps: tuple[Step, ...]) -> None:
    made = request()
    for step in steps:
        made.take(step)
    assert made.state == "ended"


@pytest.mark.parametrize(
    "steps",
    [("first_token",), ("head", "head"), ("head", "end", "end"), ("end", "head"), ("head", "end", "first_token")],
)
def test_illegal_steps_say_what_was_expected_and_what_came(steps: tuple[Step, ...]) -> None:
    made = request()
    with pytest.raises(IllegalStep, match=f"expected .* got {steps[-1]}"):
        for step in steps:
            made.take(step)


def test_every_state_can_end_but_the_last() -> None:
    states = {state for state, _ in STEPS}
    assert {state for state, step in STEPS if step == "end"} == states - {"ended"}


def test_usage_outweighs_the_report_and_that_what_events_imply() -> None:
    made = ended(request(block_size=32, usage_prompt=169, predicted=64, predicted_sure=True))
    assert made.cached() == (64, "inferred")
    made.first_own_depth = 3
    assert made.cached() == (96, "inferred")
    made.reported_blocks = 4
    assert made.cached() == (128, "engine")
    made.usage_cached = 0
    assert made.cached() == (0, "usage")


def test_a_lower_bound_is_no_figure() -> None:
    assert ended(request(block_size=32, usage_prompt=169, predicted=64)).cached() is None


def test_a_forecast_is_no_figure_before_prefill_ends() -> None:
    made = request(block_size=32, usage_prompt=169, predicted=64, predicted_sure=True)
    assert made.cached() is None
    assert ended(made, "http_error").cached() is None


@pytest.mark.parametrize(
    ("prompt", "cached", "true"), [(25, 26, False), (25, -1, False), (25, 25, True), (25, 0, True)]
)
def test_what_cannot_be_is_shown_as_it_came(prompt: int, cached: int, true: bool) -> None:
    made = ended(request(block_size=16, usage_prompt=prompt, usage_cached=cached))
    record = request_record(made, 0.0, embedded=False)
    assert made.consistent is true
    assert record.cached_tokens == cached
    assert (record.reused_blocks is not None) is true


def test_calls_that_are_not_streamed_have_no_first_token_time() -> None:
    made = Request(0, sent("r-1", streamed=False), first_s=1.5)
    assert request_record(made, 0.0, embedded=False).ttft_ms is None


def test_a_record_counts_the_partial_tail_and_the_recomputed_token() -> None:
    record = request_record(ended(request(block_size=32, usage_prompt=64, usage_cached=32)), 0.0, embedded=False)
    assert (record.prompt_blocks, record.reusable_blocks, record.reused_blocks) == (2, 1, 1)


def test_modelled_times_say_so() -> None:
    from app.observations import RequestEngineTimes

    made = request(times=RequestEngineTimes(RequestId("r-1"), 2.0, ttft_ms=3.0))
    assert request_record(made, 0.0, embedded=True).basis["engine_ttft_ms"] == "modelled"
    assert request_record(made, 0.0, embedded=False).basis["engine_ttft_ms"] == "engine"


def test_a_block_table_ends_with_the_partial_tail() -> None:
    made = ended(request(block_size=32, usage_prompt=169, usage_cached=128, hashes=[1, 2, 3, 4, 5]))
    table = block_table(made)
    assert table is not None
    assert table.state == ("reused",) * 4 + ("computed", "partial")
    assert table.tokens == (32, 32, 32, 32, 32, 9)
    assert table.hash[-2:] == (f"{5:016x}", None)
    assert table.basis == "usage"


def test_a_filled_tail_is_a_block_of_generated_tokens() -> None:
    made = ended(request(block_size=32, usage_prompt=40, usage_cached=32, usage_completion=58, hashes=[1]))
    table = block_table(made)
    assert table is not None
    # 40 + 57 tokens were computed from: three full blocks, and one token that no full block holds.
    assert table.state == ("reused", "decode", "decode")
    assert table.tokens == (32, 32, 32)
    assert table.hash == (f"{1:016x}", None, None)


def test_cells_are_pending_until_prefill_ends() -> None:
    made = request(block_size=32, tokens_length=40)
    table = block_table(made)
    assert table is not None
    assert table.state == ("pending", "partial")


def test_no_table_without_length_size_or_a_single_sequence() -> None:
    assert block_table(request(block_size=32)) is None
    assert block_table(request(tokens_length=40)) is None
    assert block_table(Request(0, sent("r-1", sequences=2), block_size=32, tokens_length=40)) is None
    assert block_table(ended(request(block_size=32, usage_prompt=40))) is None


def test_the_oldest_finished_go_first_and_running_ones_never() -> None:
    book = RequestBook(2)
    first, _ = book.start(sent("r-1"))
    second, _ = book.start(sent("r-2"))
    ended(second)
    book.end(second)
    _, forgotten = book.start(sent("r-3"))
    assert forgotten == [second]
    _, forgotten = book.start(sent("r-4"))
    assert forgotten == []
    assert len(book) == 3
    assert book.get(first.id) is first


def test_pages_go_from_new_to_old() -> None:
    book = RequestBook(10)
    for number in range(5):
        book.start(sent(f"r-{number}"))
    first, after = book.page(2, None)
    assert ([made.id for made in first], after) == (["r-4", "r-3"], "r-3")
    second, after = book.page(3, after)
    assert ([made.id for made in second], after) == (["r-2", "r-1", "r-0"], None)
    assert book.page(2, RequestId("gone")) == ([], None)


def test_an_id_starts_once() -> None:
    book = RequestBook(10)
    book.start(sent("r-1"))
    with pytest.raises(IllegalStep, match="started twice"):
        book.start(sent("r-1"))


def test_a_request_is_alone_where_no_other_ran_until_its_first_token() -> None:
    book = RequestBook(10)
    first, _ = book.start(sent("first"))
    book.answered(first)
    second, _ = book.start(sent("second"))
    assert (first.alone, second.alone, book.is_busy(SERVER)) == (True, False, True)
    book.end(first)
    book.end(second)
    assert not book.is_busy(SERVER)
    third, _ = book.start(sent("third"))
    fourth, _ = book.start(sent("fourth"))
    assert (third.alone, fourth.alone) == (False, False)
    book.end(third)
    book.end(third)
    book.end(fourth)
    assert not book.is_busy(SERVER)
    other = book.start(RequestStarted(ServerId("http://other"), RequestId("o"), "/v1/completions", "client", 1.0))[0]
    assert book.start(sent("last"))[0].alone
    assert other.alone


def test_output_ids_go_on_where_they_ended_and_gaps_are_no_guess() -> None:
    made = request()
    known = []
    for start, packed in ((0, b"aaaabbbb"), (2, b"cccc"), (4, b"eeee"), (5, b"ffff"), (0, b"gggg"), (1, None)):
        made.add_output(start, packed)
        known.append(made.output and bytes(made.output))
    assert known == [b"aaaabbbb", b"aaaabbbbcccc", None, None, b"gggg", None]
