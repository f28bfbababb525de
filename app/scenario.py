"""The demo's own scenario: real requests through the dashboard's own /v1, so that the page moves before anyone clicks.

Each round takes one prompt and shows the lesson in four steps: cold, warm, changed at the front, changed at the end.
It plays a bounded number of rounds, and a person's click ends it for good.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
from starlette.types import ASGIApp

from .observations import Observation, ScenarioStepped
from .sources.clock import Clock

CHAT_PATH = "/v1/chat/completions"
BASE_URL = "http://localhost"
HEADERS = {"X-PrefixScope-Origin": "scenario", "Origin": BASE_URL}
"""What it says of itself counts as a page's own word does: only where it is of the same origin."""
MAX_TOKENS = 32
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Preset:
    """One round's prompt. `front` and `end` are (word, the word that takes its place)."""

    name: str
    name_zh: str
    system: str
    question: str
    front: tuple[str, str]
    end: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Caption:
    """What is said of a step, in both languages of the page."""

    en: str
    zh: str


@dataclass(frozen=True, slots=True)
class Step:
    """One request, and what to look at while it runs."""

    caption: Caption
    system: str
    question: str


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds to look at a step, and between two rounds; tests pass shorter ones."""

    step_s: float = 5.0
    round_s: float = 6.0
    poll_s: float = 0.1


PRESETS: tuple[Preset, ...] = (
    Preset(
        name="A support bot",
        name_zh="客服助手",
        system=(
            "Friendly and brief: that is how you, the support assistant of Larkspur Parcels, answer every customer. "
            "Greet the customer by name where you know it. Ask for the parcel number before you look anything up. "
            "A parcel number has two letters and nine digits; where it does not, say which part is wrong. "
            "Parcels within the country arrive after one to three working days, abroad after four to nine. "
            "A parcel that has not moved for five working days counts as lost: offer a search, and a refund of the "
            "postage at once. Damaged goods need two photographs, one of the box and one of what was in it. "
            "Claims are open for thirty days after the delivery. Never promise a date that the tracking does not show. "
            "Never ask for a card number, a password or a birthday. Where a customer is angry, say first that you "
            "understand, then what you can do now. Where you cannot help, hand over to a colleague: weekdays from "
            "eight to six. Close with one question: whether there is anything else."
        ),
        question="Hello, I have been waiting since Monday. Can you tell what happened to my parcel?",
        front=("Friendly", "Patient"),
        end=("parcel?", "refund?"),
    ),
    Preset(
        name="历史老师",
        name_zh="历史老师",
        system=(
            "耐心的历史老师，这就是你的身份。请用简洁、准确的中文回答学生关于中国历史的问题。"
            "第一，先给出结论，再说明理由，最后用一句话总结。第二，提到人物时写出他的朝代和生卒年份；不能确定时，直接说不能确定。"
            "第三，提到地点时同时写出古名和今名，例如长安，今陕西西安。第四，区分史实与传说：正史有记载的，说明出自哪一部书；"
            "只见于小说或民间故事的，要明确指出。第五，不评论当代政治，不猜测考试题目，不替学生写作业。"
            "遇到有争议的问题，至少介绍两种看法以及各自的依据。回答不超过两百字，不使用表格，也不使用网络流行语。"
            "如果问题与历史无关，请礼貌地说明，并建议学生去问相应的老师。"
        ),
        question="请简单介绍一下唐朝的科举制度。",
        front=("耐心", "严格"),
        end=("科举制度。", "对外贸易。"),
    ),
    Preset(
        name="A code reviewer",
        name_zh="代码审查",
        system=(
            "Careful code review is your task: you read changes to a Python service that moves money. "
            "Read the whole change before you write a word. Report only what you can prove from the lines in front of "
            "you, most severe first, each with the line, what goes wrong and the smallest repair. "
            "Severe is: an amount in floating point, a query built from strings, a secret in a log, a lock held over "
            "a network call, an exception that is swallowed, a retry of something that is not idempotent. "
            "Minor is: a name that misleads, a comment that repeats the code, a test that sleeps. "
            "Leave out taste, formatting and praise. Where a test is missing, write its name and its one assertion. "
            "Where a change is too large to judge, say where to cut it. Where nothing is wrong, say so in one line. "
            "Amounts are whole cents. Times are UTC. Every public function has types and says what it raises."
        ),
        question="def total(items): return sum(float(i.price) for i in items)  # Safe today?",
        front=("Careful", "Strict"),
        end=("today?", "tomorrow?"),
    ),
)


STOPPED = Caption("The scenario was stopped.", "演示已停止。")
OVER = Caption("The scenario is over: now it is your turn.", "演示结束，现在轮到你了。")
FAILED = Caption(
    "The scenario failed; the dashboard's log says why. The page itself goes on.",
    "演示出错；原因见仪表盘的日志。页面本身不受影响。",
)


def steps_of(preset: Preset, play: int = 1) -> tuple[Step, ...]:
    """The four steps of a round, for the `play`-th time that the scenario is played."""
    cold = Caption(
        f"{preset.name}, for the first time: nothing of this prompt is in the cache, so every block is computed.",
        f"{preset.name_zh}，第一次：这个提示词没有任何部分在缓存中，每个块都要计算。",
    )
    if play > 1:
        cold = Caption(
            f"{preset.name} once more, under a new cache salt, so that every block is computed as the first time.",
            f"{preset.name_zh}再来一次，使用新的缓存盐，所以每个块都像第一次那样计算。",
        )
    changed_front = preset.system.replace(*preset.front, 1)
    changed_end = preset.question.replace(*preset.end)
    return (
        Step(cold, preset.system, preset.question),
        Step(
            Caption(
                "The same prompt again: its full blocks are reused, only the tail is computed. Compare the two times.",
                "再次发送同一提示词：满块全部复用，只计算尾部。请比较两次的时延。",
            ),
            preset.system,
            preset.question,
        ),
        Step(
            Caption(
                f"Only the first word changed ({preset.front[0]} → {preset.front[1]}): a block's hash covers all "
                "before it, so no block matches and all are computed again.",
                f"只改了第一个词（{preset.front[0]} → {preset.front[1]}）：块的哈希涵盖它之前的全部内容，"
                "没有一个块能匹配，全部重新计算。",
            ),
            changed_front,
            preset.question,
        ),
        Step(
            Caption(
                f"Only the last word changed ({preset.end[0]} → {preset.end[1]}): every block before the one that "
                "holds it is reused.",
                f"只改了最后一个词（{preset.end[0]} → {preset.end[1]}）：它所在的块之前，每个块都被复用。",
            ),
            preset.system,
            changed_end,
        ),
    )


class Scenario:
    """Plays the presets once each. `app` is where /v1 is; `model` names the model once a server is up, else None.

    Played again, it sends a cache salt, so that what its captions say of reuse is true again.
    """

    def __init__(
        self,
        app: ASGIApp,
        model: Callable[[], str | None],
        emit: Callable[[Observation], None],
        clock: Clock,
        presets: tuple[Preset, ...] = PRESETS,
        pace: Pace | None = None,
    ) -> None:
        self._app = app
        self._model = model
        self._emit = emit
        self._clock = clock
        self._presets = presets
        self._pace = pace or Pace()
        self._task: asyncio.Task[None] | None = None
        self._plays = 0
        self._step = 0
        self._steps = len(steps_of(presets[0]))

    @property
    def running(self) -> bool:
        """Whether it plays, or waits to."""
        return self._task is not None and not self._task.done() and not self._task.cancelling()

    def start(self) -> None:
        """Plays from the first round. Does nothing where it plays already."""
        if not self.running:
            self._plays += 1
            self._task = asyncio.create_task(self._play())

    def stop(self) -> None:
        """Ends it, the running request too."""
        if self._task is not None and self.running:
            self._task.cancel()
            self._say(STOPPED, running=False)

    async def close(self) -> None:
        """Ends it without a word; waits until its request is gone."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _play(self) -> None:
        try:
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(app=self._app), base_url=BASE_URL, timeout=None
            ) as client:
                await self._rounds(client)
        except Exception:
            logger.exception("the demo's scenario failed")
            self._say(FAILED, running=False)
        else:
            self._say(OVER, running=False)

    async def _rounds(self, client: httpx.AsyncClient) -> None:
        play = self._plays
        for number, preset in enumerate(self._presets):
            if number:
                await asyncio.sleep(self._pace.round_s)
            for index, step in enumerate(steps_of(preset, play)):
                model = await self._wait_for_model()
                self._step = index + 1
                self._say(step.caption, running=True)
                body = request_body(model, step, f"scenario-{play}" if play > 1 else None)
                await client.post(CHAT_PATH, json=body, headers=HEADERS)
                await asyncio.sleep(self._pace.step_s)

    async def _wait_for_model(self) -> str:
        # The server tells nobody when it is up; the probe's finding is looked at now and then.
        while (model := self._model()) is None:  # noqa: ASYNC110
            await asyncio.sleep(self._pace.poll_s)
        return model

    def _say(self, caption: Caption, *, running: bool) -> None:
        said = {"zh": caption.zh}
        self._emit(ScenarioStepped(self._step, self._steps, caption.en, running, self._clock.monotonic(), said))


def request_body(model: str, step: Step, cache_salt: str | None) -> dict[str, Any]:
    """A streamed chat that asks for everything the dashboard can show, as the page's own requests do."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "system", "content": step.system}, {"role": "user", "content": step.question}],
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
        "vllm_xargs": {"kv_cache_report_mode": "full"},
    }
    return body if cache_salt is None else {**body, "cache_salt": cache_salt}
