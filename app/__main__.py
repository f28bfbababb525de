"""The command line: `demo`, `serve`, `engine`. Everything heavy is imported by the command that needs it."""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import __version__
from .engine.profiles import DEFAULT_PROFILE, PROFILES
from .errors import PrefixScopeError
from .settings import ENVIRONMENT_PREFIX, SETTINGS, load_settings

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_BAD_CALL = 2

_PROGRAM = f"python -m {__package__ or 'app'}"
_DESCRIPTION = """\
PrefixScope shows vLLM's prefix cache at work, live: which blocks each prompt reused, what that saved, and why it
missed.

  no GPU, just look:        {program} demo
  before a vLLM server:     {program} serve --vllm http://127.0.0.1:8000
  a stand-in for vLLM:      {program} engine --port 8000

Point clients at the dashboard's own /v1 instead of the server's, and their requests appear on the page.
"""
_SERVE_DESCRIPTION = """\
The dashboard in front of a vLLM server. It needs nothing of the server but its URL; each of these flags of
`vllm serve` lets it show more:

  --enable-prompt-tokens-details   cached tokens of each request, by the server's own word
  --enable-per-request-metrics     the server's own first-token and queue times
  --kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557",
      "replay_endpoint":"tcp://*:5558","topic":"kv-events"}'
                                   block tables, the picture of the cache, forecasts

A server that is down or still loading is fine: the page says so, and goes on by itself when it is up.
"""
_DEMO_DESCRIPTION = """\
The dashboard with the embedded engine: exact block accounting, modelled timing, no GPU. It plays a short scenario by
itself; a click on the page stops it. The engine is a process of its own and ends with the dashboard.
"""
_ENGINE_DESCRIPTION = """\
The embedded engine alone: a server that speaks vLLM's HTTP API, metrics and KV events, with vLLM's rules for blocks
and a timing profile of a published measurement. It says what it is by a `prefixscope` object in /version.
"""
_SETTINGS_EPILOG = """\
Every setting is an environment variable too, {prefix}<NAME>, such as {prefix}VLLM_API_KEY; a flag wins:

{table}
"""
_DEMO_EPILOG = """\
`serve --help` lists the settings that are environment variables only; the demo takes them too.

examples:
  demo --num-gpu-blocks 200     a small cache, to watch blocks being evicted
  demo --profile instant        no modelled times: every step takes none
"""
_ENGINE_EPILOG = """\
example:
  engine --port 8000 --events-port 5557 --replay-port 5558
  serve --vllm http://127.0.0.1:8000

A port of 0 takes a free one; the line that says "ready" names it.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code: 0 done, 1 failed, 2 a call that can't be carried out as it stands."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.ERROR)
    command: Callable[[argparse.Namespace, Mapping[str, str]], int] = options.command
    try:
        return command(options, os.environ)
    except PrefixScopeError as error:
        print(f"prefixscope: {_in_one_line(error)}", file=sys.stderr)
        return EXIT_BAD_CALL if error.code in ("bad_setting", "cannot_listen") else EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_OK


def _in_one_line(error: PrefixScopeError) -> str:
    if not error.hint:
        return error.message
    return f"{error.message}{'' if error.message.endswith(('.', '?', '!')) else '.'} {error.hint}"


def _demo(options: argparse.Namespace, environment: Mapping[str, str]) -> int:
    from .demo_engine import engine_process
    from .serving import listen, serve, url_of

    mode_is_set = options.mode or f"{ENVIRONMENT_PREFIX}MODE" in environment
    shared = {"host": options.host, "port": options.port, "mode": options.mode if mode_is_set else _DEMO_MODE}
    settings = load_settings(environment, shared)
    bound = listen(settings.host, settings.port)
    engine_flags = [
        word
        for flag in ("num_gpu_blocks", "block_size", "profile")
        if getattr(options, flag) is not None
        for word in (f"--{flag.replace('_', '-')}", str(getattr(options, flag)))
    ]
    with engine_process(engine_flags) as engine:
        # The heavy imports run beside the child's own start.
        from .factory import create_app

        app = create_app(
            load_settings(
                environment,
                {
                    **shared,
                    "vllm": engine.address.url,
                    "kv_events": engine.address.kv_events,
                    "kv_replay": engine.address.kv_replay,
                    "show_prompts": "true",
                },
            ),
            demo=True,
        )
        engine.wait_until_ready()
        url = url_of(bound)
        serve(
            app,
            bound,
            settings.shutdown_grace_s,
            lambda: print(
                f"PrefixScope {__version__} demo: {url}\n"
                f"Embedded engine (exact block accounting, modelled timing): {engine.address.url}",
                flush=True,
            ),
        )
    return EXIT_OK


def _serve(options: argparse.Namespace, environment: Mapping[str, str]) -> int:
    from .serving import listen, serve, url_of

    overrides = {name: getattr(options, name) for name in _SERVE_FLAGS}
    settings = load_settings(environment, overrides)
    from .factory import create_app
    from .runtime import kv_line

    app, events = create_app(settings), kv_line(settings)
    bound = listen(settings.host, settings.port)
    lines = (
        f"PrefixScope {__version__}: {url_of(bound)}",
        f"vLLM server: {app.runtime.server}, mode {settings.mode}",
        f"KV events: {events}",
    )
    serve(app, bound, settings.shutdown_grace_s, lambda: print("\n".join(lines), flush=True))
    return EXIT_OK


def _engine(options: argparse.Namespace, environment: Mapping[str, str]) -> int:
    from .engine.server import EngineConfig, serve_engine

    if options.stop_with_parent:
        from .demo_engine import stop_with_parent

        stop_with_parent()
    given = {
        name: getattr(options, name)
        for name in (*_ENGINE_FLAGS, "enable_prefix_caching")
        if getattr(options, name) is not None
    }
    serve_engine(EngineConfig(**given))
    return EXIT_OK


_DEMO_MODE = "enrich"
_SERVE_FLAGS = ("vllm", "kv_events", "kv_replay", "kv_topic", "host", "port", "mode", "show_prompts")
_METAVARS = {"vllm": "URL", "kv_events": "ADDRESS", "kv_replay": "ADDRESS"}
_ENGINE_FLAGS: dict[str, tuple[type, str]] = {
    "host": (str, "address to listen on (127.0.0.1)"),
    "port": (int, "port of the HTTP API (8000)"),
    "events_port": (int, "port of KV events (5557)"),
    "replay_port": (int, "port of KV-event replay (5558)"),
    "num_gpu_blocks": (int, "blocks in the pool, the null block included (the profile's)"),
    "block_size": (int, "tokens a block (the profile's)"),
    "profile": (str, f"timing profile, one of {', '.join(PROFILES)} ({DEFAULT_PROFILE})"),
    "model_name": (str, "name of the model that it serves (Qwen2.5-7B-Instruct)"),
    "max_num_batched_tokens": (int, "token budget of one step (the profile's)"),
    "max_num_seqs": (int, "requests that run at once (256)"),
}


class _Parser(argparse.ArgumentParser):
    """A parser that leaves the lines of its texts as they are."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)


