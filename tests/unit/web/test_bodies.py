import asyncio

import pytest

from app.errors import Overloaded
from app.web.bodies import PORTION_BYTES, Bodies, BodyTimeout


async def test_all_bodies_together_are_bounded_and_each_gives_its_bytes_back_once() -> None:
    bodies = Bodies(max_bytes=100, timeout_s=60)
    first, second = bodies.hold(), bodies.hold()
    first.add(70)
    with pytest.raises(Overloaded) as refused:
        second.add(31)
    assert refused.value.retry_after_s == 1.0
    second.add(30)
    first.release()
    first.release()
    assert bodies.held_bytes == 30
    second.release()
    assert bodies.held_bytes == 0


async def test_a_body_that_stops_is_not_waited_for() -> None:
    held = Bodies(max_bytes=100, timeout_s=0.05).hold()
    with pytest.raises(BodyTimeout):
        await held.next_message(asyncio.Future())


async def test_bytes_that_trickle_give_no_new_time_and_a_portion_does() -> None:
    bodies = Bodies(max_bytes=10 * PORTION_BYTES, timeout_s=0.0)
    slow = bodies.hold()
    slow.add(PORTION_BYTES - 1)
    with pytest.raises(BodyTimeout):
        await slow.next_message(asyncio.Future())
    bodies.timeout_s = 60
    slow.add(1)
    there: asyncio.Future[dict[str, str]] = asyncio.Future()
    there.set_result({"type": "http.request"})
    assert (await slow.next_message(there))["type"] == "http.request"
