import pytest
from websockets.extensions import Extension
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from app.wire.ws_frames import text_frame, text_frames


def read(data: bytes) -> list[Frame]:
    """Frames as the websockets package reads them, unmasked as a client expects them."""
    reader = StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    frames: list[Frame] = []
    none: list[Extension] = []
    while True:
        at_end = reader.at_eof()
        try:
            next(at_end)
        except StopIteration as ended:
            if ended.value:
                return frames
        parsing = Frame.parse(reader.read_exact, mask=False, extensions=none)
        try:
            next(parsing)
        except StopIteration as parsed:
            frames.append(parsed.value)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65535, 65536, 200_000])
def test_a_frame_is_what_a_client_reads(size: int) -> None:
    (frame,) = read(text_frame(b"x" * size))

    assert (frame.opcode, frame.fin, bytes(frame.data)) == (Opcode.TEXT, True, b"x" * size)


def test_frames_stand_one_behind_the_other() -> None:
    payloads = [b"{}", b"a" * 300, "é".encode()]

    assert [bytes(frame.data) for frame in read(text_frames(payloads))] == payloads
