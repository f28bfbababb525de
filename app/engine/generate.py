"""From a request body to an answer: prompts to tokens, tokens to the ranks, outputs to what a renderer writes down.

Everything that can be refused is refused before the first byte of an answer; what is wrong raises ApiError.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any

from .block_hash import BlockDigest
from .bodies import parse_conversation, parse_prompts
from .cache_events import Lora
from .choice_text import ChoiceText
from .core import CoreRequest
from .fields import ApiError, Body
from .imitation import Imitation
from .jobs import Answer, Job, Renderer, Step
from .limits import check_length, max_tokens_of
from .models import Models
from .outputs import Output, OutputStream, RequestRecord, Submission
from .prompts import PromptEncoder
from .ranks import EngineRanks
from .reply import Reply, end_token, said_reply, write_reply
from .responses import Envelope, Json, Timing, Usage
from .sampling import Sampling, parse_sampling
from .tokenizer import Tokenizer
from .tools import forced_call

HASHED_AT_ONCE = 32
"""Blocks of a prompt that are hashed in one go: well under a millisecond of them."""


class Generator:
    """The generating endpoints, without HTTP."""

    def __init__(
        self,
        ranks: EngineRanks,
        tokenizer: Tokenizer,
        models: Models,
        fingerprint: str,
        *,
        imitation: Imitation,
        images: bool = False,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._ranks = ranks
        self.tokenizer = tokenizer
        self._models = models
        self._fingerprint = fingerprint
        self._as = imitation
        self._wall = wall
        self._numbers = itertools.count()
        self.max_model_len = ranks.loops[0].core.max_model_len
        self.prompts = PromptEncoder(tokenizer, self.max_model_len, images=images)

    async def chat(self, body: Body, headers: Mapping[str, str], arrived_s: float, id_prefix: str = "chatcmpl-") -> Job:
        """A body of /v1/chat/completions; `arrived_s` is when it was here, on the ranks' clock."""
        sampling = self._sampling(body, headers, chat=True)
        conversation = parse_conversation(body)
        call = forced_call(body)
        lora = self._models.chosen_by(body)
        token_ids, images = await self.prompts.of_chat(conversation)
        return self._job(id_prefix, sampling, headers, lora, [token_ids], arrived_s, images=images, call=call)

    async def completion(self, body: Body, headers: Mapping[str, str], arrived_s: float) -> Job:
        """A body of /v1/completions."""
        sampling = self._sampling(body, headers, chat=False)
        prompts = parse_prompts(body)
        lora = self._models.chosen_by(body)
        encoded = [await self.prompts.of_prompt(prompt) for prompt in prompts]
        return self._job("cmpl-", sampling, headers, lora, encoded, arrived_s, chat=False)

    async def submit(self, job: Job) -> OutputStream:
        """Hands a job to the ranks. The hashing of long prompts lets the steps go on meanwhile."""
        submissions = []
        for token_ids in job.prompts:
            digests: Sequence[BlockDigest] = ()
            for choice in range(job.sampling.n):
                request = self._request(job, token_ids)
                prepared = self._ranks.loops[0].core.prepare(request, digests)
                for _ in prepared.hash_steps(HASHED_AT_ONCE):
                    await asyncio.sleep(0)
                digests = prepared.digests
                submissions.append(Submission(request, self._reply(job, token_ids, choice), job.sampling.n, prepared))
        try:
            return self._ranks.submit(submissions, job.arrived_s, job.rank)
        except ValueError as error:
            raise ApiError(str(error)) from None

    async def frames(self, job: Job, renderer: Renderer, stream: OutputStream) -> AsyncIterator[bytes]:
        """A streamed answer. Ends early, without its closing, where the request was aborted."""
        answers = self._answers(job)
        told_by: RequestRecord | None = None
        open_answers = len(answers)
        if renderer.opens_at_once:
            for frame in renderer.opening():
                yield frame
        while open_answers:
            output = await stream.get()
            if output is None:
                return
            if told_by is None:
                told_by = stream.records[output.choice]
                if not renderer.opens_at_once:
                    for frame in renderer.opening():
                        yield frame
            answer = answers[output.choice]
            if answer.finish_reason is not None:
                continue
            step = _take(job, stream, answer, output)
            open_answers -= step.finish_reason is not None
            for frame in renderer.step(answer, step):
                yield frame
        if told_by is not None:
            for frame in renderer.closing(answers, self._usage(job, answers, told_by), self._timing(stream)):
                yield frame

    async def whole(self, job: Job, renderer: Renderer, stream: OutputStream) -> Json | None:
        """The body of an answer in one piece; None where the request was aborted."""
        answers = self._answers(job)
        open_answers = len(answers)
        while open_answers:
            output = await stream.get()
            if output is None:
                return None
            answer = answers[output.choice]
            if answer.finish_reason is None:
                open_answers -= _take(job, stream, answer, output).finish_reason is not None
        return renderer.whole(answers, self._usage(job, answers, stream.records[-1]), self._timing(stream))

    def _sampling(self, body: Body, headers: Mapping[str, str], *, chat: bool) -> Sampling:
        sampling = parse_sampling(body, chat=chat, session_header=headers.get("x-session-id"))
        return replace(
            sampling,
            return_token_ids=sampling.return_token_ids and self._as.token_ids,
            cache_salt=sampling.cache_salt if self._as.cache_salts else None,
            full_report=sampling.full_report and self._as.reuse_report,
        )

    def _job(
        self,
        id_prefix: str,
        sampling: Sampling,
        headers: Mapping[str, str],
        lora: Lora | None,
        prompts: Sequence[Sequence[int]],
        arrived_s: float,
        **more: Any,
    ) -> Job:
        for token_ids in prompts:
            check_length(len(token_ids), self.max_model_len)
        given = headers.get("x-request-id") or sampling.request_id
        envelope = Envelope(
            f"{id_prefix}{given or token_hex(8)}",
            int(self._wall()),
            lora.name if lora else self._models.name,
            self._fingerprint,
        )
        return Job(
            envelope,
            sampling,
            [tuple(token_ids) for token_ids in prompts],
            arrived_s=arrived_s,
            room=self.max_model_len,
            lora=lora,
            rank=_rank(headers),
            **more,
        )

    def _request(self, job: Job, token_ids: tuple[int, ...]) -> CoreRequest:
        sampling = job.sampling
        ends = frozenset() if sampling.ignore_eos else frozenset({end_token(token_ids)})
        return CoreRequest(
            request_id=f"{job.envelope.id}-{next(self._numbers)}",
            prompt_token_ids=token_ids,
            max_tokens=max_tokens_of(sampling, len(token_ids), self.max_model_len),
            cache_salt=sampling.cache_salt,
            lora=job.lora,
            session_id=sampling.session_id,
            full_report=sampling.full_report,
            skip_reading_cache=sampling.prompt_logprobs is not None
            or (sampling.echo and sampling.logprobs is not None),
            stop_token_ids=sampling.stop_token_ids | ends,
            images=job.images,
        )

    def _reply(self, job: Job, token_ids: tuple[int, ...], choice: int) -> Reply:
        sampling = job.sampling
        if job.call is not None:
            return said_reply(self.tokenizer, job.call.arguments, token_ids)
        return write_reply(
            self.tokenizer,
            token_ids,
            seed=sampling.seed,
            choice=choice,
            ignore_eos=sampling.ignore_eos,
            min_tokens=sampling.min_tokens,
        )

    def _usage(self, job: Job, answers: Sequence[Answer], told_by: RequestRecord) -> Usage:
        cached: int | None = told_by.cached_tokens
        if not self._as.usage_details or (not cached and not self._as.zero_cached_tokens):
            cached = None
        return Usage(
            prompt_tokens=sum(map(len, job.prompts)),
            completion_tokens=sum(len(answer.token_ids) for answer in answers),
            cached_tokens=cached,
            created_cache_tokens=told_by.created_cache_tokens if job.chat and self._as.created_cache_tokens else None,
            images=sum(image.length for image in job.images),
            plain_details=not self._as.created_cache_tokens,
        )

    def _timing(self, stream: OutputStream) -> Timing | None:
        """Of a single answer; several can't be told as one."""
        if len(stream.records) != 1 or not self._as.request_metrics:
            return None
        return stream.records[0].timing()

    def _answers(self, job: Job) -> list[Answer]:
        sampling = job.sampling
        return [
            Answer(ChoiceText(self.tokenizer, sampling.stop, include_stop=sampling.include_stop), index)
            for index in range(len(job.prompts))
            for _ in range(sampling.n)
        ]


def _take(job: Job, stream: OutputStream, answer: Answer, output: Output) -> Step:
    """Takes in one token of an answer, and ends it where its text came to a stop string."""
    text = answer.text_of.feed(output.token_id, finished=output.finish_reason is not None)
    answer.token_ids.append(output.token_id)
    answer.parts.append(text)
    answer.finish_reason = output.finish_reason
    if answer.text_of.stopped_by is not None:
        answer.finish_reason, answer.stop_reason = "stop", answer.text_of.stopped_by
        stream.stop(output.choice)
    elif output.finish_reason == "stop" and output.token_id in job.sampling.stop_token_ids:
        answer.stop_reason = output.token_id
    return Step(output.choice, text, output.token_id, answer.finish_reason, answer.stop_reason)


def _rank(headers: Mapping[str, str]) -> int | None:
    try:
        return int(headers["x-data-parallel-rank"])
    except (KeyError, ValueError):
        return None
