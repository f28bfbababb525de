"""`doctor`: what a vLLM server lacks for the dashboard to show all it can."""

import argparse
import json
import logging
from collections.abc import Mapping

from ..settings import load_settings
from .flags import Subparsers, add_settings, given_settings

DESCRIPTION = """\
Looks at a vLLM server for a few seconds and says what of the dashboard it lights up, and for each thing that is
missing the flag to paste into `vllm serve`. Some of it only an answer tells: the server is sent one request of a block
or so and a single output token (again where the first answer isn't clear). --no-ask sends none.

Exit status: 0 nothing is missing, 1 something is, 2 the server can't be reached (or the call can't be understood).
"""
EPILOG = """\
examples:
  doctor http://gpu-box:8000
  doctor http://gpu-box:8000 --no-ask --json
  PREFIXSCOPE_VLLM_API_KEY=... doctor https://gpu-box/vllm --kv-events tcp://gpu-box:5557
"""
_FLAGS = ("kv_events", "kv_replay", "kv_topic")


def add(commands: Subparsers) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "doctor", help="what a vLLM server lacks, and the flags to paste", description=DESCRIPTION, epilog=EPILOG
    )
    parser.set_defaults(command=run)
    parser.add_argument("vllm", metavar="URL", help="base URL of the vLLM server")
    add_settings(parser, _FLAGS)
    parser.add_argument(
        "--no-ask",
        dest="ask",
        action="store_false",
        help="send no request of its own; what only an answer tells stays unknown then",
    )
    parser.add_argument("--json", action="store_true", help="as JSON, as GET /api/doctor has it for a server")


def run(options: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Prints the diagnosis."""
    import asyncio

    from ..doctor.examine import examine
    from ..doctor.findings import EXIT_STATUS
    from ..doctor.report import as_json, as_text
    from ..targets import kv_line, targets_of

    # What the sources log on their way is part of the findings.
    logging.getLogger(f"{__package__ or 'app'}".partition(".")[0]).setLevel(logging.ERROR)
    given = {**given_settings(options, _FLAGS), "vllm": options.vllm}
    settings = load_settings(environment, given)
    target = targets_of(settings)[0]
    kv_line(target)  # Raises for an address that can't be used, before anything is asked.
    diagnosis = asyncio.run(examine(target, settings, ask_it=options.ask))
    print(
        json.dumps(as_json(diagnosis), indent=2, ensure_ascii=False)
        if options.json
        else as_text(diagnosis, asked=options.ask)
    )
    return EXIT_STATUS[diagnosis.status]
