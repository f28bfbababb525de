"""Answers of /v1/chat/completions and /v1/completions. Pure."""

from collections.abc import Iterator, Sequence

from .jobs import Answer, Job, Step
from .logprobs import chat_logprobs, completion_logprobs, prompt_logprobs
from .responses import (
    DONE,
    Delta,
    Json,
    Timing,
    Usage,
    chat_body,
    chat_frame,
    completion_body,
    completion_frame,
    role_frame,
    running_usage,
    sse,
    usage_frame,
)
from .tokenizer import Tokenizer


class ChatAnswer:
    """One role frame an answer, content or a forced call's arguments, the finish, usage where it was asked for."""

    opens_at_once = False

    def __init__(self, job: Job, tokenizer: Tokenizer) -> None:
        self._job = job
        self._tokenizer = tokenizer
        self._asked = job.sampling.return_token_ids
        self._prompt_text = tokenizer.decode(job.prompts[0]) if job.sampling.return_prompt_text else None

    def opening(self) -> Iterator[bytes]:
        """The role, for each answer."""
        job, prompt = self._job, self._job.prompts[0]
        counts = running_usage(len(prompt), 0) if job.sampling.continuous_usage else None
        for index in range(job.sampling.n):
            yield sse(role_frame(job.envelope, index, prompt if self._asked else None, self._prompt_text, counts))

    def step(self, answer: Answer, step: Step) -> Iterator[bytes]:
        """A frame of content."""
        job = self._job
        delta = Delta(
            step.index,
            step.text,
            [step.token_id] if self._asked else None,
            self._finish(step.finish_reason),
            step.stop_reason,
            logprobs=self._logprobs([step.token_id]),
        )
        counts = _running(job, answer) if job.sampling.continuous_usage else None
        told = step.finish_reason is not None and not job.sampling.include_usage
        yield sse(chat_frame(job.envelope, delta, self._call(answer, step), usage=counts, fingerprint=told))

    def closing(self, answers: Sequence[Answer], usage: Usage, timing: Timing | None) -> Iterator[bytes]:
        """Usage, and the end."""
        if self._job.sampling.include_usage:
            yield sse(usage_frame(self._job.envelope, usage, timing, chat=True))
        yield DONE

    def whole(self, answers: Sequence[Answer], usage: Usage, timing: Timing | None) -> Json:
        """A chat completion."""
        job, asked = self._job, self._asked
        deltas = [
            Delta(
                index,
                answer.text,
                answer.token_ids if asked else None,
                self._finish(answer.finish_reason),
                answer.stop_reason,
                logprobs=self._logprobs(answer.token_ids),
            )
            for index, answer in enumerate(answers)
        ]
        prompt = job.prompts[0]
        body = chat_body(job.envelope, deltas, usage, timing, prompt if asked else None, self._prompt_text)
        if job.sampling.prompt_logprobs is not None:
            body["prompt_logprobs"] = prompt_logprobs(self._tokenizer, prompt, job.sampling.prompt_logprobs)
        if (call := job.call) is not None:
            for choice in body["choices"]:
                told = {"name": call.name, "arguments": choice["message"]["content"]}
                choice["message"]["content"] = ""
                choice["message"]["tool_calls"] = [{"id": call.id, "type": "function", "function": told}]
        return body

    def _call(self, answer: Answer, step: Step) -> Json | None:
        """A forced call's fragment instead of content: its name first, then its arguments as they come."""
        call = self._job.call
        if call is None:
            return None
        if len(answer.token_ids) == 1:
            function = {"name": call.name, "arguments": step.text}
            return {"tool_calls": [{"id": call.id, "type": "function", "index": 0, "function": function}]}
        if not step.text:
            return {"content": ""}
        return {"tool_calls": [{"index": 0, "function": {"arguments": step.text}}]}

    def _finish(self, reason: str | None) -> str | None:
        call = self._job.call
        return "tool_calls" if reason == "stop" and call is not None and not call.named else reason

    def _logprobs(self, token_ids: Sequence[int]) -> Json | None:
        top = self._job.sampling.logprobs
        return None if top is None else chat_logprobs(self._tokenizer, token_ids, top)


class CompletionAnswer:
    """Text frames, the prompt before the first where `echo` asks for it, usage where it was asked for."""

    opens_at_once = False

    def __init__(self, job: Job, tokenizer: Tokenizer) -> None:
        self._job = job
        self._tokenizer = tokenizer
        self._asked = job.sampling.return_token_ids
        self._offsets: dict[int, int] = {}

    def opening(self) -> Iterator[bytes]:
        """Nothing."""
        return iter(())

    def step(self, answer: Answer, step: Step) -> Iterator[bytes]:
        """A frame of text."""
        job = self._job
        first = len(answer.token_ids) == 1
        prompt = job.prompts[answer.prompt_index]
        echoed = prompt if first and job.sampling.echo else ()
        text = self._tokenizer.decode(echoed) + step.text
        token_ids = [*echoed, step.token_id]
        delta = Delta(
            step.index,
            text,
            token_ids if self._asked else None,
            step.finish_reason,
            step.stop_reason,
            prompt if first and self._asked else None,
            self._logprobs(step.index, token_ids),
        )
        counts = _running(job, answer) if job.sampling.continuous_usage else None
        told = step.finish_reason is not None and not job.sampling.include_usage
        yield sse(completion_frame(job.envelope, delta, usage=counts, fingerprint=told))

    def closing(self, answers: Sequence[Answer], usage: Usage, timing: Timing | None) -> Iterator[bytes]:
        """Usage, and the end."""
        if self._job.sampling.include_usage:
            yield sse(usage_frame(self._job.envelope, usage, timing, chat=False))
        yield DONE

    def whole(self, answers: Sequence[Answer], usage: Usage, timing: Timing | None) -> Json:
        """A completion."""
        job = self._job
        deltas = [self._whole_answer(index, answer) for index, answer in enumerate(answers)]
        body = completion_body(job.envelope, deltas, usage, timing)
        if (top := job.sampling.prompt_logprobs) is not None:
            for choice, answer in zip(body["choices"], answers, strict=True):
                choice["prompt_logprobs"] = prompt_logprobs(self._tokenizer, job.prompts[answer.prompt_index], top)
        return body

    def _whole_answer(self, index: int, answer: Answer) -> Delta:
        prompt = self._job.prompts[answer.prompt_index]
        echoed = prompt if self._job.sampling.echo else ()
        token_ids = [*echoed, *answer.token_ids]
        return Delta(
            index,
            self._tokenizer.decode(echoed) + answer.text,
            token_ids if self._asked else None,
            answer.finish_reason,
            answer.stop_reason,
            prompt if self._asked else None,
            self._logprobs(index, token_ids),
        )

    def _logprobs(self, index: int, token_ids: Sequence[int]) -> Json | None:
        top = self._job.sampling.logprobs
        if top is None:
            return None
        found = completion_logprobs(self._tokenizer, token_ids, top, self._offsets.get(index, 0))
        self._offsets[index] = found["text_offset"][-1] + len(found["tokens"][-1])
        return found


def _running(job: Job, answer: Answer) -> Json:
    return running_usage(len(job.prompts[answer.prompt_index]), len(answer.token_ids))
