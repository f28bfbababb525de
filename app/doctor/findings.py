"""From facts to findings: a closed list, in a fixed order, each with what to do and what that turns on. Pure.

Only a thing that the server could do and doesn't is "missing". What its release doesn't have is "unsupported", what
can't be told without asking is "unknown", and what works but wants a look is a "warning".
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from .facts import Facts
from .streams import EVENTS_SINCE, kv_events, kv_history, kv_ranks, kv_replay
from .words import Code, Finding, Panels

Status = Literal["ok", "missing", "unreachable"]
USAGE_FLAG = "--enable-prompt-tokens-details"
REQUEST_METRICS_FLAG = "--enable-per-request-metrics"
CACHING_FLAG = "--enable-prefix-caching"
USAGE_SINCE = (0, 9)
PER_REQUEST_METRICS_SINCE = (0, 26)
REPORTS_SINCE = (0, 26)
SESSIONS_SINCE = (0, 32)
EXIT_STATUS: dict[Status, int] = {"ok": 0, "missing": 1, "unreachable": 2}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One server's findings, in the order of `Code`. status: ok, missing (something is), or unreachable."""

    server: str
    status: Status
    version: str | None
    findings: tuple[Finding, ...] = ()


def diagnose(facts: Facts) -> Diagnosis:
    """Everything there is to say about a server."""
    first = _server(facts)
    if first.status != "on":
        return Diagnosis(facts.server, "unreachable", facts.version, (first,))
    found = (first, *(finding for step in _STEPS if (finding := step(facts)) is not None))
    missing = any(finding.status == "missing" for finding in found)
    return Diagnosis(facts.server, "missing" if missing else "ok", facts.version, found)


def worst(diagnoses: Iterable[Diagnosis]) -> Status:
    """The status of several servers together."""
    return max((each.status for each in diagnoses), key=lambda status: EXIT_STATUS[status], default="ok")


def _server(facts: Facts) -> Finding:
    if facts.state != "up":
        text = facts.message or f"{facts.server} has not answered yet."
        reason = "not_asked" if facts.state == "unknown" else facts.state
        return Finding("server", "missing", "Server", text, reason=reason)
    name = "The embedded engine" if facts.embedded else f"vLLM {facts.version or '(no version given)'}"
    models = f", serving {', '.join(facts.models[:3])}" if facts.models else ""
    more = f" and {len(facts.models) - 3} more" if len(facts.models) > 3 else ""
    return Finding("server", "on", "Server", f"{name} answers at {facts.server}{models}{more}.")


def _version(facts: Facts) -> Finding:
    release = facts.release
    params: dict[str, str | int | None] = {"version": facts.version}
    if release is None:
        text = "The version isn't that of a release, so what it can do is found out by trying."
        return Finding("version", "unknown", "Version", text, params=params)
    lacks = [what for since, what in _SINCE if release < since]
    if not lacks:
        return Finding("version", "on", "Version", f"{facts.version} can do everything shown here.", params=params)
    text = f"{facts.version} has no {', '.join(lacks)}. A newer vLLM does."
    return Finding("version", "unsupported", "Version", text, params=params)


_SINCE = (
    (EVENTS_SINCE, "KV events (0.9)"),
    (USAGE_SINCE, "cached tokens in usage (0.9)"),
    ((0, 10), "return_token_ids (0.10; prompts are tokenised by asking)"),
    ((0, 10), "replay of KV events (0.10)"),
    (PER_REQUEST_METRICS_SINCE, "times of its own for each request (0.26)"),
    (REPORTS_SINCE, "report of reused blocks (0.26)"),
    (SESSIONS_SINCE, "session ids in events (0.32)"),
)


def _metrics(facts: Facts) -> Finding:
    title = "Metrics"
    if facts.metrics == "unknown":
        return Finding("metrics", "unknown", title, "/metrics was not read yet.", panels=Panels.METRICS)
    if facts.metrics == "failed":
        text = facts.metrics_message or "/metrics can't be read."
        return Finding("metrics", "missing", title, text, panels=Panels.METRICS, reason="unreadable")
    if facts.counters is False:
        text = "/metrics is read, but has no counters of prefix-cache lookups."
        return Finding("metrics", "missing", title, text, panels=Panels.METRICS, reason="no_counters")
    return Finding("metrics", "on", title, "/metrics is read.", panels=Panels.METRICS)


