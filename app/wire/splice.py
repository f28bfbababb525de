"""Fields added to a request body in `enrich` mode: spliced into the client's own bytes, which stay as they are.

A body that is parsed and written again has another key order, number format or escaping, and that alone can destroy
prefix hits; so text is inserted and nothing else is touched. On any doubt (not a JSON object, not UTF-8, a key twice)
nothing is added. Imports nothing of the project.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

USAGE_FIELD = "stream_options.include_usage"
TOKEN_IDS_FIELD = "return_token_ids"
REPORT_FIELD = "vllm_xargs.kv_cache_report_mode"

_TOKENS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]', re.DOTALL)
_COLON = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*")
_VALIDATE = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class _Object(NamedTuple):
    """Keys of a JSON object with the offsets at which their values start, and the offset of its closing brace."""

    keys: dict[str, int]
    end: int


class Inserts(NamedTuple):
    """(Place, text) of what goes into a body, in order, and which fields that adds: `USAGE_FIELD` and the like."""

    texts: tuple[tuple[int, bytes], ...]
    added: tuple[str, ...]


def spliced(body: Sequence[bytes | memoryview], texts: Sequence[tuple[int, bytes]]) -> Sequence[bytes | memoryview]:
    """`body`, in pieces, with `texts` in it: it may be large, and isn't copied."""
    if not texts:
        return body
    waiting = list(texts)
    pieces: list[bytes | memoryview] = []
    passed = 0
    for piece in body:
        view, taken = memoryview(piece), 0
        while waiting and waiting[0][0] <= passed + len(view):
            at, text = waiting.pop(0)
            pieces += (view[taken : at - passed], text)
            taken = at - passed
        pieces.append(view[taken:])
        passed += len(view)
    return pieces


def find_inserts(body: bytes, *, usage: bool, token_ids: bool, full_report: bool = False) -> Inserts:
    """Asks for `stream_options.include_usage`, `return_token_ids` and the full reuse report, where absent in `body`.

    `usage` is to be True only for a streamed request: vLLM refuses `stream_options` on others. A full report reaches
    every subscriber of the server's events.
    """
    top = _scan(body, 0) if _is_plain_object(body) else None
    if top is None:
        return Inserts((), ())
    inserts: list[tuple[int, bytes]] = []
    added: list[str] = []
    members: list[bytes] = []
    for wanted, field, value in ((usage, USAGE_FIELD, b"true"), (full_report, REPORT_FIELD, b'"full"')):
        insert = _inner_insert(body, top, field, value) if wanted else None
        if insert is not None:
            added.append(field)
            if isinstance(insert, bytes):
                members.append(insert)
            else:
                inserts.append(insert)
    if token_ids and TOKEN_IDS_FIELD not in top.keys:
        added.append(TOKEN_IDS_FIELD)
        members.append(b'"return_token_ids":true')
    if members:
        inserts.append((top.end, (b"," if top.keys else b"") + b",".join(members)))
    return Inserts(tuple(sorted(inserts)), tuple(added))


def _inner_insert(body: bytes, top: _Object, field: str, value: bytes) -> bytes | tuple[int, bytes] | None:
    """For `outer.inner`: a member for the top-level object, or an insert into its `outer`, or None: leave it alone."""
    outer, _, inner = field.partition(".")
    member = b'"%b":%b' % (inner.encode("ascii"), value)
    start = top.keys.get(outer)
    if start is None:
        return b'"%b":{%b}' % (outer.encode("ascii"), member)
    found = _scan(body, start) if body[start : start + 1] == b"{" else None
    if found is None or inner in found.keys:
        return None
    return found.end, (b"," if found.keys else b"") + member


def _is_plain_object(body: bytes) -> bool:
    try:
        body.decode("utf-8")
        _VALIDATE(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _scan(body: bytes, start: int) -> _Object | None:
    """The object that opens at or after `start` in valid JSON; None where one of its keys occurs twice."""
    depth = 0
    keys: dict[str, int] = {}
    for match in _TOKENS.finditer(body, start):
        token = match.group()
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return _Object(keys, match.start())
        elif depth == 1 and (colon := _COLON.match(body, match.end())) is not None:
            key = msgspec.json.decode(token, type=str)
            if key in keys:
                return None
            keys[key] = colon.end()
    return None
