"""What the proxy costs: CPU a request and time to first token, against nginx where it is installed, and against none.

    python -m benchmarks.proxy [--streams 64] [--delay-ms 10] [--seconds 5] [--rounds 3]

A server that streams 64 prepared events a response, the proxy (`benchmarks.proxy_app`), and nginx with buffering off
each run as a process of their own; this process is the client and compares every byte. The figures drift with what
else the machine does: compare within one run. With `--delay-ms 0` the client or the server may be the bottleneck;
then CPU a request says more than requests a second.
"""

import argparse
import asyncio
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uvloop

EVENTS = 64
FRAME = (
    b'data: {"id":"chatcmpl-0","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    b'"delta":{"content":" word %d"},"logprobs":null,"finish_reason":null}]}\n\n'
)
FRAMES = [*(FRAME % number for number in range(EVENTS)), FRAME.replace(b"null}]", b'"stop"}]') % 0, b"data: [DONE]\n\n"]
BODY = b'{"model":"m","messages":[{"role":"user","content":"Hi"}],"stream":true}'
ASK = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
NGINX = """worker_processes 1; daemon off; pid {run}/pid; error_log {run}/log;
events {{ worker_connections 4096; }}
http {{ access_log off; client_body_temp_path {run}/b; proxy_temp_path {run}/p; fastcgi_temp_path {run}/f;
uwsgi_temp_path {run}/u; scgi_temp_path {run}/s; keepalive_requests 1000000;
upstream s {{ server 127.0.0.1:{server}; keepalive 512; keepalive_requests 1000000; }}
server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://s; proxy_http_version 1.1;
proxy_set_header Connection ""; proxy_buffering off; }} }} }}
"""


async def serve(port: int, delay_s: float) -> None:
    """The server: one write an event."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(len(BODY))
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                )
                for frame in FRAMES:
                    writer.write(b"%x\r\n%b\r\n" % (len(frame), frame))
                    await asyncio.sleep(delay_s)
                writer.write(b"0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    await server.serve_forever()


async def client(port: int, until_s: float, first_ms: list[float]) -> int:
    """One connection that asks again and again. Returns how many responses came whole and unchanged."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    expected = b"".join(FRAMES)
    responses = 0
    while time.monotonic() < until_s:
        writer.write(ASK % (len(BODY), BODY))
        sent = time.monotonic()
        await reader.readuntil(b"\r\n\r\n")
        body = bytearray()
        while size := int(await reader.readuntil(b"\r\n"), 16):
            if not body:
                first_ms.append((time.monotonic() - sent) * 1000)
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
        if body != expected:
            raise SystemExit("the stream was changed on its way")
        responses += 1
    writer.close()
    return responses


def cpu_s(pid: int) -> float:
    """CPU time of a process and its children, in seconds."""
    total = 0.0
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        total += cpu_s(int(child))
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return total + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(port: int, pid: int | None, streams: int, seconds: float) -> tuple[float, float, float]:
    """Requests a second, CPU a request in ms, median time to first token in ms."""
    first_ms: list[float] = []
    before = cpu_s(pid) if pid else 0.0
    began = time.monotonic()
    counts = await asyncio.gather(*(client(port, began + seconds, first_ms) for _ in range(streams)))
    spent = (cpu_s(pid) - before) if pid else 0.0
    return sum(counts) / (time.monotonic() - began), spent / sum(counts) * 1000, statistics.median(first_ms)


async def answers(port: int) -> None:
    """Waits until something listens on `port`."""
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.1)
            else:
                writer.close()
                return


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port: int = bound.getsockname()[1]
        return port


Targets = dict[str, tuple[int, int | None]]
"""By name: a port, and the process whose CPU time counts."""


def start(delay_ms: float, run: str, processes: list[subprocess.Popen[bytes]]) -> Targets:
    """Starts everything. `processes` takes what has to be ended; `run` is an empty directory."""
    server, proxy, nginx = free_port(), free_port(), free_port()
    module = [sys.executable, "-m"]
    delay = str(delay_ms)
    processes.append(subprocess.Popen([*module, "benchmarks.proxy", "--serve", str(server), "--delay-ms", delay]))
    command = [*module, "benchmarks.proxy_app", "--vllm", f"http://127.0.0.1:{server}", "--port", str(proxy)]
    processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
    targets: Targets = {"direct": (server, None), "proxy": (proxy, processes[-1].pid)}
    if binary := shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"):
        Path(run, "conf").write_text(NGINX.format(run=run, server=server, port=nginx))
        processes.append(subprocess.Popen([binary, "-c", f"{run}/conf"]))
        targets["nginx"] = (nginx, processes[-1].pid)
    return targets


async def compare(targets: Targets, streams: int, seconds: float, rounds: int) -> None:
    """Measures in turn, prints a table."""
    for port, _ in targets.values():
        await answers(port)
    rows: dict[str, list[tuple[float, float, float]]] = {name: [] for name in targets}
    for _ in range(rounds):
        for name, (port, pid) in targets.items():
            rows[name].append(await measure(port, pid, streams, seconds))
    print(f"{'':<8} {'req/s':>8} {'CPU ms a request':>17} {'first token p50 ms':>19}")
    for name, measured in rows.items():
        rate, cpu, first = (statistics.median(column) for column in zip(*measured, strict=True))
        print(f"{name:<8} {rate:8.0f} {cpu:17.3f} {first:19.2f}")


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--delay-ms", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        uvloop.run(serve(arguments.serve, arguments.delay_ms / 1000))
        return
    processes: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="proxy-bench-") as run:
        try:
            targets = start(arguments.delay_ms, run, processes)
            uvloop.run(compare(targets, arguments.streams, arguments.seconds, arguments.rounds))
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM)
                process.wait(10)


if __name__ == "__main__":
    main()
