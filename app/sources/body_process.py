"""The process that reads large bodies, so that the event loop needn't: answers one question after the other.

    python -m app.sources.body_process    with a socket as its standard input

It ends when the other end of the socket is closed.
"""

import signal
import socket
from typing import BinaryIO

import msgspec

from ..wire.chat_chunks import read_body
from ..wire.request_reading import read_request
from .body_questions import HEAD, LENGTH, AboutRequest, Question

_decode = msgspec.msgpack.Decoder(Question).decode
_encode = msgspec.msgpack.Encoder().encode


def answer(encoded: bytes, body: bytes) -> bytes:
    """The encoded answer; b"" where the body couldn't be read."""
    try:
        question = _decode(encoded)
        if isinstance(question, AboutRequest):
            return _encode(read_request(body, question.salt_key, question.wanted, with_label=question.with_label))
        return _encode(read_body(body))
    except Exception:  # The process's outer edge: what it can't read is passed on unread.
        return b""


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answers until there are no more questions."""
    while len(head := questions.read(HEAD.size)) == HEAD.size:
        encoded_bytes, body_bytes = HEAD.unpack(head)
        told = answer(questions.read(encoded_bytes), questions.read(body_bytes))
        answers.write(LENGTH.pack(len(told)) + told)
        answers.flush()


def main() -> None:
    """See the module's docstring."""
    # A terminal's interrupt reaches this process too; whoever started it decides when it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=0) as channel, channel.makefile("rb") as questions, channel.makefile("wb") as answers:
        try:
            serve(questions, answers)
        except ConnectionError:
            return


if __name__ == "__main__":
    main()
