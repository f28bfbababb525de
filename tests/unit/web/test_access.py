import pytest

from app.errors import SettingsError
from app.settings import load_settings
from app.web.access import (
    FAILED_LOGIN_S,
    MAX_SESSIONS,
    Access,
    NotLoggedIn,
    Role,
    TooManyLogins,
    refuse_to_be_open,
)

SESSION_S, MAX_FAILED_LOGINS = 3600.0, 3
OPERATOR, SECOND, VIEWER = "o" * 16, "second-operator-token", "v" * 20


@pytest.fixture
def access() -> Access:
    return Access(f"{OPERATOR}, {SECOND}", VIEWER, session_s=SESSION_S, max_failed_logins=MAX_FAILED_LOGINS)


def test_each_token_has_its_role(access: Access) -> None:
    assert access.role_of_token(OPERATOR) is Role.OPERATOR
    assert access.role_of_token(SECOND) is Role.OPERATOR
    assert access.role_of_token(VIEWER) is Role.VIEWER
    assert access.role_of_token("") is None
    assert access.role_of_token(OPERATOR + "x") is None


def test_a_token_of_both_lists_is_an_operators() -> None:
    assert Access(OPERATOR, OPERATOR).role_of_token(OPERATOR) is Role.OPERATOR
    assert Access("", "").is_open


@pytest.mark.parametrize("token", ["clé-de-la-maison-0123", "\udcff\udcfe-0123456789abcdef", "0123456789\t0123456789"])
def test_a_token_that_no_header_can_carry_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Access("", token)
    assert token not in str(refused.value)


@pytest.mark.parametrize("short", ["x", "fifteen-letters"])
def test_a_token_that_can_be_guessed_is_refused_and_not_repeated(short: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Access(short, "")
    assert short not in refused.value.message


def test_a_session_has_the_tokens_role_and_ends(access: Access) -> None:
    session = access.log_in(VIEWER, "10.0.0.1", at_s=5.0)
    assert VIEWER not in session
    assert access.role_of_session(session, 5.0 + SESSION_S - 1) is Role.VIEWER
    assert access.role_of_session(session, 5.0 + SESSION_S) is None
    access.log_out(session)
    assert access.role_of_session(session, 6.0) is None
    access.log_out(session)


def test_the_oldest_session_goes_when_there_are_too_many(access: Access) -> None:
    sessions = [access.log_in(OPERATOR, "a", at_s=0.0) for _ in range(MAX_SESSIONS + 1)]
    assert access.role_of_session(sessions[0], 1.0) is None
    assert access.role_of_session(sessions[1], 1.0) is Role.OPERATOR


def test_an_address_that_fails_too_often_waits_even_with_the_right_token(access: Access) -> None:
    for _ in range(MAX_FAILED_LOGINS):
        with pytest.raises(NotLoggedIn):
            access.log_in("wrong", "a", at_s=0.0)
    with pytest.raises(TooManyLogins) as refused:
        access.log_in(OPERATOR, "a", at_s=1.0)
    assert refused.value.retry_after_s == FAILED_LOGIN_S - 1.0
    assert access.log_in(OPERATOR, "b", at_s=1.0)
    assert access.log_in(OPERATOR, "a", at_s=FAILED_LOGIN_S)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_on_this_machine_it_may_be_open(host: str) -> None:
    refuse_to_be_open(load_settings({}, {"host": host}))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.4", "gpu-host"])
def test_on_a_network_it_may_not(host: str) -> None:
    with pytest.raises(SettingsError, match="no token is set"):
        refuse_to_be_open(load_settings({}, {"host": host}))
    refuse_to_be_open(load_settings({}, {"host": host, "tokens": OPERATOR}))
    refuse_to_be_open(load_settings({}, {"host": host, "viewer_tokens": VIEWER}))
    refuse_to_be_open(load_settings({}, {"host": host, "insecure": "true"}))
