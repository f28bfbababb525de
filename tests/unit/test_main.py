"""Tests of the command line's exit codes."""

import argparse
from collections.abc import Mapping

import pytest

from app.__main__ import main
from app.commands import doctor


def test_an_interrupted_command_has_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(options: argparse.Namespace, environment: Mapping[str, str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "run", interrupted)
    assert main(["doctor", "http://127.0.0.1:1"]) == 130
