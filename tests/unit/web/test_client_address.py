import pytest

from app.errors import SettingsError
from app.web.client_address import MAX_HOPS, ClientAddresses


def scope(peer: str | None, *forwarded: str) -> dict[str, object]:
    headers = [(b"x-forwarded-for", text.encode()) for text in forwarded]
    return {"client": None if peer is None else (peer, 1234), "headers": headers}


def test_without_trusted_proxies_a_client_is_its_own_address() -> None:
    addresses = ClientAddresses()
    assert addresses.of(scope("10.0.0.9", "1.2.3.4")) == "10.0.0.9"
    assert addresses.of(scope(None, "1.2.3.4")) == ""


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("127.0.0.1", ["1.2.3.4"], "1.2.3.4"),
        ("127.0.0.1", ["6.6.6.6, 1.2.3.4"], "1.2.3.4"),
        ("127.0.0.1", ["6.6.6.6", "1.2.3.4, 10.1.2.3"], "1.2.3.4"),
        ("127.0.0.1", ["10.9.9.9, 10.1.2.3"], "10.9.9.9"),
        ("127.0.0.1", ["1.2.3.4:5678"], "1.2.3.4"),
        ("127.0.0.1", ["[2001:db8:1:2::7]:443"], "2001:db8:1:2::/64"),
        ("127.0.0.1", ["::ffff:1.2.3.4"], "1.2.3.4"),
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["1.2.3.4, unknown"], "127.0.0.1"),
        ("127.0.0.1", ["1.2.3.4,"], "127.0.0.1"),
        ("8.8.8.8", ["1.2.3.4"], "8.8.8.8"),
    ],
)
def test_a_trusted_proxy_names_the_client_and_nobody_else_does(peer: str, forwarded: list[str], client: str) -> None:
    assert ClientAddresses("127.0.0.1, 10.0.0.0/8").of(scope(peer, *forwarded)) == client


def test_of_a_list_without_end_only_the_right_end_is_read() -> None:
    addresses = ClientAddresses("127.0.0.1, 10.0.0.0/8")
    hops = ["1.2.3.4", *["10.0.0.1"] * MAX_HOPS]
    assert addresses.of(scope("127.0.0.1", ", ".join(hops))) == "10.0.0.1"


def test_clients_of_one_ipv6_network_count_as_one() -> None:
    addresses = ClientAddresses()
    assert addresses.of(scope("2001:db8::1")) == addresses.of(scope("2001:db8::ffff"))
    assert addresses.of(scope("2001:db8::1")) != addresses.of(scope("2001:db8:0:1::1"))
    assert addresses.of(scope("::1")) == "::1"


@pytest.mark.parametrize("text", ["nginx", "10.0.0.0/99", "10.0.0.1/8"])
def test_what_is_no_address_and_no_network_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="trusted_proxies"):
        ClientAddresses(text)
