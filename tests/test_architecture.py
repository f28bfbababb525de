"""The arrows of the design, checked on the imports of every module in app/."""

import ast
from pathlib import Path

import pytest

APP = Path(__file__).parent.parent / "app"
MODULES = sorted(APP.rglob("*.py"))

PURE = ("observations", "events", "wire", "model", "why", "fleet")
PURE_STDLIB = {
    "__future__", "abc", "array", "base64", "bisect", "collections", "copy", "dataclasses", "difflib", "enum",
    "functools", "gzip", "hashlib", "heapq", "hmac", "itertools", "json", "math", "operator", "re", "statistics",
    "string", "struct", "types", "typing", "unicodedata", "zlib",
}  # fmt: skip
PURE_LIBRARIES = {"msgspec", "prometheus_client"}
STATISTICS = {"numpy", "importlib"}
"""For `why/fit.py` alone, which loads it where there is something to fit."""
CLIENTS = {"httpx", "aiohttp", "zmq", "httpcore", "requests", "urllib"}
FRAMEWORKS = {"fastapi", "starlette", "uvicorn", "jinja2", "websockets"}

DOCTORS_SHELL = {"doctor/ask.py", "doctor/examine.py", "doctor/live.py"}
LABS_SHELL = {"lab/bench.py", "lab/server.py"}

MAY_IMPORT = {
    "observations": {"ids"},
    "events": {"ids", "observations"},
    "wire": {"ids", "observations", "events", "errors"},
    "model": {"ids", "observations", "events", "errors"},
    "hub": {"ids", "events", "errors", "wire", "sources.clock"},
    "sources": {"ids", "observations", "events", "errors", "settings", "wire"},
    "web": {
        "ids", "events", "observations", "errors", "settings", "loopback", "page_files", "hub", "runtime", "sources",
        "model", "wire", "doctor", "why", "fleet",
    },
    "fleet": {"ids", "events", "model"},
    "why": {"model", "engine.block_pool", "engine.cache_events", "engine.free_queue"},
    "doctor": {"ids", "events", "observations", "errors", "settings", "loopback", "targets", "sources", "model"},
    "lab": {"ids", "errors", "page_files", "wire", "engine.block_hash"},
    "engine": set[str](),
}  # fmt: skip
"""For each package of app/, what else in app/ it may import: the arrows point one way."""


def imports(path: Path) -> tuple[set[str], set[str]]:
    """(top-level names imported from outside, dotted names inside app/) of one file."""
    outside: set[str] = set()
    inside: set[str] = set()
    here = path.relative_to(APP).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            outside |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                # Taking a URL apart is no client.
                if node.module != "urllib.parse":
                    outside.add((node.module or "").split(".")[0])
                continue
            base = here[: len(here) - (node.level - 1)]
            if node.module:
                inside.add(".".join((*base, *node.module.split("."))))
            else:
                inside |= {".".join((*base, alias.name)) for alias in node.names}
    return outside, inside


def module_id(path: Path) -> str:
    return str(path.relative_to(APP))


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_imports_inside_the_package_are_relative(path: Path) -> None:
    outside, _ = imports(path)
    assert "app" not in outside


@pytest.mark.parametrize("path", [p for p in MODULES if p.relative_to(APP).parts[0] in PURE], ids=module_id)
def test_pure_packages_import_no_io(path: Path) -> None:
    outside, _ = imports(path)
    extra = STATISTICS if module_id(path) == "why/fit.py" else set[str]()
    assert outside <= PURE_STDLIB | PURE_LIBRARIES | extra


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_arrows_point_one_way(path: Path) -> None:
    package = path.relative_to(APP).parts[0]
    if package not in MAY_IMPORT:
        return
    _, inside = imports(path)
    allowed = MAY_IMPORT[package] | {package}
    wrong = {
        name
        for name in inside
        if not any(name == prefix or name.startswith(f"{prefix}.") for prefix in allowed if prefix)
    }
    # `from .. import __version__` names the package itself.
    assert wrong <= {"__version__"}


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_only_sources_and_the_engine_import_clients(path: Path) -> None:
    package = path.relative_to(APP).parts[0]
    outside, _ = imports(path)
    if (
        package not in {"sources", "engine", "watched.py", "scenario.py", "lint_run.py"}
        and module_id(path) not in DOCTORS_SHELL | LABS_SHELL
    ):
        assert not outside & CLIENTS
    if package in {"hub", "sources", "model", "wire"}:
        assert not outside & FRAMEWORKS


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_the_dashboard_never_imports_vllm(path: Path) -> None:
    outside, _ = imports(path)
    assert "vllm" not in outside


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))
