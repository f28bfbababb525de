"""A body with the fields that `enrich` adds, in one step."""

from typing import NamedTuple

from app.wire.splice import find_inserts, spliced


class Spliced(NamedTuple):
    body: bytes
    added: tuple[str, ...]


def enrich_body(body: bytes, *, usage: bool, token_ids: bool, full_report: bool = False) -> Spliced:
    inserts = find_inserts(body, usage=usage, token_ids=token_ids, full_report=full_report)
    return Spliced(b"".join(spliced((body,), inserts.texts)), inserts.added)
