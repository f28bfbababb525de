"""What is asked of the process that reads large bodies, and how it goes through the socket between the two.

A question is `HEAD`, its encoding, and the body; an answer is `LENGTH` and its encoding, which is empty where the body
couldn't be read.
"""

from struct import Struct

import msgspec

from ..wire.request_reading import Wanted

HEAD = Struct("!II")
"""The lengths of the encoded question and of the body."""
LENGTH = Struct("!I")


class AboutRequest(msgspec.Struct, tag=True, frozen=True):
    """`wire.request_reading.read_request`."""

    salt_key: bytes
    wanted: Wanted | None
    with_label: bool


class AboutResponse(msgspec.Struct, tag=True, frozen=True):
    """`wire.chat_chunks.read_body`."""


Question = AboutRequest | AboutResponse
