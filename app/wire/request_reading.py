"""Reads a request's body once: its facts, and where what is to be added goes. Imports only its own package."""

import msgspec

from .body_facts import NO_FACTS, BodyFacts, read_body_facts
from .packed_ids import MAX_LISTED_IDS, pack_ids
from .splice import find_inserts


class Wanted(msgspec.Struct, frozen=True):
    """What a body is to ask for besides a stream's usage: see `splice.find_inserts`."""

    token_ids: bool
    full_report: bool


class RequestReading(msgspec.Struct, frozen=True):
    """`inserts`: (place, text) of what goes into the body; `added`: which fields that is.

    packed_prompt: a long prompt of token ids (`pack_ids`), in place of the facts' own.
    """

    facts: BodyFacts = NO_FACTS
    inserts: tuple[tuple[int, bytes], ...] = ()
    added: tuple[str, ...] = ()
    packed_prompt: bytes | None = None


def read_request(body: bytes, salt_key: bytes, wanted: Wanted | None, *, with_label: bool) -> RequestReading:
    """`salt_key` and `with_label` are those of `read_body_facts`; `wanted` is None where nothing is to be added."""
    facts = read_body_facts(body, salt_key, with_label=with_label)
    packed = None
    if facts.prompt_token_ids is not None and len(facts.prompt_token_ids) > MAX_LISTED_IDS:
        packed = pack_ids(facts.prompt_token_ids)
        facts = msgspec.structs.replace(facts, prompt_token_ids=None)
    if wanted is None or not facts.is_object:
        return RequestReading(facts, packed_prompt=packed)
    texts, added = find_inserts(
        body, usage=facts.stream, token_ids=wanted.token_ids, full_report=wanted.full_report
    )  # fmt: skip
    return RequestReading(facts, texts, added, packed)
