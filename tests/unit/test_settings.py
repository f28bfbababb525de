import pytest

from app.errors import SettingsError
from app.settings import SETTINGS, load_settings
from tests.processes import ROOT


def test_the_defaults_parse() -> None:
    settings = load_settings({})
    assert (settings.host, settings.port, settings.mode, settings.vllm) == ("127.0.0.1", 8080, "observe", None)


def test_the_environment_is_read_and_an_override_wins() -> None:
    environment = {"PREFIXSCOPE_PORT": "9000", "PREFIXSCOPE_SHOW_PROMPTS": "yes", "HOME": "/"}
    settings = load_settings(environment, {"port": "9001", "vllm": None})
    assert settings.port == 9001
    assert settings.show_prompts is True


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORT", "-1"), ("PORT", "x"), ("MODE", "loud"), ("SCRAPE_INTERVAL_S", "0"), ("SHOW_PROMPTS", "maybe"),
     ("READ_TIMEOUT_S", "nan"), ("MAX_REQUESTS", ""), ("MAX_BACKLOG_EVENTS", "0"), ("KV_RECEIVE_HWM", "0"),
     ("MAX_CLIENTS", "9" * 5000)],
)  # fmt: skip
def test_a_bad_value_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name.lower()) as caught:
        load_settings({f"PREFIXSCOPE_{name}": value})
    assert caught.value.hint


@pytest.mark.parametrize("key", ["sk-hunter2\nX-Other: 1", "sk-hunter2\u201d"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(SettingsError, match="vllm_api_key") as refused:
        load_settings({"PREFIXSCOPE_VLLM_API_KEY": key})
    assert "hunter2" not in f"{refused.value.message}{refused.value.hint}"


@pytest.mark.parametrize(
    ("name", "meant"),
    [("PROT", "PORT"), ("MAX_REQUEST", "MAX_REQUESTS"), ("KV_EVENT", "KV_EVENTS"), ("COLOUR", None),
     ("SERVICE", None), ("PORT_NUMBER", None)],
)  # fmt: skip
def test_a_name_that_is_no_setting_is_refused_and_the_near_one_named(name: str, meant: str | None) -> None:
    with pytest.raises(SettingsError, match=f"PREFIXSCOPE_{name} is not") as refused:
        load_settings({f"PREFIXSCOPE_{name}": "80"})
    assert (f"PREFIXSCOPE_{meant} meant?" in (refused.value.hint or "")) is (meant is not None)


@pytest.mark.parametrize("service", ["", "WEB_", "KV_EVENTS_"])
def test_what_kubernetes_says_of_a_service_is_left_out_and_logged(
    service: str, caplog: pytest.LogCaptureFixture
) -> None:
    links = {
        "SERVICE_HOST": "10.0.0.7", "SERVICE_PORT": "8080", "SERVICE_PORT_HTTP": "8080",
        "PORT": "tcp://10.0.0.7:8080", "PORT_8080_TCP": "tcp://10.0.0.7:8080", "PORT_8080_TCP_PROTO": "tcp",
        "PORT_8080_TCP_PORT": "8080", "PORT_8080_TCP_ADDR": "10.0.0.7",
    }  # fmt: skip
    environment = {f"PREFIXSCOPE_{service}{name}": value for name, value in links.items()}

    settings = load_settings({**environment, "PREFIXSCOPE_MAX_CLIENTS": "7"})

    assert (settings.port, settings.max_clients) == (8080, 7)
    (record,) = caplog.records
    assert all(name in record.getMessage() for name in environment)


def test_the_readme_shows_the_table() -> None:
    readme = (ROOT / "README.md").read_text()
    for setting in SETTINGS:
        default = f"`{setting.default}`" if setting.default else ""
        assert f"| `{setting.name}` | {default} | {setting.help} |" in readme
