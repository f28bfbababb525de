"""12: how fast the block-hash algorithms of vLLM are on this machine, and which give the same in every process.

Needs no server.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from ...engine.block_hash import ALGORITHMS, BlockHasher
from ..definition import Experiment, Parameter, Plan
from ..findings import Chart, Figure, Findings, Series, Table
from ..sample import Sample
from ..setting import Setting
from ..shared import estimated
from ..statistics import median

HASH_BITS = {"sha256_cbor": 256, "sha256": 256, "xxhash_cbor": 128, "xxhash": 128}
BLOCKS_EVER = 1e12
"""A trillion different blocks: more than a large fleet makes in a year."""
BLOCK_TOKENS = 16
IN_ANOTHER_PROCESS = (
    "from {package} import BlockHasher;"
    "h = BlockHasher({algorithm!r});"
    "print(h.hash_block(h.hash_block(None, range({size})), range({size})).hex())"
)


def _no_requests(setting: Setting) -> Plan:
    yield from ()


def collision_chance(bits: int, blocks: float = BLOCKS_EVER) -> float:
    """The chance that two of so many random hashes are equal, by the birthday bound."""
    return min(1.0, blocks * blocks / 2 / 2.0**bits)


def elsewhere(algorithm: str) -> str:
    """The hash of a fixed second block, as a new process gives it."""
    package = BlockHasher.__module__
    code = IN_ANOTHER_PROCESS.format(package=package, algorithm=algorithm, size=BLOCK_TOKENS)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def _here(algorithm: str) -> str:
    hasher = BlockHasher(algorithm)
    return hasher.hash_block(hasher.hash_block(None, range(BLOCK_TOKENS)), range(BLOCK_TOKENS)).hex()


def _measure(setting: Setting) -> Iterator[Sample]:
    blocks, index = setting.whole("blocks"), 0
    pairs = [(algorithm, size) for algorithm in ALGORITHMS for size in setting.numbers("block_sizes")]
    draw = setting.draw("order")
    tokens = tuple(setting.draw("tokens").choices(range(1000, 150_000), k=max(setting.numbers("block_sizes"))))
    for algorithm in ALGORITHMS:
        alike = float(_here(algorithm) == elsewhere(algorithm))
        values = {"reproducible": alike}
        yield Sample(index=index, batch=0, arm=algorithm, role="measure", label="reproducible", values=values)
        index += 1
    for repeat in range(setting.repeats):
        for algorithm, size in draw.sample(pairs, len(pairs)):
            hasher, block, parent = BlockHasher(algorithm), tokens[:size], None
            began_s = time.perf_counter()
            for _ in range(blocks):
                parent = hasher.hash_block(parent, block)
            span_s = time.perf_counter() - began_s
            values = {"hashes_per_s": blocks / span_s, "tokens_per_s": blocks * size / span_s}
            yield Sample(index=index, batch=0, arm=algorithm, role="measure", x=size, repeat=repeat, values=values)
            index += 1


def _rates(samples: Sequence[Sample], arm: str, size: float) -> list[float]:
    return [s.values["hashes_per_s"] for s in samples if s.arm == arm and s.x == size and "hashes_per_s" in s.values]


def _conclude(setting: Setting, samples: Sequence[Sample]) -> Findings:
    sizes = list(setting.numbers("block_sizes"))
    alike = {s.arm: bool(s.values["reproducible"]) for s in samples if "reproducible" in s.values}
    figures: list[Figure] = []
    rows: list[tuple[str | float | None, ...]] = []
    drawn: list[Series] = []
    for arm in ALGORITHMS:
        found = [median(_rates(samples, arm, size)) for size in sizes]
        figures += [
            estimated(f"{arm}_{size}", f"{arm}, blocks of {size}", estimate, "hashes/s")
            for size, estimate in zip(sizes, found, strict=True)
        ]
        words = "not known" if arm not in alike else "yes" if alike[arm] else "no"
        rows.append((arm, words, HASH_BITS[arm], collision_chance(HASH_BITS[arm]),
                     *(round(e.value) if e else None for e in found)))  # fmt: skip
        drawn.append(
            Series(arm, sizes, [e.value if e else None for e in found], "both",
                   [e.low if e else None for e in found], [e.high if e else None for e in found])
        )  # fmt: skip
    columns = ("algorithm", "the same in every process", "bits", "chance of a collision in a trillion blocks",
               *(f"blocks of {size}: hashes/s" for size in sizes))  # fmt: skip
    return Findings(
        figures=tuple(figures),
        tables=(Table("Hash algorithms", columns, tuple(rows),
                      "Seeds as vLLM 0.32 has them where PYTHONHASHSEED isn't set. The chance is that of an accident; "
                      "against intent only SHA-256 holds."),),
        charts=(Chart("Hashes a second", "tokens of a block", "hashes/s", tuple(drawn), log_x=True),),
        follows=("A collision would hand one request the keys and values of another's tokens: a wrong answer, and a "
                 "leak between users. With SHA-256 none can be made; xxhash doesn't withstand someone who tries, "
                 "which is why its seed differs from process to process.",
                 "Hashes that are the same in every process are what routers and shared caches need; of those only the "
                 "CBOR form can be computed in another language.",),
        follows_not=("What a server gains: hashing runs beside a prefill that takes far longer for the same tokens.",),
    )  # fmt: skip


EXPERIMENT = Experiment(
    number=12,
    name="hash",
    title="Hash algorithms",
    question="How fast are vLLM's block hashes here, and which are the same in every process?",
    plan=_no_requests,
    conclude=_conclude,
    parameters=(
        Parameter("block_sizes", (16, 32, 64, 128), "tokens of a block"),
        Parameter("blocks", 2000, "blocks hashed for one measurement"),
    ),
    needs=frozenset(),
    local=_measure,
)
