"""`demo`: the embedded engine and the dashboard together."""

import argparse
from collections.abc import Mapping
from dataclasses import replace

from .. import __version__
from ..settings import ENVIRONMENT_PREFIX, load_settings
from .flags import Subparsers, add_engine_flags, add_settings

MODE = "enrich"
DESCRIPTION = """\
The dashboard with the embedded engine: exact block accounting, modelled timing, no GPU. It plays a short scenario by
itself; a click on the page stops it. The engine is a process of its own and ends with the dashboard.
"""
EPILOG = """\
`serve --help` lists the settings that are environment variables only; the demo takes them too.

examples:
  demo --num-gpu-blocks 200     a small cache, to watch blocks being evicted
  demo --profile instant        no modelled times: every step takes none
"""
_ENGINE_FLAGS = ("num_gpu_blocks", "block_size", "profile")


def add(commands: Subparsers) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "demo", help="embedded engine and dashboard together", description=DESCRIPTION, epilog=EPILOG
    )
    parser.set_defaults(command=run)
    add_settings(parser, ("host", "port", "mode", "insecure"), {"mode": MODE})
    add_engine_flags(parser, _ENGINE_FLAGS)


def run(options: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Until SIGINT or SIGTERM."""
    from ..demo_engine import engine_process
    from ..serving import listen, rules_of, serve, url_of
    from ..web.access import refuse_to_be_open

    mode_is_set = options.mode or f"{ENVIRONMENT_PREFIX}MODE" in environment
    given = {
        "host": options.host,
        "port": options.port,
        "mode": options.mode if mode_is_set else MODE,
        "insecure": options.insecure,
    }
    settings = load_settings(environment, given)
    refuse_to_be_open(settings)
    bound = listen(settings.host, settings.port)
    with engine_process(_engine_words(options)) as engine:
        # The heavy imports run beside the child's own start.
        from ..factory import create_app

        settings = replace(
            settings,
            vllm=engine.address.url,
            kv_events=engine.address.kv_events,
            kv_replay=engine.address.kv_replay,
            show_prompts=True,
        )
        app = create_app(settings, demo=True)
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
            rules_of(settings),
        )
    return 0


def _engine_words(options: argparse.Namespace) -> list[str]:
    return [
        word
        for flag in _ENGINE_FLAGS
        if getattr(options, flag) is not None
        for word in (f"--{flag.replace('_', '-')}", str(getattr(options, flag)))
    ]
