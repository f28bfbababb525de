"""2: prompts of growing length, each cold and again: what a token costs with the cache and without it."""

from collections.abc import Sequence

from ..definition import FRESH, Experiment, Parameter, Plan, Prompt, Request, one
from ..findings import Chart, Figure, Findings, Series, Table
from ..sample import Sample
from ..setting import Setting
from ..shared import cloud, estimated, exactness, medians, times
from ..statistics import Line, compared, line, median, slope_reduction

PUBLISHED = ((353, 111.4, 36.7), (681, 168.7, 43.0), (1337, 279.4, 45.1), (2649, 574.0, 56.1), (3961, 852.7, 62.8))
"""(prompt tokens, mean TTFT in ms off, on): Qwen2.5-7B-Instruct, BF16, RTX 3090, blocks of 16. What its author calls
256 to 3,072 tokens are these with the template."""
FEWEST = 4


def lengths_for(setting: Setting) -> tuple[int, ...]:
    """The asked lengths that fit; where hardly any does, five spread over what fits."""
    fitting = tuple(length for length in setting.numbers("lengths") if length <= setting.longest_prompt)
    if len(fitting) >= FEWEST:
        return fitting
    # A few tokens beyond a block's end: the computed rest is as long at every length, so a slope means the prefix.
    size, most = setting.block_size, setting.longest_prompt // setting.block_size - 1
    blocks = sorted({max(2, round(most * share)) for share in (0.1, 0.2, 0.4, 0.7, 1.0)})
    return tuple(count * size + size // 2 + 1 for count in blocks)


def _plan(setting: Setting) -> Plan:
    lengths = lengths_for(setting)
    shortest = Prompt(setting.token_ids(lengths[0], "warm-up"))
    for _ in range(2):
        yield one(Request(arm="warm-up", prompt=shortest, space=FRESH, side="off", role="warm-up"))
    draw = setting.draw("order")
    for length in draw.sample(lengths, len(lengths)):
        prompt, space = Prompt(setting.token_ids(length, f"length-{length}")), f"length-{length}"
        yield one(Request(arm="cold", prompt=prompt, space=space, x=length, role="cold"))
        for repeat in range(setting.repeats):
            for arm in draw.sample(("on", "off"), 2):
                off = arm == "off"
                yield one(
                    Request(arm=arm, prompt=prompt, space=space, x=length, repeat=repeat,
                            side="off" if off else "on", role="cold" if off else "measure")
                )  # fmt: skip


def _conclude(setting: Setting, samples: Sequence[Sample]) -> Findings:
    lengths = sorted({int(s.x) for s in samples if s.counts and s.x is not None})
    on_line, off_line = _line(samples, "on"), _line(samples, "off")
    complete = [x for x in lengths if times(samples, "on", x) and times(samples, "off", x)]
    reduction = slope_reduction(
        complete, [times(samples, "on", x) for x in complete], [times(samples, "off", x) for x in complete],
        setting.seed,
    )  # fmt: skip
    figures = [*_fit_figures("off", off_line), *_fit_figures("on", on_line)]
    for arm in ("off", "on"):
        figures += [figure for figure in _fit_figures(f"{arm}, server's clock", _line(samples, arm, servers=True))
                    if figure.key.endswith(("slope", "intercept"))]  # fmt: skip
    figures.append(estimated("slope_reduction", "reduction of the slope", reduction, "ratio"))
    evicted = [s for s in samples if s.arm == "on" and s.counts and (s.cached_tokens or 0) < (s.expected_cached or 0)]
    return Findings(
        figures=(*figures, *exactness(samples)),
        tables=(_table(setting, samples, lengths), *_residuals(samples, {"off": off_line, "on": on_line})),
        charts=(_chart(samples, lengths, off_line, on_line),),
        follows=_follows(off_line, on_line),
        follows_not=_follows_not(off_line, on_line, evicted),
    )


def _line(samples: Sequence[Sample], arm: str, *, servers: bool = False) -> Line | None:
    """Through single measurements, over thousands of tokens; by the server's own clock where it tells one."""
    points = [
        (s.x / 1000, time)
        for s in samples
        if s.arm == arm and s.counts and s.x is not None
        if (time := s.server_ttft_ms if servers else s.ttft_ms) is not None
    ]
    return line([x for x, _ in points], [y for _, y in points])


def _fit_figures(arm: str, fit: Line | None) -> list[Figure]:
    if fit is None:
        return []
    how = "least squares, Student's t"
    basis = "server clock" if "server" in arm else "clock"
    text, arm = arm, arm.replace(", server's clock", "_server")
    return [
        Figure(f"{arm}_slope", f"{text}: slope", fit.slope, "ms per 1,000 tokens", basis, fit.slope_low,
               fit.slope_high, 0.95, how),
        Figure(f"{arm}_intercept", f"{text}: intercept", fit.intercept, "ms", basis, fit.intercept_low,
               fit.intercept_high, 0.95, how),
        Figure(f"{arm}_r_squared", f"{arm}: R²", fit.r_squared, "", "calculated"),
        Figure(f"{arm}_largest_residual", f"{arm}: largest residual, as a share of the point",
               fit.largest_residual_ratio, "ratio", "calculated"),
        Figure(f"{arm}_bend_p", f"{arm}: chance of such a bend if the truth were a straight line", fit.bend_p, "",
               "calculated"),
    ]  # fmt: skip


def _table(setting: Setting, samples: Sequence[Sample], lengths: Sequence[int]) -> Table:
    published = {length: (off, on) for length, off, on in PUBLISHED}
    rows: list[tuple[float | None, ...]] = []
    for x in lengths:
        off, on = median(times(samples, "off", x)), median(times(samples, "on", x))
        saved = compared(times(samples, "off", x), times(samples, "on", x), lambda a, b: 1 - b / a, setting.seed)
        there = published.get(x)
        rows.append((
            x, off.value if off else None, on.value if on else None,
            off.value - on.value if off and on else None, 100 * saved.value if saved else None,
            100 * saved.low if saved and saved.low is not None else None,
            100 * saved.high if saved and saved.high is not None else None,
            there[0] if there else None, there[1] if there else None,
            100 * (1 - there[1] / there[0]) if there else None,
        ))  # fmt: skip
    columns = (
        "prompt tokens", "off ms", "on ms", "saved ms", "reduction %", "from %", "to %",
        "published off ms", "published on ms", "published reduction %",
    )  # fmt: skip
    note = "Medians. Published: means on an RTX 3090 with Qwen2.5-7B-Instruct in BF16, blocks of 16."
    return Table("Time to first token by prompt length", columns, tuple(rows), note)


def _residuals(samples: Sequence[Sample], fits: dict[str, Line | None]) -> tuple[Table, ...]:
    rows = []
    for arm, fit in fits.items():
        for x in sorted({s.x for s in samples if s.arm == arm and s.counts and s.x is not None}):
            middle = median(times(samples, arm, x))
            if fit is not None and middle is not None:
                fitted = fit.intercept + fit.slope * x / 1000
                rows.append((arm, x, middle.value, fitted, middle.value - fitted))
    return (Table("Residuals", ("side", "prompt tokens", "median ms", "line ms", "residual ms"), tuple(rows)),)


def _chart(samples: Sequence[Sample], lengths: Sequence[int], off: Line | None, on: Line | None) -> Chart:
    drawn = [cloud("off, each", samples, "off"), cloud("on, each", samples, "on")]
    drawn += [medians(f"{arm}, median", samples, arm, lengths) for arm in ("off", "on")]
    for name, fit in (("off", off), ("on", on)):
        if fit is not None:
            heights = [fit.intercept + fit.slope * x / 1000 for x in lengths]
            drawn.append(Series(f"{name}, line", lengths, heights, "line"))
    drawn += [
        Series(
            f"{name}, published", [row[0] for row in PUBLISHED], [row[place] for row in PUBLISHED], "both", dash=True
        )
        for place, name in ((1, "off"), (2, "on"))
    ]
    return Chart("Time to first token by prompt length", "prompt tokens", "ms", tuple(drawn))


def _follows(off: Line | None, on: Line | None) -> tuple[str, ...]:
    if off is None or on is None:
        return ()
    apart = on.slope_high < off.slope_low
    return (
        f"Without the cache each 1,000 prompt tokens add {off.slope:.1f} ms ({off.slope_low:.1f} to "
        f"{off.slope_high:.1f}), with it {on.slope:.2f} ms ({on.slope_low:.2f} to {on.slope_high:.2f}): the intervals "
        + ("lie apart, so prompts do get cheaper by the token." if apart else "overlap: no gain is shown."),
    )


def _follows_not(off: Line | None, on: Line | None, evicted: Sequence[Sample]) -> tuple[str, ...]:
    said = [
        "Anything beyond the lengths that were measured.",
        "That the intercepts are the server's fixed cost: a line through a curve that bends has an intercept that "
        "belongs to the bend.",
    ]
    for name, fit in (("off", off), ("on", on)):
        if fit is not None and fit.bend_p is not None and fit.bend_p < 0.05:
            said.append(
                f"That the side {name} is a straight line: its points bend by more than their scatter explains "
                f"(p = {fit.bend_p:.2g}; largest residual {100 * fit.largest_residual_ratio:.1f} %)."
            )
    if evicted:
        shortest = min(int(s.x or 0) for s in evicted)
        said.append(
            f"What the cache gives from {shortest} tokens on: {len(evicted)} requests found less than they should, "
            "since the pool is too small for both sides and had evicted it."
        )
    return tuple(said)


EXPERIMENT = Experiment(
    number=2,
    name="prefix-length",
    title="Prefix length",
    question="How does the time to first token grow with the prompt, with the cache and without?",
    plan=_plan,
    conclude=_conclude,
    parameters=(
        Parameter("lengths", tuple(row[0] for row in PUBLISHED), "prompt lengths in tokens; those that fit are used"),
    ),
)
