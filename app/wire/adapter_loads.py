"""Calls by which a server loads an adapter while it runs. Imports nothing of the project."""

import msgspec

LOAD_ADAPTER = "/v1/load_lora_adapter"
MAX_NAME_CHARS = 512


class _Load(msgspec.Struct):
    lora_name: str


def adapter_named_in(body: bytes) -> str | None:
    """The adapter's name in the body of such a call; None where there is none."""
    try:
        name = msgspec.json.decode(body, type=_Load).lora_name
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return name if 0 < len(name) <= MAX_NAME_CHARS else None
