"""Tests of `app.loopback`."""

import pytest

from app.loopback import is_loopback


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.1", "::1"])
def test_this_machine_alone(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "gpu-box", "localhost.example.org", ""])
def test_reached_from_elsewhere(host: str) -> None:
    assert not is_loopback(host)
