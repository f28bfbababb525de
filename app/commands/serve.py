"""`serve`: the dashboard in front of a vLLM server."""

import argparse
from collections.abc import Mapping

from .. import __version__
from ..settings import ENVIRONMENT_PREFIX, SETTINGS, load_settings
from .flags import Subparsers, add_settings, given_settings

DESCRIPTION = """\
The dashboard in front of a vLLM server. It needs nothing of the server but its URL; each of these flags of
`vllm serve` lets it show more, and the command `doctor` says which are missing:

  --enable-prompt-tokens-details   cached tokens of each request, by the server's own word
  --enable-per-request-metrics     the server's own first-token and queue times
  --kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557",
      "replay_endpoint":"tcp://*:5558","topic":"kv-events"}'
                                   block tables, the picture of the cache, forecasts

A server that is down or still loading is fine: the page says so, and goes on by itself when it is up.
Repeat --vllm to watch several servers; clients' requests go to the first.
"""
EPILOG = """\
Every setting is an environment variable too, {prefix}<NAME>, such as {prefix}VLLM_API_KEY; a flag wins:

{table}
"""
_FLAGS = (
    "vllm", "kv_events", "kv_replay", "kv_topic", "host", "port", "mode", "show_prompts", "redact", "allow_cache_reset",
    "insecure",
)  # fmt: skip


def add(commands: Subparsers) -> None:
    """Adds the command."""
    table = "\n".join(
        f"  {setting.name:<24}{setting.help}" + (f" ({setting.default})" if setting.default else "")
        for setting in SETTINGS
    )
    parser = commands.add_parser(
        "serve",
        help="the dashboard in front of a vLLM server",
        description=DESCRIPTION,
        epilog=EPILOG.format(prefix=ENVIRONMENT_PREFIX, table=table),
    )
    parser.set_defaults(command=run)
    add_settings(parser, _FLAGS)


def run(options: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Until SIGINT or SIGTERM."""
    from ..serving import listen, rules_of, serve, url_of

    settings = load_settings(environment, given_settings(options, _FLAGS))
    from ..factory import create_app
    from ..targets import kv_line

    app = create_app(settings)
    first, *others = app.runtime.targets
    bound = listen(settings.host, settings.port)
    lines = [
        f"PrefixScope {__version__}: {url_of(bound)}",
        f"vLLM server: {first.server}, mode {settings.mode}",
        f"KV events: {kv_line(first)}",
        *(f"Watched too: {other.server}, KV events: {kv_line(other)}" for other in others),
    ]
    serve(app, bound, settings.shutdown_grace_s, lambda: print("\n".join(lines), flush=True), rules_of(settings))
    return 0
