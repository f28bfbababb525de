"""The command line. Each command is a module of `commands`."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from . import __version__
from .commands import demo, doctor, engine, lab, lint, serve
from .commands.flags import PROGRAM, Command, Parser
from .commands.secret_files import with_secret_files
from .errors import PrefixScopeError

EXIT_FAILED = 1
EXIT_BAD_CALL = 2
EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141
"""As a shell has it. Servers end an interrupt themselves, with 0; of a command that asks, 0 would be an answer."""

_COMMANDS = (demo, serve, doctor, lint, lab, engine)
_DESCRIPTION = """\
PrefixScope shows vLLM's prefix cache at work, live: which blocks each prompt reused, what that saved, and why it
missed.

  no GPU, just look:        {program} demo
  before a vLLM server:     {program} serve --vllm http://127.0.0.1:8000
  what a server lacks:      {program} doctor http://127.0.0.1:8000
  what breaks prefixes:     {program} lint requests.jsonl
  an experiment:            {program} lab on-off --vllm http://127.0.0.1:8000
  a stand-in for vLLM:      {program} engine --port 8000

Point clients at the dashboard's own /v1 instead of the server's, and their requests appear on the page.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code: 0 done, 1 failed, 2 a call that can't be carried out as it stands,
    130 interrupted, 141 whoever read the output left.

    The doctor's own: 0 all on, 1 something missing, 2 not reachable; lint's: 0 nothing to fix, 1 something, 2 not read.
    """
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.ERROR)
    command: Command = options.command
    try:
        status = command(options, with_secret_files(os.environ))
        # Here and not at the interpreter's end, where nobody could handle it.
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever read has read enough, as `head` does. What is still buffered goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_READER_GONE
    except PrefixScopeError as error:
        print(f"prefixscope: {_in_one_line(error)}", file=sys.stderr)
        return EXIT_BAD_CALL if error.code in ("bad_setting", "cannot_listen") else EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _in_one_line(error: PrefixScopeError) -> str:
    if not error.hint:
        return error.message
    return f"{error.message}{'' if error.message.endswith(('.', '?', '!')) else '.'} {error.hint}"


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog=PROGRAM, description=_DESCRIPTION.format(program=PROGRAM), epilog="COMMAND --help says more.")
    parser.add_argument("--version", action="version", version=f"prefixscope {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
    for command in _COMMANDS:
        command.add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
