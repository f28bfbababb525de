"""`lab`: an experiment on a server's prefix cache, with a report that can be passed on."""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .flags import Subparsers

if TYPE_CHECKING:
    from ..lab.bench import Order

DESCRIPTION = """\
Runs an experiment against a vLLM server (or the embedded engine), one request after the other where not said
otherwise, and writes a report: HTML that works offline, JSON and CSV. Nothing of the server's is changed; what the
run puts into its cache is kept apart by cache salts of its own.

Exit status: 0 complete, 1 no server there, or cancelled, failed, disconnected (the report has what was measured until
then), 2 the call can't be carried out as it stands.
"""
EPILOG = """\
examples:
  lab --list
  lab on-off --vllm http://127.0.0.1:8000 --out report
  lab prefix-length --vllm http://127.0.0.1:8000 --set lengths=256,512,1024,2048 --repeats 7
  lab on-off --vllm http://gpu-box:8000 --off-url http://gpu-box:8001
  lab --reopen report/on-off.json --out again
  lab --compare monday/on-off.json tuesday/on-off.json
"""


def add(commands: Subparsers) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "lab", help="experiments on a server's prefix cache", description=DESCRIPTION, epilog=EPILOG
    )
    parser.set_defaults(command=run)
    parser.add_argument("name", metavar="NAME", nargs="?", help="the experiment, by name or number")
    parser.add_argument("--list", action="store_true", help="which experiments there are, with their parameters")
    parser.add_argument("--vllm", metavar="URL", help="base URL of the server (PREFIXSCOPE_VLLM)")
    parser.add_argument(
        "--off-url", metavar="URL", help="a second server with caching off, for the side without a cache (fresh salts)"
    )
    parser.add_argument("--out", metavar="DIR", help="folder for NAME.html, NAME.json and NAME.csv")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="a parameter; several times")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="how often each point is measured (5)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of prompts and order (1)")
    parser.add_argument("--with-text", action="store_true", help="prompts and answers go into the report too")
    parser.add_argument("--reopen", metavar="REPORT", help="shows a JSON report again, with --out as HTML and CSV too")
    parser.add_argument("--compare", nargs=2, metavar="REPORT", help="two JSON reports side by side")


def run(options: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Runs, lists, shows again or compares."""
    from ..lab.errors import LabError
    from ..lab.registry import chosen, experiments, parameters_of

    if options.list:
        print(_listed(experiments()))
        return 0
    if options.compare:
        return _compare(options)
    if options.reopen:
        from ..lab.compare import read_report

        _written(read_report(options.reopen), options)
        return 0
    if options.name is None:
        raise LabError("Which experiment? `lab --list` names them.")
    experiment = chosen(options.name)
    url = options.vllm or (environment.get("PREFIXSCOPE_VLLM") or "").partition(",")[0]
    if not url and experiment.local is None:
        raise LabError("Which server? Give --vllm URL.")
    if not 1 <= options.repeats <= 1000:
        raise LabError("--repeats takes 1 to 1000.")
    from ..lab.bench import Order

    order = Order(
        experiment=experiment,
        url=url,
        off_url=options.off_url,
        parameters=parameters_of(experiment, options.set),
        repeats=options.repeats,
        seed=options.seed,
        api_key=environment.get("PREFIXSCOPE_VLLM_API_KEY"),
        text=options.with_text,
    )
    report = _carried_out(order)
    _written(report, options)
    return 0 if report["state"] == "complete" else 1


def _carried_out(order: "Order") -> dict[str, Any]:
    """Runs it; an interrupt ends the run, not the program, and the report is made of what there is."""
    import asyncio
    import contextlib
    import signal

    from ..lab import bench
    from ..lab.progress import Progress

    progress = Progress(sys.stderr)

    async def carry_out() -> dict[str, Any]:
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await bench.run(order, progress.began, progress.sample)

    try:
        return asyncio.run(carry_out())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        progress.over()


def _written(report: dict[str, Any], options: argparse.Namespace) -> None:
    from ..lab.errors import LabError
    from ..lab.html import html_of
    from ..lab.report import csv_of
    from ..lab.text import text_of

    text = json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False)
    if options.out:
        folder, name = Path(options.out), report["experiment"]["name"]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for ending, content in (("json", text + "\n"), ("csv", csv_of(report)), ("html", html_of(report))):
                (folder / f"{name}.{ending}").write_text(content, encoding="utf-8")
        except OSError as error:
            print(text)
            raise LabError(f"The report can't be written to {folder} ({error.strerror}); it is printed.") from None
        print(f"report: {folder / name}.html, .json, .csv", file=sys.stderr)
    print(text if options.json else text_of(report))


def _compare(options: argparse.Namespace) -> int:
    from ..lab.compare import compared_reports, html_of_comparison, read_report, text_of_comparison

    comparison = compared_reports(*(read_report(path) for path in options.compare))
    if options.out:
        folder = Path(options.out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "comparison.html").write_text(html_of_comparison(comparison), encoding="utf-8")
    print(json.dumps(comparison, indent=1, ensure_ascii=False) if options.json else text_of_comparison(comparison))
    return 0


def _listed(every: Any) -> str:
    lines = []
    for experiment in every:
        lines.append(f"{experiment.number:>2}  {experiment.name:<15} {experiment.question}")
        for parameter in experiment.parameters:
            default = parameter.default
            shown = ",".join(map(str, default)) if isinstance(default, tuple) else default
            lines.append(f"    {'':<15} {parameter.name}: {parameter.help} ({shown})")
    return "\n".join(lines)
