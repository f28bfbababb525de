"""axe-core on a page: what stands in the way of people who use a keyboard, a screen reader or strong contrast."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

SOURCE = Path(__file__).parent / "vendor" / "axe.min.js"
GRAVE = ("serious", "critical")


def grave_faults(page: Page) -> list[str]:
    """The serious and critical faults of the page as it stands now, a line each."""
    # Handed to the debugger, so that the page's content policy stays as it is.
    if not page.evaluate("typeof window.axe !== 'undefined'"):
        page.evaluate(SOURCE.read_text())
    found: list[dict[str, Any]] = page.evaluate(
        "axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations)"
    )
    return [
        f"{fault['id']} ({fault['impact']}) at {' '.join(map(str, node['target']))}: {_why(node)}"
        for fault in found
        if fault["impact"] in GRAVE
        for node in fault["nodes"]
    ]


def _why(node: dict[str, Any]) -> str:
    return "; ".join(str(check["message"]) for check in [*node["any"], *node["all"], *node["none"]])