def _prefix_caching(facts: Facts) -> Finding:
    title, panels = "Prefix caching", Panels.CACHING
    if facts.prefix_caching is None:
        text = "The server doesn't say whether prefix caching is on."
        return Finding("prefix_caching", "unknown", title, text, CACHING_FLAG, panels)
    if not facts.prefix_caching:
        text = "Prefix caching is off: nothing is ever reused. Start vLLM without --no-enable-prefix-caching."
        return Finding("prefix_caching", "missing", title, text, CACHING_FLAG, panels)
    return Finding("prefix_caching", "on", title, "Prefix caching is on.", panels=panels)


def _tokenize(facts: Facts) -> Finding:
    title, panels = "Tokenising", Panels.TOKENIZE
    if facts.tokenize is None:
        return Finding("tokenize", "unknown", title, "/tokenize was not asked yet.", panels=panels)
    if not facts.tokenize:
        text = "/tokenize doesn't answer. Start vLLM without --skip-tokenizer-init, and let the path through proxies."
        return Finding("tokenize", "missing", title, text, panels=panels)
    return Finding("tokenize", "on", title, "/tokenize answers.", panels=panels)


def _usage_details(facts: Facts) -> Finding:
    title, panels = "Cached tokens of each request", Panels.USAGE
    if facts.usage_details is None:
        text = "No response has told yet. Send a request through the dashboard, or run the command doctor, which asks."
        return Finding("usage_details", "unknown", title, text, USAGE_FLAG, panels)
    if not facts.usage_details and facts.is_before(USAGE_SINCE):
        text = "This release's V1 engine doesn't say it, flag or not: since 0.9."
        return Finding("usage_details", "unsupported", title, text, panels=panels)
    if not facts.usage_details:
        text = "Responses don't say how many of their prompt tokens were cached."
        return Finding("usage_details", "missing", title, text, USAGE_FLAG, panels)
    return Finding("usage_details", "on", title, "Responses say their cached tokens.", panels=panels)


def _request_metrics(facts: Facts) -> Finding:
    title, panels = "The server's own times of each request", Panels.TIMES
    if facts.request_metrics:
        return Finding("request_metrics", "on", title, "Responses say the server's own times.", panels=panels)
    if facts.is_before(PER_REQUEST_METRICS_SINCE):
        text = "This release doesn't have them: since 0.26."
        return Finding("request_metrics", "unsupported", title, text, panels=panels)
    if facts.request_metrics is None:
        text = "No response has told yet. Send a request through the dashboard, or run the command doctor, which asks."
        return Finding("request_metrics", "unknown", title, text, REQUEST_METRICS_FLAG, panels)
    text = "Responses don't say the server's own times."
    return Finding("request_metrics", "missing", title, text, REQUEST_METRICS_FLAG, panels)


def _reuse_reports(facts: Facts) -> Finding | None:
    if facts.release is None:
        return None
    title, panels = "Reports of reused blocks", Panels.REPORTS
    if facts.release < REPORTS_SINCE:
        text = "This release doesn't announce reused blocks (since 0.26); which they were is inferred from hashes."
        return Finding("reuse_reports", "unsupported", title, text, panels=panels)
    return Finding(
        "reuse_reports", "on", title, "Reused blocks are announced where a request asks for it.", panels=panels
    )


def _events_exposed(facts: Facts) -> Finding | None:
    if not facts.exposed:
        return None
    text = (
        f"KV events on {', '.join(facts.exposed)} can be read from other machines, and they carry the prompts' tokens "
        "and cache salts. Keep the port in a private network or behind a firewall; on one machine, an endpoint of "
        '"ipc:///run/vllm-kv-events" opens no port.'
    )
    params: dict[str, str | int | None] = {"addresses": ", ".join(facts.exposed)}
    return Finding("events_exposed", "warning", "Open event port", text, params=params)


_STEPS: tuple[Callable[[Facts], Finding | None], ...] = (
    _version, _metrics, _prefix_caching, _tokenize, _usage_details, _request_metrics,
    kv_events, kv_history, kv_replay, kv_ranks, _reuse_reports, _events_exposed,
)  # fmt: skip

__all__ = ["EXIT_STATUS", "Code", "Diagnosis", "Finding", "Status", "diagnose", "worst"]
