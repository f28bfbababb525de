"""From a request body to an answer: prompts to tokens, tokens to the loop, outputs to frames.

Everything that can be refused is refused before the first byte of an answer; what is wrong raises ApiError.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Any

from .block_hash import BlockDigest
from .bodies import (
    ApiError,
    Body,
    Conversation,
    Prompt,
    Sampling,
    parse_conversation,
    parse_prompts,
    parse_sampling,
)
from .cache_events import Lora
from .chat_template import TemplateError, render_chat
from .choice_text import ChoiceText
from .core import CoreRequest
from .imitation import Imitation
from .limits import check_chars, check_length, max_tokens_of
from .models import Models
from .outputs import Output, OutputStream, RequestRecord, Submission
from .ranks import EngineRanks
from .reply import Reply, end_token, write_reply
from .responses import (
    DONE,
    Delta,
    Envelope,
    Json,
    Timing,
    Usage,
    chat_body,
    chat_frame,
    completion_body,
    completion_frame,
    encode,
    role_frame,
    running_usage,
    sse,
    usage_frame,
)
from .tokenizer import MODEL_VOCABULARY_SIZE, Tokenizer

THREAD_CHARS = 20_000
"""Texts longer than this are cut into tokens in a thread, so that the steps go on meanwhile."""

HASHED_AT_ONCE = 64
"""Blocks of a prompt that are hashed in one go: well under a millisecond of them."""


@dataclass(frozen=True, slots=True)
class Job:
    """A request that can be answered. Answer `index` belongs to prompt `index // n`."""

    envelope: Envelope
    sampling: Sampling
    prompts: list[tuple[int, ...]]
    prompt_text: str | None
    chat: bool
    arrived_s: float
    lora: Lora | None = None
    rank: int | None = None


@dataclass(slots=True)
class _Answer:
    """One answer so far."""

    text: ChoiceText
    token_ids: list[int] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    finish_reason: str | None = None
    stop_reason: int | str | None = None


class Generator:
    """The completion endpoints, without HTTP."""

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

    async def chat(self, body: Body, headers: Mapping[str, str], arrived_s: float) -> Job:
        """A body of /v1/chat/completions; `arrived_s` is when it was here, on the loop's clock."""
        sampling = self._sampling(body, headers, chat=True)
        conversation = parse_conversation(body)
        lora = self._models.chosen_by(body)
        token_ids = await self.encode_chat(conversation)
        check_length(len(token_ids), self.max_model_len)
        prompt_text = self.tokenizer.decode(token_ids) if sampling.return_prompt_text else None
        return Job(
            self._envelope("chatcmpl", sampling, headers, lora),
            sampling,
            [tuple(token_ids)],
            prompt_text,
            chat=True,
            arrived_s=arrived_s,
            lora=lora,
            rank=_rank(headers),
        )

    async def completion(self, body: Body, headers: Mapping[str, str], arrived_s: float) -> Job:
        """A body of /v1/completions."""
        sampling = self._sampling(body, headers, chat=False)
        prompts = parse_prompts(body)
        lora = self._models.chosen_by(body)
        encoded = [tuple(await self.encode_prompt(prompt)) for prompt in prompts]
        for token_ids in encoded:
            check_length(len(token_ids), self.max_model_len)
        return Job(
            self._envelope("cmpl", sampling, headers, lora),
            sampling,
            encoded,
            None,
            chat=False,
            arrived_s=arrived_s,
            lora=lora,
            rank=_rank(headers),
        )

    def _sampling(self, body: Body, headers: Mapping[str, str], *, chat: bool) -> Sampling:
        sampling = parse_sampling(body, chat=chat, session_header=headers.get("x-session-id"))
        return replace(
            sampling,
            return_token_ids=sampling.return_token_ids and self._as.token_ids,
            cache_salt=sampling.cache_salt if self._as.cache_salts else None,
            full_report=sampling.full_report and self._as.reuse_report,
        )

    async def encode_chat(self, conversation: Conversation) -> list[int]:
        """Tokens of a conversation under the template."""
        try:
            segments = render_chat(
                conversation.messages,
                conversation.tools,
                add_generation_prompt=conversation.add_generation_prompt,
                continue_final_message=conversation.continue_final_message,
            )
        except TemplateError as error:
            raise ApiError(str(error)) from None
        chars = sum(len(segment.text) for segment in segments)
        check_chars(chars, self.max_model_len)
        if chars > THREAD_CHARS:
            return await asyncio.to_thread(self.tokenizer.encode_segments, segments)
        return self.tokenizer.encode_segments(segments)

    async def encode_prompt(self, prompt: Prompt) -> list[int]:
        """Tokens of a prompt that stands for itself: special tokens are special in it, ids are checked."""
        if isinstance(prompt, str):
            check_chars(len(prompt), self.max_model_len)
            if len(prompt) > THREAD_CHARS:
                return await asyncio.to_thread(self.tokenizer.encode_text, prompt, specials=True)
            return self.tokenizer.encode_text(prompt, specials=True)
        if prompt and max(prompt) >= MODEL_VOCABULARY_SIZE:
            raise ApiError(f"Token id {max(prompt)} is out of vocabulary")
        return prompt

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

    def _request(self, job: Job, token_ids: tuple[int, ...]) -> CoreRequest:
        sampling = job.sampling
        return CoreRequest(
            request_id=f"{job.envelope.id}-{next(self._numbers)}",
            prompt_token_ids=token_ids,
            max_tokens=max_tokens_of(sampling, len(token_ids), self.max_model_len),
            cache_salt=sampling.cache_salt,
            lora=job.lora,
            session_id=sampling.session_id,
            full_report=sampling.full_report,
            skip_reading_cache=sampling.prompt_logprobs,
            stop_token_ids=sampling.stop_token_ids | (frozenset() if sampling.ignore_eos else {end_token(token_ids)}),
        )

    def _reply(self, job: Job, token_ids: tuple[int, ...], choice: int) -> Reply:
        sampling = job.sampling
        return write_reply(
            self.tokenizer,
            token_ids,
            seed=sampling.seed,
            choice=choice,
            ignore_eos=sampling.ignore_eos,
            min_tokens=sampling.min_tokens,
        )

    async def frames(self, job: Job, stream: OutputStream) -> AsyncIterator[bytes]:
        """A streamed answer. Ends early, without `[DONE]`, where the request was aborted."""
        answers = self._answers(job)
        first_record: RequestRecord | None = None
        open_answers = len(answers)
        while open_answers:
            output = await stream.get()
            if output is None:
                return
            if first_record is None:
                first_record = stream.records[output.choice]
                if job.chat:
                    for index in range(len(answers)):
                        yield sse(self._role(job, index))
            answer = answers[output.choice]
            if answer.finish_reason is not None:
                continue
            delta = self._take(job, stream, answer, output)
            open_answers -= delta.finish_reason is not None
            yield sse(self._frame(job, answer, delta))
        if job.sampling.include_usage and first_record is not None:
            usage = self._usage(job, answers, first_record)
            yield sse(usage_frame(job.envelope, usage, self._timing(job, stream), chat=job.chat))
        yield DONE

    async def whole(self, job: Job, stream: OutputStream) -> bytes | None:
        """An answer in one piece; None where the request was aborted."""
        answers = self._answers(job)
        open_answers = len(answers)
        while open_answers:
            output = await stream.get()
            if output is None:
                return None
            answer = answers[output.choice]
            if answer.finish_reason is None:
                open_answers -= self._take(job, stream, answer, output).finish_reason is not None
        asked = job.sampling.return_token_ids
        deltas = [
            Delta(
                index,
                "".join(answer.parts),
                answer.token_ids if asked else None,
                answer.finish_reason,
                answer.stop_reason,
                job.prompts[index // job.sampling.n] if asked else None,
            )
            for index, answer in enumerate(answers)
        ]
        usage, timing = self._usage(job, answers, stream.records[-1]), self._timing(job, stream)
        if job.chat:
            prompt_token_ids = job.prompts[0] if asked else None
            return encode(chat_body(job.envelope, deltas, usage, timing, prompt_token_ids, job.prompt_text))
        return encode(completion_body(job.envelope, deltas, usage, timing))

    def _take(self, job: Job, stream: OutputStream, answer: _Answer, output: Output) -> Delta:
        text = answer.text.feed(output.token_id, finished=output.finish_reason is not None)
        answer.token_ids.append(output.token_id)
        answer.parts.append(text)
        answer.finish_reason = output.finish_reason
        if answer.text.stopped_by is not None:
            answer.finish_reason, answer.stop_reason = "stop", answer.text.stopped_by
            stream.stop(output.choice)
        elif output.finish_reason == "stop" and output.token_id in job.sampling.stop_token_ids:
            answer.stop_reason = output.token_id
        token_ids = [output.token_id] if job.sampling.return_token_ids else None
        prompt_token_ids = None
        if token_ids is not None and not job.chat and len(answer.token_ids) == 1:
            prompt_token_ids = job.prompts[output.choice // job.sampling.n]
        return Delta(output.choice, text, token_ids, answer.finish_reason, answer.stop_reason, prompt_token_ids)

    def _role(self, job: Job, index: int) -> Json:
        prompt = job.prompts[0]
        counts = running_usage(len(prompt), 0) if job.sampling.continuous_usage else None
        return role_frame(
            job.envelope, index, prompt if job.sampling.return_token_ids else None, job.prompt_text, counts
        )

    def _frame(self, job: Job, answer: _Answer, delta: Delta) -> Json:
        counts = None
        if job.sampling.continuous_usage:
            counts = running_usage(len(job.prompts[delta.index // job.sampling.n]), len(answer.token_ids))
        fingerprint = delta.finish_reason is not None and not job.sampling.include_usage
        frame = chat_frame if job.chat else completion_frame
        return frame(job.envelope, delta, usage=counts, fingerprint=fingerprint)

    def _usage(self, job: Job, answers: list[_Answer], told_by: RequestRecord) -> Usage:
        cached: int | None = told_by.cached_tokens
        if not self._as.usage_details or (not cached and not self._as.zero_cached_tokens):
            cached = None
        return Usage(
            prompt_tokens=sum(map(len, job.prompts)),
            completion_tokens=sum(len(answer.token_ids) for answer in answers),
            cached_tokens=cached,
            created_cache_tokens=told_by.created_cache_tokens if job.chat and self._as.created_cache_tokens else None,
        )

    def _timing(self, job: Job, stream: OutputStream) -> Timing | None:
        """Of a single answer; several can't be told as one."""
        if len(stream.records) != 1 or not self._as.request_metrics:
            return None
        return stream.records[0].timing()

    def _answers(self, job: Job) -> list[_Answer]:
        count = len(job.prompts) * job.sampling.n
        return [_Answer(ChoiceText(self.tokenizer, job.sampling.stop)) for _ in range(count)]

    def _envelope(self, prefix: str, sampling: Sampling, headers: Mapping[str, str], lora: Lora | None) -> Envelope:
        given: Any = headers.get("x-request-id") or sampling.request_id
        answer_id = f"{prefix}-{given or token_hex(8)}"
        return Envelope(answer_id, int(self._wall()), lora.name if lora else self._models.name, self._fingerprint)


def _rank(headers: Mapping[str, str]) -> int | None:
    try:
        return int(headers["x-data-parallel-rank"])
    except (KeyError, ValueError):
        return None
