"""One embedded engine for all integration tests of the dashboard; each test uses prompts of its own."""

from collections.abc import Iterator

import pytest

from .app_rig import Engine, running_engine


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A running embedded engine."""
    with running_engine(tmp_path_factory.mktemp("engine") / "engine.log") as started:
        yield started
