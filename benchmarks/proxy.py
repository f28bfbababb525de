"""What the proxy costs, against nginx where it is installed and against none, in one run.

    python -m benchmarks.proxy [--cases 1x0,16x0,64x0,64x10] [--seconds 2] [--rounds 3] [--app] [--browsers 10]

A case is streams x milliseconds between events. A server that streams 64 prepared events a response, the proxy, and
nginx with buffering off each run as a process of their own; this process is the client and compares every byte. With
`--app` the proxy is the whole dashboard (`python -m app serve`) with `--browsers` websockets reading its live events,
else the proxy alone (`benchmarks.proxy_app`). Load is kept to one core, what is measured to another.

The figures drift with what else the machine does: compare within one run. Without a delay the client or the server
may be the bottleneck; then CPU a request says more than requests a second.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import uvloop

from .proxy_load import answers, ask_repeatedly, free_port, serve, watch

NGINX = """worker_processes 1; daemon off; pid {run}/pid; error_log {run}/log;
events {{ worker_connections 4096; }}
http {{ access_log off; client_body_temp_path {run}/b; proxy_temp_path {run}/p; fastcgi_temp_path {run}/f;
uwsgi_temp_path {run}/u; scgi_temp_path {run}/s; keepalive_requests 1000000;
upstream s {{ server 127.0.0.1:{server}; keepalive 512; keepalive_requests 1000000; }}
server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://s; proxy_http_version 1.1;
proxy_set_header Connection ""; proxy_buffering off; }} }} }}
"""


class Measured(NamedTuple):
    """One target in one round; times in milliseconds, `cpu_ms` a request."""

    rate: float
    cpu_ms: float
    first_p50_ms: float
    first_p99_ms: float


Targets = dict[str, tuple[int, int | None]]
"""By name: a port, and the process whose CPU time counts."""


def cpu_s(pid: int) -> float:
    """CPU time of a process, its threads and its children, in seconds."""
    total = (
        sum(int(Path(task, "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9
    )
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        total += cpu_s(int(child))
    return total


async def measure(port: int, pid: int | None, streams: int, delay_ms: int, seconds: float) -> Measured:
    """One round with one target."""
    first_ms: list[float] = []
    before = cpu_s(pid) if pid else 0.0
    began = time.monotonic()
    counts = await asyncio.gather(*(ask_repeatedly(port, delay_ms, began + seconds, first_ms) for _ in range(streams)))
    spent = (cpu_s(pid) - before) if pid else 0.0
    first_ms.sort()
    return Measured(
        sum(counts) / (time.monotonic() - began),
        spent / sum(counts) * 1000,
        statistics.median(first_ms),
        first_ms[len(first_ms) * 99 // 100],
    )


class Bench:
    """The processes of a run. `run` is an empty directory."""

    def __init__(self, run: str, *, app: bool) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._load, self._measured = sorted(os.sched_getaffinity(0))[:1], sorted(os.sched_getaffinity(0))[-1:]
        os.sched_setaffinity(0, self._load)
        server, self.proxy, nginx = free_port(), free_port(), free_port()
        module = [sys.executable, "-m"]
        self._start([*module, "benchmarks.proxy", "--serve", str(server)], self._load)
        where = ["--vllm", f"http://127.0.0.1:{server}", "--port", str(self.proxy)]
        alone = [*module, "benchmarks.proxy_app", *where]
        whole = [*module, "app", "serve", *where, "--kv-events", f"tcp://127.0.0.1:{free_port()}"]
        proxy = self._start(whole if app else alone, self._measured, quiet=True)
        self.targets: Targets = {"direct": (server, None), "proxy": (self.proxy, proxy.pid)}
        if binary := shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"):
            Path(run, "conf").write_text(NGINX.format(run=run, server=server, port=nginx))
            self.targets["nginx"] = (nginx, self._start([binary, "-c", f"{run}/conf"], self._measured).pid)
        self._watching = Path(run, "watched")

    def browsers(self, count: int) -> None:
        """Attaches them to the dashboard."""
        command = [sys.executable, "-m", "benchmarks.proxy", "--watch", str(self.proxy), "--browsers", str(count)]
        with self._watching.open("wb") as out:
            self._processes.append(subprocess.Popen(command, stdout=out))
        os.sched_setaffinity(self._processes[-1].pid, self._load)

    def events(self) -> dict[str, int]:
        """How many events of each type one browser has had until now."""
        lines = self._watching.read_text().splitlines() if self._watching.exists() else []
        counts: dict[str, int] = json.loads(lines[-1]) if lines else {}
        return counts

    def stop(self) -> None:
        """Ends everything that was started."""
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            process.wait(20)

    def _start(self, command: list[str], cores: list[int], *, quiet: bool = False) -> subprocess.Popen[bytes]:
        sink = subprocess.DEVNULL if quiet else None
        process = subprocess.Popen(command, stdout=sink, stderr=sink)
        os.sched_setaffinity(process.pid, cores)
        self._processes.append(process)
        return process


async def compare(bench: Bench, cases: list[tuple[int, int]], seconds: float, rounds: int, browsers: int) -> None:
    """Measures in turn, prints a table and the ratios."""
    for port, _ in bench.targets.values():
        await answers(port)
    if browsers:
        bench.browsers(browsers)
        async with asyncio.timeout(30):
            while not bench.events():  # noqa: ASYNC110
                await asyncio.sleep(0.2)
    print(f"{'case':<8} {'':<7} {'req/s':>7} {'CPU ms/req':>11} {'TTFT p50':>9} {'p99 ms':>8}")
    for streams, delay_ms in cases:
        rows: dict[str, list[Measured]] = {name: [] for name in bench.targets}
        answered, before = 0.0, Counter(bench.events())
        for _ in range(rounds):
            for name, (port, pid) in bench.targets.items():
                rows[name].append(await measure(port, pid, streams, delay_ms, seconds))
                answered += rows[name][-1].rate * seconds if name == "proxy" else 0
        medians = {name: Measured(*map(statistics.median, zip(*row, strict=True))) for name, row in rows.items()}
        for name, m in medians.items():
            print(
                f"{f'{streams} x {delay_ms}':<8} {name:<7} {m.rate:7.0f} {m.cpu_ms:11.3f} {m.first_p50_ms:9.2f}"
                f" {m.first_p99_ms:8.2f}"
            )
        if nginx := medians.get("nginx"):
            p = medians["proxy"]
            print(
                f"{'':<8} over nginx: rate {p.rate / nginx.rate:.2f}, CPU {p.cpu_ms / nginx.cpu_ms:.2f}, TTFT"
                f" {p.first_p50_ms - nginx.first_p50_ms:+.2f} / {p.first_p99_ms - nginx.first_p99_ms:+.2f} ms"
            )
        if browsers:
            await asyncio.sleep(1.5)
            heard = Counter(bench.events()) - before
            told = ", ".join(f"{kind} {count / answered:.2f}" for kind, count in heard.most_common(6))
            print(f"{'':<8} live events a response: {told}")
        sys.stdout.flush()


def _cases(text: str) -> list[tuple[int, int]]:
    pairs = (case.split("x") for case in text.split(","))
    return [(int(streams), int(delay_ms)) for streams, delay_ms in pairs]


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=_cases, default="1x0,16x0,64x0,64x10")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--app", action="store_true", help="the whole dashboard")
    parser.add_argument("--browsers", type=int, default=10, help="websockets, with --app")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--watch", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        uvloop.run(serve(arguments.serve))
    elif arguments.watch:
        uvloop.run(watch(arguments.watch, arguments.browsers))
    else:
        browsers = arguments.browsers if arguments.app else 0
        with tempfile.TemporaryDirectory(prefix="proxy-bench-") as run:
            bench = Bench(run, app=arguments.app)
            try:
                uvloop.run(compare(bench, arguments.cases, arguments.seconds, arguments.rounds, browsers))
            finally:
                bench.stop()


if __name__ == "__main__":
    main()
