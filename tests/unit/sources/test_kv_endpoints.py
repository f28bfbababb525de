"""Addresses of KV events: guessed, moved on by rank, refused."""

import pytest

from app.errors import SettingsError
from app.ids import Rank, ServerId
from app.sources.kv_endpoints import (
    guessed_endpoint,
    nothing_publishes,
    rank_endpoint,
    resolved_endpoints,
    usable_endpoint,
)

SERVER = ServerId("http://gpu-1:8000")


def test_guessed_on_the_servers_host() -> None:
    assert resolved_endpoints(None, None, SERVER, Rank(0)) == ("tcp://gpu-1:5557", "tcp://gpu-1:5558")
    assert resolved_endpoints(None, None, SERVER, Rank(3)) == ("tcp://gpu-1:5560", "tcp://gpu-1:5561")
    assert guessed_endpoint(ServerId("http://[::1]:8000"), 5557, Rank(0)) == "tcp://[::1]:5557"


def test_replay_is_guessed_beside_events_on_their_documented_port() -> None:
    assert resolved_endpoints("tcp://h:5557", None, SERVER, Rank(0)) == ("tcp://h:5557", "tcp://h:5558")
    assert resolved_endpoints("tcp://*:5557", None, SERVER, Rank(1)) == ("tcp://gpu-1:5558", "tcp://gpu-1:5559")
    assert resolved_endpoints("tcp://h:5557", "", SERVER, Rank(0)) == ("tcp://h:5557", "")


def test_other_events_without_replay_have_none() -> None:
    assert resolved_endpoints("tcp://h:6000", None, SERVER, Rank(0)) == ("tcp://h:6000", "")
    assert resolved_endpoints("tcp://h:6000", "", SERVER, Rank(0)) == ("tcp://h:6000", "")
    assert resolved_endpoints("tcp://h:6000", "tcp://h:6001", SERVER, Rank(0)) == ("tcp://h:6000", "tcp://h:6001")
    assert resolved_endpoints(None, "", SERVER, Rank(0)) == ("tcp://gpu-1:5557", "")


def test_what_is_given_is_rank_0s() -> None:
    assert resolved_endpoints("tcp://h:6000", "tcp://h:6100", SERVER, Rank(2)) == ("tcp://h:6002", "tcp://h:6102")
    assert resolved_endpoints("ipc:///tmp/kv", None, SERVER, Rank(1)) == ("ipc:///tmp/kv", "")


def test_port_plus_rank() -> None:
    assert rank_endpoint("tcp://h:5557", Rank(2)) == "tcp://h:5559"
    assert rank_endpoint("tcp://*:0", Rank(2)) == "tcp://*:0"
    assert rank_endpoint("ipc:///tmp/x:1", Rank(2)) == "ipc:///tmp/x:1"


@pytest.mark.parametrize("host", ["*", "0.0.0.0", "[::]"])
def test_a_wildcard_is_the_servers_host(host: str) -> None:
    assert usable_endpoint(f"tcp://{host}:5557", SERVER) == "tcp://gpu-1:5557"


@pytest.mark.parametrize("port", [0, 1, 2])
def test_ports_that_nobody_chose(port: int) -> None:
    with pytest.raises(SettingsError, match="cannot be subscribed"):
        usable_endpoint(f"tcp://*:{port}", SERVER)


@pytest.mark.parametrize("endpoint", ["", "h:5557", "tcp://h", "tcp://h:x", "tcp://h:99999", "http://h:5557"])
def test_what_is_no_address(endpoint: str) -> None:
    with pytest.raises(SettingsError, match="no address"):
        usable_endpoint(endpoint, SERVER)


@pytest.mark.parametrize("server", ["", "nonsense", "http://[bad"])
def test_a_server_without_host(server: str) -> None:
    with pytest.raises(SettingsError, match="names no host"):
        guessed_endpoint(ServerId(server), 5557, Rank(0))


def test_a_guess_is_called_one() -> None:
    assert "No address of KV events was given" in nothing_publishes("tcp://h:5557", is_guessed=True)
    assert "No address" not in nothing_publishes("tcp://h:5557", is_guessed=False)
