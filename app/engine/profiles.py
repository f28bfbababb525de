"""Timing profiles: how long a step of the embedded engine takes on the machine that it imitates. Pure.

A profile models the machine and the work around it (tokenizing, scheduling) for requests one at a time, from published
figures; what happens under load is an extrapolation. Nothing here is measured on this machine.
"""

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class StepWork:
    """What a step has to do.

    `prompt_tokens` are computed anew, `admitted_prompt_tokens` is the whole prompt length (reused tokens too) of the
    requests that are admitted for the first time, `sampled` counts the requests that get a token at the step's end.
    """

    prompt_tokens: int
    admitted_requests: int
    admitted_prompt_tokens: int
    sampled: int


@dataclass(frozen=True, slots=True)
class TimingProfile:
    """A machine with a model. The first three after the name are defaults of the server's flags."""

    name: str
    num_gpu_blocks: int
    block_size: int
    max_num_batched_tokens: int = 2048
    step_ms: float = 0.0
    """One pass over the weights: a decode step of one sequence."""
    sequence_ms: float = 0.0
    """Each further sequence of a step that samples."""
    admission_ms: float = 0.0
    """Once in a step that admits requests."""
    prompt_token_ms: float = 0.0
    """Each prompt token that is computed."""
    context_token_ms: float = 0.0
    """Each token of an admitted prompt, reused or not."""
    kv_token_bytes: int | None = None
    """Memory of one token in the cache, over all layers; None where the profile stands for no model."""
    assumed: tuple[str, ...] = ()
    """Figures that were not published for this machine and model, but taken from a relative."""

    def duration_ms(self, work: StepWork) -> float:
        """How long the step takes.

        A step that samples pays for a pass over the weights and for its prompt tokens. A step that only computes a part
        of a prompt takes the longer of the two, since the pass hides behind the computing: so a prompt takes the same
        time in one chunk or in several, as long as a chunk outlasts a pass.
        """
        compute_ms = work.prompt_tokens * self.prompt_token_ms
        admission_ms = self.admission_ms if work.admitted_requests else 0.0
        context_ms = work.admitted_prompt_tokens * self.context_token_ms
        if work.sampled:
            pass_ms = self.step_ms + (work.sampled - 1) * self.sequence_ms + compute_ms
        else:
            pass_ms = max(self.step_ms, compute_ms)
        return admission_ms + context_ms + pass_ms


INSTANT: Final = TimingProfile("instant", num_gpu_blocks=1024, block_size=16)
"""Takes no time: for tests."""

RTX3090_QWEN25_7B_BF16: Final = TimingProfile(
    "rtx3090-qwen2.5-7b-bf16",
    num_gpu_blocks=5306,
    block_size=16,
    step_ms=19.7,
    sequence_ms=0.03,
    admission_ms=13.3,
    prompt_token_ms=0.2005,
    context_token_ms=0.00665,
    kv_token_bytes=28 * 2 * 4 * 128 * 2,  # layers, keys and values, heads of them, their size, 16 bits
)
"""Qwen2.5-7B-Instruct, BF16, on an RTX 3090 with 24 GB: TPOT 19.7 ms, and a first token after
33 ms + 0.2005 ms a computed token + 0.00665 ms a prompt token, which comes close to the published sweep."""

RTX3090_QWEN25_7B_AWQ_INT4: Final = replace(
    RTX3090_QWEN25_7B_BF16,
    name="rtx3090-qwen2.5-7b-awq-int4",
    num_gpu_blocks=15839,
    step_ms=6.84,
    assumed=("prefill",),
)
"""The same model with AWQ INT4 weights on the same card. Pool and TPOT of 6.84 ms are published. What a prompt costs is
an assumption: as much as with BF16 weights, since the matrix products of a prompt are bound by computing, not by
reading weights, and run in 16 bits either way."""

PROFILES: Final = {profile.name: profile for profile in (INSTANT, RTX3090_QWEN25_7B_BF16, RTX3090_QWEN25_7B_AWQ_INT4)}
DEFAULT_PROFILE: Final = RTX3090_QWEN25_7B_BF16.name
