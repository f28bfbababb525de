import pytest

from app.doctor.exposure import exposed_addresses, ports_beyond_loopback

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
ANY = "   0: 00000000:15B5 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100\n"
LOOPBACK = "   1: 0100007F:15B6 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100\n"
CONNECTED = "   2: 00000000:15B7 0A00000A:1000 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100\n"
ANY_6 = "   0: 00000000000000000000000000000000:15B8 00000000000000000000000000000000:0000 0A 0:0 0 0 0 0 0 0 0\n"
LOOPBACK_6 = "   0: 00000000000000000000000001000000:15B9 00000000000000000000000000000000:0000 0A 0:0 0 0 0 0 0 0\n"
MAPPED_6 = "   0: 0000000000000000FFFF00000100007F:15BA 00000000000000000000000000000000:0000 0A 0:0 0 0 0 0 0 0\n"
TABLES = (HEAD + ANY + LOOPBACK + CONNECTED, HEAD + ANY_6 + LOOPBACK_6 + MAPPED_6)


def test_what_listens_beyond_loopback_by_the_kernels_tables() -> None:
    assert ports_beyond_loopback(TABLES[0]) == {5557}
    assert ports_beyond_loopback(TABLES[1]) == {5560}
    assert ports_beyond_loopback(HEAD + "nonsense\n   0: zz:1 0:0 0A\n") == set()


@pytest.mark.parametrize(
    ("endpoint", "exposed"),
    [
        ("tcp://127.0.0.1:5557", True),
        ("tcp://localhost:5557", True),
        ("tcp://[::1]:5560", True),
        ("tcp://127.0.0.1:5558", False),
        ("tcp://127.0.0.1:5559", False),
        ("tcp://gpu.example:5557", True),
        ("tcp://10.0.0.7:1", True),
        ("tcp://vllm:5557", False),
        ("ipc:///run/vllm", False),
        ("tcp://x:y", False),
        (None, False),
    ],
)
def test_an_address_is_exposed_where_another_machine_reaches_it(endpoint: str | None, exposed: bool) -> None:
    assert bool(exposed_addresses([endpoint], TABLES)) is exposed
