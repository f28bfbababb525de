"""One HTTP/1.1 connection's responses, parsed by httptools: the head, then the pieces of the body. No IO.

httptools calls the `on_` methods while `feed` runs. A body's pieces land in a list without a Python call a piece: of a
busy stream, one read holds dozens.
"""

import httptools

from .upstream import RawHeaders


class NotHttp(Exception):
    """The server sent what can't be parsed."""


class ResponseParser:
    """`expect` a response, `feed` what comes, take `pieces` (and clear them); then `expect` the next."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: RawHeaders = []
        self.head_done = False
        self.message_done = False
        self.framed = False
        """The response says where it ends. One that doesn't ends with the connection."""
        self.pieces: list[bytes] = []
        self._in_message = 0
        self._without_body = False
        self._surplus = False
        self._keeps_alive = False
        self.on_body = self.pieces.append
        self._parser = httptools.HttpResponseParser(self)

    def expect(self, *, without_body: bool) -> None:
        """A request was sent. `without_body`: with HEAD, whose response has a length but no body."""
        self.status = 0
        self.headers = []
        self.head_done = self.message_done = self.framed = False
        self._without_body = without_body

    @property
    def leaves_reusable(self) -> bool:
        """Whether the connection can serve another request after this response."""
        return self.framed and self._keeps_alive and not (self._without_body or self._surplus)

    def feed(self, data: bytes | memoryview) -> None:
        """Takes bytes from the server. Raises NotHttp."""
        was_done = self.message_done
        before = len(self.pieces)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            raise NotHttp from None
        if self.message_done:
            # What comes after the end belongs to no response that anybody asked for.
            del self.pieces[before if was_done else self._in_message :]

    # --- httptools callbacks ---

    def on_message_begin(self) -> None:
        """A response starts, perhaps an interim one. One that nobody asked for makes the connection useless."""
        if self.head_done:
            self._surplus = True
            return
        self.headers = []
        self.framed = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header, or a trailer, which isn't passed on."""
        if self.head_done:
            return
        self.headers.append((name, value))
        if not self.framed and name.lower() in (b"content-length", b"transfer-encoding"):
            self.framed = True

    def on_headers_complete(self) -> None:
        """The head is there. Interim responses (1xx) are left out."""
        if self.head_done:
            return
        self.status = self._parser.get_status_code()
        if not 100 <= self.status < 600:
            raise NotHttp  # No HTTP server can pass such a status on.
        if self.status < 200:
            return
        self.head_done = True
        self.framed = self.framed or self.status in (204, 304)
        if self._without_body:
            # The parser would wait for the body that a HEAD response's length speaks of.
            self._end()

    def on_message_complete(self) -> None:
        """The response's end, where it has a length of its own or none at all."""
        if self.status >= 200 and not self.message_done:
            self._keeps_alive = self._parser.should_keep_alive()
            self._end()

    def _end(self) -> None:
        self.message_done = True
        self._in_message = len(self.pieces)
