"""`lint`: what a file of requests could hit, what breaks it, and what each fix would gain."""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from ..errors import SettingsError, Unreachable
from .flags import Subparsers

DESCRIPTION = """\
Reads OpenAI-style requests, one JSON object a line (a chat request, or a line of a batch file with a "body"), and says
what they could hit in that order, one at a time, from a cold start: by vLLM's own rules for blocks, exactly. Then what
breaks it, ranked by the tokens that are lost, and what each fix would gain.

Prompts are rendered and cut into tokens by the server's own tokenizer where --vllm names one; else by the embedded
engine's (Qwen2.5), whose figures are near those of another model, not equal to them.

Exit status: 0 nothing to fix, 1 something breaks the prefix (or the hit rate is below --fail-under), 2 the file or the
server can't be read, 130 cancelled.
"""
EPILOG = """\
examples:
  lint requests.jsonl
  lint requests.jsonl --vllm http://gpu-box:8000 --json
  lint requests.jsonl --block-size 32 --blocks 1456 --fail-under 60
"""
EXIT_CLEAN, EXIT_FOUND, EXIT_UNREADABLE, EXIT_CANCELLED = 0, 1, 2, 130


def add(commands: Subparsers) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "lint", help="what keeps a file of requests from sharing prefixes", description=DESCRIPTION, epilog=EPILOG
    )
    parser.set_defaults(command=run)
    parser.add_argument("file", metavar="FILE", help='JSON lines; "-" reads standard input')
    parser.add_argument("--vllm", metavar="URL", help="server whose tokenizer, block size and pool are used")
    parser.add_argument("--block-size", type=int, metavar="TOKENS", help="tokens a block (the server's, else 16)")
    parser.add_argument("--blocks", type=int, metavar="COUNT", help="blocks in the pool (the server's, else 5306)")
    parser.add_argument("--fail-under", type=float, metavar="PERCENT", help="exit 1 below this hit rate")
    parser.add_argument("--json", action="store_true", help="the report as JSON")


def run(options: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Prints the report; progress goes to standard error where that is a terminal."""
    from ..lint_run import NO_REQUESTS, lint_file, read_requests

    for name, least in (("block_size", 1), ("blocks", 2)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise SettingsError(f"--{name.replace('_', '-')}: at least {least} is needed, not {value}")
    try:
        lines = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
    except OSError as error:
        print(f"prefixscope: {options.file} can't be read: {error.strerror}", file=sys.stderr)
        return EXIT_UNREADABLE
    requests, unreadable = read_requests(lines)
    for line, reason in unreadable[:20]:
        print(f"prefixscope: line {line} is no request: {reason}", file=sys.stderr)
    if not requests:
        print(f"prefixscope: {NO_REQUESTS}", file=sys.stderr)
        return EXIT_UNREADABLE
    started_s = time.monotonic()
    try:
        result = lint_file(requests, options, environment, _progress if sys.stderr.isatty() else _silent)
    except Unreachable as error:
        print(f"prefixscope: {error.message} {error.hint or ''}".rstrip(), file=sys.stderr)
        return EXIT_UNREADABLE
    except KeyboardInterrupt:
        print("\nprefixscope: cancelled", file=sys.stderr)
        return EXIT_CANCELLED
    report = result.report
    if options.json:
        print(json.dumps(result.as_json(len(unreadable)), indent=2, ensure_ascii=False))
    else:
        print(result.as_text(len(unreadable), time.monotonic() - started_s))
    below = options.fail_under is not None and (report.hit_ratio or 0.0) * 100 < options.fail_under
    return EXIT_FOUND if report.breakers or unreadable or below else EXIT_CLEAN


def _progress(stage: str, done: int, total: int) -> None:
    width = 30
    filled = width * done // max(total, 1)
    print(f"\r{stage:<9}[{'#' * filled}{' ' * (width - filled)}] {done}/{total} ", end="", file=sys.stderr, flush=True)
    if done >= total:
        print("\r" + " " * 70 + "\r", end="", file=sys.stderr, flush=True)


def _silent(stage: str, done: int, total: int) -> None:
    """No terminal, no bar."""
