import asyncio

from app.hub.wakes import Wakes


async def turns(count: int) -> None:
    """Lets the loop go round."""
    for _ in range(count):
        await asyncio.sleep(0)


async def waiting(wakes: Wakes, count: int) -> "list[asyncio.Task[bool]]":
    tasks = [asyncio.create_task(wakes.wait()) for _ in range(count)]
    await turns(2)
    return tasks


async def test_everybody_is_woken_by_news() -> None:
    wakes = Wakes(30)
    tasks = await waiting(wakes, 5)

    wakes.wake()

    assert await asyncio.wait_for(asyncio.gather(*tasks), 5) == [True] * 5


async def test_a_crowd_is_woken_a_few_at_a_time_and_others_have_their_turn_in_between() -> None:
    wakes = Wakes(30, at_once=10)
    tasks = await waiting(wakes, 95)
    most = 0
    before = 0
    wakes.wake()

    async with asyncio.timeout(5):
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            done = sum(task.done() for task in tasks)
            most, before = max(most, done - before), done

    assert 0 < most <= 10


async def test_news_within_a_tick_goes_out_together() -> None:
    wakes = Wakes(30, tick_s=0.05)
    loop = asyncio.get_running_loop()
    (first,) = await waiting(wakes, 1)
    wakes.wake()
    await first
    began_s = loop.time()
    times_woken = 0

    for _ in range(20):
        (task,) = await waiting(wakes, 1)
        wakes.wake()
        if await asyncio.wait_for(task, 5):
            times_woken += 1
        if loop.time() - began_s > 0.2:
            break

    assert times_woken <= (loop.time() - began_s) / 0.05 + 1


async def test_one_who_waits_again_while_others_are_still_being_woken_gets_the_next_news_too() -> None:
    wakes = Wakes(30, tick_s=0.0, at_once=1)
    tasks = await waiting(wakes, 50)
    wakes.wake()
    await asyncio.wait_for(tasks[0], 5)
    assert not tasks[-1].done()

    again = asyncio.create_task(wakes.wait())
    await turns(1)
    wakes.wake()

    assert await asyncio.wait_for(asyncio.gather(again, *tasks), 5) == [True] * 51


async def test_silence_wakes_with_false_again_and_again() -> None:
    wakes = Wakes(0.01)

    assert [await asyncio.wait_for(wakes.wait(), 5) for _ in range(3)] == [False] * 3


async def test_one_who_gave_up_hinders_nobody() -> None:
    wakes = Wakes(30)
    gone, stays = await waiting(wakes, 2)
    gone.cancel()
    await turns(1)

    wakes.wake()

    assert await asyncio.wait_for(stays, 5) is True
    assert gone.cancelled()


async def test_without_anyone_there_is_nothing_to_do() -> None:
    wakes = Wakes(30)
    wakes.wake()
    (task,) = await waiting(wakes, 1)

    assert not task.done()
    task.cancel()
