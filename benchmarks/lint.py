"""How long the prompt doctor takes for 10,000 requests, and how much memory.

    .venv/bin/python -m benchmarks.lint [REQUESTS]

Requests are made from a seed: 40 system prompts, of which every third begins with a clock time, and conversations that
grow. "Tokenising" is the embedded engine's own tokenizer; the goal is for all else.
"""

import random
import resource
import sys
import time
from argparse import Namespace
from typing import Any

from app.lint_run import lint_file

WANTED_S = 20.0
SENTENCES = (
    "Answer in one short sentence and never guess.", "Where two sources disagree, name both of them.",
    "Give numbers with their units, and round them.", "Say plainly where something is not known.",
)  # fmt: skip


def requests_of(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Chat requests, in order."""
    draw = random.Random(seed)
    rules = ["\n".join(f"Rule {n}.{k}: {draw.choice(SENTENCES)}" for k in range(40)) for n in range(40)]
    talks: list[tuple[int, list[dict[str, str]]]] = []
    made = []
    for number in range(count):
        if talks and draw.random() < 0.5:
            which, turns = talks[draw.randrange(max(len(talks) - 50, 0), len(talks))]
            turns.append(
                {"role": "assistant", "content": f"Answer {number}. " + " ".join(draw.choices(SENTENCES, k=3))}
            )
        else:
            which, turns = draw.randrange(len(rules)), []
            talks.append((which, turns))
        turns.append({"role": "user", "content": f"Question {number} on item {draw.randrange(10**6)}?"})
        clock = f"Now: {number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}\n" if which % 3 == 0 else ""
        made.append({"messages": [{"role": "system", "content": clock + rules[which]}, *turns]})
    return made


def main() -> None:
    """Prints one line."""
    requests = requests_of(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    started_s, started_cpu_s = time.monotonic(), time.process_time()
    options = Namespace(vllm=None, block_size=None, blocks=None)
    result = lint_file(requests, options, {}, lambda stage, done, total: None)
    took_s, cpu_s = time.monotonic() - started_s, time.process_time() - started_cpu_s
    most_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report = result.report
    print(
        f"{report.requests} requests, {report.prompt_tokens} prompt tokens: {took_s:.1f} s ({cpu_s:.1f} s of CPU), of "
        f"which {result.tokenise_s:.1f} s tokenising; without it {took_s - result.tokenise_s:.1f} s (goal: under "
        f"{WANTED_S:.0f}); {most_mib:.0f} MiB; {len(report.breakers)} breakers"
    )


if __name__ == "__main__":
    main()
