"""Headers on their way through the proxy: what concerns one connection only stays behind, everything else passes."""

from .proxy_call import OWN_PREFIX, Call
from .upstream import RawHeaders

HOP_BY_HOP = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
        b"trailer", b"transfer-encoding", b"upgrade",
    }
)  # fmt: skip
STREAM_HEADERS = ((b"x-accel-buffering", b"no"), (b"cache-control", b"no-cache"))
"""Keep proxies that stand before this one from collecting a stream."""
_NOT_TO_SERVER = HOP_BY_HOP | {b"host", b"content-length", b"expect"}
_NO_NAMES: frozenset[bytes] = frozenset()


class ResponseHead:
    """The headers that go to the client, and what they say of the body: values stripped, in lower case, b"" if absent.

    streamed: the body is an event stream. sized: its length is given.
    """

    __slots__ = ("content_type", "encoding", "headers", "names", "sized", "streamed")

    def __init__(self, status: int, headers: RawHeaders) -> None:
        named = named_by_connection(headers)
        self.headers: RawHeaders = []
        fields: dict[bytes, bytes] = {}
        for pair in headers:
            name = pair[0].lower()
            if name in HOP_BY_HOP or name in named or (status in (204, 304) and name == b"content-length"):
                continue
            self.headers.append(pair)
            fields[name] = pair[1]
        self.names = fields.keys()
        self.content_type = fields.get(b"content-type", b"").strip().lower()
        self.encoding = fields.get(b"content-encoding", b"").strip().lower()
        self.sized = b"content-length" in fields
        self.streamed = self.content_type.startswith(b"text/event-stream")

    def add_stream_headers(self) -> None:
        """Adds those of `STREAM_HEADERS` that the server didn't send itself."""
        self.headers += [pair for pair in STREAM_HEADERS if pair[0] not in self.names]


def headers_for_server(call: Call, length: int, session: bytes | None, api_key: str | None) -> RawHeaders:
    """The client's own headers, the body's `length`, and what is given of a session id and a key that it has not."""
    dropped, named = _NOT_TO_SERVER, named_by_connection(call.headers)
    if named:
        dropped = dropped | named
    headers = [pair for pair in call.headers if pair[0] not in dropped and not pair[0].startswith(OWN_PREFIX)]
    names = {name for name, _ in call.headers}
    if length or b"content-length" in names or call.method in ("POST", "PUT", "PATCH"):
        headers.append((b"content-length", b"%d" % length))
    if session is not None:
        headers.append((b"x-session-id", session))
    if api_key and b"authorization" not in names:
        headers.append((b"authorization", b"Bearer " + api_key.encode("latin-1", "replace")))
    return headers


def names_session(headers: RawHeaders) -> bool:
    """Whether the client's own headers name a session."""
    return any(name == b"x-session-id" for name, _ in headers)


def named_by_connection(headers: RawHeaders) -> frozenset[bytes]:
    """Headers that the `Connection` header declares to concern this connection only."""
    named = [value for name, value in headers if len(name) == 10 and name.lower() == b"connection"]
    if not named:
        return _NO_NAMES
    return frozenset(token.strip().lower() for value in named for token in value.split(b","))
