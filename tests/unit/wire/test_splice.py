"""Fields spliced into a body: the client's own bytes stay as they are."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.wire.splice import REPORT_FIELD, TOKEN_IDS_FIELD, USAGE_FIELD, find_inserts, spliced

from .enriching import Spliced, enrich_body

USAGE = b'"stream_options":{"include_usage":true}'
IDS = b'"return_token_ids":true'


@pytest.mark.parametrize(
    ("body", "expected", "added"),
    [
        (b'{"a":1}', b'{"a":1,' + USAGE + b"," + IDS + b"}", (USAGE_FIELD, TOKEN_IDS_FIELD)),
        (b"{}", b"{" + USAGE + b"," + IDS + b"}", (USAGE_FIELD, TOKEN_IDS_FIELD)),
        (b' { "a" : 1.0e2 }\r\n', b' { "a" : 1.0e2 ,' + USAGE + b"," + IDS + b"}\r\n", (USAGE_FIELD, TOKEN_IDS_FIELD)),
        (
            b'{"stream_options":{},"b":"\\u00e9"}',
            b'{"stream_options":{"include_usage":true},"b":"\\u00e9",' + IDS + b"}",
            (USAGE_FIELD, TOKEN_IDS_FIELD),
        ),
        (
            b'{"stream_options" : {"x": "}{\\""}, "return_token_ids": false}',
            b'{"stream_options" : {"x": "}{\\"","include_usage":true}, "return_token_ids": false}',
            (USAGE_FIELD,),
        ),
        (b'{"stream_options":{"include_usage":false},"return_token_ids":null}', None, ()),
        (b'{"stream_options":null,"return_token_ids":null}', None, ()),
        (b'{"stream_options":[],"return_token_ids":null}', None, ()),
        (b'{"stream_options":{"a":1,"a":2},"return_token_ids":null}', None, ()),
        (
            b'{"messages":[{"stream_options":{"include_usage":true},"return_token_ids":1}]}',
            b'{"messages":[{"stream_options":{"include_usage":true},"return_token_ids":1}],'
            + USAGE
            + b","
            + IDS
            + b"}",
            (USAGE_FIELD, TOKEN_IDS_FIELD),
        ),
        (b'{"stream\\u005foptions":{"include_usage":true},"return_token_ids":1}', None, ()),
        (b'{"a":1,"a":2}', None, ()),
        (b'{"a":1,"\\u0061":2}', None, ()),
        (b"[1]", None, ()),
        (b'{"a":1}x', None, ()),
        (b'{"a":1}{"b":2}', None, ()),
        (b'{"a":1,}', None, ()),
        (b'{"a":"\xff"}', None, ()),
        (b'\xef\xbb\xbf{"a":1}', None, ()),
        (b"", None, ()),
        (b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", None, ()),
    ],
)
def test_splicing(body: bytes, expected: bytes | None, added: tuple[str, ...]) -> None:
    assert enrich_body(body, usage=True, token_ids=True) == Spliced(expected or body, added)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"a":1}', b'{"a":1,"vllm_xargs":{"kv_cache_report_mode":"full"}}'),
        (b'{"vllm_xargs":{ }}', b'{"vllm_xargs":{ "kv_cache_report_mode":"full"}}'),
        (b'{"vllm_xargs":{"x":1},"b":2}', b'{"vllm_xargs":{"x":1,"kv_cache_report_mode":"full"},"b":2}'),
        (b'{"vllm_xargs":{"kv_cache_report_mode":"none"}}', None),
        (b'{"vllm_xargs":null}', None),
        (b'{"vllm_xargs":[1]}', None),
    ],
)
def test_the_full_report(body: bytes, expected: bytes | None) -> None:
    added = (REPORT_FIELD,) if expected else ()
    assert enrich_body(body, usage=False, token_ids=False, full_report=True) == Spliced(expected or body, added)


def test_only_what_is_asked_for() -> None:
    assert enrich_body(b'{"a":1}', usage=False, token_ids=True) == (b'{"a":1,' + IDS + b"}", (TOKEN_IDS_FIELD,))
    assert enrich_body(b'{"a":1}', usage=True, token_ids=False) == (b'{"a":1,' + USAGE + b"}", (USAGE_FIELD,))
    assert enrich_body(b'{"a":1}', usage=False, token_ids=False) == (b'{"a":1}', ())


def _without_splices(spliced: Spliced, usage: bytes) -> bytes:
    """Undoes the splices, from the last to the first; `usage` is what was spliced in for it."""
    body = spliced.body
    for field in reversed(spliced.added):
        text = IDS if field == TOKEN_IDS_FIELD else usage
        head, _, tail = body.rpartition(text)
        body = head.removesuffix(b",") + tail
    return body


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(["model", "messages", "stream_options", "return_token_ids", "}", '"'])
BODIES = st.dictionaries(NAMES | st.text(max_size=5), json_values, max_size=6)


@given(BODIES, st.booleans(), st.sampled_from([None, 2]), st.booleans())
def test_taking_the_splices_out_again_gives_the_clients_bytes(
    fields: dict[str, object], ascii_only: bool, indent: int | None, compact: bool
) -> None:
    separators = (",", ":") if compact else None
    body = json.dumps(fields, ensure_ascii=ascii_only, indent=indent, separators=separators).encode()
    spliced = enrich_body(body, usage=True, token_ids=True)
    sent = json.loads(spliced.body)
    if TOKEN_IDS_FIELD in spliced.added:
        assert sent.pop("return_token_ids") is True and "return_token_ids" not in fields
    if USAGE_FIELD in spliced.added:
        if "stream_options" in fields:
            assert sent["stream_options"].pop("include_usage") is True
        else:
            assert sent.pop("stream_options") == {"include_usage": True}
    assert sent == fields
    assert list(sent) == list(fields)
    usage = b'"include_usage":true' if "stream_options" in fields else USAGE
    assert _without_splices(spliced, usage) == body


def test_a_body_of_a_megabyte_keeps_every_byte() -> None:
    text = json.dumps({"prompt": list(range(200_000)), "x": "é\n" * 50_000}).encode()
    spliced = enrich_body(text, usage=True, token_ids=True)
    assert spliced.body == text[:-1] + b"," + USAGE + b"," + IDS + b"}"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_body_in_pieces_is_spliced_where_it_would_be_whole(size: int) -> None:
    body = b'{"stream":true,"stream_options":{"x":1},"vllm_xargs":{},"messages":[]}'
    inserts = find_inserts(body, usage=True, token_ids=True, full_report=True)
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    whole = enrich_body(body, usage=True, token_ids=True, full_report=True)
    assert len(inserts.texts) == 3
    assert b"".join(spliced(pieces, inserts.texts)) == whole.body