def _parser() -> argparse.ArgumentParser:
    table = "\n".join(
        f"  {setting.name:<24}{setting.help}" + (f" ({setting.default})" if setting.default else "")
        for setting in SETTINGS
    )
    epilog = _SETTINGS_EPILOG.format(prefix=ENVIRONMENT_PREFIX, table=table)
    parser = _Parser(
        prog=_PROGRAM, description=_DESCRIPTION.format(program=_PROGRAM), epilog="COMMAND --help says more."
    )
    parser.add_argument("--version", action="version", version=f"prefixscope {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)

    demo = commands.add_parser(
        "demo", help="embedded engine and dashboard together", description=_DEMO_DESCRIPTION, epilog=_DEMO_EPILOG
    )
    demo.set_defaults(command=_demo)
    _add_settings(demo, ("host", "port", "mode"), {"mode": _DEMO_MODE})
    _add_engine_flags(demo, ("num_gpu_blocks", "block_size", "profile"))

    serve = commands.add_parser(
        "serve", help="the dashboard in front of a vLLM server", description=_SERVE_DESCRIPTION, epilog=epilog
    )
    serve.set_defaults(command=_serve)
    _add_settings(serve, _SERVE_FLAGS)

    engine = commands.add_parser(
        "engine", help="the embedded engine alone", description=_ENGINE_DESCRIPTION, epilog=_ENGINE_EPILOG
    )
    engine.set_defaults(command=_engine)
    _add_engine_flags(engine, tuple(_ENGINE_FLAGS))
    engine.add_argument(
        "--no-enable-prefix-caching", dest="enable_prefix_caching", action="store_const", const=False,
        help="turn the prefix cache off",
    )  # fmt: skip
    engine.add_argument("--stop-with-parent", action="store_true", help=argparse.SUPPRESS)
    return parser


def _add_settings(
    parser: argparse.ArgumentParser, names: Sequence[str], defaults: Mapping[str, str] | None = None
) -> None:
    """Flags for rows of the table. `defaults`: those that the command has instead of the table's."""
    rows = {setting.name: setting for setting in SETTINGS}
    for name in names:
        row = rows[name]
        flag = f"--{name.replace('_', '-')}"
        text = row.help.partition(" (demo: ")[0]
        if name == "show_prompts":
            parser.add_argument(flag, action="store_const", const="true", help=text)
            continue
        default = (defaults or {}).get(name, row.default)
        metavar = _METAVARS.get(name) or name.rpartition("_")[2].upper()
        parser.add_argument(flag, metavar=metavar, help=f"{text} ({default})" if default else text)


def _add_engine_flags(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    for name in names:
        kind, text = _ENGINE_FLAGS[name]
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=kind, metavar=name.rpartition("_")[2].upper(), help=text
        )


if __name__ == "__main__":
    sys.exit(main())
