"""The contract with the browser: what is generated from the event classes is current, and complete."""

import json

from app import events
from app.events import Outgoing, Snapshot
from app.wire.live_protocol import encode_event, snapshot_steps
from scripts import write_contract
from tests.contract.examples import EXAMPLES


def test_every_event_type_has_an_example() -> None:
    assert [event.type for event in EXAMPLES] == list(events.EVENT_TYPES)


def test_events_md_is_current() -> None:
    assert (write_contract.ROOT / "EVENTS.md").read_text() == write_contract.events_markdown()


def test_golden_files_are_current() -> None:
    on_disk = {path.name: path.read_text() for path in write_contract.GOLDEN.glob("*.json")}
    assert on_disk == write_contract.golden_files()


def test_event_names_are_a_noun_and_a_past_participle() -> None:
    for name in set(events.EVENT_TYPES) - {"hello", "snapshot"}:
        noun, _, participle = name.partition(".")
        assert noun
        assert participle.endswith("ed") or participle == "first_token"


def test_golden_hashes_are_text() -> None:
    snapshot = json.loads(write_contract.golden_files()["snapshot.json"])
    for columns in snapshot["data"]["blocks"]:
        assert all(isinstance(text, str) and len(text) == 16 for text in columns["hash"])


def test_a_snapshot_in_steps_is_the_snapshot() -> None:
    """The same bytes, in steps of which none holds the event loop."""
    (snapshot,) = [event for event in EXAMPLES if isinstance(event, Snapshot)]
    steps = snapshot_steps(snapshot, 1.5, 7)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            assert done.value == encode_event(Outgoing(snapshot, 1.5), 7)
            break
