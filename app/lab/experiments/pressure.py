"""7: distinct prompts until a shared prefix is pushed out: when it goes, in which order, what bringing it back costs.

Looking at a prefix makes it the most recently used, so each number of prompts is a round of its own: two prefixes A
and B, A touched again, then the distinct prompts, then a look at A and at B.
"""

from collections.abc import Sequence

from ..definition import FRESH, Experiment, Parameter, Plan, Prompt, Request, one
from ..errors import LabError
from ..findings import Chart, Figure, Findings, Series, Table
from ..sample import Sample
from ..setting import Setting
from ..shared import estimated, time_at
from ..statistics import compared

FEWEST_BLOCKS = 24


def _sizes(setting: Setting) -> tuple[int, int, int]:
    """(usable blocks of the pool, blocks of a prefix, blocks of a distinct prompt)."""
    if not setting.server.num_gpu_blocks:
        raise LabError("The server doesn't say how many blocks its pool has (vllm:cache_config_info).")
    usable = setting.server.num_gpu_blocks - 1
    context = ((setting.server.max_model_len or 4096) - 2) // setting.block_size - 1
    prefix = min(setting.whole("prefix_blocks"), usable // 6, context)
    filler = max(1, min(usable // 8, context))
    if usable < FEWEST_BLOCKS or prefix < 2:
        raise LabError(f"The pool of {usable + 1} blocks, or the context, is too small for this experiment.")
    return usable, prefix, filler


def predicted(setting: Setting, count: int) -> tuple[int, int]:
    """Cached tokens of (A, B) behind `count` distinct prompts, where the least recently used goes first.

    Each prompt has full blocks and one that isn't full. That one has no hash: it is freed to the front of the queue,
    and the next prompt takes it first.
    """
    usable, prefix, filler = _sizes(setting)
    over = max(0, 2 * prefix + count * filler + 1 - usable)
    lost_b = min(prefix, over)
    lost_a = min(prefix, over - lost_b)
    return (prefix - lost_a) * setting.block_size, (prefix - lost_b) * setting.block_size


def counts(setting: Setting) -> tuple[int, ...]:
    """Numbers of distinct prompts: around where B goes, where A goes, and before."""
    usable, prefix, filler = _sizes(setting)
    b_goes = (usable - 2 * prefix) // filler
    gone = -(-usable // filler)
    steps = {0, b_goes // 2, b_goes, b_goes + 1, gone - 1, gone}
    return tuple(sorted(step for step in steps if step >= 0))


def _plan(setting: Setting) -> Plan:
    usable, prefix, filler = _sizes(setting)
    size = setting.block_size
    warm_up = Prompt(setting.token_ids(prefix * size + 1, "warm-up"))
    yield one(Request(arm="warm-up", prompt=warm_up, space=FRESH, side="off", role="warm-up"))
    order = setting.draw("order")
    for repeat in range(setting.repeats):
        for count in order.sample(counts(setting), len(counts(setting))):
            space = f"pressure-{repeat}-{count}"
            both = {name: Prompt(setting.token_ids(prefix * size + 1, f"{space}-{name}")) for name in "AB"}
            # Whatever earlier rounds left is pushed out first, so that the pool holds nothing younger than A and B.
            yield from _distinct(setting, usable // filler + 1, f"{space}-before", repeat)
            for name in "ABA":
                yield one(Request(arm=f"{name} brought", prompt=both[name], space=space, x=count, repeat=repeat,
                                  role="warm-up"))  # fmt: skip
            yield from _distinct(setting, count, f"{space}-filler", repeat)
            # A first: bringing B back would push out A, never the other way round.
            for name in "AB":
                yield one(Request(arm=name, prompt=both[name], space=space, x=count, repeat=repeat,
                                  label=f"{count} prompts"))  # fmt: skip


def _distinct(setting: Setting, count: int, name: str, repeat: int) -> Plan:
    _, _, filler = _sizes(setting)
    for number in range(count):
        prompt = Prompt(setting.token_ids(filler * setting.block_size + 1, f"{name}-{number}"))
        yield one(Request(arm="distinct", prompt=prompt, space=FRESH, repeat=repeat, role="warm-up"))


def _conclude(setting: Setting, samples: Sequence[Sample]) -> Findings:
    looks = [s for s in samples if s.arm in ("A", "B") and s.counts and s.x is not None]
    rows: list[tuple[int | str | float | None, ...]] = []
    exact = 0
    for s in looks:
        should = predicted(setting, int(s.x or 0))["AB".index(s.arm)]
        exact += s.cached_tokens == should
        rows.append((int(s.x or 0), s.arm, should, s.cached_tokens, s.ttft_ms))
    rows.sort(key=lambda row: (row[0], row[1]))
    whole = _sizes(setting)[1] * setting.block_size
    kept = [s for s in looks if s.cached_tokens == whole]
    lost = [s for s in looks if s.cached_tokens == 0]
    order = _orderly(looks)
    back = compared(
        [s.ttft_ms for s in lost if s.ttft_ms is not None], [s.ttft_ms for s in kept if s.ttft_ms is not None],
        lambda gone, there: gone - there, setting.seed,
    )  # fmt: skip
    places = list(counts(setting))
    lines = [
        series
        for name in "AB"
        for series in (
            Series(f"{name}, measured", places, [_cached(looks, name, x) for x in places], "points"),
            Series(f"{name}, predicted", places, [predicted(setting, x)["AB".index(name)] for x in places], "line",
                   dash=True),
        )
    ]  # fmt: skip
    return Findings(
        figures=(
            Figure("exact", "looks that found exactly what the order of eviction predicts",
                   exact if looks else None, "looks", "usage", expected=len(looks) or None),
            Figure("order_kept", "rounds in which B, used less recently, lost no less than A",
                   order[0] if order[1] else None, "rounds", "usage", expected=order[1] or None),
            Figure("evicted_after", "distinct prompts after which B was gone", _first_gone(looks, "B"), "prompts",
                   "usage"),
            Figure("evicted_after_a", "distinct prompts after which A was gone", _first_gone(looks, "A"), "prompts",
                   "usage"),
            estimated("bring_back_ms", "first token later when the prefix had to be brought back", back, "ms"),
        ),
        tables=(Table("Looks at the two prefixes",
                      ("distinct prompts", "prefix", "predicted tokens", "measured tokens", "TTFT ms"), tuple(rows),
                      f"A prefix is {whole} tokens, a distinct prompt {_sizes(setting)[2]} blocks, the pool "
                      f"{_sizes(setting)[0]} usable blocks. A was used more recently than B."),),
        charts=(Chart("What is left of the prefixes", "distinct prompts", "cached tokens", tuple(lines)),
                Chart("Time to first token", "distinct prompts", "ms",
                      tuple(Series(n, places, [time_at(looks, n, x) for x in places]) for n in "AB"))),
        follows=("A prefix stays until the pool has been filled with other prompts since its last use: the least "
                 "recently used goes first, and of a prompt its end before its beginning.",),
        follows_not=("That the same numbers hold with requests at once: blocks in use can't be evicted, so less is "
                     "left for what nobody uses.",),
    )  # fmt: skip


def _cached(looks: Sequence[Sample], arm: str, x: int) -> float | None:
    found = [s.cached_tokens for s in looks if s.arm == arm and s.x == x]
    return next((count for count in found if count is not None), None)


def _first_gone(looks: Sequence[Sample], arm: str) -> float | None:
    return min((s.x for s in looks if s.arm == arm and s.cached_tokens == 0 and s.x is not None), default=None)


def _orderly(looks: Sequence[Sample]) -> tuple[int, int]:
    found = {(s.repeat, s.x, s.arm): s.cached_tokens or 0 for s in looks}
    pairs = [(tokens, found[(repeat, x, "B")]) for (repeat, x, arm), tokens in found.items()
             if arm == "A" and (repeat, x, "B") in found]  # fmt: skip
    return sum(b <= a for a, b in pairs), len(pairs)


EXPERIMENT = Experiment(
    number=7,
    name="pressure",
    title="Pressure",
    question="How many other prompts does it take until a shared prefix is evicted, and what does that cost?",
    plan=_plan,
    conclude=_conclude,
    parameters=(Parameter("prefix_blocks", 64, "blocks of each prefix, at most a sixth of the pool"),),
)
