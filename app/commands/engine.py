"""`engine`: the embedded engine alone."""

import argparse
from collections.abc import Mapping

from ..engine.flags import EPILOG as IMITATION
from ..engine.flags import add_flags, config_from
from .flags import Subparsers

DESCRIPTION = """\
The embedded engine alone: a server that speaks vLLM's HTTP API, metrics and KV events, with vLLM's rules for blocks
and a timing profile of a published measurement. It says what it is by a `prefixscope` object in /version.
"""
EPILOG = """\
examples:
  engine --port 8000 --events-port 5557 --replay-port 5558
  serve --vllm http://127.0.0.1:8000

  engine --imitate vllm-0.12.0                  an older server
  engine --imitate no-events,no-usage-details   a server with flags missing
  engine --data-parallel-size 4                 four ranks behind one port

A port of 0 takes a free one; the line that says "ready" names it.
"""


def add(commands: Subparsers) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "engine", help="the embedded engine alone", description=DESCRIPTION, epilog=f"{EPILOG}\n{IMITATION}"
    )
    parser.set_defaults(command=run)
    add_flags(parser)
    parser.add_argument("--stop-with-parent", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Until SIGINT or SIGTERM."""
    from ..engine.server import serve_engine

    if options.stop_with_parent:
        from ..demo_engine import stop_with_parent

        stop_with_parent()
    serve_engine(config_from(options))
    return 0
